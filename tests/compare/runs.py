"""Measured runs whose numbers are given, not measured."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kvbench.host.model import Fact
from kvbench.measure.model import MeasuredCell, MeasuredRun, Summary
from kvbench.plan import Plan
from kvbench.store.records import RunRecord
from kvbench.workload.schema import Workload
from tests.compare.samples import a_summary
from tests.records import a_plan, a_run_record, a_workload, an_end_record

FACTS = {
    "device_model": "DRIVE 1",
    "device_serial": "S1",
    "device_firmware": "FW1",
    "device_bytes": "1000000000",
    "logical_block_bytes": "512",
    "pcie_link": "16 GT/s x4",
    "kernel": "6.1",
}
THREE = a_workload(
    primary=("reads.iops", "reads.latency_p99"),
    sweep=(),
)


def a_record(
    plan: Plan, run_id: str, facts: Mapping[str, str | None], **changes: object
) -> RunRecord:
    """A record with the facts of a drive."""
    told = tuple(Fact(name=n, value=v) for n, v in (FACTS | dict(facts)).items())
    return replace(a_run_record(plan, run_id), facts=told, **changes)


def a_run(
    run_id: str,
    values: Mapping[str, Sequence[float]],
    *,
    workload: Workload = THREE,
    facts: Mapping[str, str | None] | None = None,
    missing_cells: int = 0,
    summaries: Sequence[Summary] = (),
    end: str = "complete",
    **changes: object,
) -> MeasuredRun:
    """A run of one workload; ``values`` has the repetitions of each metric."""
    count = max((len(v) for v in values.values()), default=1)
    plan = a_plan(workload, repetitions=max(1, count))
    point = next(cell for cell in plan.cells if cell.purpose == "measure")
    cells = [
        MeasuredCell(cell=cell, outcome="valid", findings=(), measurements=(), histograms=())
        for cell in plan.cells
    ]
    found = [
        a_summary(
            v,
            metric=metric,
            workload=workload.name,
            parameters=point.parameters,
            point_id=point.point_id,
        )
        for metric, v in values.items()
    ]
    return MeasuredRun(
        record=a_record(plan, run_id, facts or {}, **changes),
        end=an_end_record(end=end, cells_done=len(cells)),
        cells=tuple(cells[: len(cells) - missing_cells]),
        summaries=(*found, *summaries),
        damage=(),
    )
