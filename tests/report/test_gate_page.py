"""A gate as a page: the verdict first, then what failed or is unclear and what would decide it."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from msgspec.structs import replace

from kvbench.compare.policy import RequiredLevel, find_policy
from kvbench.gate.decide import decide
from kvbench.gate.model import Gate
from kvbench.measure.roles import Judgement
from kvbench.report import gate_html, gate_view
from kvbench.report.gate_model import GateNumber, GateView
from tests.compare.runs import a_run
from tests.report.page import Page

GOOD = [100.0, 101, 102, 99, 98, 100]
POLICY = find_policy(None, "gate")
COMMAND = ("kvbench", "gate", "base", "new run")


def gate(new: dict[str, Sequence[float]], **changes: object) -> Gate:
    base = a_run("base", {"iops": GOOD, "latency_p99": GOOD})
    candidate = a_run("new", {name: list(v) for name, v in new.items()}, **changes)  # type: ignore[arg-type]
    wide = replace(POLICY, metrics=("*/*.iops", "*/*.latency_p99"))
    return decide(base, candidate, wide, Judgement())


def view(new: dict[str, Sequence[float]], **changes: object) -> GateView:
    return gate_view.build(gate(new, **changes), COMMAND)


def scaled(factor: float) -> list[float]:
    return [factor * value for value in GOOD]


def rows(found: GateView) -> dict[str, GateNumber]:
    return {row.metric: row for g in (*found.open, *found.passed) for row in g.rows}


HALF = view({"iops": scaled(0.5), "latency_p99": scaled(1.0)})


def test_the_verdict_comes_first_in_words() -> None:
    page = Page(gate_html.render(HALF))
    assert page.problems == []
    assert (HALF.outcome, HALF.state) == ("FAIL", "bad")
    header = page.text("header")
    assert header.index("FAIL") < header.index("1 number worse")
    assert HALF.counts == (("WORSE", 1), ("PASS", 1))
    same = view({"iops": scaled(1.0), "latency_p99": scaled(1.0)})
    assert (same.outcome, same.state) == ("PASS", "note")
    assert same.verdict == "2 numbers not worse by more than the margin."
    assert "every gated number passes" in gate_html.render(same)


def test_what_failed_has_both_medians_their_spread_n_margin_and_evidence() -> None:
    (group,) = HALF.open
    (row,) = group.rows
    assert (row.word, row.metric) == ("WORSE", "IOPS")
    assert (row.baseline.text, row.baseline.raw) == ("100 IOPS", 100.0)
    assert row.candidate.text == "50.0 IOPS"
    assert row.candidate.detail.endswith("n=6")
    assert row.change == "-50.0 % worse"
    assert row.interval.endswith(" %")
    assert row.margin == "5 %"
    assert row.evidence.startswith("p=")


def test_a_change_is_a_place_between_its_margins() -> None:
    found = rows(view({"iops": scaled(0.97), "latency_p99": scaled(4.0)}))
    near, far = found["IOPS"].strip, found["p99 latency"].strip
    assert near is not None
    assert far is not None
    assert near.low < near.estimate < near.high
    assert 50 - near.inside < near.estimate < 50
    assert far.estimate == far.high == 100
    assert "worse" in far.words
    missing = rows(view({"iops": scaled(1.0)}))["p99 latency"]
    assert missing.strip is None
    assert missing.word == "MISSING"


def test_what_is_unclear_says_how_many_repetitions_would_decide() -> None:
    found = view({"iops": [100.0, 96.0], "latency_p99": [100.0, 101.0]})
    assert (found.outcome, found.state) == ("UNCLEAR", "doubt")
    assert "repetitions" in found.next_step
    needs = [row.needs for row in rows(found).values() if row.word == "UNCLEAR"]
    assert needs
    assert all(need.startswith("about ") or need == "more may not decide it" for need in needs)
    assert found.decide == "kvbench gate base 'new run' --rerun TARGET"
    assert HALF.decide == ""


def test_the_worst_comes_first_within_a_workload() -> None:
    found = view({"iops": [100.0, 96.0, 104.0, 98, 97, 101], "latency_p99": scaled(2.0)})
    words = [row.word for group in found.open for row in group.rows]
    assert all(gate_view.ORDER.index(a) <= gate_view.ORDER.index(b) for a, b in pairwise(words))
    assert words[0] == "WORSE"


def test_what_must_not_differ_comes_first_and_blocks() -> None:
    found = view({"iops": scaled(1.0)}, fio_version="fio-3.42", label="other")
    assert found.outcome == "INCOMPARABLE"
    assert found.differences[0].blocks
    assert found.differences[0].effect == "must not differ"
    assert found.doubts[0].level == "bad"


def test_required_levels_stand_with_their_verdict() -> None:
    asked = replace(POLICY, require=(RequiredLevel(role="memory", level="steady-tail"),))
    base, new = (a_run(name, {"iops": GOOD}) for name in ("base", "new"))
    found = gate_view.build(decide(base, new, asked, Judgement()))
    (row,) = found.required
    assert (row.role, row.chip.text) == ("memory", "cannot say")
    assert "steady-tail" in Page(gate_html.render(found)).text("table")


def test_a_doubt_has_one_mark_that_stands_beside_every_number_it_concerns() -> None:
    made = gate({"iops": scaled(0.5), "latency_p99": scaled(2.0)})
    doubted = replace(
        made,
        rows=tuple(replace(r, change=replace(r.change, doubts=("x", "y"))) for r in made.rows),
    )
    found = gate_view.build(doubted)
    marked = [doubt for doubt in found.doubts if doubt.mark]
    assert [(doubt.mark, doubt.text) for doubt in marked] == [
        ("a", "x (2 numbers)"),
        ("b", "y (2 numbers)"),
    ]
    assert all(row.marks == ("a", "b") for row in rows(found).values())
    assert 'href="#doubt-a"' in gate_html.render(found)


@pytest.mark.parametrize("message", ["no such run", "<script>alert(1)</script>\u202e"])
def test_a_gate_without_a_verdict_leaves_a_page_that_says_so(message: str) -> None:
    source = gate_html.of_error(message)
    page = Page(source)
    assert page.problems == []
    assert "NO VERDICT" in page.text("main")
    assert not page.named("script")
    assert "\u202e" not in source
