"""Numbers that one cell has only beside others of its sweep: ratios, and the knee of a span.  Pure.

They are made within a repetition, from cells that are equal in every other parameter, and belong
to one of these cells; so they are summarised over the repetitions like any other number.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import log2

import numpy as np
from msgspec import structs

from kvbench.measure.model import MeasuredCell, Measurement
from kvbench.measure.tenants import doubts_of
from kvbench.plan import Plan
from kvbench.stats.knee import POINTS_MIN, RISE_MIN, find_knee
from kvbench.units import KIB
from kvbench.workload.schema import SweepValue

BASE_BLOCK_BYTES = 4 * KIB
FEW_SPANS = f"a knee needs {POINTS_MIN} spans or more"
NO_KNEE = (
    f"the latency does not rise by {RISE_MIN:.0%} over the spans tried, or not steadily: "
    "no knee as far as this target reaches"
)

_COUNTS = ("valid", "doubtful")
_Line = list[tuple[SweepValue, MeasuredCell]]  # by ascending value of the axis


def with_relations(cells: Sequence[MeasuredCell], plan: Plan) -> tuple[MeasuredCell, ...]:
    """Return ``cells`` with the numbers that follow from others of the same sweep."""
    axes = {w.name: [(axis.stream, axis.field) for axis in w.sweep] for w in plan.workloads}
    added: dict[str, list[Measurement]] = {}
    for workload, swept in axes.items():
        mine = [
            c
            for c in cells
            if c.cell.workload == workload
            and c.cell.purpose == "measure"
            and c.cell.alone is None
            and c.outcome in _COUNTS
        ]
        for stream, field in swept:
            relation = _RELATIONS.get(field)
            if relation is None:
                continue
            for line in _lines(mine, stream, field):
                for cell_id, measurement in relation(stream, line):
                    added.setdefault(cell_id, []).append(measurement)
    return tuple(
        structs.replace(c, measurements=(*c.measurements, *added[c.cell.cell_id]))
        if c.cell.cell_id in added
        else c
        for c in cells
    )


def _lines(cells: Iterable[MeasuredCell], stream: str, field: str) -> Iterator[_Line]:
    """Yield the cells that differ in this axis only, by ascending value."""
    lines: dict[tuple[int, str], _Line] = {}
    for cell in cells:
        parameters = dict(cell.cell.parameters)
        label = next((k for k in (field, f"{stream}.{field}") if k in parameters), None)
        if label is None:
            continue
        value = parameters.pop(label)
        key = cell.cell.repetition, repr(sorted(parameters.items()))
        lines.setdefault(key, []).append((value, cell))
    for line in lines.values():
        yield sorted(line, key=lambda entry: float(entry[0]))


_Found = Iterator[tuple[str, Measurement]]


def _over_4kib(stream: str, line: _Line) -> _Found:
    base = next((cell for value, cell in line if value == BASE_BLOCK_BYTES), None)
    for value, cell in line:
        if value != BASE_BLOCK_BYTES:
            missing = "4 KiB was not measured in this repetition"
            yield from _ratio("iops_over_4kib", "iops", stream, cell, base, missing)


def _over_fewer_jobs(stream: str, line: _Line) -> _Found:
    best: MeasuredCell | None = None
    for _, cell in line:
        if best is not None:
            yield from _ratio("iops_over_fewer_jobs", "iops", stream, cell, best, "")
        if best is None or _rate(cell, stream) > _rate(best, stream):
            best = cell


def _rate(cell: MeasuredCell, stream: str) -> float:
    found = _find(cell, stream, "iops")
    return (found.value or 0.0) if found is not None else 0.0


def _over_spans(stream: str, line: _Line) -> _Found:
    first = line[0][1]
    for _, cell in line[1:]:
        name = "latency_over_smallest_span"
        yield from _ratio(name, "latency_p50", stream, cell, first, "")
    last = line[-1][1]
    found = [(float(v), _find(c, stream, "latency_p50")) for v, c in line]
    known = [(span, m.value) for span, m in found if m is not None and m.value is not None]
    knee_bytes = slope_s = None
    reason = ""
    if len(known) < POINTS_MIN:
        reason = FEW_SPANS
    else:
        x = np.array([log2(span) for span, _ in known])
        knee = find_knee(x, np.array([value for _, value in known]))
        if knee is None:
            reason = NO_KNEE
        else:
            knee_bytes, slope_s = float(round(2**knee.x)), knee.slope
    doubts = tuple(dict.fromkeys(d for _, cell in line for d in doubts_of(cell, stream)))
    base = _find(last, stream, "latency_p50")
    if base is None:
        return
    for metric, value in (("span_knee", knee_bytes), ("span_slope", slope_s)):
        yield (
            last.cell.cell_id,
            structs.replace(
                base, metric=metric, value=value, reason=reason, censored=False, doubts=doubts
            ),
        )


_RELATIONS = {
    "block_size": _over_4kib,
    "jobs": _over_fewer_jobs,
    "span_size": _over_spans,
}


def _ratio(
    name: str,
    metric: str,
    stream: str,
    cell: MeasuredCell,
    base: MeasuredCell | None,
    missing: str,
) -> _Found:
    mine = _find(cell, stream, metric)
    if mine is None:
        return
    other = None if base is None else _find(base, stream, metric)
    value, reason = None, missing
    if other is not None:
        if mine.value is None:
            reason = mine.reason
        elif not other.value:
            reason = other.reason or "what it is compared with is zero"
        elif mine.censored or other.censored:
            reason = "a latency beyond what fio can see has no ratio"
        else:
            value, reason = mine.value / other.value, ""
    doubts = () if base is None else doubts_of(base, stream)
    yield (
        cell.cell.cell_id,
        structs.replace(
            mine, metric=name, value=value, reason=reason, censored=False, doubts=doubts
        ),
    )


def _find(cell: MeasuredCell, stream: str, metric: str) -> Measurement | None:
    """Return a number of a stream's reads, or of what it does instead."""
    return next((m for m in cell.measurements if (m.stream, m.metric) == (stream, metric)), None)
