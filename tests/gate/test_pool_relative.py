"""A rerun of one point takes no number away that is made of several points."""

import pytest

from kvbench.gate.pool import pooled
from kvbench.measure.model import MeasuredCell, MeasuredRun, Measurement, Outcome
from kvbench.measure.relations import with_relations
from kvbench.measure.summarise import summarise
from kvbench.measure.tenants import with_tenants
from kvbench.plan import Cell, Plan, again
from kvbench.store.records import Pairing
from kvbench.units import KIB
from kvbench.workload.schema import SweepAxis, SweepValue, Workload
from tests.compare.runs import a_record
from tests.records import a_plan, a_stream, a_workload, an_end_record

REPETITIONS = 3
SIZES = a_workload(sweep=(SweepAxis(stream="reads", field="block_size", values=(512, 4 * KIB)),))
JOBS = a_workload(sweep=(SweepAxis(stream="reads", field="jobs", values=(1, 2, 4)),))
TENANTS = a_workload(
    streams=(a_stream(name="a"), a_stream(name="b")), sweep=(), isolate=True, primary=()
)
MATRIX = a_workload(
    streams=(
        a_stream(name="v1", side="victim"),
        a_stream(name="v2", side="victim"),
        a_stream(name="x", side="aggressor"),
    ),
    sweep=(),
    primary=(),
)


def run_of(
    plan: Plan, run_id: str, *, of: str | None = None, outcomes: dict[str, Outcome] | None = None
) -> MeasuredRun:
    """A run in which every stream does 100 I/Os per second; ``outcomes`` are of points."""

    def measured(cell: Cell) -> MeasuredCell:
        numbers = tuple(
            Measurement(
                stream=p.stream.name, direction="read", metric="iops", value=100.0, io_count=10
            )
            for p in cell.placed
        )
        outcome = (outcomes or {}).get(cell.point_id, "valid")
        return MeasuredCell(
            cell=cell, outcome=outcome, findings=(), measurements=numbers, histograms=()
        )

    names = [w.name for w in plan.workloads if w.isolate or w.matrix]
    cells = [measured(cell) for cell in plan.cells if cell.purpose == "measure"]
    cells = list(with_relations(with_tenants(cells, names), plan))
    pairing = None if of is None else Pairing(kind="rerun", pair_id=of, of=of)
    return MeasuredRun(
        record=a_record(plan, run_id, {}, pairing=pairing),
        end=an_end_record(),
        cells=tuple(cells),
        summaries=summarise(plan, cells),
        damage=(),
    )


def rerun_of(plan: Plan, points: set[str], **changes: dict[str, Outcome]) -> MeasuredRun:
    part = again(
        plan, points=points, workloads=(), target=plan.target, repetitions=REPETITIONS, seed=9
    )
    return run_of(part, "more", of="new", **changes)


def counts(run: MeasuredRun, metric: str, point_id: str) -> list[tuple[str, int, str]]:
    return [
        (s.stream, s.n, s.reason)
        for s in run.summaries
        if (s.metric, s.point_id) == (metric, point_id)
    ]


def point(plan: Plan, alone: str | None = None, **parameters: SweepValue) -> str:
    (found,) = {
        cell.point_id
        for cell in plan.cells
        if cell.purpose == "measure"
        and cell.alone == alone
        and parameters.items() <= cell.parameters.items()
    }
    return found


@pytest.mark.parametrize(
    ("workload", "mine", "base", "metric"),
    [
        (SIZES, {"block_size": 512}, {"block_size": 4 * KIB}, "iops_over_4kib"),
        (JOBS, {"jobs": 2}, {"jobs": 1}, "iops_over_fewer_jobs"),
    ],
    ids=["size", "jobs"],
)
def test_a_ratio_of_a_sweep_keeps_its_repetitions_and_gains_those_that_have_the_base(
    workload: Workload, mine: dict[str, SweepValue], base: dict[str, SweepValue], metric: str
) -> None:
    plan = a_plan(workload, repetitions=REPETITIONS)
    first, own = run_of(plan, "new"), point(plan, None, **mine)
    found = pooled(first, [rerun_of(plan, {own})])
    assert counts(found, metric, own) == [("reads", REPETITIONS, "")]
    assert counts(found, "iops", own) == [("reads", 2 * REPETITIONS, "")]
    found = pooled(first, [rerun_of(plan, {own, point(plan, None, **base)})])
    assert counts(found, metric, own) == [("reads", 2 * REPETITIONS, "")]


def test_a_ratio_to_a_stream_alone_and_their_fairness_keep_their_repetitions() -> None:
    plan = a_plan(TENANTS, repetitions=REPETITIONS)
    first, own = run_of(plan, "new"), point(plan)
    found = pooled(first, [rerun_of(plan, {own, point(plan, "a")})])
    assert counts(found, "iops_mixed_over_alone", own) == [
        ("a", 2 * REPETITIONS, ""),
        ("b", REPETITIONS, ""),
    ]
    assert counts(found, "jain_index", own) == [("a", REPETITIONS, "")]


def test_a_victim_beside_an_aggressor_keeps_its_ratio() -> None:
    plan = a_plan(MATRIX, repetitions=REPETITIONS)
    first = run_of(plan, "new")
    for victim in ("v1", "v2"):
        own = point(plan, victim=victim, aggressor="x")
        before = counts(first, "iops_mixed_over_alone", own)
        assert (victim, REPETITIONS, "") in before
        assert counts(pooled(first, [rerun_of(plan, {own})]), "iops_mixed_over_alone", own) == [
            (stream, n, reason) for stream, n, reason in before
        ]


def test_a_base_that_was_planned_again_and_lost_is_still_told() -> None:
    plan = a_plan(SIZES, repetitions=REPETITIONS)
    own, base = point(plan, block_size=512), point(plan, block_size=4 * KIB)
    again_run = rerun_of(plan, {own, base}, outcomes={base: "invalid"})
    found = pooled(run_of(plan, "new"), [again_run])
    ((_, _, reason),) = counts(found, "iops_over_4kib", own)
    assert "the cell of 4 KiB is invalid in this repetition" in reason
