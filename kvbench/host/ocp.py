"""The OCP log pages C0h (SMART extended) and C3h (latency monitor), as nvme-cli dumps them.  Pure.

A drive may keep something else on these vendor pages, so a page counts only with its GUID.
Source: OCP Datacenter NVMe SSD specification, "SMART / Health Information Extended" and "Latency
Monitor"; all numbers are little-endian.
"""

import re

from msgspec import Struct

PAGE_BYTES = 512
EXTENDED_PAGE, LATENCY_PAGE = 0xC0, 0xC3
_GUIDS = {
    EXTENDED_PAGE: bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af"),
    LATENCY_PAGE: bytes.fromhex("927ac08cd0846c9c7043e6d4585ed485"),
}
_GUID_AT = 496
_DUMPED = re.compile(r"^([0-9a-f]{4,8}):((?: [0-9a-f]{2}){1,16})", re.MULTILINE)
_THRESHOLD_STEP_MS = 5
_BUCKETS = 4
_BUCKETS_AT, _BUCKET_BYTES, _COUNTER_BYTES = 0x20, 16, 4
_TRIM, _WRITE, _READ = 1, 2, 3  # places in a bucket


class SmartExtended(Struct, frozen=True, kw_only=True):
    """Log page C0h: what a drive did on its own behalf."""

    media_written_bytes: int  # data, metadata and garbage collection
    media_read_bytes: int
    bad_user_blocks: int
    uncorrectable_reads: int
    soft_ecc_errors: int
    throttling_events: int
    throttling_now: int  # 0 is none
    pcie_correctable_errors: int
    link_retrainings: int | None  # from version 3 of the page on
    unaligned_ios: int
    free_blocks_percent: int


class LatencyMonitor(Struct, frozen=True, kw_only=True):
    """Log page C3h: how many commands were slow, in buckets by the drive's thresholds.

    A bucket has the commands that took its threshold or more and less than the next one; quicker
    ones than the first are not counted.  The tuples run over the four active buckets, which the
    drive may empty by its own timer.
    """

    enabled: bool
    thresholds_ms: tuple[int, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    trims: tuple[int, ...]


def parse_dump(text: str) -> bytes:
    """Return the bytes of ``nvme get-log`` in its readable form.

    Raises:
        ValueError: it shows no bytes, or not all of them in order.
    """
    page = b""
    for match in _DUMPED.finditer(text):
        if int(match[1], 16) != len(page):
            raise ValueError("nvme get-log leaves out a part of the page")
        page += bytes.fromhex(match[2])
    if not page:
        raise ValueError("nvme get-log shows no page")
    return page


def parse_extended(page: bytes) -> SmartExtended:
    """Return what log page C0h tells.

    Raises:
        ValueError: it is not the page of the OCP.
    """
    _check(page, EXTENDED_PAGE)
    version = _number(page, 494, 2)
    return SmartExtended(
        media_written_bytes=_number(page, 0, 16),
        media_read_bytes=_number(page, 16, 16),
        bad_user_blocks=_number(page, 32, 6),
        uncorrectable_reads=_number(page, 56, 8),
        soft_ecc_errors=_number(page, 64, 8),
        throttling_events=page[96],
        throttling_now=page[97],
        pcie_correctable_errors=_number(page, 104, 8),
        link_retrainings=_number(page, 192, 8) if version >= 3 else None,
        unaligned_ios=_number(page, 136, 8),
        free_blocks_percent=page[120],
    )


def parse_latency(page: bytes) -> LatencyMonitor:
    """Return what log page C3h tells.

    Raises:
        ValueError: it is not the page of the OCP.
    """
    _check(page, LATENCY_PAGE)

    def counts(place: int) -> tuple[int, ...]:
        firsts = (_BUCKETS_AT + bucket * _BUCKET_BYTES for bucket in range(_BUCKETS))
        return tuple(_number(page, at + place * _COUNTER_BYTES, _COUNTER_BYTES) for at in firsts)

    return LatencyMonitor(
        enabled=bool(page[0] & 1),
        thresholds_ms=tuple((step + 1) * _THRESHOLD_STEP_MS for step in page[6:10]),
        reads=counts(_READ),
        writes=counts(_WRITE),
        trims=counts(_TRIM),
    )


def _check(page: bytes, number: int) -> None:
    if len(page) < PAGE_BYTES:
        raise ValueError(f"log page {number:X}h has {len(page)} of {PAGE_BYTES} bytes")
    if page[_GUID_AT:PAGE_BYTES] != _GUIDS[number]:
        raise ValueError(f"log page {number:X}h is not the OCP's: the drive keeps its own there")


def _number(page: bytes, at: int, length: int) -> int:
    return int.from_bytes(page[at : at + length], "little")
