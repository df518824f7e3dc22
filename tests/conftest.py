"""What all tests share: golden files and what this machine can do."""

import difflib
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# A deadline of an example would assert how fast this machine is just then.
settings.register_profile("any-speed", deadline=None)
settings.load_profile("any-speed")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="take what the tests got as right from now on"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:  # noqa: ANN401
    """Say which tests stay in one worker when several share the work.

    What measures never runs beside another that does: they would count each other's requests and
    pages, and a cell that waits for another's is not valid.  All other tests stay with those of
    their file, with which they share fixtures.
    """
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return worker_group(nodeid.partition("::")[0])

    return Scheduling(config, log)


@cache
def worker_group(file: str) -> str:
    """Return what the tests of a file have in common with those that stay in their worker."""
    text = (Path(__file__).parents[1] / file).read_text(encoding="utf-8")
    measures = any(f"mark.{mark}" in text for mark in ("blockdev", "fio", "slow"))
    return "devices" if measures else file


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with ``tests/golden/<name>``; a difference leaves ``<name>.got`` beside it."""
    update = bool(request.config.getoption("--update-golden"))

    def check(name: str, got: str) -> None:
        path = GOLDEN / name
        got_path = path.with_name(f"{path.name}.got")
        if update:
            path.parent.mkdir(exist_ok=True)
            path.write_text(got, encoding="utf-8")
            got_path.unlink(missing_ok=True)
        want = path.read_text(encoding="utf-8") if path.exists() else ""
        if got == want:
            got_path.unlink(missing_ok=True)
            return
        got_path.write_text(got, encoding="utf-8")
        lines = difflib.unified_diff(
            want.splitlines(), got.splitlines(), name, got_path.name, lineterm=""
        )
        pytest.fail(
            "\n".join(lines) + "\nRun pytest --update-golden to accept the new text.", pytrace=False
        )

    return check


@pytest.fixture(scope="session")
def fio() -> str:
    """The path of the real fio."""
    path = shutil.which("fio")
    if path is None:
        pytest.skip("fio is not installed")
    return path
