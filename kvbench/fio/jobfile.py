r"""Cell -> the text of a fio job file.  Pure: the same cell gives the same text.

Plain ``fio job.fio`` runs the text as it is.  Every option that matters is written, also where it
equals fio's default, and every size is a plain number of bytes, because fio reads "4KiB" as 4000.

What fio 3.33 does, seen by running it, and what the text does about it:

- A regular file that is shorter than a job needs is *deleted* by fio and laid out anew, even by a
  read job and even with ``allow_file_create=0``; ``create_on_open=1`` keeps fio's hands off it.
- ``randseed`` counts only with ``randrepeat=0``; with ``randrepeat=1`` it is ignored.
- Rates are cut to whole numbers, and a rate below 1 means no limit (the loader refuses both).
- Job-file values end at ``;`` or ``#``, ``${X}`` is replaced from the environment, ``:`` splits
  file names.  Only ``\:`` is an escape; a backslash elsewhere stands for itself.
- A section whose name begins with "global" is one of defaults (the loader refuses such names).
"""

import hashlib
import unicodedata
from math import gcd

from msgspec import Struct

from kvbench.errors import Refused, UsageError
from kvbench.fio.cell_limits import refuse_unfit
from kvbench.plan import Cell, Placed
from kvbench.units import HUGE_PAGE_BYTES, MIB, MS_PER_S, US_PER_S
from kvbench.workload.schema import Stream

LATENCY_LOG_PREFIX = "latency"  # fio adds _lat.<job number>.log
RANDOM_32_BIT_MAX = 2**32 - 1  # blocks that fio's default generator can tell apart
PATH_BYTES_MAX = 2048  # fio reads lines of 4 KiB, and an escaped path may be twice as long
LINE_BYTES_MAX = 4000  # fio reads 4 KiB, and takes what is beyond for a line of its own
FILL_BLOCK_BYTES = MIB
FILL_DEPTH = 8
FILL_GRAIN_BYTES = 512
_UNFIT_IN_PATH = {
    ";": "fio's job file ends a value there",
    "#": "fio's job file ends a value there",
    "$": "fio replaces variables there",
}
_RATE_PROCESS = "poisson"
# glibc 2.35 and later then ask the kernel for transparent huge pages for large buffers
CONTIGUOUS_ENVIRONMENT = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"


class Option(Struct, frozen=True):
    """One line of a job file, with the reason above it where it is not obvious."""

    name: str
    value: str | int
    why: str = ""


def render(cell: Cell, target_path: str) -> str:
    """Return the job text of ``cell`` on ``target_path``: one section per stream.

    Raises:
        Refused: a job file cannot carry the path, or the cell is not one that kvbench makes.
    """
    refuse_unfit(cell)
    parameters = ", ".join(f"{key} = {value}" for key, value in cell.parameters.items())
    alone = f"; only stream {cell.alone}" if cell.alone else ""
    title = f"workload {cell.workload}{alone}"
    heading = [
        f"kvbench {cell.purpose} job: {title}",
        f"point: {parameters or 'the only one'}; repetition {cell.repetition}",
        "Plain fio runs it: fio --output-format=json+ THIS_FILE.  Sizes are in bytes.",
    ]
    sections = [("global", _global(cell, target_path))]
    sections += [(p.stream.name, _stream(p, cell)) for p in cell.placed]
    return _text(heading, sections)


def render_fill(
    target_path: str, size_bytes: int, *, direct: bool, engine: str, offset_bytes: int = 0
) -> str:
    """Return the job that writes ``size_bytes`` once, from an offset, with incompressible data.

    Raises:
        Refused: a job file cannot carry the path.
        UsageError: the size is not a whole number of 512-byte blocks.
    """
    if size_bytes <= 0 or size_bytes % FILL_GRAIN_BYTES or offset_bytes % FILL_GRAIN_BYTES:
        raise UsageError(
            f"cannot fill {size_bytes} bytes from {offset_bytes}: "
            f"not multiples of {FILL_GRAIN_BYTES}",
            where=target_path,
        )
    depth = 1 if engine == "psync" else FILL_DEPTH
    common = [
        *_process(engine, direct=direct),
        *_file(target_path),
        Option("rw", "write"),
        Option("iodepth", depth),
        Option("numjobs", 1),
        Option("refill_buffers", 1, "new random data for every block: nothing can compress it"),
        Option("randrepeat", 0, "no two fills hold the same data, so nothing can deduplicate them"),
        Option("time_based", 0, "once over everything, however long it takes"),
        Option("end_fsync", 1, "the data is on the device when fio ends"),
    ]
    whole = size_bytes // FILL_BLOCK_BYTES * FILL_BLOCK_BYTES
    parts = [
        ("fill", offset_bytes, whole, FILL_BLOCK_BYTES),
        ("fill-rest", offset_bytes + whole, size_bytes - whole, 0),
    ]
    sections: list[tuple[str, list[Option]]] = [("global", common)]
    for name, offset, size, block in parts:
        if size:
            sections.append(
                (
                    name,
                    [
                        Option("stonewall", 1),
                        Option("bs", block or size),
                        Option("offset", offset),
                        Option("size", size),
                    ],
                )
            )
    heading = [
        "kvbench fill job: every byte of the target is written once",
        "Plain fio runs it.  Sizes are in bytes.  The target must exist.",
    ]
    return _text(heading, sections)


