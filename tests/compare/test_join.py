"""Runs -> rows: an outer join that loses nothing and pairs by what was done."""

import pytest
from msgspec.structs import replace

from kvbench.compare.join import compare_runs
from kvbench.compare.model import Comparison, Row
from kvbench.compare.policy import Policy, find_policy
from kvbench.host.model import Written
from kvbench.measure.model import MeasuredRun
from kvbench.workload.schema import Timing
from tests.compare.runs import THREE, a_run
from tests.records import a_workload

FAST = {"iops": [100.0, 101, 102, 99, 98, 100], "latency_p99": [1.0, 1.01, 0.99, 1, 1.02, 0.98]}
SLOW = {"iops": [50.0, 51, 52, 49, 48, 50], "latency_p99": [2.0, 2.01, 1.99, 2, 2.02, 1.98]}
LIKE_FAST = {name: [1.001 * v for v in values] for name, values in FAST.items()}


@pytest.fixture(scope="module")
def policy() -> Policy:
    return find_policy(None, "compare")


def unproven(run: MeasuredRun) -> MeasuredRun:
    """A run on a target of which nobody knows whether it was written."""
    written = Written(state="unproven", reason="no record of a fill")
    return replace(run, record=replace(run.record, written=written))


def row(comparison: Comparison, metric: str) -> Row:
    (found,) = (r for r in comparison.rows if r.key.metric == metric)
    return found


def verdicts(comparison: Comparison, metric: str) -> list[str | None]:
    return [None if c is None else c.verdict for c in row(comparison, metric).changes]


def test_each_run_is_held_against_the_first(policy: Policy) -> None:
    found = compare_runs([a_run("a", FAST), a_run("b", SLOW), a_run("c", LIKE_FAST)], policy)
    assert verdicts(found, "iops") == [None, "WORSE", "SAME"]
    assert verdicts(found, "latency_p99") == [None, "WORSE", "SAME"]


def test_a_better_drive_wins_its_role_and_the_first_can_win_too(policy: Policy) -> None:
    for runs, place in (((FAST, SLOW), 0), ((SLOW, FAST), 1)):
        found = compare_runs([a_run("a", runs[0]), a_run("b", runs[1])], policy)
        (winner,) = found.winners
        assert (winner.role, winner.winner) == ("memory", place)


def test_reads_of_blocks_never_proven_written_win_nothing(policy: Policy) -> None:
    runs = [a_run("a", FAST), a_run("b", SLOW), a_run("c", SLOW)]
    (winner,) = compare_runs([unproven(run) for run in runs], policy).winners
    assert winner.winner is None
    assert winner.text == ("cannot say: on A, B, C the reads were of blocks never proven written")


def test_writes_need_no_proof_that_anything_was_there(policy: Policy) -> None:
    writes = replace(THREE, streams=tuple(replace(s, direction="write") for s in THREE.streams))
    runs = [a_run(name, v, workload=writes) for name, v in (("a", FAST), ("b", SLOW))]
    (winner,) = compare_runs([unproven(run) for run in runs], policy).winners
    assert winner.winner == 0


def test_no_evidence_no_winner(policy: Policy) -> None:
    (winner,) = compare_runs([a_run("a", FAST), a_run("b", LIKE_FAST)], policy).winners
    assert winner.winner is None
    assert "no difference is shown" in winner.text


def test_a_drive_that_is_better_here_and_worse_there_wins_nothing(policy: Policy) -> None:
    mixed = {"iops": FAST["iops"], "latency_p99": SLOW["latency_p99"]}
    other = {"iops": SLOW["iops"], "latency_p99": FAST["latency_p99"]}
    (winner,) = compare_runs([a_run("a", mixed), a_run("b", other)], policy).winners
    assert winner.winner is None


def test_of_three_drives_the_winner_beats_both(policy: Policy) -> None:
    runs = [a_run("a", SLOW), a_run("b", FAST), a_run("c", LIKE_FAST)]
    (winner,) = compare_runs(runs, policy).winners
    assert winner.winner is None  # the second and the third are alike
    (winner,) = compare_runs([runs[0], runs[1], a_run("d", SLOW)], policy).winners
    assert winner.winner == 1


def test_a_number_that_one_run_lacks_is_a_row_and_missing(policy: Policy) -> None:
    found = compare_runs([a_run("a", FAST), a_run("b", {"iops": FAST["iops"]})], policy)
    change = row(found, "latency_p99").changes[1]
    assert change is not None
    assert (change.verdict, change.reason) == ("MISSING", "B: not in this run")


def test_runs_of_different_plans_compare_what_they_share(policy: Policy) -> None:
    other = a_workload(name="other", digest="ff", sweep=(), primary=("reads.iops",))
    found = compare_runs([a_run("a", FAST), a_run("b", SLOW, workload=other)], policy)
    assert {u.workload: u.sides for u in found.unshared} == {"small-reads": (0,), "other": (1,)}
    assert found.rows == ()
    three = compare_runs(
        [a_run("a", FAST), a_run("b", SLOW, workload=other), a_run("c", SLOW)], policy
    )
    assert verdicts(three, "iops") == [None, "MISSING", "WORSE"]


