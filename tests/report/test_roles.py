"""Role cards and controller requirements as people read them."""

import pytest
from msgspec.structs import replace

from kvbench.measure.model import MeasuredRun
from kvbench.measure.roles import Judgement, judge
from kvbench.plan import Skipped
from kvbench.report import html, text, view
from kvbench.report.model import ReportView
from kvbench.report.roles import card_views, margin_words, verdict_words
from kvbench.workload.roles import (
    CONTROLLER_KEYS,
    ControllerRequirement,
    Probe,
    Requirement,
    RoleCard,
)
from tests import records
from tests.measure import judged
from tests.report.page import Page

ABSENT = judged.subject(records.a_workload(name="w-2"))
HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m"


def fast() -> MeasuredRun:
    return judged.run(lambda _: (2000.0, 2100.0))


def a_card() -> RoleCard:
    """One level met, one missed, one projected and missed, one not measured."""
    return judged.card(
        [judged.requirement(why="so that it is fast")],
        [judged.requirement(limit=1e6), judged.requirement(ABSENT)],
        [judged.requirement(limit=1e8, evidence="projected")],
        [judged.requirement(ABSENT)],
    )


def a_controller(*subjects: object) -> ControllerRequirement:
    probes = tuple(Probe(subject=s, tells="it tells") for s in subjects)  # type: ignore[arg-type]
    return ControllerRequirement(
        key=CONTROLLER_KEYS[0],
        title="Small-I/O rate",
        asks="much",
        confounders="the host",
        cannot_prove="why it is so",
        source="a test",
        probes=probes,
    )


def shown(
    run: MeasuredRun | None = None, card: RoleCard | None = None, *subjects: object
) -> ReportView:
    run = run or fast()
    judgement = judge(run, [card or a_card()], [a_controller(*(subjects or (judged.subject(),)))])
    return view.build(run, {}, judgement)


def lines(found: ReportView) -> str:
    return text.render(found)


@pytest.mark.parametrize(
    ("margin", "words"),
    [
        (0.0, "+0 %"),
        (0.26, "+26 %"),
        (-0.3, "-30 %"),
        (2.2, "3.2x better"),
        (-0.75, "4.0x short"),
        (-0.99999, "100,000x short"),
        (None, "\u2013"),
    ],
)
def test_a_margin_is_per_cent_near_the_limit_and_a_factor_far_from_it(
    margin: float | None, words: str
) -> None:
    assert margin_words(margin) == words


def test_the_headline_names_the_highest_level_and_counts_the_others_without_projected_ones() -> (
    None
):
    found = shown().cards[0]
    assert found.headline == "highest level met: level one"
    assert found.counts == "of 3 levels: 1 met, 1 missed, 1 cannot say"


def test_projected_rows_are_counted_apart() -> None:
    one, two, three, _ = shown().cards[0].levels
    assert (one.score, one.projected_score) == ("1 met", "")
    assert (two.score, two.chip.text) == ("1 missed, 1 not in this run", "missed")
    assert (three.score, three.projected_score) == ("", "1 missed")
    assert three.only_projected


def test_what_was_not_run_is_told_apart_from_what_cannot_be_measured_here() -> None:
    judgement = judge(fast(), [a_card()], [])
    row = judgement.roles[0].levels[1].rows[1]
    assert (row.verdict, verdict_words(row)) == ("not measurable", "not in this run")
    alien = replace(row, reason="too few I/Os: 20 beyond p99 are needed")
    assert verdict_words(alien) == "not measurable here"
    page = html.render(shown(None, judged.card([judged.requirement(), judged.requirement(ABSENT)])))
    assert "not in this run</span>" in page
    assert "not measurable" not in Page(page).text("table")


def test_a_row_tells_limit_value_interval_margin_and_evidence() -> None:
    row = shown().cards[0].levels[0].rows[0]
    assert row.limit == "at least 1.00k IOPS"
    assert row.measured == "2.05k IOPS"
    assert row.detail == "2.00k\u20132.10k, range of n=2"
    assert (row.margin, row.chip.text, row.evidence) == ("2.0x better", "met", "shipping")


def test_a_role_of_which_nothing_was_measured_is_one_line_and_no_table() -> None:
    found = shown(card=judged.card([judged.requirement(ABSENT)] * 5))
    told = [line for line in lines(found).splitlines() if line.startswith("memory")]
    assert told == [
        "memory      not measured: no workload that its card asks for is in this run: "
        "run --role memory"
    ]
    page = html.render(found)
    section = page[page.index('id="cards"') : page.index('id="facts"')]
    assert "<table" not in section
    assert "not measured" in section


