"""Samples -> verdicts: effect and evidence, both or neither."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kvbench.compare.judge import judge
from kvbench.compare.lacking import Sides
from kvbench.compare.model import Change, Sample
from kvbench.compare.question import Question
from kvbench.compare.words import sample_words
from kvbench.metrics import Better
from tests.compare.samples import a_question, a_sample

CASE = Path(__file__).parents[1] / "fixtures/cases/25-regression-gate-noise"
CORNERS: dict[str, dict[str, Any]] = json.loads((CASE / "corner-cases.json").read_text())
CHANCE = 0.05


def one(question: Question, sides: Sides = "one") -> Change:
    (change,) = judge([question], CHANCE, sides=sides)
    return change


def reports(name: str) -> list[dict[str, dict[str, Any]]]:
    found: list[dict[str, dict[str, Any]]] = json.loads((CASE / f"{name}.json").read_text())
    return found


def judged(report: dict[str, dict[str, Any]]) -> dict[str, Change]:
    questions = [a_question(m["baseline"], m["candidate"], m["better"]) for m in report.values()]
    return dict(zip(report, judge(questions, CHANCE, sides="one"), strict=True))


def test_a_device_against_itself_alarms_in_at_most_two_of_forty_reports() -> None:
    every = [judged(report) for report in reports("forty-null-comparisons-same-device")]
    assert len(every) == 40
    alarms = [r for r in every if any(change.verdict == "WORSE" for change in r.values())]
    assert len(alarms) <= 2


def test_all_twenty_real_regressions_are_found_and_named() -> None:
    every = [judged(report) for report in reports("twenty-real-regressions")]
    assert len(every) == 20
    for changes in every:
        worse = {name for name, change in changes.items() if change.verdict == "WORSE"}
        assert worse >= {"randwrite_iops", "read_p99_us"}
        assert changes["seqread_MBps"].verdict == "BETTER"


def test_thirteen_metrics_of_five_repetitions_can_never_alarm_and_say_so() -> None:
    apart = a_question([100, 101, 99, 102, 98], [150, 151, 149, 152, 148])
    changes = judge([apart] * 13, CHANCE, sides="one")
    assert {change.verdict for change in changes} == {"UNCLEAR"}
    assert "5 and 5 repetitions cannot show WORSE among 13 numbers" in changes[0].reason
    assert "6 a side can" in changes[0].reason


def corner(name: str) -> Change:
    case = CORNERS[name]
    values = [[v for v in case[side] if v is not None] for side in ("baseline", "candidate")]
    return one(a_question(values[0], values[1], case["better"]))


def test_one_run_each_allows_no_verdict_and_says_so() -> None:
    change = corner("one-run-each")
    assert change.verdict == "UNCLEAR"
    assert "one repetition" in change.reason


def test_a_baseline_of_zero_has_an_absolute_change() -> None:
    change = corner("zero-baseline")
    assert (change.kind, change.estimate) == ("difference", 2)
    assert change.verdict in ("UNCLEAR", "WORSE")


def test_a_metric_that_vanished_is_missing() -> None:
    case = CORNERS["missing-metric"]
    values = [[v for v in case[side] if v is not None] for side in ("baseline", "candidate")]
    assert [] in values
    for reason, excluded in (("fio failed", 0), ("", 0), ("no repetition counts: 3 invalid", 3)):
        a, b = (a_sample(v, reason="" if v else reason, excluded=excluded) for v in values)
        change = one(Question(a=a, b=b, better=case["better"], margin=0.05))
        assert change.verdict == "MISSING"
        assert change.reason
    absent = Question(a=a_sample([1.0, 2.0]), b=None, better="lower", margin=0.05)
    assert (one(absent).verdict, one(absent).reason) == ("MISSING", "other: not in this run")


def test_a_percentile_for_which_too_few_ios_came_is_open_and_did_not_vanish() -> None:
    few = a_sample([], reason="too few I/Os: 385 of 1,000")
    for a, b in ((a_sample([1.0, 2.0, 3.0]), few), (few, few)):
        change = one(Question(a=a, b=b, better="lower", margin=0.05))
        assert change.verdict == "UNCLEAR"
        assert "other: too few I/Os: 385 of 1,000" in change.reason
        assert change.estimate is None


OVERRUN = "overloaded: offered 9k/s, achieved 8k/s"


def lacking(values: list[float], of: int, reason: str = OVERRUN) -> Sample:
    """A sample of which only ``values`` of ``of`` repetitions are known."""
    return a_sample(
        [],
        partial=tuple(values),
        lacking=of - len(values),
        reason=f"{reason} (in {of - len(values)} of {of} repetitions)",
    )


QUIET = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.005]


@pytest.mark.parametrize(
    ("a", "b", "gate", "comparison"),
    [
        (a_sample(QUIET), lacking(QUIET[:7], 8), "UNCLEAR", "UNCLEAR"),
        (lacking(QUIET[:7], 8), a_sample(QUIET), "SAME", "UNCLEAR"),
        (lacking(QUIET[:7], 8), lacking(QUIET[1:], 8), "SAME", "SAME"),
        (a_sample(QUIET), lacking([2 * v for v in QUIET[:7]], 8), "WORSE", "WORSE"),
        (lacking(QUIET[:7], 8), a_sample([2 * v for v in QUIET]), "WORSE", "UNCLEAR"),
        (a_sample([2 * v for v in QUIET]), lacking(QUIET[:7], 8), "UNCLEAR", "UNCLEAR"),
        (a_sample(QUIET), lacking([], 8), "MISSING", "MISSING"),
        (lacking(QUIET[:7], 8), lacking([], 8), "MISSING", "MISSING"),
        (lacking(QUIET[:1], 8), lacking([], 8), "UNCLEAR", "MISSING"),
        (lacking([], 8), a_sample(QUIET), "UNCLEAR", "MISSING"),
        (lacking([], 8), lacking([], 8), "UNCLEAR", "MISSING"),
    ],
)
def test_a_number_that_repetitions_lack_is_judged_by_the_others_and_never_for_its_owner(
    a: Sample, b: Sample, gate: str, comparison: str
) -> None:
    question = Question(a=a, b=b, better="lower", margin=0.1)
    assert (one(question).verdict, one(question, "two").verdict) == (gate, comparison)


def test_how_many_repetitions_lack_a_number_is_said() -> None:
    question = Question(a=a_sample(QUIET), b=lacking(QUIET[:7], 8), better="lower", margin=0.1)
    change = one(question)
    assert "other: 1 of 8 repetitions have no value (overloaded: offered 9k/s" in change.reason
    assert any("other: 1 of 8 repetitions" in doubt for doubt in change.doubts)


def test_equal_values_are_the_same_without_a_nan() -> None:
    change = corner("identical-values")
    assert (change.verdict, change.estimate) == ("SAME", 1)


def test_a_latency_that_fell_is_better() -> None:
    assert corner("better-direction").verdict == "BETTER"


def test_one_outlier_is_no_regression_and_stays_in_the_sample() -> None:
    case = CORNERS["one-outlier"]
    change = corner("one-outlier")
    assert change.verdict == "UNCLEAR"
    assert change.estimate == pytest.approx(1, abs=0.02)
    sample = a_sample(case["candidate"])
    assert (sample.outliers, sample.n, max(sample.values)) == ((4,), 5, 900)


def test_two_modes_are_no_regression() -> None:
    assert corner("bimodal").verdict == "UNCLEAR"


def test_a_drifting_baseline_is_refused_with_the_drift() -> None:
    change = corner("drift")
    assert change.verdict == "UNCLEAR"
    assert "not steady" in change.reason
    assert "first drifts by -14 %" in change.reason


def test_a_drift_shared_by_interleaved_sides_explains_nothing() -> None:
    fall = [100.0, 97, 94, 91, 88, 85, 82, 79]
    apart = a_question(fall, [0.5 * v for v in fall], "higher")
    assert one(apart).verdict == "WORSE"  # a change four times the drift
    close = a_question(fall, [0.88 * v for v in fall], "higher")
    assert "not steady" in one(close).reason
    together = Question(a=close.a, b=close.b, better="higher", margin=0.05, interleaved=True)
    assert "not steady" not in one(together).reason


def in_turns(shift: float, rise: float, pairs: int, seed: int) -> Question:
    """Two drives measured A B B A ... on a machine on which all values rise meanwhile."""
    rng = np.random.default_rng(seed)
    clock = np.arange(2 * pairs).reshape(pairs, 2)
    clock[1::2] = clock[1::2, ::-1]
    noise = rng.normal(0, 0.01, (pairs, 2))
    values = np.exp(rise * clock / (2 * pairs) + noise + [0, shift])
    a, b = (a_sample(values[:, side].tolist()) for side in (0, 1))
    return Question(a=a, b=b, better="lower", margin=0.05, interleaved=True)


def test_what_was_measured_in_turns_is_judged_pair_by_pair_whatever_drifts() -> None:
    same = [in_turns(0.0, 0.5, 10, seed) for seed in range(20)]
    slower = [in_turns(0.12, 0.5, 10, seed) for seed in range(20)]
    for questions, verdict in ((same, "SAME"), (slower, "WORSE")):
        changes = judge(questions, CHANCE, sides="one", advise=False)
        assert sum(change.verdict == verdict for change in changes) >= 19
        apart = [replace(q, interleaved=False) for q in questions]
        assert verdict not in [c.verdict for c in judge(apart, CHANCE, sides="one", advise=False)]


def test_so_few_pairs_that_no_change_could_be_shown_are_tested_as_two_samples() -> None:
    questions = [in_turns(0.2, 0.0, 8, seed) for seed in range(90)]
    changes = judge(questions, CHANCE, sides="one", advise=False)
    assert {change.verdict for change in changes} == {"WORSE"}  # 1 in 256 is not 5 % of 1 in 90


def test_repetitions_that_are_lost_leave_no_pairs() -> None:
    whole = in_turns(0.12, 0.5, 10, 3)
    assert one(whole).verdict == "WORSE"
    assert whole.a is not None
    broken = replace(whole, a=replace(whole.a, excluded=1))
    assert one(broken).verdict == "UNCLEAR"


def test_a_drift_takes_no_pass_away_whose_bound_holds() -> None:
    rise = [100.0, 101, 102, 103, 104, 105, 106, 107]
    within = Question(a=a_sample(rise), b=a_sample(rise), better="lower", margin=0.06)
    assert within.a is not None
    assert within.a.drift == pytest.approx(0.07, abs=0.005)
    assert one(within).verdict == "SAME"
    halved = a_question(rise, [v / 1.1 for v in rise], "lower", 0.05)
    assert one(halved).verdict == "SAME"  # inside the margin, but not shown to be better
    assert "not steady" in one(halved, "two").reason


def test_among_many_steady_numbers_none_is_called_drifting() -> None:
    rng = np.random.default_rng(7)
    values = np.exp(rng.normal(0, 0.04, (300, 2, 8))).tolist()
    questions = [a_question(a, b, "lower", 0.01) for a, b in values]
    changes = judge(questions, CHANCE, sides="one", advise=False)
    assert any(sample.drift is not None for q in questions if (sample := q.a) is not None)
    assert not any("not steady" in change.reason for change in changes)


def test_none_is_dropped_and_its_count_is_shown() -> None:
    case = CORNERS["extra-none"]
    kept = [v for v in case["baseline"] if v is not None]
    question = Question(
        a=a_sample(kept, excluded=1),
        b=a_sample(case["candidate"]),
        better="lower",
        margin=0.05,
    )
    change = one(question)
    assert "first: 1 repetition does not count" in change.doubts


def test_the_same_times_in_other_units_are_equal() -> None:
    case = CORNERS["unit-mismatch"]
    scale = {"us": 1e-6, "ns": 1e-9}
    a = [v * scale[case["baseline_unit"]] for v in case["baseline"]]
    b = [v * scale[case["candidate_unit"]] for v in case["candidate"]]
    change = one(a_question(a, b))
    assert change.verdict == "SAME"
    assert change.estimate == pytest.approx(1, abs=0.01)


def test_a_number_without_a_better_direction_gets_no_verdict() -> None:
    change = one(a_question([1.0] * 6, [2.0] * 6, "neither"))
    assert (change.verdict, change.reason) == ("UNCLEAR", "no direction of it is better")


def test_an_effect_within_the_margin_is_no_regression_however_sure() -> None:
    a = [100 + 0.01 * i for i in range(10)]
    change = one(a_question(a, [1.03 * v for v in a]))
    assert change.verdict == "SAME"


@pytest.mark.parametrize(
    ("ratio", "better", "margin", "verdict"),
    [
        (0.951, "higher", 0.05, "SAME"),
        (0.949, "higher", 0.05, "WORSE"),
        (0.86, "higher", 0.15, "SAME"),
        (1.049, "lower", 0.05, "SAME"),
        (1.051, "lower", 0.05, "WORSE"),
        (0.51, "higher", 1.0, "SAME"),
        (0.49, "higher", 1.0, "WORSE"),
    ],
)
def test_a_margin_is_the_change_that_is_printed(
    ratio: float, better: Better, margin: float, verdict: str
) -> None:
    a = [100 + 0.001 * n for n in range(6)]
    change = one(a_question(a, [ratio * v for v in a], better, margin))
    assert change.verdict == verdict
    assert change.estimate == pytest.approx(ratio, abs=1e-4)


def test_what_must_not_be_compared_is_incomparable_and_keeps_its_numbers() -> None:
    question = a_question([100.0] * 6, [50.0] * 6)
    blocked = Question(
        a=question.a, b=question.b, better="lower", margin=0.05, blocked="fio must not differ"
    )
    change = one(blocked)
    assert (change.verdict, change.reason) == ("INCOMPARABLE", "fio must not differ")
    assert change.estimate == pytest.approx(0.5)


BIN = 17.11
SECOND = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.0]


def beyond(values: list[float]) -> Sample:
    """A sample in which every value of BIN is at least that."""
    middle = sorted(values)[len(values) // 2]
    return a_sample(values, censored=middle >= BIN, censored_from=BIN)


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (a_sample(SECOND), beyond([BIN] * 8), "WORSE"),
        (beyond([BIN] * 8), a_sample(SECOND), "BETTER"),
        (a_sample(SECOND), beyond([*SECOND[:7], BIN]), "SAME"),
        (beyond([BIN] * 8), beyond([BIN] * 8), "UNCLEAR"),
        (a_sample([16.9] * 8), beyond([BIN] * 8), "UNCLEAR"),
    ],
)
def test_values_beyond_what_fio_sees_decide_where_their_order_is_sure(
    a: Sample, b: Sample, verdict: str
) -> None:
    change = one(Question(a=a, b=b, better="lower", margin=0.1))
    assert change.verdict == verdict
    assert ("beyond what fio sees" in change.reason) == (verdict != "SAME")


def test_a_median_that_is_known_exactly_is_not_said_to_be_more() -> None:
    sample = beyond([0.003, 0.0031, 0.0029, 0.003, 0.003, 0.0032, 0.003, BIN])
    assert sample_words(sample, "s") == "3.00 ms (95 % interval 2.90 ms to >= 17.1 s, n=8)"
    assert sample_words(beyond([BIN] * 3), "s").startswith(">= 17.1 s")


def test_an_open_question_says_how_many_repetitions_would_close_it() -> None:
    change = one(a_question([100, 104, 96, 102, 98, 100], [103, 107, 99, 105, 101, 103]))
    assert change.verdict == "UNCLEAR"
    assert change.more is not None
    assert change.more >= 1


def test_what_is_beyond_the_margin_without_evidence_says_that() -> None:
    apart = a_question([100, 101, 99, 102, 98, 100], [120, 121, 119, 122, 118, 99])
    noise = a_question([100, 104, 96, 102, 98, 100], [103, 107, 99, 105, 101, 103])
    change, *_ = judge([apart, *[noise] * 12], CHANCE, sides="one")
    assert change.verdict == "UNCLEAR"
    assert change.low is not None
    assert change.low > 1.05
    assert "beyond 5 %, but the evidence does not hold for 13 numbers together" in change.reason


def test_a_gates_interval_is_the_one_of_its_one_sided_test() -> None:
    question = a_question([100.0, 101, 99, 102, 98], [107.0, 108, 106, 109, 103])
    gate, comparison = one(question), one(question, sides="two")
    assert gate.verdict == "WORSE"
    assert gate.low is not None
    assert comparison.low is not None
    assert comparison.low < gate.low
    assert gate.low > 1


positive = st.lists(st.floats(1.0, 1000.0), min_size=1, max_size=8)
MIRROR = {"BETTER": "WORSE", "WORSE": "BETTER"}


@given(positive, positive, st.sampled_from(["higher", "lower"]))
def test_swapping_the_sides_mirrors_the_verdict(
    a: list[float], b: list[float], better: Better
) -> None:
    # -5 % is undone by +5.3 %, so only without a margin do both ways have the same room
    forth = one(a_question(a, b, better, 0.0), sides="two")
    back = one(a_question(b, a, better, 0.0), sides="two")
    assert back.verdict == MIRROR.get(forth.verdict, forth.verdict)
    both = [one(q, sides="two").verdict for q in (a_question(a, b), a_question(b, a))]
    assert both not in (["BETTER", "BETTER"], ["WORSE", "WORSE"])


@given(positive, positive)
def test_the_other_direction_turns_the_verdict(a: list[float], b: list[float]) -> None:
    low, high = (one(a_question(a, b, d), sides="two") for d in ("lower", "higher"))
    assert high.verdict == MIRROR.get(low.verdict, low.verdict)


@given(positive, positive, st.integers(-12, 12))
def test_the_unit_changes_no_verdict(a: list[float], b: list[float], power: int) -> None:
    factor = 2.0**power  # exact in binary, so that ties stay ties
    plain = one(a_question(a, b))
    scaled = one(a_question([factor * v for v in a], [factor * v for v in b]))
    assert plain.verdict == scaled.verdict


@given(st.lists(st.floats(-1e6, 1e6), min_size=0, max_size=7), positive)
def test_any_numbers_get_a_verdict_and_never_an_error(a: list[float], b: list[float]) -> None:
    every: tuple[Sides, ...] = ("one", "two")
    for sides in every:
        change = one(a_question(a, b), sides=sides)
        assert change.verdict in ("BETTER", "WORSE", "SAME", "UNCLEAR", "MISSING")
        assert change.verdict != "SAME" or len(a) > 1


def test_more_of_the_candidate_alone_is_only_advised_where_the_baseline_is_large_enough() -> None:
    noise = np.exp([0.02, -0.15, 0.15, -0.02, 0.08, -0.08]).tolist()
    small, large = (one(a_question(n * noise, noise, "lower", 0.1)) for n in (1, 4))
    assert (small.verdict, large.verdict) == ("UNCLEAR", "UNCLEAR")
    assert small.more is not None
    assert small.more_candidate is None
    assert large.more_candidate is not None
    assert one(a_question(noise, noise, "lower", 0.1), "two").more_candidate is None
