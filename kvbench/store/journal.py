"""writes.jsonl: one line before each cell that changes a target whose data is to be verified.

A run that was killed, or whose machine lost power, has no record of the cell under way, and yet it
is what must be known: which blocks may be new.  So the line is on disk before fio starts.  It says
when the cell began, on the clock that fio's verify header uses, and in which boot.

trims.jsonl: one line before each cell that trims, and one when what it trimmed holds data again.  A
run that goes on writes what the line without a second one left, and nothing is measured on it.
"""

import errno
import os
import stat
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from kvbench.document import read_regular
from kvbench.errors import StoreError
from kvbench.units import MIB

FILE = "writes.jsonl"
TRIMS_FILE = "trims.jsonl"
BYTES_MAX = 64 * MIB
# No link is followed, and what is no file is not waited for.
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_Entry = TypeVar("_Entry", "Begun", "Trimmed")


class Begun(Struct, frozen=True, kw_only=True):
    """A cell that changes the target has begun."""

    cell_id: str
    boot_id: str  # "" when the kernel does not tell
    begin_s: float  # on the kernel's monotonic clock


class Trimmed(Struct, frozen=True, kw_only=True):
    """A cell that trims has begun, or all that it trimmed has been written again."""

    cell_id: str
    written: bool


def append(folder: Path, entry: Begun | Trimmed) -> None:
    """Add a line, and return when it is on disk.

    Raises:
        StoreError: it cannot be written, so the cell must not begin.
    """
    path = folder / (FILE if isinstance(entry, Begun) else TRIMS_FILE)
    try:
        descriptor = os.open(path, _APPEND, 0o666)
        try:
            _refuse_other_file(descriptor)
            # what a power cut left without its end is ended first
            begin = b"" if _ends_in_order(descriptor) else b"\n"
            _write_all(descriptor, begin + msgspec.json.encode(entry) + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        parent = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)
    except OSError as error:
        raise StoreError(
            f"cannot be written: {error.strerror or error}",
            where=str(path),
            hint=("" if isinstance(entry, Trimmed) else "nothing was written to the target; ")
            + "free space, then go on with --resume",
        ) from error


def read(folder: Path) -> tuple[Begun, ...]:
    """Return the entries in their order; a line that was cut off is of a cell that never began.

    Raises:
        StoreError: the file cannot be read.
    """
    return _entries(folder / FILE, Begun)


def left_trimmed(folder: Path) -> tuple[str, ...]:
    """Return the cells that trimmed, or may have, and whose ranges were not written again.

    Raises:
        StoreError: the file cannot be read.
    """
    states = {entry.cell_id: entry.written for entry in _entries(folder / TRIMS_FILE, Trimmed)}
    return tuple(cell_id for cell_id, written in states.items() if not written)


def _entries(path: Path, kind: type[_Entry]) -> tuple[_Entry, ...]:
    try:
        raw = read_regular(path, BYTES_MAX)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise StoreError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    entries = []
    for line in raw.split(b"\n"):
        try:
            entries.append(msgspec.json.decode(line, type=kind))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return tuple(entries)


def _write_all(descriptor: int, line: bytes) -> None:
    """Write the whole line at the end of a file, or leave the file as it was.

    Raises:
        OSError: it does not fit: a full disk and a limit take a part of it without a word.
    """
    size_bytes = os.fstat(descriptor).st_size
    left = line
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        os.ftruncate(descriptor, size_bytes)
        raise


def _refuse_other_file(descriptor: int) -> None:
    """Refuse what may be a file of somebody else: a run folder may come from anywhere.

    Raises:
        OSError: it is no regular file, or has a second name, which may stand anywhere.
    """
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    if status.st_nlink != 1:
        raise OSError(errno.EMLINK, "it has a second name")


def _ends_in_order(descriptor: int) -> bool:
    size_bytes = os.fstat(descriptor).st_size
    return not size_bytes or os.pread(descriptor, 1, size_bytes - 1) == b"\n"