def escape_path(path: str) -> str:
    """Return ``path`` as a value of ``filename`` that leads to this one file.

    Raises:
        Refused: fio would read another name than this one.
    """
    problem = _path_problem(path)
    if problem:
        raise Refused(
            f"fio cannot be given this path: {problem}",
            where=_plain(path),
            hint="rename it, or a folder above it, to plain characters",
        )
    return path.replace(":", "\\:")


def section_seed(seed: int, stream_name: str) -> int:
    """Return the seed of one section, from 1 to 2^31.

    Drawn from a hash and not counted up, because fio gives the jobs of a section consecutive
    seeds: counted ones would make two streams draw the same offsets.
    """
    drawn = hashlib.sha256(f"{seed}/{stream_name}".encode()).digest()
    return 1 + int.from_bytes(drawn[:4], "big") % 2**31


def _path_problem(path: str) -> str:
    if path in ("", "-"):
        return "it is empty, or means standard input to fio"
    if path != path.strip():
        return "fio drops blanks at its ends"
    try:
        length = len(path.encode("utf-8"))
    except UnicodeEncodeError:
        return "it is not UTF-8 text"
    if length > PATH_BYTES_MAX:
        return f"it is longer than {PATH_BYTES_MAX} bytes"
    for character in path:
        if unicodedata.category(character) == "Cc":
            return "it holds a control character"
        if character in _UNFIT_IN_PATH:
            return f"it holds {character!r}, and {_UNFIT_IN_PATH[character]}"
    return ""


def _global(cell: Cell, target_path: str) -> list[Option]:
    place = [] if cell.engine == "null" else _file(target_path)
    return [
        *_process(cell.engine, direct=cell.direct),
        *place,
        Option("time_based", 1, "without it fio ends after one pass over the span"),
        Option("runtime", _ms(cell.timing.runtime_s), "fio does not understand fractions"),
        Option("ramp_time", _ms(cell.timing.ramp_s)),
        Option("randrepeat", 0, "only with 0 does fio use randseed"),
        Option("norandommap", 1, "a map of visited blocks costs CPU; no block must be hit once"),
        Option("lat_percentiles", 1, "histograms of the latency from submission on"),
        Option("clat_percentiles", 1),
        Option("end_fsync", 0, "no flush after the runtime: it would count as I/O"),
        Option("fsync_on_close", 0),
    ]


def _process(engine: str, *, direct: bool) -> list[Option]:
    return [
        Option("thread", 1, "one process, so that ending it ends every submitter"),
        Option("ioengine", engine),
        Option("direct", int(direct)),
        Option("iomem", "malloc", "one mapping per submitter, on pages of the default size"),
        Option("iomem_align", 4096),
    ]


def _file(target_path: str) -> list[Option]:
    return [
        Option("filename", escape_path(target_path)),
        Option("allow_file_create", 0, "fio would create a mistyped path and measure that"),
        Option("create_on_open", 1, "without it fio deletes a file that is shorter than the job"),
        Option("unlink", 0),
    ]


def _stream(placed: Placed, cell: Cell) -> list[Option]:
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

    fio cuts every size down to a multiple of the smallest one listed (seen: 1536 became 1024), so
    where that would change a size their common grain is listed too, with a share of nothing.
    """
    shares = [(share.size_bytes, share.percent) for share in stream.block_mix]
    grain = gcd(*(size for size, _ in shares))
    if grain < stream.min_block_bytes:
        shares.insert(0, (grain, 0))
    return ":".join(f"{size}/{percent}" for size, percent in shares)


def _span(placed: Placed) -> list[Option]:
    stream = placed.stream
    offset = Option("offset", placed.offset_bytes)
    if stream.pattern != "sequential" or stream.jobs == 1:
        return [offset, Option("size", placed.size_bytes)]
    part = placed.size_bytes // stream.jobs // stream.unit_bytes * stream.unit_bytes
    return [
        offset,
        Option("offset_increment", part, "each job has its own part, or all read the same data"),
        Option("size", part),
    ]


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
        Option("rate_process", _RATE_PROCESS, "open loop: arrivals do not wait for completions"),
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
    return [
        Option("refill_buffers", 1, "new random data for every write: nothing can compress it"),
        Option("sync", "dsync" if stream.write_policy == "dsync" else "none"),
        Option("fsync", stream.fsync_every or 0, "writes between two flushes; 0 is none"),
    ]


def _logs(stream: Stream, cell: Cell) -> list[Option]:
    if not stream.barrier or cell.purpose == "ceiling":
        return []
    why = "each group of iodepth lines was waited for together; its slowest line is its time"
    return [
        Option("write_lat_log", LATENCY_LOG_PREFIX, why),
        Option("log_avg_msec", 0),
        Option("log_offset", 0, "two thirds of the log, and nothing is read from it"),
        Option("per_job_logs", 1),
    ]


def _ms(seconds: float) -> str:
    return f"{round(seconds * MS_PER_S)}ms"


def _text(heading: list[str], sections: list[tuple[str, list[Option]]]) -> str:
    lines = [f"# {_plain(line)}" for line in heading]
    for name, options in sections:
        lines += ["", f"[{name}]"]
        for option in options:
            if option.why:
                lines.append(f"# {_plain(option.why)}")
            lines.append(f"{option.name}={option.value}")
    for line in lines:
        if len(line.encode()) > LINE_BYTES_MAX:
            raise Refused(
                f"a line of the job file would be longer than {LINE_BYTES_MAX} bytes",
                where=_plain(line[:80]),
                hint="shorten the path of the target, or the values of the sweep",
            )
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Return ``text`` as one line: a comment must not be able to start a line of its own."""
    return "".join("?" if unicodedata.category(c)[0] in "CZ" and c != " " else c for c in text)
