"""The page: self-contained, structured, escaped."""

import re
from itertools import pairwise

import pytest
from msgspec.structs import replace

from kvbench.cli.breakeven_subject import Asked, subject_of_report
from kvbench.report import html, text, view
from tests.report.example import (
    BLOCKS,
    FANOUT,
    LOAD,
    MATRIX,
    NEW,
    STEPS,
    all_valid,
    job_texts,
    ladder,
    make_run,
    renamed,
)
from tests.report.page import Page

HOSTILE = (
    "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>]]>--></svg>&amp; $x^2$ "
    "\u202egnp\x1b[31m\x00{{ 7 * 7 }}"
)


@pytest.fixture(scope="module")
def source() -> str:
    run = make_run()
    return html.render(view.build(run, job_texts(run)))


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    return Page(source)


def test_every_tag_is_closed_and_every_id_is_unique(page: Page) -> None:
    assert page.problems == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_links_and_references_lead_to_ids_of_the_page(page: Page, source: str) -> None:
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    for tag, attributes in page.elements:
        for key in ("href", "aria-labelledby"):
            for target in attributes.get(key, "").split():
                if tag != "link":
                    assert target.removeprefix("#") in ids
    assert set(re.findall(r"url\(#([^)]+)\)", source)) <= ids


def test_the_page_needs_no_network_and_runs_its_own_script_alone(page: Page, source: str) -> None:
    assert page.foreign_scripts() == []
    assert not re.search(r"(src|href)\s*=\s*[\"']?\s*(https?:|//)", source)
    assert "@import" not in source
    assert "http" not in source.replace("http-equiv", "")
    assert not any(key.startswith("on") for _, attrs in page.elements for key in attrs)
    policy = next(a["content"] for a in page.named("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_headings_are_in_order_and_there_is_one_main(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    for landmark in ("header", "nav", "main", "footer"):
        assert len(page.named(landmark)) == 1


def test_sections_come_in_the_order_of_reading(source: str) -> None:
    order = ["doubts", "facts", "role-memory", "role-performance", "role-capacity"]
    order += ["problems", "method", "cells", "jobs", "repeat"]
    places = [source.index(f'<h2 id="{name}"') for name in order]
    assert places == sorted(places)


def test_tables_have_captions_and_scoped_headers_inside_a_scroller(page: Page) -> None:
    tables = len(page.named("table"))
    assert tables > 10
    assert len(page.named("caption")) == tables
    assert sum("scroll" in a.get("class", "").split() for a in page.named("div")) == tables
    assert all(attributes.get("scope") for attributes in page.named("th"))


def test_doubts_are_visible_text_beside_the_number(page: Page) -> None:
    marks = [a for a in page.named("a") if a.get("class") == "mark"]
    assert marks
    assert all(a["href"] == "#doubt-a" and "this host generates" in a["title"] for a in marks)
    assert "doubt a" in page.text("td")


def test_drawings_are_images_with_a_name_and_a_description(page: Page) -> None:
    drawings = page.named("svg")
    assert len(drawings) == 12
    assert all(a["role"] == "img" and a["aria-labelledby"] for a in drawings)
    assert len(page.named("desc")) == len(drawings)
    assert len(page.named("figcaption")) == len(page.named("figure"))


def test_colours_follow_the_reader_and_nothing_is_rasterised(page: Page, source: str) -> None:
    assert "prefers-color-scheme: dark" in source
    assert "currentColor" in source
    assert "#010203" not in source
    assert not page.named("image")
    assert not page.named("img")


def test_every_job_text_is_there_exactly(page: Page) -> None:
    shown = page.text("pre")
    for job in job_texts(make_run()).values():
        assert job in shown


def test_the_numbers_of_the_page_carry_units_and_n(page: Page) -> None:
    text = page.text("table")
    assert re.search(r"\d k? ?IOPS|\d+(\.\d+)?k IOPS", text)
    assert "range of n=3" in text
    assert "too few I/Os" in text
    assert "≥ 17.1 s" in text


def test_projected_results_stand_apart(source: str) -> None:
    start = source.index('<div class="projected">')
    before, projected = source[:start], source[start:]
    assert 'title="sparse-fetch"' not in before
    assert 'title="sparse-fetch"' in projected[: projected.index("</table>")]


def test_hostile_text_is_shown_and_does_nothing() -> None:
    run = make_run(
        [renamed(ladder(), HOSTILE, "s$<b>&\u202e")],
        path=f"/dev/{HOSTILE}",
        damage=(HOSTILE,),
        caveats=(HOSTILE,),
        label=HOSTILE,
    )
    jobs = dict.fromkeys(job_texts(run), f"[global]\n{HOSTILE}\n")
    source = html.render(view.build(run, jobs))
    page = Page(source)
    assert page.problems == []
    assert page.foreign_scripts() == []
    assert not page.named("img")
    assert not page.named("b")
    assert "\u202e" not in source
    assert "\x1b" not in source
    assert "\x00" not in source
    assert "{{ 7 * 7 }}" in page.text("li")
    assert "<script>alert(1)</script>" in page.text("pre")
    assert "⟨U+202E⟩" in page.text("pre")


def test_hostile_names_do_nothing_in_the_figures_that_have_many_names() -> None:
    streams = tuple(replace(s, name=f"{s.name}{HOSTILE}") for s in MATRIX.streams)
    matrix = replace(MATRIX, streams=streams, primary=(), derivation=HOSTILE)
    run = make_run(
        [
            matrix,
            *(renamed(w, f"{w.name}{HOSTILE}", "s$<b>&\u202e") for w in (LOAD, FANOUT, STEPS)),
        ],
        judge=all_valid,
    )
    subject = subject_of_report(Asked(), ("kvbench", "run", "--model", HOSTILE))
    source = html.render(view.build(run, {}, None, subject))
    page = Page(source)
    assert page.problems == []
    assert page.foreign_scripts() == []
    for tag in ("img", "b"):
        assert not page.named(tag)
    assert "\u202e" not in source
    assert any(a.get("id") == "reload-or-recompute" for a in page.named("figure"))
    shown = text.render(view.build(run, {}, None, subject), ascii_only=True)
    assert shown.isascii()
    assert max(map(len, shown.splitlines())) <= text.COLUMNS


def test_every_new_figure_is_on_the_page() -> None:
    run = make_run(NEW, judge=all_valid)
    page = Page(html.render(view.build(run, {})))
    assert page.problems == []
    ids = {a["id"].rsplit("-", 1)[0] for a in page.named("figure")}
    assert {"load-1", "sweep-2", "sweep-3", "latency"} <= ids
    assert any(a["id"].startswith("matrix-4") for a in page.named("figure"))
    shown = " ".join(page.text("svg").split())
    for words in ("limit of p99.9", "usable", "peak", "knee of 2 lines", "submitters"):
        assert words in shown


def test_a_name_of_ten_thousand_characters_stays_small() -> None:
    run = make_run([renamed(BLOCKS, "n" * 10_000, "t" * 10_000)], path="/" + "p" * 10_000)
    jobs = dict.fromkeys(job_texts(run), "[a]\n")
    source = html.render(view.build(run, jobs))
    assert len(source) < 600_000
    assert Page(source).problems == []


def test_an_empty_run_is_a_page() -> None:
    run = make_run(end="interrupted", cells_done=0, judge=all_valid)
    page = Page(html.render(view.build(run, {})))
    assert page.problems == []
    assert "not run" in page.text("td")


def test_the_same_run_gives_the_same_bytes() -> None:
    run = make_run([BLOCKS])
    first, second = (html.render(view.build(run, job_texts(run))) for _ in range(2))
    assert first == second


def test_two_hundred_cells_stay_under_three_megabytes() -> None:
    run = make_run(repetitions=7)
    assert len(run.cells) > 190
    assert len(html.render(view.build(run, job_texts(run)))) < 3_000_000
