"""What a stream loses beside other tenants: the mixed cell over the same stream alone.  Pure."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import structs

from kvbench.measure.evidence import asked_directions
from kvbench.measure.model import IoDirection, MeasuredCell, Measurement
from kvbench.plan import Cell
from kvbench.workload.schema import Stream, SweepValue

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
    return structs.replace(mixed, measurements=(*found, _jain(mixed, alone)))


def _jain(mixed: MeasuredCell, alone: Mapping[tuple[_Key, str], MeasuredCell]) -> Measurement:
    """Return Jain's index of the shares of their own rates that the streams kept.

    (sum x)^2 / (n sum x^2), from 1/n (one has all) to 1 (all lose alike); R. Jain, D. Chiu,
    W. Hawe, DEC TR-301, 1984.  A stream that reads and writes has one share, of both together.
    The index stands with the first stream and is of all.
    """
    streams = [placed.stream for placed in mixed.cell.placed]
    first = streams[0]
    shares: list[float] = []
    reason, io_count = "", 0
    doubts = [
        finding.text
        for finding in mixed.findings
        if finding.severity == "doubt" and finding.stream not in (None, first.name)
    ]
    for stream in streams:
        other = alone.get((_key(mixed), stream.name))
        why = _lost(other)
        together, done, together_why = _whole_rate(mixed, stream)
        io_count += done
        if other is not None:
            doubts += doubts_of(other, stream.name)
        if other is not None and not why:
            own, _, own_why = _whole_rate(other, stream)
            if together is None:
                why = f"together: {together_why}"
            elif own is None:
                why = f"alone: {own_why}"
            elif own <= 0:
                why = "alone it is zero"
            else:
                shares.append(together / own)
        reason = reason or (f"{stream.name}: {why}" if why else "")
    value = None
    if not reason and not any(shares):
        reason = "no stream kept any of its own rate"
    if not reason:
        value = sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))
    return Measurement(
        stream=first.name,
        direction=asked_directions(first)[0],
        metric="jain_index",
        value=value,
        io_count=io_count,
        reason=reason,
        doubts=tuple(dict.fromkeys(doubts)),
    )


def _whole_rate(cell: MeasuredCell, stream: Stream) -> tuple[float | None, int, str]:
    """Return the I/Os per second of all directions of a stream, their number, and why not."""
    found = [_find(cell, stream.name, d, "iops") for d in asked_directions(stream)]
    done = sum(m.io_count for m in found if m is not None)
    rates = [m.value for m in found if m is not None and m.value is not None]
    if len(rates) < len(found):
        return None, done, next((m.reason for m in found if m and m.reason), "not measured")
    return sum(rates), done, ""


def _lost(alone: MeasuredCell | None) -> str:
    """Return why the cell of a stream alone cannot be compared with, "" when it can."""
    if alone is None:
        return "the stream was not measured alone in this repetition"
    if alone.outcome not in _COUNTS:
        return f"the cell that measured the stream alone is {alone.outcome}"
    return ""


def _ratio(name: str, metric: str, mine: Measurement, other: MeasuredCell | None) -> Measurement:
    value, reason = None, _lost(other)
    if other is not None and not reason:
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


def shared_parameters(cell: Cell) -> dict[str, SweepValue]:
    """Return what is the same in a mixed cell and in the cells of its streams alone."""
    return {k: v for k, v in cell.parameters.items() if k not in ("victim", "aggressor")}


def _key(cell: MeasuredCell) -> _Key:
    """The same in a mixed cell and in the cells of its streams alone."""
    parameters = msgspec.json.encode(sorted(shared_parameters(cell.cell).items()))
    return cell.cell.repetition, cell.cell.workload_digest, parameters