def test_the_terminal_has_the_headline_the_deciding_rows_and_the_exit_code() -> None:
    told = lines(shown())
    assert "memory      highest level met: level one (of 3 levels: 1 met, 1 missed" in told
    assert "IOPS of small-reads, reads: 2.05k IOPS, at least 1.00M IOPS, 488x short" in told
    assert "level three [projected]" in told
    assert "no answer  four (not in this run)" in told
    assert "the exit code stays as it is" in told
    assert max(map(len, told.splitlines())) <= text.COLUMNS


def test_the_terminal_falls_back_to_ascii() -> None:
    run = judged.run(lambda _: (0.000_2, 0.000_3), metric="latency_p99")
    about = judged.subject(metric="latency_p99")
    slow = judged.requirement(about, bound="at_most", limit=0.000_1)
    told = text.render(shown(run, judged.card([slow])), ascii_only=True)
    assert told.isascii()
    assert "at most 100 us" in told


def test_the_page_shows_the_cards_before_the_tables_and_why_on_demand() -> None:
    page = html.render(shown())
    assert Page(page).problems == []
    assert page.index('id="cards"') < page.index('id="role-memory"')
    why = page.index("so that it is fast")
    assert page.rindex("<details>", 0, why) > page.rindex("</details>", 0, why)


def test_every_verdict_of_the_page_is_a_word_and_not_a_colour_alone() -> None:
    page = Page(html.render(shown()))
    chips = sum("chip" in a.get("class", "").split() for a in page.named("span"))
    words = [t for _, t in page.texts if t in ("met", "missed", "cannot say", "not in this run")]
    assert chips
    assert len(words) >= chips - 1


def test_a_controller_requirement_shows_its_numbers_and_what_it_cannot_prove() -> None:
    found = shown(None, None, judged.subject(at={}), ABSENT)
    first, second = found.controller[0].probes
    assert [(r.point, r.value) for r in first.readings] == [
        ("depth 1", "2.05k IOPS"),
        ("depth 4", "2.05k IOPS"),
    ]
    assert second.missing == "not measured: run --workload w-2"
    assert "IOPS of small-reads, reads: 2.05k IOPS (depth 1)" in lines(found)
    assert "why it is so" in Page(html.render(found)).text("section")


def test_a_number_that_is_doubted_says_so_wherever_it_stands() -> None:
    run = fast()
    doubts = ("unstable: the repetitions differ by a factor of 2 or more",)
    doubted = tuple(replace(summary, doubts=doubts) for summary in run.summaries)
    found = shown(replace(run, summaries=doubted))
    (reading,) = found.controller[0].probes[0].readings
    assert reading.doubts == doubts
    page = html.render(found)
    controller = page[page.index('id="controller"') :]
    assert f'<span class="mark" title="{doubts[0]}">doubts</span>' in controller
    said = text.render(found).splitlines()
    assert any("(doubtful)" in line for line in said[said.index("GOOD ENOUGH FOR WHICH ROLE?") :])
    start = next(n for n, line in enumerate(said) if line.startswith("THE CONTROLLER"))
    assert "(doubtful)" in " ".join(said[start : start + 4])
    assert "(doubtful)" not in text.render(shown(run))


def test_a_controller_requirement_without_any_number_is_one_line() -> None:
    told = lines(shown(None, None, ABSENT, ABSENT))
    assert "Small-I/O rate: not measured: run --workload w-2\n" in told


def test_a_drive_with_4_kib_blocks_is_told_as_the_reason() -> None:
    why = "its 512 B blocks are not a multiple of the device's 4096 B logical block"
    run = judged.run(lambda _: (2000.0, 2100.0), skipped=(Skipped(workload="w-2", reason=why),))
    level = shown(run, judged.card([judged.requirement(), judged.requirement(ABSENT)])).cards[0]
    assert level.levels[0].rows[1].detail == f"left out: {why}"


def test_texts_of_a_card_are_escaped() -> None:
    hostile = judged.card(
        [judged.requirement(why=HOSTILE, source=HOSTILE, limit_text=HOSTILE)],
    )
    hostile = replace(hostile, summary=HOSTILE)
    page = html.render(shown(card=hostile))
    assert Page(page).foreign_scripts() == []
    assert "\u202e" not in page
    assert "\x1b" not in page


def test_a_report_without_cards_has_neither_section() -> None:
    page = html.render(view.build(fast(), {}))
    assert 'id="cards"' not in page
    assert 'id="controller"' not in page
    assert card_views(Judgement()) == ()


def test_a_requirement_that_is_also_about_the_controller_says_so() -> None:
    about: Requirement = judged.requirement(controller=CONTROLLER_KEYS[0])
    row = shown(card=judged.card([about])).cards[0].levels[0].rows[0]
    assert row.controller == "Small-I/O rate"
