"""Measured runs with chosen numbers, and requirements on them, for tests of role cards."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from kvbench.host.model import Written
from kvbench.measure.model import Finding, MeasuredCell, MeasuredRun, Outcome, Summary
from kvbench.metrics import METRICS
from kvbench.plan import Cell, Skipped
from kvbench.stats.interval import median_interval
from kvbench.workload.roles import Level, Requirement, RoleCard, Subject
from kvbench.workload.schema import SweepValue, Workload
from tests import records

WORKLOAD = records.a_workload()  # 4 KiB reads at depth 1 and 4
Values = Callable[[dict[str, SweepValue]], Sequence[float] | str]  # numbers, or why there are none


def subject(workload: Workload = WORKLOAD, **changes: object) -> Subject:
    """The IOPS of the only stream at depth 4."""
    fields: dict[str, object] = {
        "workload": workload.name,
        "stream": workload.streams[0].name,
        "metric": "iops",
        "at": {"queue_depth": 4},
        "streams": workload.streams,
        "swept": tuple(f"{axis.stream}.{axis.field}" for axis in workload.sweep),
    }
    return Subject(**(fields | changes))  # type: ignore[arg-type]


def requirement(about: Subject | None = None, **changes: object) -> Requirement:
    """At least 1,000 IOPS, on shipping evidence."""
    fields: dict[str, object] = {
        "subject": about or subject(),
        "of": "worst",
        "bound": "at_least",
        "limit": 1000.0,
        "limit_text": "1.00k",
        "why": "a test asks for it",
        "source": "a test",
        "evidence": "shipping",
    }
    return Requirement(**(fields | changes))  # type: ignore[arg-type]


def card(*levels: Sequence[Requirement]) -> RoleCard:
    """A card of the role memory with levels called one, two, three."""
    names = ("one", "two", "three", "four")
    return RoleCard(
        role="memory",
        summary="a test",
        levels=tuple(
            Level(name=n, title=f"level {n}", summary="s", source="s", requirements=tuple(rows))
            for n, rows in zip(names, levels, strict=False)
        ),
    )


def run(
    values: Values,
    *,
    workload: Workload = WORKLOAD,
    metric: str = "iops",
    outcome: Outcome = "valid",
    findings: tuple[Finding, ...] = (),
    written: Written | None = None,
    skipped: tuple[Skipped, ...] = (),
    censored: bool = False,
    **plan_changes: object,
) -> MeasuredRun:
    """A complete run of ``workload`` in which ``metric`` has the values of each point."""
    plan = records.a_plan(workload)
    plan = replace(plan, skipped=skipped, **plan_changes)
    record = records.a_run_record(plan)
    record = replace(record, written=written or record.written)
    points: dict[str, Cell] = {
        cell.point_id: cell for cell in plan.cells if cell.purpose == "measure"
    }
    return MeasuredRun(
        record=record,
        end=records.an_end_record(),
        cells=tuple(
            MeasuredCell(
                cell=cell, outcome=outcome, findings=findings, measurements=(), histograms=()
            )
            for cell in plan.cells
            if cell.purpose == "measure"
        ),
        summaries=tuple(
            _summary(cell, metric, values(cell.parameters), censored)
            for cell in sorted(points.values(), key=lambda cell: str(cell.parameters))
        ),
        damage=(),
    )


def _summary(cell: Cell, metric: str, values: Sequence[float] | str, censored: bool) -> Summary:
    numbers = () if isinstance(values, str) else tuple(values)
    found = median_interval(numbers) if numbers else None
    return Summary(
        point_id=cell.point_id,
        purpose="measure",
        workload=cell.workload,
        role=cell.role,
        parameters=cell.parameters,
        alone=None,
        stream=cell.placed[0].stream.name,
        direction="read",
        metric=metric,
        unit=METRICS[metric].unit,
        median=found.median if found else None,
        low=found.low if found else None,
        high=found.high if found else None,
        interval=("95 %" if len(numbers) >= 6 else "range" if len(numbers) > 1 else "none"),
        n=len(numbers),
        values=numbers,
        io_count=1000,
        excluded=0,
        censored=censored,
        reason=values if isinstance(values, str) else "",
        doubts=(),
    )
