"""writes.jsonl: one line before each cell that changes a target whose data is to be verified.

A run that was killed, or whose machine lost power, has no record of the cell under way, and yet it
is what must be known: which blocks may be new.  So the line is on disk before fio starts.  It says
when the cell began, on the clock that fio's verify header uses, and in which boot.
"""

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from kvbench.document import read_regular
from kvbench.errors import StoreError
from kvbench.units import MIB

FILE = "writes.jsonl"
BYTES_MAX = 64 * MIB


class Begun(Struct, frozen=True, kw_only=True):
    """A cell that changes the target has begun."""

    cell_id: str
    boot_id: str  # "" when the kernel does not tell
    begin_s: float  # on the kernel's monotonic clock


def append(folder: Path, entry: Begun) -> None:
    """Add a line, and return when it is on disk.

    Raises:
        StoreError: it cannot be written, so the cell must not begin.
    """
    path = folder / FILE
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            # what a power cut left without its end is ended first
            begin = b"" if _ends_in_order(path) else b"\n"
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
            hint="nothing was written to the target; free space, then go on with --resume",
        ) from error


def read(folder: Path) -> tuple[Begun, ...]:
    """Return the entries in their order; a line that was cut off is of a cell that never began.

    Raises:
        StoreError: the file cannot be read.
    """
    path = folder / FILE
    try:
        raw = read_regular(path, BYTES_MAX)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise StoreError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    entries = []
    for line in raw.split(b"\n"):
        try:
            entries.append(msgspec.json.decode(line, type=Begun))
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


def _ends_in_order(path: Path) -> bool:
    raw = read_regular(path, BYTES_MAX)
    return not raw or raw.endswith(b"\n")
