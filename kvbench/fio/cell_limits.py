"""What a cell must be before it becomes a job text.  Pure.

The loader checks workload files, but a cell may also come out of a stored plan, which a stranger
may have written.  A job file can name any program (``exec_prerun``) and any file, so everything
that reaches its text is checked again here, where the text is made.
"""

import re
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from kvbench.document import brief, found, printable
from kvbench.errors import Refused
from kvbench.plan import Cell, Identified, Placed, Plan, check_stored
from kvbench.workload import rules
from kvbench.workload.schema import Stream, SweepValue

TEXT_MAX = 200  # characters of a name or value that a comment repeats
BYTES_MAX = 2**63 - 1  # fio's offsets are signed 64-bit numbers
MS_MIN_S = 0.001  # fio is given whole milliseconds, and takes 0 for "no end"

_WORKLOAD_NAME = re.compile(f"_?{rules.NAME}")
_STREAM_NAME = re.compile(rules.NAME)


def refuse_unfit_plan(plan: Plan, identified: Identified) -> None:
    """Return when a stored plan fits its target and a job may be made of each of its cells.

    Raises:
        Refused: as for ``check_stored`` and ``refuse_unfit``.
    """
    check_stored(plan, identified)
    for cell in plan.cells:
        refuse_unfit(with_least_rate(cell))


def with_least_rate(cell: Cell) -> Cell:
    """Return a cell whose rate is yet to be decided with a rate that it could have."""
    if not cell.undecided:
        return cell
    placed = tuple(
        replace(one, stream=replace(one.stream, rate_iops=float(one.stream.jobs)))
        for one in cell.placed
    )
    return replace(cell, placed=placed)


def refuse_unfit(cell: Cell) -> None:
    """Return when every value of ``cell`` is one that a workload file could have asked for.

    Raises:
        Refused: a value is of another type or out of its range, a name is not plain, or a cell
            that measures the host and not the target would use the target, or the reverse.
    """
    for problem in _problems(cell):
        raise Refused(
            f"no job is made of this cell: {problem}",
            where=f"cell {brief(str(cell.cell_id))}",
            hint="its run.json was changed, or not written by kvbench; start a new run",
        )


def _problems(cell: Cell) -> Iterable[str]:
    try:
        msgspec.convert(msgspec.to_builtins(cell), Cell)
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError) as error:
        yield printable(str(error))
        return
    yield from _texts(cell)
    if (cell.purpose == "ceiling") != (cell.engine == "null"):
        yield f"purpose {cell.purpose!r} and engine {cell.engine!r} contradict each other"
    yield from _ranges(_times(cell))
    streams = tuple(placed.stream for placed in cell.placed)
    if not 1 <= len(streams) <= rules.STREAMS_MAX:
        yield f"{len(streams)} streams, not 1 to {rules.STREAMS_MAX}"
    if len({stream.name for stream in streams}) < len(streams):
        yield "two streams have the same name"
    for placed in cell.placed:
        yield from _placed(placed, ramp_s=cell.timing.ramp_s)
    if cell.undecided and any(stream.rate_iops is None for stream in streams):
        yield "its rate was not decided"
    for breach in rules.cell_breaches(streams):
        yield f"{breach.field} {breach.message}"


def _texts(cell: Cell) -> Iterable[str]:
    if not _WORKLOAD_NAME.fullmatch(cell.workload):
        yield f"{found(cell.workload)} is not the name of a workload"
    texts = [cell.cell_id, cell.point_id, cell.workload_digest, cell.alone or ""]
    texts += [part for item in cell.parameters.items() for part in item if isinstance(part, str)]
    for text in texts:
        if len(text) > TEXT_MAX:
            yield f"a text of {len(text)} characters, at most {TEXT_MAX}: {brief(text)}"
        elif printable(text) != text:
            yield f"a text with a control character: {found(text)}"
    for value in cell.parameters.values():
        # written so that a NaN, which is neither more nor less than anything, is told too
        if not isinstance(value, str) and not abs(value) <= BYTES_MAX:
            yield f"a parameter is {found(value)}"


