"""What is known of the host and of the target.  Data only."""

from typing import Literal

from msgspec import Struct

_TICKS_END_MS = 2**32  # with 256 requests in flight it is reached within 5 hours


class DeviceCounters(Struct, frozen=True, kw_only=True):
    """/sys/block/*/stat of the device under the target, the fields that are used.

    What kernels before 4.19 do not count (discards) is None.  ``ticks`` are the milliseconds that
    the requests of a direction spent below the entry to the block layer, added up over requests;
    None in the archives of versions that did not keep them.
    """

    read_ios: int
    read_sectors: int
    write_ios: int
    write_sectors: int
    discard_sectors: int | None = None
    read_ticks_ms: int | None = None
    write_ticks_ms: int | None = None
    busy_ms: int | None = None  # with at least one request under way


def ticks_between(first_ms: int, last_ms: int) -> int:
    """Return by how much a counter of milliseconds rose; the kernel keeps 32 bits of each."""
    return (last_ms - first_ms) % _TICKS_END_MS


class Fact(Struct, frozen=True, kw_only=True):
    """One fact about the host or the target; ``value`` None with the reason it is unknown."""

    name: str
    value: str | None
    reason: str = ""


class Identity(Struct, frozen=True, kw_only=True):
    """What must not change under a run: which thing the path leads to.

    For a file ``device_number`` and ``inode`` bind it; for a block device its own number, size,
    serial, wwid and disk sequence (a number the kernel never reuses).  ``start_sector`` is where a
    partition begins on its disk; None for anything else, and in the archives of versions that did
    not keep it.
    """

    path: str
    real_path: str
    kind: Literal["file", "block"]
    device_number: str  # "major:minor": of the device itself, or of the file system of a file
    inode: int
    size_bytes: int
    serial: str | None = None
    wwid: str | None = None
    diskseq: str | None = None
    start_sector: int | None = None


class Written(Struct, frozen=True, kw_only=True):
    """Whether the span under test is known to hold written data.

    proven: the file's extent map shows no hole and no unwritten extent.
    prepared: ``kvbench prepare`` wrote the whole device and nothing was deallocated since.
    unproven: nobody can say (a block device without a record of a fill).
    buffered: the page cache serves the reads, so the question does not arise.

    ``hole_bytes`` and ``unwritten_bytes`` count what an extent map shows as never written: holes,
    and space that was reserved only.  None where there is no extent map to count from.
    """

    state: Literal["proven", "prepared", "unproven", "buffered"]
    reason: str
    hole_bytes: int | None = None
    unwritten_bytes: int | None = None


class WriteHistory(Struct, frozen=True, kw_only=True):
    """What a device has counted, to tell later whether anything wrote to it in between.

    ``smart_written_bytes`` counts over the drive's life, in steps of 512,000 bytes.  The kernel's
    counters begin anew with every boot and every device number (``boot_id``, ``diskseq``).  What is
    not known is None; ``reason`` says why the drive itself tells nothing.

    A partition counts what passed through its own node.  What was written to it through its whole
    disk only the disk has counted: ``disk_write_sectors`` and ``disk_discard_sectors``, which are
    None for a target that is a whole disk, and in the stamps of versions that did not keep them.
    """

    smart_written_bytes: int | None
    power_cycles: int | None
    write_sectors: int | None
    discard_sectors: int | None
    boot_id: str | None
    diskseq: str | None
    reason: str = ""
    disk_write_sectors: int | None = None
    disk_discard_sectors: int | None = None


class EraseAbilities(Struct, frozen=True, kw_only=True):
    """What a target can be erased with, and what else that would hit.

    ``nvme_tool`` is nvme-cli, "" where there is none; ``whole_namespace`` says that the target is
    a whole NVMe namespace.  ``namespaces`` counts those of its drive and ``format_hits_all`` tells
    whether a format goes beyond one of them; None is not known.
    """

    nvme_tool: str = ""
    whole_namespace: bool = False
    namespaces: int | None = None
    format_hits_all: bool | None = None
    discards: bool = False
