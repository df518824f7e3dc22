"""One stream of a cell -> the options of its section in a job file.  Pure.

``jobfile`` says what is common to all sections, and writes the text.
"""

import hashlib

from msgspec import Struct

from kvbench.plan import Cell, Placed
from kvbench.units import HUGE_PAGE_BYTES, MS_PER_S, US_PER_S
from kvbench.workload.schema import Stream

LATENCY_LOG_PREFIX = "latency"  # fio adds _lat.<job number>.log
WINDOW_LOG_PREFIX = "windows"
WINDOW_MS = 100
HISTOGRAM_LOG_PREFIX = "histogram"  # fio adds _clat_hist.<job number>.log
HISTOGRAM_WINDOWS_MIN = 4  # of a cell, however short
HISTOGRAM_END_MS = 25  # the last window ends so long before the cell, or fio would not write it
RANDOM_32_BIT_MAX = 2**32 - 1  # blocks that fio's default generator can tell apart
_RATE_PROCESS = "poisson"
# glibc 2.35 and later then ask the kernel for transparent huge pages for large buffers
CONTIGUOUS_ENVIRONMENT = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"


class Option(Struct, frozen=True):
    """One line of a job file, with the reason above it where it is not obvious."""

    name: str
    value: str | int
    why: str = ""


def section(placed: Placed, cell: Cell) -> list[Option]:
    """Return the options of one stream's section; what they leave out is the process's."""
    stream = placed.stream
    return [
        Option("new_group", 1, "a group number of its own, to tell the streams apart"),
        Option("numjobs", stream.jobs),
        *_path(stream, cell),
        *_pattern(stream),
        *_span(placed),
        *_depth(stream, cell),
        *_buffers(stream),
        *_arrivals(stream),
        *_randomness(placed, section_seed(cell.seed, stream.name)),
        *_writes(stream),
        *_verify(stream, cell),
        *_logs(stream, cell),
    ]


def _pattern(stream: Stream) -> list[Option]:
    kinds = {"read": "read", "write": "write", "mixed": "rw", "trim": "trim"}
    options = []
    kind = kinds[stream.direction]
    if stream.chunk_bytes is not None:
        blocks = stream.chunk_bytes // stream.max_block_bytes
        why = f"a random chunk, then its {blocks} blocks in order"
        options += [
            Option("rw", f"rand{kind}:{blocks}", why),
            Option("blockalign", stream.chunk_bytes, "chunks start at multiples of their size"),
        ]
    elif stream.stride_bytes is not None and stream.stride_bytes > stream.max_block_bytes:
        gap = stream.stride_bytes - stream.max_block_bytes
        why = f"one block every {stream.stride_bytes} bytes: what is skipped after each"
        options.append(Option("rw", f"{kind}:{gap}", why))
    else:
        options.append(Option("rw", kind if stream.pattern == "sequential" else f"rand{kind}"))
    if stream.align_bytes is not None:
        options.append(Option("blockalign", stream.align_bytes, "where a random I/O may start"))
    if stream.read_percent is not None:
        options.append(Option("rwmixread", stream.read_percent))
    if len(stream.block_mix) == 1:
        options.append(Option("bs", stream.max_block_bytes))
    else:
        options.append(Option("bssplit", _mix(stream), "size/percent of the I/Os"))
    return options


def _mix(stream: Stream) -> str:
    """Return the sizes and their shares.

    All are multiples of the smallest (the loader refuses others): fio cuts sizes down to that, and
    where no size of a mix fits before the end of the span it draws sizes for ever.
    """
    return ":".join(f"{share.size_bytes}/{share.percent}" for share in stream.block_mix)


def _span(placed: Placed) -> list[Option]:
    stream = placed.stream
    offset = Option("offset", placed.offset_bytes)
    part = placed.size_bytes // stream.jobs // stream.unit_bytes * stream.unit_bytes
    if stream.pattern == "sequential":
        why = "each job has its own part, or all read the same data"
    else:
        why = "each job has its own part, or one reads what another brought into the cache"
    if stream.jobs == 1 or not (stream.pattern == "sequential" or stream.buffered):
        return [offset, Option("size", placed.size_bytes)]
    return [offset, Option("offset_increment", part, why), Option("size", part)]


