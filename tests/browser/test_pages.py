"""Pages in a browser: whole without script, sorted and filtered with it, readable by everybody."""

import re
import shutil
import subprocess
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.image import imread

from tests.browser.conftest import Open
from tests.browser.pages import KINDS

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser
AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")
OPEN_ALL = "() => document.querySelectorAll('details').forEach((part) => { part.open = true; })"
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
LARGE = {  # a table of each page that is sorted and filtered, and a column of numbers
    "report": ("table.results >> nth=0", "IOPS"),
    "comparison": ("table.compare >> nth=0", "A alpha"),
    "gate": ("table.gate >> nth=0", "Baseline"),
}


def raw_values(table: "Locator", column: int) -> list[list[float]]:
    """The numbers of a column, by row group, as a reader sees them from above."""
    found: list[list[float]] = table.evaluate(
        """(table, column) => [...table.tBodies].map((body) => [...body.rows]
            .map((row) => row.cells[column] && row.cells[column].dataset.value)
            .filter((value) => value !== undefined).map(Number))""",
        column,
    )
    return [group for group in found if group]


def head_of(table: "Locator", name: str) -> "tuple[Locator, int]":
    """The head of the column of this name, and its place."""
    heads = table.locator("thead th")
    names = [" ".join(text.split()) for text in heads.all_inner_texts()]
    return heads.nth(names.index(name)), names.index(name)


@EVERY_KIND
@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_is_wider_than_its_window(open_page: Open, kind: str, width: int) -> None:
    page = open_page(kind, width=width)
    assert page.evaluate(OVERFLOW) == 0
    page.evaluate(OPEN_ALL)
    assert page.evaluate(OVERFLOW) == 0


@EVERY_KIND
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_reader_finds_names_order_and_contrast(
    open_page: Open, kind: str, scheme: str
) -> None:
    page = open_page(kind, scheme=scheme)
    page.evaluate(OPEN_ALL)
    assert page.evaluate(AUDIT) == []


def test_the_audit_finds_what_is_wrong(open_page: Open) -> None:
    page = open_page("gate")
    page.evaluate(
        """() => {
            const main = document.querySelector('main');
            main.insertAdjacentHTML('beforeend', `<h5>deep</h5><p id="method">twice</p>
              <input><a href="#nowhere">x</a><svg></svg><table><tr><th>bare</th></tr></table>
              <p style="color: #999; background: #fff">faint</p><button></button>`);
            document.documentElement.removeAttribute('lang');
        }"""
    )
    found = "\n".join(page.evaluate(AUDIT))
    for words in (
        *("no language", "h5 after h2", "id method twice", "input without a label"),
        *("link to nowhere #nowhere", "drawing without role", "head without scope"),
        *("contrast 2.85", "button without text", "table without a name"),
    ):
        assert words in found


@EVERY_KIND
def test_a_page_prints_on_several_sheets(open_page: Open, kind: str) -> None:
    printed = open_page(kind).pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) > 1


def test_the_head_of_a_table_stands_on_every_sheet_that_it_reaches(
    open_page: Open, tmp_path: Path
) -> None:
    tool = shutil.which("pdftotext")
    if tool is None:
        pytest.skip("pdftotext is not installed (apt-get install poppler-utils)")
    file = tmp_path / "report.pdf"
    open_page("report").pdf(path=file, format="A4")
    text = subprocess.run(
        [tool, "-layout", file, "-"], check=True, capture_output=True, timeout=60
    ).stdout.decode()
    sheets = text.split("\f")
    rows = [bool(re.search(r"^ *\d{4} +[\d\u2013] +\w", sheet, re.MULTILINE)) for sheet in sheets]
    heads = [bool(re.search(r"Cell +Repetition +Workload", sheet)) for sheet in sheets]
    assert sum(rows) > 1
    assert heads == rows


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_table_that_goes_on_beyond_its_box_has_a_shade_at_that_edge(
    open_page: Open, scheme: str
) -> None:
    page = open_page("report", width=390, scheme=scheme, script=False)
    box = page.locator(".scroll").first
    box.scroll_into_view_if_needed()
    assert box.evaluate("box => box.scrollWidth > box.clientWidth + 50")
    begin, middle, end = (_edges(page, box, share) for share in (0, 0.5, 1))
    # (left, right): shaded where there is more, bare where the table ends
    assert begin == (False, True)
    assert middle == (True, True)
    assert end == (True, False)


