"""What a stream may be: the limit of each value, and which values go together.

Every rule says why.  Most come from what fio can do: a value that fio would silently change or
drop is refused here, because a number measured under another setting than the one that was asked
for is worse than none.
"""

from collections.abc import Iterable

from msgspec import Struct

from kvbench.units import GIB, KIB, MIB, format_size
from kvbench.workload.schema import Pattern, Stream

NAME = r"[a-z][a-z0-9-]{0,39}"
NAME_HINT = "a small letter, then up to 39 small letters, digits or '-'"

STREAMS_MAX = 16
BLOCK_MIN, BLOCK_MAX, BLOCK_GRAIN = 512, 256 * MIB, 512  # the smallest logical block of an SSD
MIX_MAX = 16  # sizes in one mix
CHUNK_MIN, CHUNK_MAX = 4 * KIB, 4 * GIB
DEPTH_MAX = 1024
JOBS_MAX = 64
SUBMITTERS_MAX = 256  # jobs of all streams of a workload
BUFFER_MAX = 4 * GIB  # memory for all I/Os in flight
RATE_MAX = 100_000_000
THETA_MIN, THETA_MAX = 0.01, 5.0
SPAN_MIN = 0.01  # percent of the target
SPAN_BYTES_MAX = 2**60
FSYNC_MAX = 1_000_000
STEPS_MAX = 4096
BURST_MAX = 1_000_000
PAUSE_MIN_S = 1e-6  # fio counts pauses in microseconds
RUNTIME_MIN_S, RUNTIME_MAX_S, RAMP_MAX_S = 0.1, 24 * 3600.0, 3600.0
POINTS_MAX = 1000


class Breach(Struct, frozen=True, kw_only=True):
    """One rule that a stream breaks.  ``field`` is the key that the message is about."""

    field: str
    message: str
    hint: str = ""


def breaches(stream: Stream, *, ramp_s: float) -> Iterable[Breach]:
    """Yield what is wrong with a stream whose single values are within their limits."""
    yield from _blocks(stream)
    yield from _depth(stream)
    yield from _arrivals(stream)
    yield from _barrier(stream, ramp_s)
    yield from _requests(stream)
    yield from _offsets(stream)
    yield from _places(stream, ramp_s)
    yield from _writes(stream)
    yield from _bursts(stream)
    yield from _buffered(stream)
    yield from _trims(stream)
    yield from _verified(stream, ramp_s)


def cell_breaches(streams: tuple[Stream, ...]) -> Iterable[Breach]:
    """Yield what is wrong with the streams of one cell taken together."""
    submitters = sum(s.jobs for s in streams)
    if submitters > SUBMITTERS_MAX:
        yield Breach(field="jobs", message=f"{submitters} jobs in all, at most {SUBMITTERS_MAX}")
    memory = sum(s.jobs * s.queue_depth * s.max_block_bytes for s in streams)
    if memory > BUFFER_MAX:
        yield Breach(
            field="queue_depth",
            message=f"the I/Os in flight need {format_size(memory)} of memory, "
            f"at most {format_size(BUFFER_MAX)}",
            hint="memory is jobs x queue_depth x block size, over all streams",
        )


def point_breaches(streams: tuple[Stream, ...]) -> Iterable[Breach]:
    """Yield what is wrong with the streams of one point of a workload taken together."""
    yield from cell_breaches(streams)
    sides = [stream.side for stream in streams if stream.side is not None]
    if sides and (len(sides) < len(streams) or len(set(sides)) < 2):
        yield Breach(
            field="side",
            message="needs every stream to be a victim or an aggressor, with at least one of each",
            hint="victims and aggressors are measured in pairs, and each by itself",
        )


def _unmet(field: str, needs: Iterable[tuple[bool, str, str]]) -> Iterable[Breach]:
    """Yield what is not there of (whether it is, what is needed, why)."""
    for met, need, why in needs:
        if not met:
            yield Breach(field=field, message=f"needs {need}", hint=why)


def _blocks(stream: Stream) -> Iterable[Breach]:
    sizes = [share.size_bytes for share in stream.block_mix]
    key = "block_size" if len(sizes) == 1 else "block_mix"
    for size in sizes:
        if size % BLOCK_GRAIN:
            yield Breach(
                field=key,
                message=f"{size} bytes is not a multiple of {BLOCK_GRAIN}",
                hint="an SSD is addressed in logical blocks; give the cover of an odd-sized row",
            )
    odd = [size for size in sizes if size % min(sizes)]
    if odd:
        yield Breach(
            field=key,
            message=f"{odd[0]} bytes is not a multiple of the smallest size, {min(sizes)}",
            hint="fio would cut it down to one",
        )
    if len(set(sizes)) < len(sizes):
        yield Breach(field=key, message="names the same size twice")
    percent = sum(share.percent for share in stream.block_mix)
    if percent != 100:
        yield Breach(field=key, message=f"the percentages add up to {percent}, not 100")