def stream_engine(stream: Stream, cell: Cell) -> str:
    """Return the engine of one stream: the cell's, but for what that cannot do."""
    if cell.engine == "null":
        return cell.engine
    if stream.buffered:
        return "psync"
    if stream.trims and cell.trims_by_holes:
        return "falloc"
    return cell.engine


def _path(stream: Stream, cell: Cell) -> list[Option]:
    """Return what replaces engine and O_DIRECT of the process."""
    engine = stream_engine(stream, cell)
    if engine == "falloc":
        why = "fio trims block devices only; this engine punches holes into a file"
        return [Option("ioengine", engine, why)]
    if not stream.buffered or engine == "null":
        return []
    return [
        Option("ioengine", engine, "blocking calls through the page cache, as software makes them"),
        Option("direct", 0),
        Option("invalidate", 1, "the cache starts cold,"),
        Option("norandommap", 0, "and no block is read again before all were read"),
    ]


def _depth(stream: Stream, cell: Cell) -> list[Option]:
    engine = stream_engine(stream, cell)
    depth = stream.queue_depth
    options = [Option("iodepth", depth)]
    if engine in ("psync", "falloc"):
        return options
    if stream.barrier:
        return [
            *options,
            Option("iodepth_batch_submit", depth, f"{depth} I/Os go together as one request,"),
            Option("iodepth_batch_complete_min", depth, "and the next waits for all of them"),
            Option("iodepth_batch_complete_max", depth),
        ]
    if stream.shape == "throughput":
        options += [
            Option("iodepth_batch_submit", depth, "one system call for all that can be submitted"),
            # Reaping does not sleep: a wake-up per I/O costs more than the look.  At depth 1
            # there is nothing else to do meanwhile, so there the job waits as software does.
            Option("iodepth_batch_complete_min", 0 if depth > 1 else 1),
            Option("iodepth_batch_complete_max", depth),
        ]
        if engine == "io_uring":
            options += [
                Option("fixedbufs", 1, "the kernel maps the buffers once, not per I/O"),
                Option("registerfiles", 1),
            ]
    return options


def _buffers(stream: Stream) -> list[Option]:
    """Return what replaces the default of the process; fio reserves nothing by itself."""
    if stream.buffers == "scattered":
        return []
    if stream.buffers == "contiguous":
        why = f"huge pages where the kernel has them; plain fio needs {CONTIGUOUS_ENVIRONMENT}"
        return [Option("iomem_align", HUGE_PAGE_BYTES, why)]
    return [
        Option("iomem", "mmaphuge", "on reserved huge pages: a large I/O stays in few pieces"),
        Option("hugepage-size", HUGE_PAGE_BYTES),
    ]


def environment(cell: Cell) -> dict[str, str]:
    """Return what fio's environment needs for the buffers of ``cell``."""
    if any(placed.stream.buffers == "contiguous" for placed in cell.placed):
        name, _, value = CONTIGUOUS_ENVIRONMENT.partition("=")
        return {name: value}
    return {}


def _arrivals(stream: Stream) -> list[Option]:
    if stream.burst_ios is not None and stream.pause_s is not None:
        return [
            Option("thinktime", f"{round(stream.pause_s * US_PER_S)}us", "a pause"),
            Option("thinktime_blocks", stream.burst_ios, "after so many I/Os of the job"),
            Option("thinktime_blocks_type", "issue"),
        ]
    if stream.rate_iops is None:
        return []
    per_job = stream.rate_iops / stream.jobs
    rate = f"{round(per_job)}"
    if stream.read_percent is not None:
        reads = round(per_job * stream.read_percent / 100)
        rate = f"{reads},{round(per_job) - reads}"
    return [
        Option("rate_iops", rate, "per job (reads,writes where both)"),
        Option("rate_process", _RATE_PROCESS, "random arrivals; a job still lets its own I/Os end"),
    ]


def _randomness(placed: Placed, seed: int) -> list[Option]:
    stream = placed.stream
    large = placed.size_bytes // stream.min_block_bytes > RANDOM_32_BIT_MAX
    generator = "tausworthe64" if large else "tausworthe"
    why = "more than 2^32 blocks: with 32 bits fio reaches only some of them" if large else ""
    skew = "random" if stream.zipf_theta is None else f"zipf:{stream.zipf_theta}"
    return [
        Option("random_generator", generator, why),
        Option("random_distribution", skew),
        Option("randseed", seed),
    ]


