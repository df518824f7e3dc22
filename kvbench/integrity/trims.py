"""What do trimmed blocks return?  Read before and, three times, after the trim.  Reads only."""

import os
import zlib
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kvbench.errors import EnvironmentMissing
from kvbench.integrity.reader import Buffer, open_direct
from kvbench.plan import Placed
from kvbench.store.records import AfterTrim
from kvbench.units import MIB

UNIT_BYTES = 4096
LOOK_BYTES_MAX = 64 * MIB  # from the start of the part that is trimmed: trims go in order
READS = 3
_STEP_BYTES = 4 * MIB


class Before(Struct, frozen=True, kw_only=True):
    """What stood in the first units of a part before it was trimmed: a checksum of each."""

    stream: str
    offset_bytes: int
    sums: tuple[int, ...]
    zero: tuple[bool, ...]
    reason: str = ""  # why it is not known


def look_before(path: str, placed: Sequence[Placed]) -> tuple[Before, ...]:
    """Return what stands in the parts of the streams that trim and ask to be looked at."""
    return tuple(_before(path, one) for one in placed if one.stream.verify == "deallocated")


def look_after(path: str, before: Before, trimmed_bytes: int) -> AfterTrim:
    """Return what the first ``trimmed_bytes`` of a part return now."""
    units = min(len(before.sums), trimmed_bytes // UNIT_BYTES)
    if before.reason or not units:
        return AfterTrim(
            stream=before.stream,
            unit_bytes=UNIT_BYTES,
            reason=before.reason or "not one whole block was trimmed",
        )
    try:
        reads = [_read(path, before.offset_bytes, units) for _ in range(READS)]
    except (EnvironmentMissing, OSError) as error:
        return AfterTrim(stream=before.stream, unit_bytes=UNIT_BYTES, reason=str(error))
    sums = [[zlib.crc32(unit) for unit in read] for read in reads]
    first = reads[0]
    zero = ~first.any(axis=1)
    ones = (first == 0xFF).all(axis=1)
    was_zero = np.array(before.zero[:units])
    old = (np.array(sums[0]) == np.array(before.sums[:units])) & ~zero & ~ones
    changed = np.array([len(set(each)) > 1 for each in zip(*sums, strict=True)])
    return AfterTrim(
        stream=before.stream,
        unit_bytes=UNIT_BYTES,
        reads=READS,
        units=units,
        zero=int(zero.sum()),
        ones=int(ones.sum()),
        old=int(old.sum()),
        other=int((~zero & ~ones & ~old).sum()),
        changed=int(changed.sum()),
        zero_before=int(was_zero.sum()),
    )


def _before(path: str, placed: Placed) -> Before:
    units = min(placed.size_bytes, LOOK_BYTES_MAX) // UNIT_BYTES
    try:
        read = _read(path, placed.offset_bytes, units)
    except (EnvironmentMissing, OSError) as error:
        return Before(
            stream=placed.stream.name,
            offset_bytes=placed.offset_bytes,
            sums=(),
            zero=(),
            reason=str(error),
        )
    return Before(
        stream=placed.stream.name,
        offset_bytes=placed.offset_bytes,
        sums=tuple(zlib.crc32(unit) for unit in read),
        zero=tuple(not unit.any() for unit in read),
    )


def _read(path: str, offset_bytes: int, units: int) -> NDArray[np.uint8]:
    """Return so many units, shape (units, bytes of one).

    Raises:
        EnvironmentMissing: it cannot be read past the page cache, or the device gives an error.
    """
    descriptor = open_direct(path)
    buffer = Buffer(_STEP_BYTES)
    found = np.empty(units * UNIT_BYTES, dtype=np.uint8)
    try:
        for start in range(0, found.size, _STEP_BYTES):
            size = min(_STEP_BYTES, found.size - start)
            read = buffer.read(descriptor, offset_bytes + start, size)
            if read is None:
                raise EnvironmentMissing(
                    f"the device gave an error at offset {offset_bytes + start}", where=path
                )
            found[start : start + size] = read
    finally:
        os.close(descriptor)
    return found.reshape(units, UNIT_BYTES)