def _depth(stream: Stream) -> Iterable[Breach]:
    depth = stream.queue_depth
    if depth & (depth - 1):
        yield Breach(
            field="queue_depth",
            message=f"must be a power of two, not {depth}",
            hint="fio's io_uring would silently keep the next power of two in flight",
        )


def _arrivals(stream: Stream) -> Iterable[Breach]:
    if stream.rate_iops is None:
        return
    if stream.shape == "throughput":
        yield Breach(
            field="shape",
            message='"throughput" and rate_iops contradict each other',
            hint="a paced stream does not look for its peak",
        )
    per_job = stream.rate_iops / stream.jobs
    shares = [per_job]
    if stream.direction == "mixed" and stream.read_percent is not None:
        shares = [per_job * stream.read_percent / 100, per_job * (100 - stream.read_percent) / 100]
    if any(abs(share - round(share)) > 1e-9 or round(share) < 1 for share in shares):
        yield Breach(
            field="rate_iops",
            message=f"{stream.rate_iops:g} per second does not give every job (and direction) "
            "a whole number of I/Os per second",
            hint="fio cuts fractions off, and takes a rate below 1 for no limit at all",
        )


def _barrier(stream: Stream, ramp_s: float) -> Iterable[Breach]:
    if not stream.barrier:
        return
    needs = (
        (stream.rate_iops is None, "a closed loop (no rate_iops)", "a batch is its own pace"),
        (stream.direction != "mixed", "a single direction", "a batch is either read or written"),
        (
            stream.queue_depth > 1 or stream.request_steps > 1,
            "a queue_depth or request_steps above 1",
            "else a request is one I/O, and its time is the latency",
        ),
        (ramp_s == 0, "timing.ramp = 0", "the end of a ramp would cut a batch in two"),
        (stream.shape == "latency", 'shape = "latency"', "the batch decides how fio submits"),
        (stream.write_policy != "fsync", "no fsync", "a flush would stand between the batches"),
    )
    yield from _unmet("barrier", needs)


def _requests(stream: Stream) -> Iterable[Breach]:
    """What is said of requests needs requests."""
    barrier_keys = (
        ("request_steps", stream.request_steps > 1),
        ("deadline", stream.deadline_s is not None),
    )
    for key, given in barrier_keys:
        if given and not stream.barrier:
            yield Breach(
                field=key, message="needs barrier = true", hint="only then are there requests"
            )
    if stream.compute_s is not None and stream.request_steps == 1:
        yield Breach(field="compute_per_step", message="needs request_steps above 1")
    if stream.prefetch_steps is not None and stream.compute_s is None:
        yield Breach(field="prefetch_steps", message="needs compute_per_step")


def _places(stream: Stream, ramp_s: float) -> Iterable[Breach]:
    """Where I/Os start."""
    align, stride = stream.align_bytes, stream.stride_bytes
    if align is not None:
        if stream.pattern != "random":
            yield Breach(field="align", message='needs pattern = "random"')
        if align % BLOCK_GRAIN:
            yield Breach(field="align", message=f"{align} is not a multiple of {BLOCK_GRAIN}")
        if align < stream.min_block_bytes:
            yield Breach(
                field="align",
                message=f"{align} is finer than the smallest block, {stream.min_block_bytes}",
                hint="fio would draw a place at the very end where no block fits, and hang",
            )
    if stride is not None:
        if stream.pattern != "sequential":
            yield Breach(field="stride", message='needs pattern = "sequential"')
        if ramp_s:
            yield Breach(
                field="stride",
                message="needs timing.ramp = 0",
                hint="fio 3.33 may lose a job that skips blocks at the end of a ramp",
            )
        if stride % BLOCK_GRAIN or stride < stream.max_block_bytes or len(stream.block_mix) > 1:
            yield Breach(
                field="stride",
                message=f"must be a multiple of {BLOCK_GRAIN}, at least the one block size there "
                f"is, not {stride}",
                hint="it is the distance from the start of one I/O to the start of the next",
            )
    if stream.payload_bytes is not None and stream.payload_bytes > stream.mean_block_bytes:
        yield Breach(
            field="payload",
            message=f"{stream.payload_bytes} bytes are more than the mean I/O, "
            f"{stream.mean_block_bytes:g}",
        )


def _offsets(stream: Stream) -> Iterable[Breach]:
    if stream.span_start_percent + stream.span_percent > 100:
        yield Breach(
            field="span_percent",
            message=f"a span of {stream.span_percent:g} % that starts at "
            f"{stream.span_start_percent:g} % ends beyond the target",
        )
    if stream.zipf_theta is not None:
        if stream.pattern != "random":
            yield Breach(
                field="zipf_theta",
                message='needs pattern = "random"',
                hint="fio draws skewed positions for single blocks only",
            )
        if stream.zipf_theta == 1:
            yield Breach(
                field="zipf_theta",
                message="must not be exactly 1",
                hint="fio's formula divides by 1 - theta; write 0.99 or 1.01",
            )
    yield from _chunk(stream.pattern, stream)