def _writes(stream: Stream) -> list[Option]:
    if not stream.writes:
        return []
    refill = Option("refill_buffers", 1, "new random data for every write: nothing can compress it")
    return [
        *([] if stream.once else [refill]),  # verify fills every block anew by itself
        Option("sync", "dsync" if stream.write_policy == "dsync" else "none"),
        Option("fsync", stream.fsync_every or 0, "writes between two flushes; 0 is none"),
    ]


def _verify(stream: Stream, cell: Cell) -> list[Option]:
    if not stream.once or cell.engine == "null":
        return []
    return [
        Option("verify", "crc32c", "random data behind a header: seed, offset, time, checksums;"),
        Option("do_verify", 1, "every block is read back and checked"),
        Option("verify_fatal", 0),
        Option("continue_on_error", "verify", "all bad blocks are told, not the first alone"),
        Option("verify_dump", 0),
        Option("verify_state_save", 0, "no file of fio's own beside the job when it is ended"),
        Option("clocksource", "clock_gettime", "the header tells when, on the kernel's clock"),
    ]


def _logs(stream: Stream, cell: Cell) -> list[Option]:
    if cell.purpose == "ceiling":
        return []
    if not stream.barrier:
        windows = [] if stream.rate_iops is None else _window_log()
        return [*windows, *_histogram_log(stream, cell, alone=not windows)]
    why = "each group of iodepth lines was waited for together; its slowest line is its time"
    return [
        Option("write_lat_log", LATENCY_LOG_PREFIX, why),
        Option("log_avg_msec", 0),
        Option("log_offset", 0, "two thirds of the log, and nothing is read from it"),
        Option("per_job_logs", 1),
    ]


def _window_log() -> list[Option]:
    """Return the log in which a time without completions can be seen.

    Of fio's logs, only averaged latencies are written by the job itself, at the first completion
    after a window's end.  The IOPS log is written by another thread, which a busy host holds back:
    a window that is missing there may be that thread's.
    """
    return [
        Option("write_lat_log", WINDOW_LOG_PREFIX, "a time without a line had no completion"),
        Option("log_avg_msec", WINDOW_MS),
        Option("log_offset", 0),
        Option("per_job_logs", 1),
    ]


def _histogram_log(stream: Stream, cell: Cell, *, alone: bool) -> list[Option]:
    """Return the log of a histogram per second, for percentiles over time.

    fio reads its clock once more per I/O for it: 23 ns, seen with the null engine at 5.3 million
    IOPS.  That is 1 % from 430,000 IOPS per submitter on, so what looks for the peak does without;
    and what fio verifies is not timed.
    """
    if stream.shape == "throughput" or stream.once or stream.trims:
        return []
    return [
        Option("write_hist_log", HISTOGRAM_LOG_PREFIX, "percentiles over time"),
        Option("log_hist_msec", histogram_window_ms(cell.timing.runtime_s)),
        Option("log_hist_coarseness", 0, "the bins of the whole histogram"),
        *([Option("per_job_logs", 1)] if alone else []),
    ]


def histogram_window_ms(runtime_s: float) -> int:
    """Return the length of a window: about a second, and a few windows in a short cell.

    fio writes a window at the first I/O after its end, so the last one must end before the cell.
    """
    runtime_ms = runtime_s * MS_PER_S
    windows = max(HISTOGRAM_WINDOWS_MIN, round(runtime_s))
    return max(1, int((runtime_ms - min(HISTOGRAM_END_MS, runtime_ms / 10)) / windows))


def section_seed(seed: int, stream_name: str) -> int:
    """Return the seed of one section, from 1 to 2^31.

    Drawn from a hash and not counted up, because fio gives the jobs of a section consecutive
    seeds: counted ones would make two streams draw the same offsets.
    """
    drawn = hashlib.sha256(f"{seed}/{stream_name}".encode()).digest()
    return 1 + int.from_bytes(drawn[:4], "big") % 2**31
