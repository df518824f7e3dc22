"""One headless Chromium and one set of pages for all tests; skipped with a reason without one."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.pages import make_pages

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
Open = Callable[..., "Page"]


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """Debian's Chromium with an empty profile of its own."""
    reason = "playwright is not installed (pip install 'kvbench[dev]')"
    api = pytest.importorskip("playwright.sync_api", reason=reason)
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=list(OPTIONS))
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Name -> file of every page."""
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for name, page in make_pages().items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(page, encoding="utf-8")
    return found


@pytest.fixture
def open_page(browser: "Browser", site: dict[str, Path]) -> Iterator[Open]:
    """Open a page by its name; afterwards it has asked for nothing and not complained."""
    contexts = []
    told: list[str] = []

    def open_one(
        name: str,
        *,
        width: int = 1280,
        scheme: str = "light",
        script: bool = True,
        at: str = "",
    ) -> "Page":
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            java_script_enabled=script,
            offline=True,
        )
        contexts.append(context)
        page = context.new_page()
        own = site[name].as_uri()
        page.on("console", lambda message: told.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: told.append(f"error: {error}"))
        page.on("dialog", lambda dialog: told.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: (
                told.append(f"request: {request.url[:200]}")
                if request.url.partition("#")[0] != own
                else None
            ),
        )
        page.goto(f"{own}{at}")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert told == []