def _edges(page: "Page", box: "Locator", share: float) -> tuple[bool, bool]:
    """Scroll to this share and tell whether either edge differs from the bare ground."""
    box.evaluate(
        "(box, share) => { box.scrollLeft = share * (box.scrollWidth - box.clientWidth); }", share
    )
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    ground = np.array([int(part) for part in re.findall(r"\d+", colour)[:3]]) / 255
    rows = imread(BytesIO(box.screenshot()))[100:-4, :, :3]  # below the caption

    def shaded(column: int) -> bool:
        return bool(np.abs(np.median(rows[:, column], axis=0) - ground).max() > 0.08)

    return shaded(3), shaded(-4)


@EVERY_KIND
def test_without_script_everything_is_there_and_nothing_pretends_to_work(
    open_page: Open, kind: str
) -> None:
    with_script, without = (
        open_page(kind, script=script).locator("tbody tr").count() for script in (True, False)
    )
    assert with_script == without
    page = open_page(kind, script=False)
    assert page.locator("h1").is_visible()
    assert page.locator("button:visible, input:visible, .toggles:visible").count() == 0
    assert page.locator("main table").first.is_visible() or kind == "history"


@pytest.mark.parametrize("kind", LARGE)
def test_a_column_sorts_by_its_raw_numbers_inside_each_group(open_page: Open, kind: str) -> None:
    which, name = LARGE[kind]
    table = open_page(kind).locator(which)
    head, column = head_of(table, name)
    before = raw_values(table, column)
    rows_before = table.locator("tbody tr").all_inner_texts()
    assert any(len(group) > 2 for group in before)
    button = head.get_by_role("button")
    button.click()
    assert raw_values(table, column) == [sorted(group) for group in before]
    assert head.get_attribute("aria-sort") == "ascending"
    button.focus()
    button.press("Enter")
    assert raw_values(table, column) == [sorted(group, reverse=True) for group in before]
    assert head.get_attribute("aria-sort") == "descending"
    button.press("Space")
    assert table.locator("tbody tr").all_inner_texts() == rows_before
    assert head.get_attribute("aria-sort") is None


def test_words_sort_as_words_and_what_has_no_number_comes_last(open_page: Open) -> None:
    page = open_page("report")
    table = page.locator("section[aria-labelledby=cells] table")
    head, _ = head_of(table, "Workload")
    head.get_by_role("button").click()
    shown = table.locator("tbody tr td:nth-child(3)").all_inner_texts()
    assert shown == sorted(shown)
    assert len(set(shown)) > 2
    results = page.locator("table.results:has(td[data-value]):has(td .missing)").first
    missing = "(table) => table.querySelector('td .missing').closest('td').cellIndex"
    column = int(results.evaluate(missing))
    assert any(len(set(known)) == 2 for known in _known(results, column))
    for _ in range(2):
        results.locator("thead th").nth(column).get_by_role("button").click()
        for known in _known(results, column):
            assert known == sorted(known, reverse=True)


def _known(table: "Locator", column: int) -> list[list[bool]]:
    """Whether each row has a number in the column, by row group."""
    found: list[list[bool]] = table.evaluate(
        """(table, column) => [...table.tBodies].map((body) => [...body.rows]
            .filter((row) => row.cells.length > 1)
            .map((row) => row.cells[column].dataset.value !== undefined))""",
        column,
    )
    return found


@pytest.mark.parametrize("kind", LARGE)
def test_a_filter_says_how_many_rows_are_left(open_page: Open, kind: str) -> None:
    page = open_page(kind)
    box = page.get_by_label("Filter rows").first
    status = page.locator(".filter [role=status]").first
    total = int(status.inner_text().split()[0])
    table = page.locator(".filter + .scroll table").first
    rows = table.locator("tbody tr:visible:has(td)")
    assert rows.count() == total
    word = "512 B"
    box.fill(f"{word.lower()}  depth")
    left = rows.count()
    assert 0 < left < total
    assert status.inner_text() == f"{left} of {total} rows"
    assert all(word in text and "depth" in text for text in rows.all_inner_texts())
    box.fill("no row says this")
    assert rows.count() == 0
    assert table.locator("tbody tr:visible").count() == 0
    box.fill("")
    assert rows.count() == total


def test_a_run_is_hidden_in_every_figure_of_a_comparison_and_comes_back(open_page: Open) -> None:
    page = open_page("comparison")
    button = page.locator(".toggles button[data-side='1']").first
    drawn = page.locator("svg [data-side='1']")
    others = page.locator("svg [data-side='0']:not(.off)")
    assert button.inner_text().split() == ["B", "beta"]
    assert drawn.count() > 10
    before = others.count()
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert _shown(page) == 0
    assert others.count() == before
    again = page.locator(".toggles button[data-side='1']").last
    assert again.get_attribute("aria-pressed") == "false"
    again.press("Enter")
    assert _shown(page) == drawn.count()


