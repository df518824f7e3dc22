"""Columns of a log of fio, plain or compressed."""

import io
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kvbench.units import GIB, KIB

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

TEXT_BYTES_MAX = 8 * GIB  # more than a day of barriers
LINE_BYTES_MAX = 64 * 1024  # a histogram has 1,859 columns
RATIO_MAX = 64  # fio's logs pack to a quarter; what packs better is looked at piece by piece
PIECE = 256 * KIB
_GZIP = 16 + zlib.MAX_WBITS


def read_columns(path: Path, columns: Sequence[int]) -> NDArray[np.int64]:
    """Return columns of a log, shape (lines, columns asked for); it may be compressed (``.gz``).

    Raises:
        OSError: it cannot be read.
        ValueError: it is not such a log, its compression is damaged, or it is far too large.
    """
    with path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a log without lines is no mistake
        if path.suffix != ".gz" or _unpacks_to(file) <= RATIO_MAX * path.stat().st_size:
            source: Path | io.TextIOWrapper = path  # numpy reads a path the quickest
        else:
            file.seek(0)
            joined = _Joined(_bounded(_unpacked(file)))
            source = io.TextIOWrapper(io.BufferedReader(joined, PIECE), "latin-1")
        try:
            found = np.loadtxt(source, delimiter=",", usecols=columns, dtype=np.int64, ndmin=2)
        except (EOFError, zlib.error) as error:
            raise ValueError(f"the compressed log is damaged: {error}") from None
    return found.reshape(-1, len(columns))


def _unpacks_to(file: BinaryIO) -> int:
    """Return the size that the end of a gzip file tells; 0 where it has no end."""
    try:
        file.seek(-4, io.SEEK_END)
    except OSError:
        return 0
    return int.from_bytes(file.read(4), "little")


def _unpacked(file: BinaryIO) -> Iterator[bytes]:
    """Yield what a compressed file holds, in pieces; far quicker than Python's own reader."""
    unpacker = zlib.decompressobj(_GZIP)
    raw = file.read(PIECE)
    try:
        while raw:
            yield unpacker.decompress(raw, PIECE)
            raw = unpacker.unconsumed_tail
            if unpacker.eof:
                raw = unpacker.unused_data or file.read(PIECE)
                if not raw:
                    return
                unpacker = zlib.decompressobj(_GZIP)
            elif not raw:
                raw = file.read(PIECE)
    except zlib.error as error:
        raise ValueError(f"the compressed log is damaged: {error}") from None
    raise ValueError("the compressed log is damaged: it breaks off")


def _bounded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces while they may be of fio: a small file may unpack to anything."""
    total = line = 0
    for piece in pieces:
        newline = piece.rfind(b"\n")
        line = line + len(piece) if newline < 0 else len(piece) - newline - 1
        total += len(piece)
        if total > TEXT_BYTES_MAX:
            raise ValueError(f"its text is longer than {TEXT_BYTES_MAX} bytes")
        if line > LINE_BYTES_MAX:
            raise ValueError(f"a line is longer than {LINE_BYTES_MAX} bytes")
        yield piece


class _Joined(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """It is read, and nothing else."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill ``buffer`` with what comes next; 0 at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        into = memoryview(buffer)
        count = min(len(into), len(self._rest))
        into[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
