"""Whether a file holds written data, from its extent map (FIEMAP).  Reads only.

Reading a hole, or space that was only reserved, never reaches the device and measures memory.
Data that is compressed or kept inside the inode is less than it seems, and is not proof either.
Source: Linux, Documentation/filesystems/fiemap.rst.
"""

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator

from msgspec import Struct

from kvbench.host.machine import READ_FLAGS
from kvbench.host.model import Written
from kvbench.units import format_size

_FS_IOC_FIEMAP = 0xC020660B
_HEADER = struct.Struct("=QQLLLL")  # start, length, flags, mapped, room, reserved
_EXTENT = struct.Struct("=QQQQQLLLL")  # logical, physical, length, 2 spare, flags, 3 spare
_FLAG_SYNC = 0x1  # write out first, so that nothing is still waiting for its place
_PAGE_EXTENTS = 512

LAST = 0x1
UNKNOWN = 0x2
DELAYED = 0x4
ENCODED = 0x8
ENCRYPTED = 0x80
INLINE = 0x200
TAIL = 0x400
UNWRITTEN = 0x800
_NO_PROOF = (  # flags, and what the data is then
    (UNKNOWN | DELAYED, "has no place on the device yet"),
    (ENCODED | ENCRYPTED, "is compressed or encrypted by the file system"),
    (INLINE | TAIL, "lies inside the file system's own blocks"),
)


class Extent(Struct, frozen=True):
    """One run of the map; bytes."""

    start: int
    length: int
    flags: int


def prove_written(path: str, start: int, length: int) -> Written:
    """Return whether ``length`` bytes of a file from ``start`` are all written data.

    Opens read-only and has the file system write out what it still holds back.
    """
    try:
        descriptor = os.open(path, READ_FLAGS)
    except OSError as error:
        return _unproven(f"cannot be opened: {error.strerror}")
    try:
        status = os.fstat(descriptor)
        if stat.S_ISBLK(status.st_mode):
            return _unproven("nobody has recorded that this block device was filled")
        if not stat.S_ISREG(status.st_mode):
            return _unproven("it is no regular file")
        if start + length > status.st_size:
            return _unproven(f"the file ends at {status.st_size} bytes, within the span")
        return judge(list(_extents(descriptor, start, length)), start, length)
    except OSError as error:
        if error.errno in {errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL}:
            return _unproven("this file system has no extent map (FIEMAP) to prove it with")
        return _unproven(f"the extent map cannot be read: {error.strerror}")
    finally:
        os.close(descriptor)


def judge(extents: list[Extent], start: int, length: int) -> Written:
    """Return what the extents that touch a span say about it.  Pure."""
    end = start + length
    at = start
    written = unwritten = 0
    doubts: dict[str, int] = {}
    for extent in sorted(extents, key=lambda each: each.start):
        first, last = max(extent.start, at), min(extent.start + extent.length, end)
        if last <= first:
            continue
        at = last
        size = last - first
        if extent.flags & UNWRITTEN:
            unwritten += size
            continue
        written += size
        for flags, text in _NO_PROOF:
            if extent.flags & flags:
                doubts[text] = doubts.get(text, 0) + size
                break
    holes = length - written - unwritten
    parts = [f"{format_size(holes)} are holes"] if holes else []
    parts += [f"{format_size(unwritten)} are reserved and not written"] if unwritten else []
    parts += [f"{format_size(size)} {text}" for text, size in doubts.items()]
    if parts or length <= 0:
        reason = f"of {format_size(length)}: {', '.join(parts) or 'an empty span'}"
        return _unproven(reason, hole_bytes=holes, unwritten_bytes=unwritten)
    return Written(
        state="proven",
        reason=f"the extent map shows {format_size(length)} written, no hole, none reserved only",
        hole_bytes=0,
        unwritten_bytes=0,
    )


def _extents(descriptor: int, start: int, length: int) -> Iterator[Extent]:
    """Yield the map page by page."""
    at, end = start, start + length
    while at < end:
        page = bytearray(_HEADER.size + _PAGE_EXTENTS * _EXTENT.size)
        _HEADER.pack_into(page, 0, at, end - at, _FLAG_SYNC, 0, _PAGE_EXTENTS, 0)
        fcntl.ioctl(descriptor, _FS_IOC_FIEMAP, page)
        mapped = _HEADER.unpack_from(page)[3]
        if mapped == 0:
            return  # only holes are left
        before = at
        for number in range(mapped):
            fields = _EXTENT.unpack_from(page, _HEADER.size + number * _EXTENT.size)
            extent = Extent(start=fields[0], length=fields[2], flags=fields[5])
            yield extent
            if extent.flags & LAST:
                return
            at = max(at, extent.start + extent.length)
        if at == before:
            return  # a map that does not go on proves nothing: what follows counts as a hole


def _unproven(
    reason: str, *, hole_bytes: int | None = None, unwritten_bytes: int | None = None
) -> Written:
    return Written(
        state="unproven", reason=reason, hole_bytes=hole_bytes, unwritten_bytes=unwritten_bytes
    )