def _chunk(pattern: Pattern, stream: Stream) -> Iterable[Breach]:
    chunk = stream.chunk_bytes
    if (chunk is None) == (pattern == "chunk"):
        yield Breach(field="chunk_size", message='pattern = "chunk" and chunk_size need each other')
    if chunk is None or pattern != "chunk":
        return
    if stream.direction == "mixed":
        yield Breach(
            field="pattern",
            message='"chunk" needs a single direction',
            hint="fio would mix the directions inside a chunk; use two streams",
        )
    if len(stream.block_mix) > 1:
        yield Breach(
            field="block_mix",
            message='pattern = "chunk" needs one block size',
            hint="fio counts the blocks of a chunk, not its bytes",
        )
    elif chunk % stream.max_block_bytes:
        yield Breach(
            field="chunk_size",
            message=f"{chunk} is not a multiple of the block size {stream.max_block_bytes}",
        )


def _writes(stream: Stream) -> Iterable[Breach]:
    if (stream.read_percent is None) == (stream.direction == "mixed"):
        yield Breach(
            field="read_percent", message='direction = "mixed" and read_percent need each other'
        )
    if stream.write_policy != "plain" and not stream.writes:
        yield Breach(field="write_policy", message=f"{stream.write_policy!r} needs writes")
    if (stream.fsync_every is None) == (stream.write_policy == "fsync"):
        yield Breach(
            field="fsync_every", message='write_policy = "fsync" and fsync_every need each other'
        )


def _bursts(stream: Stream) -> Iterable[Breach]:
    if (stream.burst_ios is None) != (stream.pause_s is None):
        yield Breach(field="burst_ios", message="burst_ios and pause need each other")
    if stream.burst_ios is None:
        return
    needs = (
        (not stream.barrier, "no barrier", "fio hangs when it pauses inside a batch"),
        (stream.rate_iops is None, "a closed loop (no rate_iops)", "a burst is its own pace"),
        (stream.shape == "latency", 'shape = "latency"', "a stream that pauses has no peak"),
    )
    yield from _unmet("burst_ios", needs)


def _buffered(stream: Stream) -> Iterable[Breach]:
    if not stream.buffered:
        return
    needs = (
        (stream.direction in ("read", "write"), "a single direction", "reads or writes"),
        (stream.queue_depth == 1, "a queue_depth of 1", "a buffered call returns when it is done"),
        (not stream.barrier, "no barrier", "its calls are waited for one by one"),
        (stream.rate_iops is None, "a closed loop (no rate_iops)", "its calls block"),
        (stream.shape == "latency", 'shape = "latency"', "registered buffers are for O_DIRECT"),
        (stream.buffers == "scattered", 'buffers = "scattered"', "the data is copied anyway"),
    )
    yield from _unmet("buffered", needs)


def _trims(stream: Stream) -> Iterable[Breach]:
    if not stream.trims:
        return
    needs = (
        (not stream.barrier, "no barrier"),
        (not stream.buffered, "no buffered = true"),
        (stream.shape == "latency", 'shape = "latency"'),
        (stream.queue_depth == 1 and stream.jobs == 1, "a queue_depth and jobs of 1"),
        (stream.pattern == "sequential", 'pattern = "sequential"'),
        (stream.rate_iops is not None, "rate_iops: how much is written again is then known"),
        (stream.buffers == "scattered", "no buffers: no data is moved"),
        (stream.payload_bytes is None, "no payload: no data is moved"),
    )
    for met, need in needs:
        if not met:
            yield Breach(
                field="direction",
                message=f'"trim" needs {need}',
                hint="ranges are trimmed in order, so that kvbench knows which to write again",
            )


def _verified(stream: Stream, ramp_s: float) -> Iterable[Breach]:
    if stream.verify is None:
        return
    if stream.verify == "deallocated":
        yield from _unmet(
            "verify", [(stream.trims, 'direction = "trim"', '"crc32c" is for what is written')]
        )
        return
    once = "every block is written once, so that it is known what must be there"
    needs = (
        (stream.direction in ("read", "write"), "one direction", '"deallocated" is for trims'),
        (
            stream.pattern != "chunk" and stream.stride_bytes is None,
            "no chunks and no stride",
            once,
        ),
        (len(stream.block_mix) == 1, "one block size", once),
        (stream.jobs == 1, "one job", "two would write the same blocks"),
        (stream.zipf_theta is None and stream.align_bytes is None, "uniform offsets", once),
        (stream.rate_iops is None and stream.burst_ios is None, "a closed loop", once),
        (not stream.barrier and stream.shape == "latency", 'shape = "latency", no barrier', once),
        (not stream.buffered, "no buffered = true", "what is read back must come from the device"),
        (ramp_s == 0, "timing.ramp = 0", once),
    )
    yield from _unmet("verify", needs)
