"""Measurements of all repetitions -> one summary per point, stream, direction and metric.  Pure.

Only valid and doubtful cells count; the others are counted as excluded and their numbers unused.
A metric that some of the cells that count could not give has no summary: the repetitions that are
fast enough to reach a percentile's count are not a fair sample of all.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, cast

from msgspec.structs import replace

from kvbench.measure.evidence import asked_directions
from kvbench.measure.model import Finding, IoDirection, MeasuredCell, Measurement, Summary
from kvbench.metrics import METRICS
from kvbench.plan import Cell, Plan
from kvbench.stats import series
from kvbench.stats.interval import median_interval
from kvbench.stats.proportion import share_interval

_Key = tuple[str, IoDirection, str]  # stream, direction, metric
_COUNTS = ("valid", "doubtful")
OUTLIER = "outlier: one of the repetitions stands apart; it counts like the others"
DRIFT = "drift: the numbers rise or fall over the repetitions"
NOT_GIVEN = "the cell did not give this number"
SHARE_POINTS_MAX = 10.0  # width of the interval of a share, in percentage points
UNSTABLE_RATIO = 2.0  # largest over smallest repetition; a quiet device stays below 1.3


def summarise(plan: Plan, cells: Sequence[MeasuredCell]) -> tuple[Summary, ...]:
    """Return the summaries of ``cells`` in the plan's order.

    Ceilings come first, then the workloads in the order in which they were named, each with its
    sweep in the file's order, and tenants alone after all of them together.
    """
    points: dict[str, list[MeasuredCell]] = {}
    for cell in cells:
        if cell.cell.purpose == "search":
            continue  # its rate differs from repetition to repetition
        points.setdefault(cell.cell.point_id, []).append(cell)
    order = _Order(plan)
    ordered = sorted(points.values(), key=lambda members: order.rank(members[0].cell))
    return tuple(summary for members in ordered for summary in _point(members))


def with_lacking(cells: Sequence[MeasuredCell]) -> tuple[MeasuredCell, ...]:
    """Return ``cells``, of which each that counts has every metric of its point.

    What only other repetitions gave is there without a value and with a reason; else n would be
    smaller without a word.  It is for the cells of one run, which were all asked for the same.
    """
    keys: dict[str, dict[_Key, None]] = {}
    for cell in cells:
        if cell.outcome in _COUNTS:
            mine = keys.setdefault(cell.cell.point_id, {})
            mine |= {(m.stream, m.direction, m.metric): None for m in cell.measurements}
    return tuple(
        replace(cell, measurements=(*cell.measurements, *_lacking(cell, keys[cell.cell.point_id])))
        if cell.outcome in _COUNTS
        else cell
        for cell in cells
    )


def _lacking(cell: MeasuredCell, keys: Iterable[_Key]) -> Iterable[Measurement]:
    given = {(m.stream, m.direction, m.metric) for m in cell.measurements}
    for stream, direction, metric in keys:
        if (stream, direction, metric) not in given:
            yield Measurement(
                stream=stream,
                direction=direction,
                metric=metric,
                value=None,
                io_count=0,
                reason=NOT_GIVEN,
            )


class _Order:
    """Where a cell stands in the plan, whatever the shuffle of its repetition."""

    def __init__(self, plan: Plan) -> None:
        self._workloads = {w.name: place for place, w in enumerate(plan.workloads)}
        self._sweeps = {w.name: w.sweep for w in plan.workloads}
        self._streams = {w.name: [s.name for s in w.streams] for w in plan.workloads}

    def rank(self, cell: Cell) -> tuple[bool, int, list[int], int]:
        values = list(cell.parameters.values())  # in the order of the sweep's axes
        axes = self._sweeps.get(cell.workload, ())
        places = [
            axis.values.index(value) if value in axis.values else len(axis.values)
            for axis, value in zip(axes, values, strict=False)
        ]
        names = self._streams.get(cell.workload, [])
        alone = 1 + names.index(cell.alone) if cell.alone in names else 0
        workload = self._workloads.get(cell.workload, len(self._workloads))
        return cell.purpose != "ceiling", workload, places, alone


def _point(members: list[MeasuredCell]) -> Iterable[Summary]:
    members = sorted(members, key=lambda cell: cell.cell.repetition)
    used = [cell for cell in members if cell.outcome in _COUNTS]
    keys: dict[_Key, None] = {}
    for cell in used or members:
        keys |= {(m.stream, m.direction, m.metric): None for m in cell.measurements}
    if not keys:  # nothing was measured at all; the point is still shown, with the reason
        keys = {
            (placed.stream.name, direction, "iops"): None
            for placed in members[0].cell.placed
            for direction in asked_directions(placed.stream)
        }
    for key in keys:
        yield _summary(key, members, used)


def _summary(key: _Key, members: list[MeasuredCell], used: list[MeasuredCell]) -> Summary:
    stream, direction, metric = key
    cell = members[0].cell
    found = [m for c in used for m in c.measurements if (m.stream, m.direction, m.metric) == key]
    some = [m for m in found if m.value is not None]
    lacking = len(found) - len(some)
    with_value = [] if lacking else some
    values = tuple(m.value for m in with_value if m.value is not None)
    interval = median_interval(values) if values else None
    beyond = (m.value for m in some if m.value is not None and m.censored)
    censored_from = min(beyond, default=None)
    return Summary(
        point_id=cell.point_id,
        purpose=cell.purpose,
        workload=cell.workload,
        role=cell.role,
        parameters=cell.parameters,
        alone=cell.alone,
        stream=stream,
        direction=direction,
        metric=metric,
        unit=METRICS[metric].unit,
        median=interval.median if interval else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        interval=cast("Literal['95 %', 'range', 'none']", interval.kind) if interval else "none",
        n=len(values),
        values=values,
        io_count=sum(m.io_count for m in with_value),
        excluded=len(members) - len(used),
        censored=_median_is_censored(values, censored_from),
        reason=_reason(found, members, used),
        doubts=tuple(
            dict.fromkeys(
                (
                    *_doubts(stream, used),
                    *(doubt for m in found for doubt in m.doubts),
                    *_few(metric, with_value),
                    *_unstable(metric, values),
                    *_uneven(metric, values),
                )
            )
        ),
        partial=tuple(m.value for m in some if m.value is not None) if lacking else (),
        lacking=lacking,
        censored_from=censored_from,
    )


def _median_is_censored(values: tuple[float, ...], censored_from: float | None) -> bool:
    """Whether one of the values in the middle lies where fio cannot see."""
    if not values or censored_from is None:
        return False
    return sorted(values)[len(values) // 2] >= censored_from


def _reason(found: list[Measurement], members: list[MeasuredCell], used: list[MeasuredCell]) -> str:
    """Say why there is no number, and for how many of the repetitions that count."""
    if not used:
        outcomes = sorted({cell.outcome for cell in members})
        return f"no repetition counts: {len(members)} {' or '.join(outcomes)}"
    missing = [m for m in found if m.value is None]
    if not missing:
        return ""
    fewest = min(missing, key=lambda m: m.io_count).reason
    if len(missing) == len(used):
        return fewest
    return f"{fewest} (in {len(missing)} of {len(used)} repetitions)"


def _few(metric: str, found: list[Measurement]) -> Iterable[str]:
    """Doubt a share of counted things of which there were few; each repetition may have some."""
    what = METRICS[metric].share_of
    count = sum(m.io_count for m in found)
    if not what or not count:
        return
    hits = sum(round((m.value or 0.0) / 100 * m.io_count) for m in found)
    low, high = (100 * end for end in share_interval(hits, count))
    if high - low > SHARE_POINTS_MAX:
        yield (
            f"few {what}: {hits:,} of {count:,} in all repetitions tell of a share of "
            f"{low:.0f} to {high:.0f} %"
        )


def _unstable(metric: str, values: tuple[float, ...]) -> Iterable[str]:
    """Doubt a number whose repetitions do not agree, where a direction is better than the other."""
    if METRICS[metric].better == "neither" or len(values) < 2 or min(values) <= 0:
        return
    spread = max(values) / min(values)
    if spread >= UNSTABLE_RATIO:
        yield f"unstable: the repetitions differ by a factor of {UNSTABLE_RATIO:g} or more"


def _uneven(metric: str, values: tuple[float, ...]) -> Iterable[str]:
    """Tell an odd repetition and a trend over them; none is ever left out."""
    if METRICS[metric].better == "neither":
        return
    if series.outliers(values):
        yield OUTLIER
    if series.clear_drift(values) is not None:
        yield DRIFT


def _doubts(stream: str, used: list[MeasuredCell]) -> tuple[str, ...]:
    """Return one sentence per doubted check: the first text, and how often it was found."""
    found: dict[str, list[Finding]] = {}
    for cell in used:
        doubted = {
            finding.check: finding
            for finding in reversed(cell.findings)
            if finding.severity == "doubt" and finding.stream in (None, stream)
        }
        for check, finding in doubted.items():
            found.setdefault(check, []).append(finding)
    return tuple(
        findings[0].text
        if len(findings) == len(used)
        else f"{findings[0].text} ({len(findings)} of {len(used)} repetitions)"
        for findings in found.values()
    )
