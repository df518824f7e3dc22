"""CRC-32C of many equal rows: by google-crc32c where it is installed, else in numpy.  Pure.

Python's standard library has no CRC-32C.  google-crc32c does some GB/s by the processor's own
instruction; it is optional (``pip install '.[verify]'``), because numpy manages 100 MB/s, which
is enough for files.  There a table look-up is made for thousands of rows at once: every row is cut
into pieces of 512 bytes, all pieces are summed up side by side, and their sums are joined.  A CRC
is linear, so following a piece by 512 bytes multiplies its sum by a constant of GF(2), which is
four table look-ups.

fio's ``crc32c`` begins with all ones, like the standard's, and does not invert its result.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

PIECE_BYTES = 512
_POLYNOMIAL = 0x82F63B78  # Castagnoli, bits reversed
_ONES = 0xFFFFFFFF

U32 = NDArray[np.uint32]


def _find_fast() -> Callable[[bytes], int] | None:
    """Return the library's function where it has its compiled part."""
    try:
        import google_crc32c
    except ImportError:
        return None
    return google_crc32c.value if google_crc32c.implementation == "c" else None


_fast = _find_fast()


def fio_crc32c(rows: NDArray[np.uint8], skip: int = 0) -> U32:
    """Return fio's CRC-32C of each row from byte ``skip`` on.

    Args:
        rows: shape (n, length); length is a multiple of 4.
        skip: leading bytes of each row that are left out.
    """
    if _fast is not None:
        sums = np.array([_fast(row[skip:].tobytes()) for row in rows], dtype=np.uint32)
        return sums ^ np.uint32(_ONES)
    return in_numpy(rows, skip)


def in_numpy(rows: NDArray[np.uint8], skip: int = 0) -> U32:
    """Return the same as ``fio_crc32c``, by numpy alone."""
    count, length = rows.shape
    if skip:
        rows = rows.copy()
        rows[:, :skip] = 0  # leading zeros leave a sum that begins with zero as it is
    if length % PIECE_BYTES:
        sums = _sums(rows)
    else:
        pieces = _sums(rows.reshape(-1, PIECE_BYTES)).reshape(count, -1)
        sums = _joined(pieces)
    return sums ^ np.uint32(_begin(length - skip))


def _sums(rows: NDArray[np.uint8]) -> U32:
    """Return the sums of rows, shape (n, 4 m), that begin with zero; four bytes at a time."""
    words = np.ascontiguousarray(rows.view("<u4").T)
    first, second, third, last = _tables()
    state = np.zeros(rows.shape[0], dtype=np.uint32)
    for word in words:
        state = state ^ word
        state = (
            last[state & 0xFF]
            ^ third[(state >> 8) & 0xFF]
            ^ second[(state >> 16) & 0xFF]
            ^ first[state >> 24]
        )
    return state


def _joined(pieces: U32) -> U32:
    """Return the sums of rows from those of their pieces, shape (n, pieces)."""
    tables = _shift_tables(PIECE_BYTES)
    state = np.zeros(pieces.shape[0], dtype=np.uint32)
    for piece in np.ascontiguousarray(pieces.T):
        state = (
            tables[0][state & 0xFF]
            ^ tables[1][(state >> 8) & 0xFF]
            ^ tables[2][(state >> 16) & 0xFF]
            ^ tables[3][state >> 24]
            ^ piece
        )
    return state


@cache
def _tables() -> tuple[U32, U32, U32, U32]:
    """Return the tables of a byte followed by none, one, two and three more bytes."""
    first = np.zeros(256, dtype=np.uint32)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        first[byte] = value
    tables = [first]
    for _ in range(3):
        before = tables[-1]
        tables.append(first[before & 0xFF] ^ (before >> 8))
    return tables[0], tables[1], tables[2], tables[3]


def _followed_by_zeros(value: int, count: int) -> int:
    """Return what a sum becomes when so many zero bytes follow."""
    columns = [1 << bit for bit in range(32)]  # where each bit of a sum goes: one zero byte
    table = _tables()[0]
    step = [int(table[column & 0xFF]) ^ column >> 8 for column in columns]
    while count:
        if count & 1:
            value = _times(step, value)
        step = [_times(step, column) for column in step]
        count >>= 1
    return value


def _times(matrix: list[int], value: int) -> int:
    result = 0
    for bit, column in enumerate(matrix):
        if value >> bit & 1:
            result ^= column
    return result


@cache
def _begin(length: int) -> int:
    """Return what beginning with all ones adds to the sum of ``length`` bytes."""
    return _followed_by_zeros(_ONES, length)


@cache
def _shift_tables(count: int) -> list[U32]:
    """Return, for each byte of a sum, the table of what it becomes after ``count`` zero bytes."""
    bits = [_followed_by_zeros(1 << bit, count) for bit in range(32)]
    tables = []
    for byte in range(4):
        table = np.zeros(256, dtype=np.uint32)
        for value in range(256):
            table[value] = _times(bits[8 * byte : 8 * byte + 8], value)
        tables.append(table)
    return tables
