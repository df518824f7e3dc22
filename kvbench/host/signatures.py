"""The first and last bytes of a device -> what lies on it.  Pure: the caller reads the bytes.

It is kvbench's own list, so that a machine without blkid is not taken for an empty disk.  It
errs towards finding something: a wrong hit costs a ``wipefs``, a miss costs somebody's data.
Offsets and magic numbers: libblkid (util-linux), and the on-disk formats of the tools named.
"""

import struct
from collections.abc import Callable, Iterator

from msgspec import Struct

from kvbench.units import KIB, MIB

Read = Callable[[int, int], bytes]  # offset, length -> bytes, fewer at the end


class Signature(Struct, frozen=True, kw_only=True):
    """One thing that was found, and where."""

    name: str
    offset_bytes: int


class _Magic(Struct, frozen=True):
    name: str
    offset_bytes: int
    magic: bytes


_PAGE_SIZES = (4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB)
_BCACHE_UUID = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
_BCACHEFS_UUID = bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef")
_MD_MAGIC_LE, _MD_MAGIC_BE = struct.pack("<I", 0xA92B4EFC), struct.pack(">I", 0xA92B4EFC)
_ZFS_MAGIC = (struct.pack("<Q", 0x00BAB10C), struct.pack(">Q", 0x00BAB10C))
_ZFS_LABEL_BYTES = 256 * KIB
_BOOT_FLAGS = frozenset({0x00, 0x80})

_AT_START: tuple[_Magic, ...] = (
    _Magic("an ext2/3/4 file system", 0x438, b"\x53\xef"),
    _Magic("an XFS file system", 0, b"XFSB"),
    _Magic("a btrfs file system", 0x10040, b"_BHRfS_M"),
    _Magic("a FAT file system", 0x36, b"FAT12   "),
    _Magic("a FAT file system", 0x36, b"FAT16   "),
    _Magic("a FAT file system", 0x52, b"FAT32   "),
    _Magic("an exFAT file system", 3, b"EXFAT   "),
    _Magic("an NTFS file system", 3, b"NTFS    "),
    _Magic("a BitLocker volume", 3, b"-FVE-FS-"),
    _Magic("an F2FS file system", 1024, struct.pack("<I", 0xF2F52010)),
    _Magic("a NILFS2 file system", 1024 + 6, b"\x34\x34"),
    _Magic("an HFS+ file system", 1024, b"H+\x00\x04"),
    _Magic("an HFSX file system", 1024, b"HX\x00\x05"),
    _Magic("an APFS container", 32, b"NXSB"),
    _Magic("an EROFS file system", 1024, struct.pack("<I", 0xE0F5E1E2)),
    _Magic("a SquashFS file system", 0, b"hsqs"),
    _Magic("a JFS file system", 0x8000, b"JFS1"),
    _Magic("a ReiserFS file system", 0x10034, b"ReIsEr"),
    _Magic("a GFS2 file system", 0x10000, struct.pack(">I", 0x01161970)),
    *(_Magic("an OCFS2 file system", k * KIB, b"OCFSV2") for k in (1, 2, 4, 8)),
    _Magic("an ISO 9660 file system", 0x8001, b"CD001"),
    _Magic("a UDF file system", 0x8001, b"BEA01"),
    _Magic("a UDF file system", 0x8001, b"NSR0"),
    _Magic("a bcachefs file system", 4096 + 24, _BCACHEFS_UUID),
    _Magic("a VMFS volume", MIB, struct.pack("<I", 0xC001D00D)),
    _Magic("a bcache device", 4096 + 24, _BCACHE_UUID),
    _Magic("a LUKS volume", 0, b"LUKS\xba\xbe"),
    *(
        _Magic("a LUKS2 volume (second header)", k * KIB, b"SKUL\xba\xbe")
        for k in (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
    ),
    *(_Magic("an LVM physical volume", sector * 512, b"LABELONE") for sector in range(4)),
    _Magic("a Ceph BlueStore device", 0, b"bluestore block device"),
    _Magic("an SPDK blobstore", 0, b"SPDKBLOB"),
    _Magic("a Stratis device", 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh"),
    _Magic("a VDO volume", 0, b"dmvdo001"),
    _Magic("an Oracle ASM disk", 32, b"ORCLDISK"),
    *(
        _Magic("a swap area", page - 10, magic)
        for page in _PAGE_SIZES
        for magic in (b"SWAPSPACE2", b"SWAP-SPACE", b"S1SUSPEND\x00", b"S2SUSPEND\x00")
    ),
    _Magic("an md RAID member (1.1)", 0, _MD_MAGIC_LE),
    _Magic("an md RAID member (1.2)", 4096, _MD_MAGIC_LE),
    *(_Magic("a GPT partition table", sector, b"EFI PART") for sector in (512, 4096)),
)


def find_signatures(read: Read, size_bytes: int) -> tuple[Signature, ...]:
    """Return everything that is recognised on a device of ``size_bytes``."""
    found = [
        Signature(name=magic.name, offset_bytes=magic.offset_bytes)
        for magic in (*_AT_START, *_at_end(size_bytes))
        if magic.offset_bytes >= 0 and read(magic.offset_bytes, len(magic.magic)) == magic.magic
    ]
    found += _mbr(read)
    found += _zfs(read, size_bytes)
    return tuple(found)


def _at_end(size_bytes: int) -> Iterator[_Magic]:
    """Yield what keeps its mark near the end; offsets depend on the size."""
    for sector in (512, 4096):
        yield _Magic("a GPT partition table (backup)", size_bytes - sector, b"EFI PART")
    yield _Magic("an Intel RAID member", size_bytes - 1024, b"Intel Raid ISM Cfg Sig. ")
    yield _Magic("a DDF RAID member", size_bytes - 512, struct.pack(">I", 0xDE11DE11))
    # md 1.0: at least 8 KiB from the end, on 4 KiB; md 0.90: the last whole 64 KiB
    yield _Magic(
        "an md RAID member (1.0)", (size_bytes - 8 * KIB) // (4 * KIB) * 4 * KIB, _MD_MAGIC_LE
    )
    for magic in (_MD_MAGIC_LE, _MD_MAGIC_BE):
        yield _Magic(
            "an md RAID member (0.90)", size_bytes // (64 * KIB) * 64 * KIB - 64 * KIB, magic
        )


def _mbr(read: Read) -> Iterator[Signature]:
    """A boot sector: its mark, and boot flags that are flags (random data has the mark too)."""
    sector = read(0, 512)
    flags = {sector[446 + 16 * entry] for entry in range(4)} if len(sector) == 512 else set()
    if sector[510:] == b"\x55\xaa" and flags <= _BOOT_FLAGS:
        yield Signature(name="an MBR partition table or boot sector", offset_bytes=510)


def _zfs(read: Read, size_bytes: int) -> Iterator[Signature]:
    """ZFS keeps four labels, each with a ring of uberblocks in its second half."""
    end = size_bytes // _ZFS_LABEL_BYTES * _ZFS_LABEL_BYTES
    for label in (0, _ZFS_LABEL_BYTES, end - 2 * _ZFS_LABEL_BYTES, end - _ZFS_LABEL_BYTES):
        ring_offset = label + _ZFS_LABEL_BYTES // 2
        if label < 0:
            continue
        ring = read(ring_offset, _ZFS_LABEL_BYTES // 2)
        for start in range(0, len(ring), KIB):
            if ring[start : start + 8] in _ZFS_MAGIC:
                yield Signature(name="a ZFS pool member", offset_bytes=ring_offset + start)
                break
