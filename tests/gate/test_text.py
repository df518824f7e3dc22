"""One screen whose first line is the verdict."""

import pytest

from kvbench.compare.policy import Policy, find_policy
from kvbench.gate.decide import decide
from kvbench.gate.model import Gate
from kvbench.gate.text import WIDTH, render
from kvbench.gate.words import judged_direction, row_words
from kvbench.measure.model import MeasuredRun
from kvbench.measure.roles import Judgement
from tests.compare.runs import a_run
from tests.compare.samples import a_summary

GOOD = {"iops": [100.0, 101, 102, 99, 98, 100]}
BAD = {"iops": [v / 2 for v in GOOD["iops"]]}


@pytest.fixture(scope="module")
def policy() -> Policy:
    return find_policy(None, "gate")


def gate(policy: Policy, new: dict[str, list[float]], **changes: object) -> Gate:
    candidate = a_run("new", new, **changes)  # type: ignore[arg-type]
    return decide(a_run("base", GOOD), candidate, policy, Judgement())


def test_the_first_line_is_the_verdict(policy: Policy) -> None:
    assert render(gate(policy, GOOD)).startswith("PASS: 1 number not worse by more than the margin")
    assert render(gate(policy, BAD)).startswith("FAIL: 1 number worse")
    assert render(gate(policy, {})).startswith("FAIL: 1 number missing")
    blocked = render(gate(policy, BAD, fio_version="fio-3.42"))
    assert blocked.startswith("INCOMPARABLE: fio must not differ")


def test_a_regression_shows_both_values_the_change_and_the_evidence(policy: Policy) -> None:
    shown = render(gate(policy, BAD))
    assert "small-reads: reads.iops" in shown
    assert "100 (95 % interval 98.0 to 102, n=6) -> 50.0" in shown
    assert "-50.0 % worse" in shown
    assert "p=" in shown


def test_it_fits_one_screen_however_many_numbers_are_bad(policy: Policy) -> None:
    def run(name: str, factor: float, facts: dict[str, str | None]) -> MeasuredRun:
        rows = [
            a_summary(
                [factor * v for v in range(100, 109)],
                metric="iops",
                parameters={"queue_depth": 4, "name" + "x" * 60: n},
            )
            for n in range(200)
        ]
        return a_run(name, {}, summaries=rows, facts=facts)

    found = decide(
        run("base", 1.0, {}), run("new", 0.5, {"device_firmware": "F" * 300}), policy, Judgement()
    )
    lines = render(found).splitlines()
    assert len(lines) <= 48
    assert all(len(line) <= WIDTH for line in lines)
    assert "and 194 more WORSE" in render(found)
    assert len(render(found, every_row=True).splitlines()) > 600


LONG = "\x1b[31m\u202e漢字 Ω " * 60


@pytest.mark.parametrize("every_row", [False, True])
def test_names_of_any_length_and_kind_keep_to_its_width(policy: Policy, every_row: bool) -> None:
    facts: dict[str, str | None] = {"device_model": LONG, "device_firmware": LONG, "kernel": LONG}
    candidate = a_run("new", BAD, label=LONG, facts=facts, caveats=(LONG,))
    found = decide(a_run("base", GOOD), candidate, policy, Judgement(), reruns=[LONG])
    for line in render(found, every_row=every_row).splitlines():
        assert line.isprintable()
        assert len(line) <= WIDTH


def test_control_characters_reach_no_terminal(policy: Policy) -> None:
    shown = render(gate(policy, BAD, label="\x1b[31mred\u202e"))
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_what_is_unclear_says_what_would_decide(policy: Policy) -> None:
    few = {"iops": [100.0, 96.0]}
    shown = render(gate(policy, few))
    assert shown.startswith("UNCLEAR")
    assert "more repetitions" in shown
    assert "WORSE needs 3 repetitions a side or more" in shown


def test_what_may_not_be_compared_shows_its_change_and_calls_it_neither_worse_nor_better(
    policy: Policy,
) -> None:
    found = gate(policy, BAD, fio_version="fio-3.42")
    (row,) = found.rows
    assert (row.verdict, judged_direction(row)) == ("INCOMPARABLE", "neither")
    assert row.change.estimate == pytest.approx(0.5)
    for shown in (row_words(row), render(found)):
        assert "-50.0 %" in shown
        assert "worse" not in shown
        assert "better" not in shown
    assert judged_direction(gate(policy, BAD).rows[0]) == "higher"
