"""The gate: red for a regression, green for proof only, and open for everything else."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kvbench.compare.policy import Policy, RequiredLevel, find_policy
from kvbench.errors import UsageError
from kvbench.gate.decide import decide
from kvbench.gate.junit import junit
from kvbench.gate.model import Gate
from kvbench.gate.pool import looks_of
from kvbench.gate.text import render
from kvbench.host.model import Written
from kvbench.measure.model import MeasuredCell, MeasuredRun, Measurement, Summary
from kvbench.measure.roles import Judgement
from kvbench.workload.schema import Load
from tests.compare.runs import THREE, a_run
from tests.compare.samples import a_summary

GOOD = {"iops": [100.0, 101, 102, 99, 98, 100], "latency_p99": [1.0, 1.01, 0.99, 1, 1.02, 0.98]}
SAME = {name: [1.001 * v for v in values] for name, values in GOOD.items()}
SLOWER = {"iops": [0.8 * v for v in GOOD["iops"]], "latency_p99": SAME["latency_p99"]}
NOISY = {"iops": SAME["iops"], "latency_p99": [0.9, 1.12, 1.0, 0.92, 1.1, 1.05]}
FACTS = {"device_firmware": "FW2"}
NO_CARDS = Judgement()


@pytest.fixture(scope="module")
def policy() -> Policy:
    return find_policy(None, "gate")


def gate(policy: Policy, candidate: MeasuredRun, baseline: MeasuredRun | None = None) -> Gate:
    return decide(baseline or a_run("base", GOOD), candidate, policy, NO_CARDS)


def test_a_candidate_inside_every_margin_passes(policy: Policy) -> None:
    found = gate(policy, a_run("new", SAME, facts=FACTS))
    assert (found.outcome, found.reasons) == ("PASS", ())
    assert [row.verdict for row in found.rows] == ["PASS", "PASS"]


def test_a_regression_fails_with_the_right_number(policy: Policy) -> None:
    found = gate(policy, a_run("new", SLOWER, facts=FACTS))
    assert found.outcome == "FAIL"
    worse = [row.key.metric for row in found.rows if row.verdict == "WORSE"]
    assert worse == ["iops"]


def test_reads_never_proven_written_change_no_verdict_and_are_told(policy: Policy) -> None:
    written = Written(state="unproven", reason="no record of a fill")
    why = (
        "not to be relied on: on baseline, candidate the reads were of blocks never proven written"
    )
    for values, outcome in ((SAME, "PASS"), (SLOWER, "FAIL")):
        runs = [a_run(name, v, written=written) for name, v in (("base", GOOD), ("new", values))]
        found = gate(policy, runs[1], runs[0])
        proven = gate(policy, a_run("new", values))
        assert (found.outcome, found.reasons) == (outcome, proven.reasons)
        assert (found.doubts, proven.doubts) == ((why,), ())
        assert why in " ".join(render(found).split("\n\n")[0].split())
        assert found.outcome == "PASS" or why in junit(found, policy)


def test_an_improvement_passes_and_is_named(policy: Policy) -> None:
    faster = {"iops": [1.5 * v for v in GOOD["iops"]], "latency_p99": GOOD["latency_p99"]}
    found = gate(policy, a_run("new", faster))
    assert found.outcome == "PASS"
    assert [row.improved for row in found.rows] == [True, False]


def test_noise_is_unclear_and_says_how_many_more_repetitions_would_decide(policy: Policy) -> None:
    found = gate(policy, a_run("new", NOISY))
    assert found.outcome == "UNCLEAR"
    assert found.more is not None
    assert "1 number unclear" in found.reasons


def test_three_repetitions_cannot_fail_nor_pass_many_numbers_and_say_so(policy: Policy) -> None:
    few = [{name: v[:3] for name, v in values.items()} for values in (GOOD, SLOWER)]
    found = gate(policy, a_run("new", few[1]), a_run("base", few[0]))
    assert found.outcome == "UNCLEAR"
    assert found.decides_from_n == 4
    assert any("4 a side can" in row.change.reason for row in found.rows)


def test_a_number_that_vanished_fails(policy: Policy) -> None:
    found = gate(policy, a_run("new", {"iops": SAME["iops"]}))
    assert found.outcome == "FAIL"
    assert "1 number missing" in found.reasons


def test_a_percentile_that_lacks_ios_in_a_slow_repetition_is_open_and_no_failure(
    policy: Policy,
) -> None:
    few = a_summary([], metric="latency_p99", parameters={}, reason="too few I/Os: 385 of 1,000")
    candidate = a_run("new", {"iops": SAME["iops"]}, summaries=(few,))
    found = gate(policy, candidate)
    assert found.outcome == "UNCLEAR"
    assert [row.verdict for row in found.rows] == ["PASS", "UNCLEAR"]


@pytest.mark.parametrize(("missing", "outcome"), [("unclear", "UNCLEAR"), ("ignore", "PASS")])
def test_the_policy_says_what_a_missing_number_means(
    policy: Policy, missing: str, outcome: str
) -> None:
    other = replace(policy, missing=missing)
    assert gate(other, a_run("new", {"iops": SAME["iops"]})).outcome == outcome


@pytest.mark.parametrize(("unclear", "outcome"), [("fail", "FAIL"), ("pass", "PASS")])
def test_the_policy_says_what_an_unclear_number_means(
    policy: Policy, unclear: str, outcome: str
) -> None:
    other = replace(policy, unclear=unclear)
    assert gate(other, a_run("new", NOISY)).outcome == outcome


def test_nothing_in_common_is_never_green(policy: Policy) -> None:
    for missing in ("fail", "unclear", "ignore"):
        other = replace(policy, missing=missing)
        found = gate(other, a_run("new", {}), a_run("base", {}))
        assert found.outcome == "UNCLEAR"
        assert found.reasons


def test_a_number_too_rare_on_both_sides_is_not_gated_and_listed(policy: Policy) -> None:
    few = {"iops": GOOD["iops"], "latency_p99": []}
    found = gate(policy, a_run("new", few), a_run("base", few))
    assert found.outcome == "PASS"
    assert [(u.key.metric, u.reason) for u in found.ungated] == [("latency_p99", "too few I/Os")]


def test_a_number_too_rare_that_is_asked_for_by_name_is_not_left_out(policy: Policy) -> None:
    few = {"iops": GOOD["iops"], "latency_p99": []}
    named = replace(policy, metrics=("small-reads/reads.latency_p99", "*/reads.iops"))
    found = gate(named, a_run("new", few), a_run("base", few))
    assert found.outcome == "UNCLEAR"
    assert found.ungated == ()


def test_a_point_that_failed_on_both_sides_is_open_and_not_left_out(policy: Policy) -> None:
    broken = a_summary([], metric="iops", parameters={}, excluded=6, reason="no repetition counts")
    runs = [
        a_run(name, {"latency_p99": GOOD["latency_p99"]}, summaries=(broken,))
        for name in ("base", "new")
    ]
    assert decide(runs[0], runs[1], policy, NO_CARDS).outcome == "UNCLEAR"


OVERRUN = "overloaded: offered 9k/s, achieved 8k/s"


def lacking(values: Sequence[float], of: int, reason: str = OVERRUN, excluded: int = 0) -> Summary:
    """The p99 of a run in which only some repetitions have one."""
    return a_summary(
        [],
        metric="latency_p99",
        parameters={},
        partial=tuple(values),
        lacking=of - len(values),
        reason=f"{reason} (in {of - len(values)} of {of} repetitions)",
        excluded=excluded,
    )


def of_p99(name: str, summary: Summary | None) -> MeasuredRun:
    if summary is None:
        return a_run(name, GOOD)
    return a_run(name, {"iops": GOOD["iops"]}, summaries=(summary,))


P99 = GOOD["latency_p99"]


@pytest.mark.parametrize(
    ("baseline", "candidate", "outcome"),
    [
        (lacking([], 6), None, "UNCLEAR"),
        (lacking(P99[:5], 6), None, "PASS"),
        (lacking(P99[:5], 6), lacking([], 6), "FAIL"),
        (lacking([], 6), lacking([], 6), "UNCLEAR"),
        (None, lacking([], 6), "FAIL"),
        (None, lacking(P99[:5], 6), "UNCLEAR"),
        (None, lacking(P99[:4], 5, "too few I/Os: 990 of 1,000 needed", 1), "UNCLEAR"),
        (None, lacking([], 5, "too few I/Os: 990 of 1,000 needed", 1), "UNCLEAR"),
    ],
)
def test_what_repetitions_without_the_number_are_worth(
    policy: Policy, baseline: Summary | None, candidate: Summary | None, outcome: str
) -> None:
    found = decide(of_p99("base", baseline), of_p99("new", candidate), policy, NO_CARDS)
    assert found.outcome == outcome


def test_a_drive_against_itself_rarely_fails_for_overloaded_repetitions(policy: Policy) -> None:
    rng = np.random.default_rng(5)
    for chance in (0.02, 0.1, 0.5):
        fails = 0
        for _ in range(40):
            sides = []
            for name in ("base", "new"):
                p99 = np.exp(rng.normal(0, 0.01, 6))
                kept = p99[rng.random(6) > chance].tolist()
                whole = a_run(name, {"iops": GOOD["iops"], "latency_p99": p99.tolist()})
                sides.append(whole if len(kept) == 6 else of_p99(name, lacking(kept, 6)))
            fails += decide(sides[0], sides[1], policy, NO_CARDS).outcome == "FAIL"
        assert fails <= 2


def test_a_load_curve_may_overrun_in_both_runs(policy: Policy) -> None:
    load = Load(limit_s=0.01, percentile=99.0, percents=(50,), queue_depth=8)
    curve = replace(THREE, load=load)
    runs = [
        a_run(name, {"iops": GOOD["iops"]}, workload=curve, summaries=(lacking([], 6),))
        for name in ("base", "new")
    ]
    found = decide(runs[0], runs[1], policy, NO_CARDS)
    assert found.outcome == "PASS"
    assert "overloaded" in found.ungated[0].reason


@pytest.mark.parametrize(
    "changes",
    [
        {"fio_version": "fio-3.42"},
        {"facts": {"kernel": "6.12"}},
        {"facts": {"pcie_link": "8 GT/s x4"}},
        {"facts": {"device_serial": "S2"}},
        {"facts": {"logical_block_bytes": "4096"}},
    ],
    ids=["fio", "kernel", "link", "serial", "lba"],
)
def test_what_must_not_differ_makes_no_verdict(policy: Policy, changes: dict[str, object]) -> None:
    found = gate(policy, a_run("new", SLOWER, **changes))  # type: ignore[arg-type]
    assert found.outcome == "INCOMPARABLE"
    assert "must not differ" in found.reasons[0]


@pytest.mark.parametrize(
    ("failed", "outcome"), [("unclear", "UNCLEAR"), ("fail", "FAIL"), ("ignore", "PASS")]
)
def test_failed_repetitions_of_the_candidate_are_what_the_policy_says(
    policy: Policy, failed: str, outcome: str
) -> None:
    good = a_summary(SAME["iops"], metric="iops", parameters={}, excluded=3)
    candidate = a_run("new", {"latency_p99": SAME["latency_p99"]}, summaries=(good,))
    found = gate(replace(policy, failed=failed), candidate)
    assert found.outcome == outcome
    if outcome != "PASS":
        (row,) = (r for r in found.rows if r.key.metric == "iops")
        assert "3 of 9 repetitions of the candidate failed or are invalid" in row.change.reason


def test_failed_repetitions_of_the_baseline_are_told(policy: Policy) -> None:
    good = a_summary(GOOD["iops"], metric="iops", parameters={}, excluded=1)
    baseline = a_run("base", {"latency_p99": GOOD["latency_p99"]}, summaries=(good,))
    found = decide(baseline, a_run("new", SAME), policy, NO_CARDS)
    assert found.outcome == "PASS"
    (row,) = (r for r in found.rows if r.key.metric == "iops")
    assert "baseline: 1 repetition does not count" in row.change.doubts


def test_a_number_that_only_the_candidate_has_is_listed_and_fails_nothing(policy: Policy) -> None:
    found = gate(policy, a_run("new", SAME), a_run("base", {"iops": GOOD["iops"]}))
    assert found.outcome == "PASS"
    assert [(u.key.metric, u.reason) for u in found.ungated] == [
        ("latency_p99", "only the candidate has it")
    ]


def test_a_pattern_that_fits_no_number_is_never_green(policy: Policy) -> None:
    for metrics in (("*/reads.iops", "*/raeds.latency_p99"), ("primary", "other/reads.iops")):
        found = gate(replace(policy, metrics=metrics), a_run("new", SAME))
        assert found.outcome == "UNCLEAR"
        assert "neither run has a number that fits" in found.reasons[0]


def test_an_incomplete_side_is_never_green(policy: Policy) -> None:
    for broken in (
        a_run("new", SAME, missing_cells=1),
        a_run("new", SAME, end="interrupted"),
        a_run("new", SAME, end="failed"),
    ):
        found = gate(policy, broken)
        assert found.outcome == "UNCLEAR"
        assert "the candidate is not whole" in found.reasons[0]


def test_a_run_against_itself_is_refused(policy: Policy) -> None:
    run = a_run("base", GOOD)
    with pytest.raises(UsageError, match="same run"):
        decide(run, run, policy, NO_CARDS)


def test_a_required_level_that_nobody_can_judge_is_not_green(policy: Policy) -> None:
    asking = replace(policy, require=(RequiredLevel(role="memory", level="vector-index"),))
    found = gate(asking, a_run("new", SAME))
    assert found.outcome == "UNCLEAR"
    assert found.required[0].verdict == "cannot say"


def test_a_second_look_asks_for_stronger_evidence(policy: Policy) -> None:
    base, new = a_run("base", GOOD), a_run("new", SLOWER)
    first = decide(base, new, policy, NO_CARDS)
    looked = replace(new, cells=tuple(of_a_rerun(cell, "again") for cell in new.cells))
    second = decide(base, looked, policy, NO_CARDS, reruns=["again"])
    assert first.decides_from_n is not None
    assert second.decides_from_n is not None
    assert second.decides_from_n > first.decides_from_n
    p = [[row.change.p or 1.0 for row in found.rows] for found in (first, second)]
    assert p[1] == pytest.approx([min(1.0, 2 * one) for one in p[0]])


def of_a_rerun(cell: MeasuredCell, run_id: str) -> MeasuredCell:
    return replace(cell, cell=replace(cell.cell, cell_id=f"{run_id}/{cell.cell.cell_id}"))


def test_a_second_look_changes_nothing_for_a_number_without_new_repetitions(
    policy: Policy,
) -> None:
    few = {"iops": GOOD["iops"][:3], "latency_p99": [1.0, 1.25, 0.9]}
    base, new = a_run("base", GOOD | {"iops": GOOD["iops"][:3]}), a_run("new", few)
    assert [r.verdict for r in decide(base, new, policy, NO_CARDS).rows] == ["PASS", "UNCLEAR"]
    p99 = Measurement(
        stream="reads", direction="read", metric="latency_p99", value=1.0, io_count=10
    )
    again = (replace(of_a_rerun(c, "more"), measurements=(p99,)) for c in new.cells)
    looked = replace(new, cells=(*new.cells, *again))
    found = decide(base, looked, policy, NO_CARDS, reruns=["more"])
    assert [r.verdict for r in found.rows] == ["PASS", "UNCLEAR"]
    assert [looks_of(looked, r.key) for r in found.rows] == [1, 2]


values = st.lists(st.floats(0.0, 1e9), min_size=0, max_size=7)
sides = st.fixed_dictionaries({}, optional={"iops": values, "latency_p99": values})


@settings(max_examples=150)
@given(sides, sides, st.sampled_from(["fail", "unclear"]))
def test_no_archive_passes_with_a_required_number_missing(
    base: dict[str, list[float]], new: dict[str, list[float]], missing: str
) -> None:
    policy = replace(find_policy(None, "gate"), missing=missing)
    found = decide(a_run("base", base), a_run("new", new), policy, NO_CARDS)
    required = {metric for metric, v in base.items() if v}
    lacking = {metric for metric in required if not new.get(metric)}
    assert found.outcome != "PASS" or not lacking
    assert found.outcome != "PASS" or any(row.verdict == "PASS" for row in found.rows)
    named = replace(policy, metrics=("*/reads.iops", "*/reads.latency_p99"))
    strict = decide(a_run("base", base), a_run("new", new), named, NO_CARDS)
    everything = {**base, **new}
    if any(not base.get(m) or not new.get(m) for m in everything):
        assert strict.outcome != "PASS"
