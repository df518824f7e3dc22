"""Latency against load: which rate comes next, and which rate is usable.  Pure.

A rate passes when its open loop kept up and the tail of the latency stayed within the limit.  The
usable rate is the highest that passed below the lowest that did not: a pass above a failure is
luck, as more load does not make a drive faster.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from kvbench.measure.model import MeasuredCell, Measurement
from kvbench.metrics import percentile_name
from kvbench.plan import Cell, Plan
from kvbench.units import format_count, format_time
from kvbench.workload.schema import Load

CurveKey = tuple[int, str, str]

_COUNTS = ("valid", "doubtful")
_Answer = Literal["pass", "fail", "unknown"]


class Decision(Struct, frozen=True, kw_only=True):
    """The rate of a cell, for all its jobs together; None where ``reason`` says why."""

    rate_iops: float | None
    reason: str = ""


class Tried(Struct, frozen=True, kw_only=True):
    """One rate that was tried, and what came of it; ``words`` says why it did not pass."""

    rate_iops: float
    answer: _Answer
    words: str
    doubts: tuple[str, ...]
    spoiled: bool = False  # its cell does not count


def curve_key(cell: Cell) -> CurveKey:
    """Return the same key for all cells of one load curve in one repetition."""
    others = sorted((k, v) for k, v in cell.parameters.items() if k != "load")
    return cell.repetition, cell.workload_digest, repr(others)


def decide_rate(cell: Cell, load: Load, earlier: Sequence[MeasuredCell]) -> Decision:
    """Return the rate of a share or a search step, a whole number per job.

    Args:
        cell: as planned, without a rate.
        load: what its workload asks for.
        earlier: the cells of the same curve and repetition that were measured before it.
    """
    if cell.load is None or cell.load.kind == "peak":
        raise ValueError(f"cell {cell.cell_id} has no rate to decide")
    peak, reason = _peak(earlier)
    if peak is None:
        return Decision(rate_iops=None, reason=reason)
    if cell.load.kind == "share":
        return _whole(cell, peak * (cell.load.percent or 0.0) / 100)
    tried = [try_of(other, load) for other in earlier if _is_open(other)]
    high = min((t.rate_iops for t in tried if t.answer == "fail"), default=peak)
    passed = (t.rate_iops for t in tried if t.answer == "pass" and t.rate_iops < high)
    return _whole(cell, (max(passed, default=0.0) + high) / 2)


def with_rate(cell: Cell, rate_iops: float) -> Cell:
    """Return ``cell`` with the rate of its only stream."""
    (only,) = cell.placed
    return replace(cell, placed=(replace(only, stream=replace(only.stream, rate_iops=rate_iops)),))


def try_of(measured: MeasuredCell, load: Load) -> Tried:
    """Return what came of one open loop."""
    (placed,) = measured.cell.placed
    stream = placed.stream
    rate = stream.rate_iops or 0.0
    name = percentile_name(load.percentile)
    overloaded = [f.text for f in measured.findings if f.check == "overloaded"]
    doubts = tuple(f.text for f in measured.findings if f.severity == "doubt")
    answer: _Answer = "unknown"
    if measured.outcome not in _COUNTS:
        words = f"its cell is {measured.outcome}"
    elif overloaded:
        answer, words = "fail", overloaded[0]
    else:
        found = _find(measured, f"latency_{name}")
        if found is None or found.value is None:
            words = found.reason if found is not None else f"{name} was not measured"
        elif found.censored or found.value > load.limit_s:
            answer, words = "fail", f"{name} was {format_time(found.value)}"
        else:
            answer, words = "pass", ""
    spoiled = measured.outcome not in _COUNTS
    return Tried(rate_iops=rate, answer=answer, words=words, doubts=doubts, spoiled=spoiled)


def with_usable(cells: Sequence[MeasuredCell], plan: Plan) -> tuple[MeasuredCell, ...]:
    """Return ``cells`` with the usable rate of each curve added to its peak's cell."""
    loads = {w.digest: w.load for w in plan.workloads if w.load is not None}
    curves: dict[CurveKey, list[MeasuredCell]] = {}
    for cell in cells:
        if cell.cell.load is not None:
            curves.setdefault(curve_key(cell.cell), []).append(cell)
    added: dict[str, tuple[Measurement, ...]] = {}
    for members in curves.values():
        load = loads.get(members[0].cell.workload_digest)
        for peak in members:
            kind = peak.cell.load.kind if peak.cell.load is not None else ""
            if load is not None and kind == "peak" and peak.outcome in _COUNTS:
                added[peak.cell.cell_id] = tuple(_usable(peak, members, load))
    return tuple(
        replace(cell, measurements=cell.measurements + added[cell.cell.cell_id])
        if cell.cell.cell_id in added
        else cell
        for cell in cells
    )


