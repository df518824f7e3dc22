"""Names from a stranger's archive are text in a browser: they run nothing and break no layout."""

import pytest

from tests.browser.conftest import Open
from tests.browser.test_pages import AUDIT, OPEN_ALL, OVERFLOW

pytestmark = pytest.mark.browser
HOSTILE_PAGES = (
    *("report-hostile", "report-long", "comparison-hostile", "gate-hostile", "history-hostile"),
)
EVERY_PAGE = pytest.mark.parametrize("name", HOSTILE_PAGES)


@EVERY_PAGE
def test_nothing_of_a_name_becomes_markup_or_runs(open_page: Open, name: str) -> None:
    page = open_page(name)
    page.evaluate(OPEN_ALL)
    assert page.evaluate("() => window.hostile") is None
    assert page.locator("img, b, iframe, object, embed, form, base").count() == 0
    assert page.locator("script").count() == 1
    text = page.locator("body").inner_text()
    assert "49 <b>" not in text
    if name != "report-long":
        assert "<script>window.hostile" in text
        assert "\u27e8U+202E\u27e9" in text
    for character in "\u202e\u2066\u200f\x1b\x00\x07":
        assert character not in text


@EVERY_PAGE
@pytest.mark.parametrize("width", [390, 1280])
def test_no_name_breaks_the_layout(open_page: Open, name: str, width: int) -> None:
    page = open_page(name, width=width)
    page.evaluate(OPEN_ALL)
    assert page.evaluate(OVERFLOW) == 0
    # No text lies over the text beside it: every cell keeps to its column.
    outside = page.evaluate(
        """() => [...document.querySelectorAll('td, th, dd, li, p, h1, h2, h3, summary')]
            .filter((part) => part.checkVisibility() && part.scrollWidth > part.clientWidth + 1
                && part.clientWidth && getComputedStyle(part).display !== 'inline'
                && getComputedStyle(part).overflowX === 'visible')
            .map((part) => `${part.tagName} ${part.textContent.trim().slice(0, 40)}`)"""
    )
    assert outside == []


@EVERY_PAGE
def test_a_hostile_page_is_as_readable_as_any(open_page: Open, name: str) -> None:
    page = open_page(name)
    page.evaluate(OPEN_ALL)
    assert page.evaluate(AUDIT) == []


def test_text_from_right_to_left_stays_in_its_place(open_page: Open) -> None:
    page = open_page("report-hostile")
    name = page.locator("table.results .name bdi").nth(1)
    assert "(1)" in name.inner_text()
    evidence = name.locator("xpath=../following-sibling::span[1]")
    boxes = [part.bounding_box() for part in (name, evidence)]
    assert all(boxes)
    first, second = (box["x"] for box in boxes if box is not None)
    assert first < second
