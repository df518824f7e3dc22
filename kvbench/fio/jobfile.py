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

import unicodedata

from kvbench.errors import Refused, UsageError
from kvbench.fio.cell_limits import refuse_unfit
from kvbench.fio.sections import RANDOM_32_BIT_MAX, Option, section
from kvbench.plan import Cell
from kvbench.units import MIB, MS_PER_S

PATH_BYTES_MAX = 2048  # fio reads lines of 4 KiB, and an escaped path may be twice as long
LINE_BYTES_MAX = 4000  # fio reads 4 KiB, and takes what is beyond for a line of its own
FILL_BLOCK_BYTES = MIB
FILL_DEPTH = 8
RANDOM_FILL_DEPTH = 32
FILL_GRAIN_BYTES = 512
_UNFIT_IN_PATH = {
    ";": "fio's job file ends a value there",
    "#": "fio's job file ends a value there",
    "$": "fio replaces variables there",
}


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
    sections += [(p.stream.name, section(p, cell)) for p in cell.placed]
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


def render_random_fill(
    target_path: str, size_bytes: int, *, block_bytes: int, seed: int, engine: str
) -> str:
    """Return the job that writes every block of a target once, in random order.

    fio's map of visited blocks makes every block be written exactly once; it takes a bit of memory
    per block.

    Raises:
        Refused: a job file cannot carry the path.
        UsageError: the size is not a whole number of blocks.
    """
    if size_bytes <= 0 or size_bytes % block_bytes:
        raise UsageError(
            f"cannot fill {size_bytes} bytes: not a multiple of {block_bytes}", where=target_path
        )
    large = size_bytes // block_bytes > RANDOM_32_BIT_MAX
    options = [
        *_process(engine, direct=True),
        *_file(target_path),
        Option("rw", "randwrite"),
        Option("bs", block_bytes, "the unit in which the device maps its blocks"),
        Option("offset", 0),
        Option("size", size_bytes),
        Option("iodepth", 1 if engine == "psync" else RANDOM_FILL_DEPTH),
        Option("numjobs", 1),
        Option("norandommap", 0, "every block once, none twice"),
        Option("softrandommap", 0),
        Option(
            "random_generator",
            "tausworthe64" if large else "tausworthe",
            "more than 2^32 blocks: with 32 bits fio reaches only some of them" if large else "",
        ),
        Option("randrepeat", 0, "only with 0 does fio use randseed"),
        Option("randseed", seed),
        Option("refill_buffers", 1, "new random data for every block: nothing can compress it"),
        Option("time_based", 0, "once over everything, however long it takes"),
        Option("end_fsync", 1, "the data is on the device when fio ends"),
    ]
    heading = [
        "kvbench fill job: every block of the target is written once, in random order",
        "Plain fio runs it.  Sizes are in bytes.  The target must exist.",
    ]
    return _text(heading, [("random-fill", options)])


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
        *_length(cell),
        Option("lat_percentiles", 1, "histograms of the latency from submission on"),
        Option("clat_percentiles", 1),
        Option("end_fsync", 1, "what was written is on the device before it is read back")
        if cell.once
        else Option("end_fsync", 0, "no flush after the runtime: it would count as I/O"),
        Option("fsync_on_close", 0),
    ]


def _length(cell: Cell) -> list[Option]:
    """Return how long it takes, and how often a block may be met."""
    if cell.once:
        return [
            Option("time_based", 0, "once over everything, however long it takes"),
            Option("randrepeat", 0, "only with 0 does fio use randseed"),
            Option("norandommap", 0, "every block once: then it is known what must be there"),
        ]
    return [
        Option("time_based", 1, "without it fio ends after one pass over the span"),
        Option("runtime", _ms(cell.timing.runtime_s), "fio does not understand fractions"),
        Option("ramp_time", _ms(cell.timing.ramp_s)),
        Option("randrepeat", 0, "only with 0 does fio use randseed"),
        Option("norandommap", 1, "a map of visited blocks costs CPU; no block must be hit once"),
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