def _usable(
    peak: MeasuredCell, members: Sequence[MeasuredCell], load: Load
) -> Iterable[Measurement]:
    tried = sorted((try_of(m, load) for m in members if _is_open(m)), key=lambda t: t.rate_iops)
    failed = next((t for t in tried if t.answer == "fail"), None)
    below = [t for t in tried if failed is None or t.rate_iops < failed.rate_iops]
    passed = [t for t in below if t.answer == "pass"]
    best = passed[-1] if passed else None
    reason = "" if best else _why_none(tried, failed)
    doubts = () if best is None else (*best.doubts, *_unseen(tried, best))
    top = _find(peak, "iops")
    for metric in ("usable_iops", "usable_share"):
        value = None if best is None else best.rate_iops
        if metric == "usable_share" and value is not None:
            value = 100 * value / top.value if top is not None and top.value else None
        yield Measurement(
            stream=peak.cell.placed[0].stream.name,
            direction="read",
            metric=metric,
            value=value,
            io_count=top.io_count if top is not None else 0,
            reason=reason if best is None else "",
            doubts=doubts,
        )


def _unseen(tried: Sequence[Tried], best: Tried) -> Iterable[str]:
    """Doubt a usable rate below which one was tried in a cell that does not count.

    A lower rate that has too few I/Os is none: that it would fail alone is not to be expected.
    """
    lost = [t for t in tried if t.spoiled and t.rate_iops < best.rate_iops]
    if lost:
        rates = ", ".join(f"{format_count(t.rate_iops)}/s" for t in lost)
        yield f"below the usable rate it is not known whether the tail kept its limit at {rates}"


def _why_none(tried: Sequence[Tried], failed: Tried | None) -> str:
    """Say why no rate is known to be usable."""
    unknown = next((t for t in tried if t.answer == "unknown"), None)
    if failed is not None and (unknown is None or failed.rate_iops <= unknown.rate_iops):
        return f"no rate that was tried: even at {format_count(failed.rate_iops)}/s {failed.words}"
    if unknown is not None:
        return f"at {format_count(unknown.rate_iops)}/s: {unknown.words}"
    return "no open loop of this repetition is in the archive"


def _peak(earlier: Sequence[MeasuredCell]) -> tuple[float | None, str]:
    for cell in earlier:
        if cell.cell.load is not None and cell.cell.load.kind == "peak":
            found = _find(cell, "iops")
            if cell.outcome not in _COUNTS or found is None or not found.value:
                return None, f"the peak that its rate is a share of is {cell.outcome}"
            return found.value, ""
    return None, "the peak that its rate is a share of was not measured"


def _is_open(cell: MeasuredCell) -> bool:
    return cell.cell.undecided and len(cell.cell.placed) == 1


def _find(cell: MeasuredCell, metric: str) -> Measurement | None:
    return next((m for m in cell.measurements if m.metric == metric), None)


def _whole(cell: Cell, rate_iops: float) -> Decision:
    """Fio takes whole numbers per job, and 0 for no limit."""
    jobs = cell.placed[0].stream.jobs
    return Decision(rate_iops=float(max(1, round(rate_iops / jobs)) * jobs))