def _shown(page: "Page") -> int:
    parts = "[...document.querySelectorAll(\"svg [data-side='1']\")]"
    shown: int = page.evaluate(
        f"() => {parts}.filter((part) => getComputedStyle(part).display !== 'none').length"
    )
    return shown


@pytest.mark.parametrize("script", [True, False])
def test_links_lead_to_a_cell_and_to_its_job_text(open_page: Open, script: bool) -> None:
    page = open_page("report", script=script, at="#cell-0003")
    row = page.locator("tr:target")
    assert row.get_attribute("id") == "cell-0003"
    row.get_by_role("link", name="0003").click()
    assert page.locator("#job-0003 pre").is_visible()
    page.locator("#job-0003").get_by_role("link").click()
    assert page.locator("tr:target").get_attribute("id") == "cell-0003"
    problem = page.locator("section[aria-labelledby=problems] td a").first
    name = problem.inner_text()
    problem.click()
    assert page.locator("tr:target").get_attribute("id") == f"cell-{name}"


def test_a_link_shows_a_row_that_a_filter_hid(open_page: Open) -> None:
    page = open_page("report")
    section = page.locator("section[aria-labelledby=cells]")
    section.get_by_label("Filter rows").fill("no row says this")
    assert not page.locator("#cell-0003").is_visible()
    page.evaluate("() => { location.hash = 'cell-0003'; }")
    page.wait_for_function("() => document.getElementById('cell-0003').checkVisibility()")
    assert section.get_by_label("Filter rows").input_value() == ""


@pytest.mark.parametrize("kind", ["report", "comparison"])
def test_a_pointer_on_a_point_finds_its_value_with_unit_place_and_n(
    open_page: Open, kind: str
) -> None:
    page = open_page(kind, script=False)
    titles = page.locator("svg use > title").all_text_contents()
    assert len(titles) > 100
    lines = next(title for title in titles if title.split("\n")[1].startswith("IOPS")).split("\n")
    assert re.fullmatch(r"IOPS: [\d.]+k? /s", lines[1])
    assert lines[2].startswith("queue depth: ")
    assert re.search(r"\bn=\d+", lines[3])


def test_the_marker_under_the_pointer_is_the_one_that_speaks(open_page: Open) -> None:
    page = open_page("report")
    told = page.evaluate(
        """() => {
            const marker = document.querySelector('svg use > title').parentElement;
            marker.scrollIntoView({block: 'center'});
            const box = marker.getBoundingClientRect();
            const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
            const found = document.elementFromPoint(x, y).closest('use');
            return found ? found.querySelector('title').textContent : '';
        }"""
    )
    assert "n=" in told


def test_a_pointer_on_the_timeline_finds_the_numbers_of_that_second(open_page: Open) -> None:
    page = open_page("timeline", script=False)
    told = page.evaluate(
        """() => {
            const plot = document.querySelector('#timeline svg');
            plot.scrollIntoView({block: 'center'});
            const box = plot.getBoundingClientRect();
            return [0.3, 0.7].map(share => [0.25, 0.75].map(down => {
                const found = document.elementFromPoint(
                    box.x + share * box.width, box.y + down * box.height);
                const title = found.querySelector(':scope > title');
                return title ? title.textContent : '';
            }));
        }"""
    )
    for above, below in told:
        assert above == below  # one strip over all axes
        assert re.match(r"[\d.]+\u2013[\d.]+ s: cell ", above)
        assert re.search(r"p50 \S+ .s, p99 \S+ .s, p99.9 \S+ .s; \S+/s", above)
    assert told[0] != told[1]


def test_every_drawing_of_a_device_that_is_not_steady_says_so_above_its_axes(
    open_page: Open,
) -> None:
    page = open_page("timeline")
    found = page.evaluate(
        """() => [...document.querySelectorAll('svg.plot')].map(plot => {
            const [mark] = plot.querySelectorAll('text.steady-mark');
            const [own, all] = [mark.getBoundingClientRect(), plot.getBoundingClientRect()];
            const under = [...plot.querySelectorAll('text:not(.steady-mark)')].every(
                text => text.getBoundingClientRect().top >= own.bottom - 1);
            return [mark.textContent, own.top >= all.top - 1, own.right <= all.right, under];
        })"""
    )
    assert len(found) > 3
    assert found == [["not steady", True, True, True]] * len(found)
