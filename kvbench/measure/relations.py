"""Numbers that one cell has only beside others of its sweep: ratios, and the knee of a span.  Pure.

They are made within a repetition, from cells that are equal in every other parameter, and belong
to one of these cells; so they are summarised over the repetitions like any other number.  What a
cell is compared with follows from the plan alone: where that cell was lost the number is lost too,
because over another base it would be another number.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log2

import numpy as np
from msgspec import Struct, structs

from kvbench.measure.model import MeasuredCell, Measurement
from kvbench.measure.tenants import doubts_of
from kvbench.plan import Plan
from kvbench.stats.knee import POINTS_MIN, RISE_MIN, find_knee
from kvbench.units import KIB, format_size
from kvbench.workload.schema import SweepAxis, SweepValue

BASE_BLOCK_BYTES = 4 * KIB
FEW_SPANS = f"a knee needs {POINTS_MIN} spans or more"
NO_KNEE = (
    f"the latency does not rise by {RISE_MIN:.0%} over the spans tried, or not steadily: "
    "no knee as far as this target reaches"
)
UNSEEN = "a latency beyond what fio can see has no ratio"

_COUNTS = ("valid", "doubtful")
_Found = Iterator[tuple[str, Measurement]]  # the cell that a number belongs to, and the number


class _Line(Struct, frozen=True, kw_only=True, eq=False):
    """The cells of one repetition that differ in one axis only, whatever their outcome."""

    axis: SweepAxis
    cells: Mapping[SweepValue, MeasuredCell]

    @property
    def values(self) -> list[SweepValue]:
        """The values that were planned, ascending."""
        return sorted(self.axis.values, key=float)

    @property
    def counting(self) -> list[tuple[SweepValue, MeasuredCell]]:
        """The cells whose numbers count, by ascending value."""
        return [(v, self.cells[v]) for v in self.values if not self.lost(v)]

    def lost(self, value: SweepValue) -> str:
        """Return why the cell of ``value`` cannot be compared with, "" when it can."""
        cell = self.cells.get(value)
        if cell is None:
            return f"{self._named(value)} was not measured in this repetition"
        if cell.outcome not in _COUNTS:
            return f"the cell of {self._named(value)} is {cell.outcome} in this repetition"
        return ""

    def _named(self, value: SweepValue) -> str:
        if self.axis.field == "jobs":
            return f"{value} {'job' if value == 1 else 'jobs'}"
        return format_size(int(value))


def with_relations(cells: Sequence[MeasuredCell], plan: Plan) -> tuple[MeasuredCell, ...]:
    """Return ``cells`` with the numbers that follow from others of the same sweep."""
    added: dict[str, list[Measurement]] = {}
    for workload in plan.workloads:
        mine = [
            c
            for c in cells
            if c.cell.workload == workload.name
            and c.cell.purpose == "measure"
            and c.cell.alone is None
            and not c.cell.undecided  # its rate was set, so it says nothing of the axis
        ]
        for axis in workload.sweep:
            relation = _RELATIONS.get(axis.field)
            if relation is None:
                continue
            label = axis.field if len(workload.streams) == 1 else f"{axis.stream}.{axis.field}"
            for line in _lines(mine, axis, label):
                for cell_id, measurement in relation(line):
                    added.setdefault(cell_id, []).append(measurement)
    return tuple(
        structs.replace(c, measurements=(*c.measurements, *added[c.cell.cell_id]))
        if c.cell.cell_id in added
        else c
        for c in cells
    )


def _lines(cells: Iterable[MeasuredCell], axis: SweepAxis, label: str) -> Iterator[_Line]:
    """Yield the cells that differ in this axis only."""
    lines: dict[tuple[int, str], dict[SweepValue, MeasuredCell]] = {}
    for cell in cells:
        parameters = dict(cell.cell.parameters)
        if label in parameters:
            value = parameters.pop(label)
            key = cell.cell.repetition, repr(sorted(parameters.items()))
            lines.setdefault(key, {})[value] = cell
    for line in lines.values():
        yield _Line(axis=axis, cells=line)


def _over_4kib(line: _Line) -> _Found:
    if BASE_BLOCK_BYTES not in line.axis.values:
        return
    lost = line.lost(BASE_BLOCK_BYTES)
    for value, cell in line.counting:
        if value != BASE_BLOCK_BYTES:
            base = None if lost else line.cells[BASE_BLOCK_BYTES]
            yield from _ratio("iops_over_4kib", "iops", line.axis.stream, cell, base, lost)


def _over_fewer_jobs(line: _Line) -> _Found:
    """Compare with the best of all that were planned with fewer; it may be the one that is lost."""
    stream = line.axis.stream
    for value, cell in line.counting:
        fewer = [v for v in line.values if float(v) < float(value)]
        if not fewer:
            continue
        lost = next((why for v in fewer if (why := line.lost(v))), "")
        base = None if lost else max((line.cells[v] for v in fewer), key=lambda c: _rate(c, stream))
        yield from _ratio("iops_over_fewer_jobs", "iops", stream, cell, base, lost)


def _rate(cell: MeasuredCell, stream: str) -> float:
    found = _find(cell, stream, "iops")
    return (found.value or 0.0) if found is not None else 0.0


def _over_spans(line: _Line) -> _Found:
    stream = line.axis.stream
    smallest, largest = line.values[0], line.values[-1]
    if smallest == largest:
        return
    lost = line.lost(smallest)
    for value, cell in line.counting:
        if value != smallest:
            base = None if lost else line.cells[smallest]
            name = "latency_over_smallest_span"
            yield from _ratio(name, "latency_p50", stream, cell, base, lost)
    if not line.lost(largest):
        yield from _knee(line, stream, line.cells[largest])


def _knee(line: _Line, stream: str, last: MeasuredCell) -> _Found:
    """The knee stands with the largest span of the plan, as it is looked for up to there."""
    mine = _find(last, stream, "latency_p50")
    if mine is None:
        return
    found = [(float(v), _find(c, stream, "latency_p50")) for v, c in line.counting]
    known = [(span, m.value) for span, m in found if m and m.value is not None and not m.censored]
    spans = len(line.values)
    knee_bytes = slope_s = None
    if spans < POINTS_MIN:
        reason = FEW_SPANS
    elif mine.value is None:
        reason = mine.reason
    elif mine.censored:
        reason = UNSEEN
    elif line.lost(line.values[0]):
        reason = line.lost(line.values[0])
    elif len(known) < POINTS_MIN:
        reason = f"{FEW_SPANS}, and only {len(known)} of {spans} have a latency in this repetition"
    else:
        x = np.array([log2(span) for span, _ in known])
        knee = find_knee(x, np.array([value for _, value in known]))
        reason = NO_KNEE if knee is None else ""
        if knee is not None:
            knee_bytes, slope_s = float(round(2**knee.x)), knee.slope
    others = [cell for _, cell in line.counting if cell is not last]
    doubts = tuple(dict.fromkeys(d for cell in others for d in doubts_of(cell, stream)))
    for metric, value in (("span_knee", knee_bytes), ("span_slope", slope_s)):
        made = structs.replace(
            mine, metric=metric, value=value, reason=reason, censored=False, doubts=doubts
        )
        yield last.cell.cell_id, made


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
    lost: str,
) -> _Found:
    """Yield the ratio; ``lost`` says why there is no base."""
    mine = _find(cell, stream, metric)
    if mine is None:
        return
    value: float | None = None
    doubts: tuple[str, ...] = ()
    if base is None:
        reason = lost
    else:
        other = _find(base, stream, metric)
        doubts = doubts_of(base, stream)
        if mine.value is None:
            reason = mine.reason
        elif other is None or other.value is None:
            reason = f"what it is compared with: {other.reason if other else 'not measured'}"
        elif other.value <= 0:
            reason = "what it is compared with is zero"
        elif mine.censored or other.censored:
            reason = UNSEEN
        else:
            value, reason = mine.value / other.value, ""
    made = structs.replace(
        mine, metric=name, value=value, reason=reason, censored=False, doubts=doubts
    )
    yield cell.cell.cell_id, made


def _find(cell: MeasuredCell, stream: str, metric: str) -> Measurement | None:
    """Return a number of a stream's reads, or of what it does instead."""
    return next((m for m in cell.measurements if (m.stream, m.metric) == (stream, metric)), None)
