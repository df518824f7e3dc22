"""The part of a target that each stream gets, and what is made smaller to fit on it.  Pure."""

from math import ceil

from msgspec.structs import replace

from kvbench.errors import UsageError
from kvbench.plan.model import Placed, Scaled
from kvbench.units import MIB, format_size
from kvbench.workload.schema import Stream, SweepAxis, Workload
from kvbench.workload.sweep import points

UNITS_PER_JOB_MIN = 1  # less, and a submitter has nothing to read
UNITS_PER_JOB = 8  # with fewer blocks or chunks per submitter the same ones come again and again
SPANS_END = "spans end at"  # how the sentence on a sweep that was cut short begins
ALIGN_BYTES = MIB  # spans start and end on this, so that no LBA size and no file system minds


def min_target_bytes(workload: Workload) -> int:
    """Return the smallest target that every point of ``workload`` fits on."""
    return max(
        _span_for(stream)
        for streams, _ in points(workload.streams, workload.sweep)
        for stream in streams
    )


def fit(workload: Workload, span_bytes: int) -> tuple[Workload, tuple[Scaled, ...]]:
    """Return the workload with the spans that a target of ``span_bytes`` has, and what was cut.

    A swept span that is larger than a stream's part becomes the whole part, once; so the points
    of the fitted workload are those that are run, and they name the real sizes.
    """
    streams = {stream.name: stream for stream in workload.streams}
    sweep, told = [], []
    for axis in workload.sweep:
        if axis.field == "span_size":
            cut = _cut(axis, _part_bytes(streams[axis.stream], span_bytes))
            if cut != axis:
                largest = format_size(int(cut.values[-1]))
                told.append(f"{SPANS_END} {largest}, which is all that the target has")
            sweep.append(cut)
        else:
            sweep.append(axis)
    fitted = replace(workload, sweep=tuple(sweep))
    told += _few_units(fitted, span_bytes)
    return fitted, tuple(Scaled(workload=workload.name, text=text) for text in told)


def place(workload: Workload, stream: Stream, span_bytes: int) -> Placed:
    """Return the part of the target that ``stream`` gets.

    Raises:
        UsageError: it does not hold one whole unit per job.
    """
    start = int(span_bytes * stream.span_start_percent / 100) // ALIGN_BYTES * ALIGN_BYTES
    size = min(_part_bytes(stream, span_bytes), span_bytes - start)
    if stream.span_limit_bytes is not None:
        size = min(size, stream.span_limit_bytes)
    size = size // _grain(stream) * _grain(stream)
    if size < UNITS_PER_JOB_MIN * stream.unit_bytes * stream.jobs:
        raise UsageError(
            f"target too small for workload {workload.name}: it needs "
            f"{format_size(min_target_bytes(workload))} and has {format_size(span_bytes)}",
            where=f"stream {stream.name}",
            hint="use a larger target or span, or leave this workload out",
        )
    return Placed(stream=stream, offset_bytes=start, size_bytes=size)


def _cut(axis: SweepAxis, part_bytes: int) -> SweepAxis:
    values = dict.fromkeys(min(int(value), part_bytes) for value in axis.values)
    return replace(axis, values=tuple(values))


def _part_bytes(stream: Stream, span_bytes: int) -> int:
    return int(span_bytes * stream.span_percent / 100)


def _few_units(workload: Workload, span_bytes: int) -> list[str]:
    """Return a sentence for each stream whose part holds fewer units than a job should have."""
    fewest: dict[str, tuple[int, Stream]] = {}
    for streams, _ in points(workload.streams, workload.sweep):
        for stream in streams:
            size = _part_bytes(stream, span_bytes)
            units = min(size, stream.span_limit_bytes or size) // stream.unit_bytes
            if units < UNITS_PER_JOB * stream.jobs:
                known = fewest.get(stream.name)
                if known is None or units / stream.jobs < known[0] / known[1].jobs:
                    fewest[stream.name] = (units, stream)
    return [
        f"stream {name}: {units} x {format_size(stream.unit_bytes)} for {stream.jobs} "
        f"{'job' if stream.jobs == 1 else 'jobs'}, so the same ones come again soon "
        f"({UNITS_PER_JOB} per job would do)"
        for name, (units, stream) in fewest.items()
    ]


def _span_for(stream: Stream) -> int:
    """Return the span whose share for ``stream`` holds enough whole units."""
    grain = _grain(stream)
    needed = -(-UNITS_PER_JOB_MIN * stream.unit_bytes * stream.jobs // grain) * grain
    span = ceil(needed * 100 / stream.span_percent / ALIGN_BYTES) * ALIGN_BYTES
    # the share is a rounded floating-point product and may fall one byte short
    return span if int(span * stream.span_percent / 100) >= needed else span + ALIGN_BYTES


def _grain(stream: Stream) -> int:
    """Return what the size of a stream's part is a multiple of: whole blocks or chunks, always."""
    unit = stream.unit_bytes
    return ALIGN_BYTES if ALIGN_BYTES % unit == 0 else unit
