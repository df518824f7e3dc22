"""The comparison as a page and as text: self-contained, escaped, in 100 columns."""

import re

import pytest
from msgspec.structs import replace

from kvbench.compare.model import Comparison
from kvbench.measure.model import MeasuredRun
from kvbench.report import compare_html, compare_text
from kvbench.report.columns import width
from kvbench.report.compare_view import build
from tests.report.example import LOAD
from tests.report.page import Page
from tests.report.sides import SMALL, compared, drive, view_of

HOSTILE = (
    "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>]]>--></svg>&amp; $x^2$ "
    "\u202egnp\x1b[31m\x00{{ 7 * 7 }}"
)
THREE = [drive("alpha", jitter=1), drive("beta", slower=0.7, jitter=2), drive("gamma", slower=1.4)]


def hostile() -> tuple[Comparison, list[MeasuredRun]]:
    runs = [
        drive("a", label=HOSTILE, model=HOSTILE, firmware=HOSTILE, workloads=SMALL[:1]),
        drive("b", label="x" * 10_000, model="\u202e" * 500, kernel=HOSTILE, workloads=SMALL[:1]),
        drive("c", label="\u05d0" * 80, firmware=None, model=None, workloads=SMALL[:1]),
    ]
    runs[1] = replace(runs[1], record=replace(runs[1].record, run_id=HOSTILE, caveats=(HOSTILE,)))
    return compared(runs), runs


@pytest.fixture(scope="module")
def source() -> str:
    return compare_html.render(view_of(THREE))


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    return Page(source)


def test_every_tag_is_closed_and_every_link_leads_to_the_page(page: Page) -> None:
    assert page.problems == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.elements:
        for target in (attributes.get("href", ""), attributes.get("aria-labelledby", "")):
            if tag != "link":
                assert {one.removeprefix("#") for one in target.split()} <= set(ids)


def test_the_page_needs_no_network_and_runs_its_own_script_alone(page: Page, source: str) -> None:
    assert page.foreign_scripts() == []
    assert "http" not in source.replace("http-equiv", "")
    assert "@import" not in source
    assert not any(key.startswith("on") for _, attrs in page.elements for key in attrs)
    policy = next(a["content"] for a in page.named("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_sections_come_in_the_order_of_reading(source: str) -> None:
    order = ["runs", "doubts", "differs", "winners", "role-memory", "role-performance"]
    places = [source.index(f'<h2 id="{name}">') for name in [*order, "unshared", "method"]]
    assert places == sorted(places)


def test_each_verdict_stands_in_words_with_its_change(page: Page) -> None:
    text = page.text("main")
    for words in ("BETTER", "WORSE", "Hodges-Lehmann", "Mann-Whitney", "Holm"):
        assert words in text
    assert len(page.named("svg")) >= 4


def test_hostile_names_are_text_in_the_page() -> None:
    comparison, runs = hostile()
    source = compare_html.render(build(comparison, runs))
    page = Page(source)
    assert page.problems == []
    assert page.foreign_scripts() == []
    assert not page.named("img")
    assert "\x1b" not in source
    assert "\x00" not in source
    assert "\u202e" not in source
    assert "{{ 7" in page.text()
    assert "49" not in re.findall(r"gnp\S* (\d+)", page.text())
    assert len(source) < 1_000_000


def test_hostile_names_do_not_leave_their_line_in_the_terminal() -> None:
    comparison, runs = hostile()
    text = compare_text.render(build(comparison, runs, figures=False))
    for line in text.split("\n"):
        assert line.isprintable()
        assert width(line) <= 100
        assert "\u202e" not in line


def test_the_first_line_is_the_verdict_and_no_line_is_too_long() -> None:
    text = compare_text.render(view_of(THREE))
    assert text.startswith("memory: B (beta) is best; performance: B (beta) is best.\n")
    assert max(width(line) for line in text.splitlines()) <= 100
    assert text.index("WHAT DIFFERS") < text.index("MEMORY:") < text.index("Winners")


def test_text_for_terminals_without_unicode_is_ascii() -> None:
    comparison, runs = hostile()
    for view in (view_of(THREE), build(comparison, runs, figures=False)):
        text = compare_text.render(view, ascii_only=True)
        assert text.isascii()


def test_text_says_how_many_other_numbers_differ() -> None:
    assert re.search(
        r"Of the \d+ other comparisons in memory: \d+ BETTER, \d+ WORSE\.",
        (compare_text.render(view_of(THREE))),
    )


def test_a_page_of_eight_runs_of_sixty_points_is_at_most_three_megabytes() -> None:
    from tests.report.example import BLOCKS, NEW, ladder

    runs = [
        drive(f"d{n}", jitter=n, workloads=(ladder((512, 1024, 4096)), BLOCKS, *NEW))
        for n in range(8)
    ]
    points = {cell.point_id for cell in runs[0].record.plan.cells if cell.purpose == "measure"}
    assert len(points) >= 55
    assert len(compare_html.render(view_of(runs)).encode()) <= 3_000_000


def test_a_narrow_figure_without_a_partner_has_a_row_of_its_own(source: str) -> None:
    runs = [drive("alpha", jitter=1, workloads=(LOAD,)), drive("beta", jitter=2, workloads=(LOAD,))]
    classes = [a.get("class") for a in Page(compare_html.render(view_of(runs))).named("figure")]
    assert classes.count("lone") == 1
    assert None not in classes  # a narrow one beside another would have no class
    assert "lone" not in [a.get("class") for a in Page(source).named("figure")]


def test_every_run_has_a_button_over_the_figures_and_its_number_in_them(page: Page) -> None:
    named = {a["data-side"] for a in page.named("span") if "data-side" in a}
    drawn = {a["data-side"] for a in page.named("g") if "data-side" in a}
    assert named == drawn == {"0", "1", "2"}
    toggles = [a for a in page.named("p") if a.get("class") == "toggles"]
    assert toggles
    assert all("hidden" in a for a in toggles)  # without script they would do nothing
