"""Markdown for pull requests: the verdict first, and nothing of an archive is markup."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace

from kvbench.compare.model import Comparison
from kvbench.compare.policy import find_policy
from kvbench.gate.decide import decide
from kvbench.gate.model import Gate
from kvbench.measure.model import MeasuredRun
from kvbench.measure.roles import Judgement
from kvbench.report import compare_view, markdown_pages, view
from kvbench.report.markdown import escaped, joined, table
from kvbench.report.words import visible
from tests.report.example import all_valid, job_texts, make_run
from tests.report.page import Page
from tests.report.sides import SMALL, compared, drive

HOSTILE = (
    "<script>alert(1)</script>|a|`x`*b*_c_[t](http://e.vil)\"'--><!-- @team #12 \\| $x$ ~~s~~\n"
    "\n# head\n| x | y |\u202egnp\x1b[31m\x00</details>"
)
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def shown(markdown: str) -> str:
    """What a reader sees of Markdown, as one text; marks of no width are left out."""
    rendered = re.sub(r"<[^>]*>", "", MARKDOWN.render(markdown))
    return html.unescape(rendered).replace("\u200b", "").strip()


def page_of(markdown: str) -> Page:
    page = Page(MARKDOWN.render(markdown))
    assert page.problems == []
    return page


@given(st.text(max_size=80))
def test_a_text_is_shown_as_it_is_and_makes_no_markup(text: str) -> None:
    rendered = MARKDOWN.render(f"- x{escaped(text)}x")
    assert shown(rendered) == f"x{visible(text)}x"
    assert set(re.findall(r"<(\w+)", rendered)) <= {"ul", "li"}


@given(st.text(max_size=40))
def test_a_text_stays_in_its_cell(text: str) -> None:
    markdown = "\n".join(table(("head",), [(f"x{escaped(text)}x",), ("last",)]))
    rendered = MARKDOWN.render(markdown)
    assert rendered.count("<td>") == 2
    assert set(re.findall(r"<(\w+)", rendered)) <= {"table", "thead", "tbody", "tr", "th", "td"}


@pytest.mark.parametrize(
    "text", ["@someone", "a@b.example", "#12", "!3", "http://x.example", "www.x.example", "GH-7"]
)
def test_no_text_mentions_people_or_issues_or_becomes_a_link(text: str) -> None:
    rendered = html.unescape(escaped(text))
    assert text not in rendered
    assert rendered.replace("\u200b", "") == text


@pytest.mark.parametrize("text", ["- item", "+ item", "# head", "1. one", "> quote", "---", "==="])
def test_a_text_at_the_start_of_a_line_begins_no_block(text: str) -> None:
    rendered = MARKDOWN.render(f"before\n\n{escaped(text)} after")
    assert set(re.findall(r"<(\w+)", rendered)) == {"p"}


def test_rows_are_left_out_before_doubts_and_it_is_told() -> None:
    rows = [("x" * 90,)] * 100
    text = joined([*table(("head",), rows), "", "a doubt"], bytes_max=2000)
    assert len(text.encode()) <= 2100
    assert "a doubt" in text
    left_out = re.search(r"^(\d+) rows were left out", text, re.MULTILINE)
    assert left_out
    assert text.count("\n| x") + int(left_out[1]) == 100


def test_the_report_has_each_primary_number_with_its_sample_and_doubts() -> None:
    run = make_run()
    report = view.build(run, job_texts(run))
    text = markdown_pages.of_report(report)
    assert shown(text).startswith(report.verdict)
    page_of(text)
    for role in report.roles:
        for result in role.tables:
            for group in result.groups:
                for row in group.rows:
                    for value in row.values:
                        if value is not None and value.primary:
                            assert escaped(value.text) in text
                            assert escaped(value.detail) in text
    assert all(escaped(doubt.text) in text for doubt in report.doubts[:5])


def hostile_runs() -> list[MeasuredRun]:
    runs = [
        drive("a", label=HOSTILE, model=HOSTILE, firmware=HOSTILE, workloads=SMALL[:1]),
        drive("b", label="x" * 10_000, model="\u202e" * 500, workloads=SMALL[:1], kernel=HOSTILE),
    ]
    return [replace(run, record=replace(run.record, caveats=(HOSTILE,))) for run in runs]


def gated(*runs: MeasuredRun) -> Gate:
    return decide(runs[0], runs[1], find_policy(None, "gate"), Judgement())


def hostile_comparison(runs: list[MeasuredRun]) -> Comparison:
    return compared(runs)


def test_hostile_names_are_text_in_every_page() -> None:
    runs = hostile_runs()
    one = make_run(SMALL[:1], label=HOSTILE, judge=all_valid)
    pages = (
        markdown_pages.of_report(view.build(one, job_texts(one))),
        markdown_pages.of_comparison(compare_view.build(compared(runs), runs, figures=False)),
        markdown_pages.of_gate(gated(*runs)),
        markdown_pages.of_error(HOSTILE),
    )
    ours = {"p", "strong", "em", "ul", "li", "h4", "br", "table", "thead", "tbody", "tr", "th"}
    for text in pages:
        assert not set("\x00\x1b\u202e") & set(text)
        page = page_of(text)
        tags = {tag for tag, _ in page.elements}
        assert tags <= ours | {"td", "details", "summary", "blockquote"}
        assert all(not attributes for _, attributes in page.elements)


def test_a_gate_tells_the_verdict_first_and_folds_what_passes() -> None:
    base = drive("a", serial="S", jitter=1, workloads=SMALL)
    slow = drive("b", serial="S", jitter=2, slower=1.3, workloads=SMALL)
    gate = gated(base, slow)
    text = markdown_pages.of_gate(gate)
    assert text.startswith("**FAIL**: ")
    assert text.count("| **WORSE** |") == sum(row.verdict == "WORSE" for row in gate.rows)
    assert "margin 5 %" in text
    again = markdown_pages.of_gate(gated(base, drive("c", serial="S", jitter=1, workloads=SMALL)))
    assert "WORSE" not in again
    assert "<details><summary>" in again
    assert "</details>" in again


def test_a_comparison_has_a_column_per_run_and_verdicts_with_their_change() -> None:
    runs = [drive("alpha", jitter=1), drive("beta", slower=0.7, jitter=2), drive("gamma")]
    compare = compare_view.build(compared(runs), runs, figures=False)
    text = markdown_pages.of_comparison(compare)
    assert shown(text).startswith(compare.verdict)
    assert "| workload | number | A | B against A | C against A |" in text
    assert "<br>**BETTER** " in text
    page_of(text)