def test_other_io_under_one_name_is_incomparable(policy: Policy) -> None:
    found = compare_runs(
        [a_run("a", FAST), a_run("b", SLOW, workload=replace(THREE, digest="other"))], policy
    )
    assert verdicts(found, "iops") == [None, "INCOMPARABLE"]


def test_other_runtimes_are_incomparable(policy: Policy) -> None:
    longer = replace(THREE, timing=Timing(runtime_s=2.0, ramp_s=0.0))
    found = compare_runs([a_run("a", FAST), a_run("b", SLOW, workload=longer)], policy)
    change = row(found, "iops").changes[1]
    assert change is not None
    assert "0.5 s and for 2 s" in change.reason


@pytest.mark.parametrize(
    "changes", [{"fio_version": "fio-3.42"}, {"facts": {"kernel": "6.12"}}], ids=["fio", "kernel"]
)
def test_what_must_not_differ_blocks_every_number(
    policy: Policy, changes: dict[str, object]
) -> None:
    other = a_run("b", SLOW, **changes)  # type: ignore[arg-type]
    found = compare_runs([a_run("a", FAST), other], policy)
    assert verdicts(found, "iops") == [None, "INCOMPARABLE"]
    assert found.differences[0].effect == "blocks"
    assert found.winners[0].winner is None
    assert row(found, "iops").changes[1].estimate is not None  # type: ignore[union-attr]


def test_a_blocked_third_run_does_not_block_the_second(policy: Policy) -> None:
    runs = [a_run("a", FAST), a_run("b", SLOW), a_run("c", SLOW, fio_version="fio-3.42")]
    assert verdicts(compare_runs(runs, policy), "iops") == [None, "WORSE", "INCOMPARABLE"]


def test_what_is_named_as_the_thing_under_test_may_differ(policy: Policy) -> None:
    allowed = replace(
        policy,
        must_not_differ=tuple(a for a in policy.must_not_differ if a != "fio"),
        may_differ=(*policy.may_differ, "fio"),
    )
    runs = [a_run("a", FAST), a_run("b", SLOW, fio_version="fio-3.42")]
    found = compare_runs(runs, allowed)
    assert verdicts(found, "iops") == [None, "WORSE"]
    assert {d.aspect: d.effect for d in found.differences} == {"fio": "allowed"}


def test_an_unknown_kernel_is_told_and_blocks_nothing(policy: Policy) -> None:
    found = compare_runs([a_run("a", FAST), a_run("b", SLOW, facts={"kernel": None})], policy)
    assert verdicts(found, "iops") == [None, "WORSE"]
    assert any(d.aspect == "kernel" and d.effect == "noted" for d in found.differences)


def named(run: MeasuredRun, label: str) -> MeasuredRun:
    return MeasuredRun(
        record=replace(run.record, label=label),
        end=run.end,
        cells=run.cells,
        summaries=run.summaries,
        damage=run.damage,
    )


def test_sides_are_named_by_label_or_drive_and_never_by_path(policy: Policy) -> None:
    runs = [named(a_run("a", FAST), "before"), a_run("b", FAST)]
    names = [side.name for side in compare_runs(runs, policy).sides]
    assert names == ["before", "DRIVE 1 S1 FW1"]


def test_two_sides_of_one_name_are_told_apart_by_their_runs(policy: Policy) -> None:
    names = [s.name for s in compare_runs([a_run("a", FAST), a_run("b", FAST)], policy).sides]
    assert names == ["DRIVE 1 S1 FW1 (a)", "DRIVE 1 S1 FW1 (b)"]


def test_an_incomplete_run_says_what_is_missing(policy: Policy) -> None:
    runs = [a_run("a", FAST, missing_cells=1), a_run("b", FAST, end="interrupted")]
    sides = compare_runs(runs, policy).sides
    assert "1 of 7 cells are missing" in sides[0].incomplete
    assert "interrupted" in sides[1].incomplete


def test_the_repetitions_that_a_verdict_needs_are_known(policy: Policy) -> None:
    few = {name: values[:2] for name, values in FAST.items()}
    found = compare_runs([a_run("a", few), a_run("b", few)], policy)
    assert (found.tests, found.decides_from_n) == (2, 5)  # 2 tests, two-sided: 1/252 <= 0.0125


def test_all_numbers_of_all_sides_are_one_family(policy: Policy) -> None:
    runs = [a_run("a", FAST), a_run("b", SLOW), *(a_run(n, LIKE_FAST) for n in "cdef")]
    two, six = compare_runs(runs[:2], policy), compare_runs(runs, policy)
    ours, theirs = (row(found, "iops").changes[1] for found in (two, six))
    assert ours is not None
    assert theirs is not None
    assert ours.p is not None
    assert theirs.p == pytest.approx(ours.p * 5)  # the smallest of ten and not of two
    assert (two.tests, six.tests) == (2, 2)
    assert (two.decides_from_n, six.decides_from_n) == (5, 6)
