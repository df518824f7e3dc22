"""What a stream loses beside other tenants: the mixed cell over the same stream alone.  Pure."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import structs

from kvbench.measure.model import IoDirection, MeasuredCell, Measurement

# metric of the ratio -> metric that both cells measure
RATIOS: dict[str, str] = {
    "latency_p99_mixed_over_alone": "latency_p99",
    "latency_p99.9_mixed_over_alone": "latency_p99.9",
    "iops_mixed_over_alone": "iops",
}
_COUNTS = ("valid", "doubtful")

_Key = tuple[int, str, bytes]


def with_tenants(
    cells: Sequence[MeasuredCell], isolated: Iterable[str]
) -> tuple[MeasuredCell, ...]:
    """Return ``cells`` with the ratios added to each mixed cell.

    The two cells of a ratio are of the same repetition and parameters.

    Args:
        cells: the cells of one run.
        isolated: the names of the workloads that measure each stream alone as well.
    """
    names = set(isolated)
    shared = [c for c in cells if c.cell.workload in names and c.cell.purpose == "measure"]
    alone = {(_key(cell), cell.cell.alone): cell for cell in shared if cell.cell.alone is not None}
    mixed = {cell.cell.cell_id for cell in shared if cell.cell.alone is None}
    return tuple(
        _with_ratios(cell, alone) if cell.cell.cell_id in mixed else cell for cell in cells
    )


def _with_ratios(mixed: MeasuredCell, alone: dict[tuple[_Key, str], MeasuredCell]) -> MeasuredCell:
    if mixed.outcome not in _COUNTS or not mixed.measurements:
        return mixed
    added = [
        _ratio(name, metric, mine, alone.get((_key(mixed), mine.stream)))
        for name, metric in RATIOS.items()
        for mine in mixed.measurements
        if mine.metric == metric
    ]
    found = mixed.measurements + tuple(added)
    return structs.replace(mixed, measurements=(*found, _jain(mixed, added)))


def _jain(mixed: MeasuredCell, ratios: Sequence[Measurement]) -> Measurement:
    """Return Jain's index of the shares of their own rates that the streams kept.

    (sum x)^2 / (n sum x^2), from 1/n (one has all) to 1 (all lose alike); R. Jain, D. Chiu,
    W. Hawe, DEC TR-301, 1984.  It stands with the first stream and is of all.
    """
    rates = [m for m in ratios if m.metric == "iops_mixed_over_alone"]
    shares = [m.value for m in rates if m.value is not None]
    value, reason = None, next((m.reason for m in rates if m.value is None), "")
    if not reason and sum(shares) > 0:
        value = sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))
    first = mixed.measurements[0]
    return Measurement(
        stream=mixed.cell.placed[0].stream.name,
        direction=first.direction,
        metric="jain_index",
        value=value,
        io_count=sum(m.io_count for m in rates),
        reason=reason if value is None else "",
        doubts=tuple(dict.fromkeys(doubt for m in rates for doubt in m.doubts)),
    )


def _ratio(name: str, metric: str, mine: Measurement, other: MeasuredCell | None) -> Measurement:
    value, reason = None, ""
    if other is None:
        reason = "the stream was not measured alone in this repetition"
    elif other.outcome not in _COUNTS:
        reason = f"the cell that measured the stream alone is {other.outcome}"
    else:
        theirs = _find(other, mine.stream, mine.direction, metric)
        if mine.value is None:
            reason = f"together: {mine.reason}"
        elif theirs is None or theirs.value is None:
            reason = f"alone: {theirs.reason if theirs else 'not measured'}"
        elif theirs.value <= 0:
            reason = "alone it is zero"
        elif mine.censored or theirs.censored:
            reason = "a latency beyond what fio can see has no ratio"
        else:
            value = mine.value / theirs.value
    return Measurement(
        stream=mine.stream,
        direction=mine.direction,
        metric=name,
        value=value,
        io_count=mine.io_count,
        reason=reason,
        doubts=() if other is None else doubts_of(other, mine.stream),
    )


def doubts_of(cell: MeasuredCell, stream: str) -> tuple[str, ...]:
    """Return what is doubtful about a stream's numbers, for those that are made from them."""
    return tuple(
        f.text for f in cell.findings if f.severity == "doubt" and f.stream in (None, stream)
    )


def _find(
    cell: MeasuredCell, stream: str, direction: IoDirection, metric: str
) -> Measurement | None:
    for found in cell.measurements:
        if (found.stream, found.direction, found.metric) == (stream, direction, metric):
            return found
    return None


def _key(cell: MeasuredCell) -> _Key:
    """The same in a mixed cell and in the cells of its streams alone."""
    shared = {k: v for k, v in cell.cell.parameters.items() if k not in ("victim", "aggressor")}
    parameters = msgspec.json.encode(sorted(shared.items()))
    return cell.cell.repetition, cell.cell.workload_digest, parameters