def _times(cell: Cell) -> Iterable[tuple[str, SweepValue | None, float, float]]:
    yield "runtime_s", cell.timing.runtime_s, MS_MIN_S, rules.RUNTIME_MAX_S
    yield "ramp_s", cell.timing.ramp_s, 0, rules.RAMP_MAX_S
    yield "seed", cell.seed, 0, BYTES_MAX
    yield "repetition", cell.repetition, 0, BYTES_MAX


def _placed(placed: Placed, *, ramp_s: float) -> Iterable[str]:
    stream = placed.stream
    if not _STREAM_NAME.fullmatch(stream.name) or stream.name.startswith("global"):
        yield f"{found(stream.name)} is not the name of a stream"
    if not stream.block_mix:
        yield f"stream {stream.name} has no block size"
        return
    wrong = list(_ranges(_numbers(placed)))
    yield from (f"stream {stream.name}: {text}" for text in wrong)
    if not wrong:
        for breach in rules.breaches(stream, ramp_s=ramp_s):
            yield f"stream {stream.name}: {breach.field} {breach.message}"


def _numbers(placed: Placed) -> Iterable[tuple[str, SweepValue | None, float, float]]:
    stream = placed.stream
    yield "offset_bytes", placed.offset_bytes, 0, BYTES_MAX
    yield "size_bytes", placed.size_bytes, 1, BYTES_MAX - max(0, placed.offset_bytes)
    for share in stream.block_mix:
        yield "block size", share.size_bytes, rules.BLOCK_MIN, rules.BLOCK_MAX
        yield "block percent", share.percent, 1, 100
    yield from _stream_numbers(stream)


def _stream_numbers(stream: Stream) -> Iterable[tuple[str, SweepValue | None, float, float]]:
    yield "chunk_bytes", stream.chunk_bytes, rules.CHUNK_MIN, rules.CHUNK_MAX
    yield "read_percent", stream.read_percent, 1, 99
    yield "queue_depth", stream.queue_depth, 1, rules.DEPTH_MAX
    yield "jobs", stream.jobs, 1, rules.JOBS_MAX
    yield "rate_iops", stream.rate_iops, 1, rules.RATE_MAX
    yield "zipf_theta", stream.zipf_theta, rules.THETA_MIN, rules.THETA_MAX
    yield "span_start_percent", stream.span_start_percent, 0, 100
    yield "span_percent", stream.span_percent, 0, 100
    yield "fsync_every", stream.fsync_every, 1, rules.FSYNC_MAX
    yield "align_bytes", stream.align_bytes, rules.BLOCK_MIN, rules.SPAN_BYTES_MAX
    yield "stride_bytes", stream.stride_bytes, rules.BLOCK_MIN, rules.SPAN_BYTES_MAX
    yield "payload_bytes", stream.payload_bytes, 1, rules.SPAN_BYTES_MAX
    yield "span_limit_bytes", stream.span_limit_bytes, rules.BLOCK_MIN, rules.SPAN_BYTES_MAX
    yield "request_steps", stream.request_steps, 1, rules.STEPS_MAX
    yield "prefetch_steps", stream.prefetch_steps, 1, rules.STEPS_MAX
    yield "deadline_s", stream.deadline_s, rules.PAUSE_MIN_S, rules.RUNTIME_MAX_S
    yield "compute_s", stream.compute_s, rules.PAUSE_MIN_S, rules.RUNTIME_MAX_S
    yield "pause_s", stream.pause_s, rules.PAUSE_MIN_S, rules.RUNTIME_MAX_S
    yield "burst_ios", stream.burst_ios, 1, rules.BURST_MAX


def _ranges(rows: Iterable[tuple[str, SweepValue | None, float, float]]) -> Iterable[str]:
    """Yield what is out of its range; a NaN is in none."""
    for name, value, low, high in rows:
        if value is not None and not (not isinstance(value, str) and low <= value <= high):
            yield f"{name} is {found(value)}, not within {low} to {high}"
