"""``nvme list``, ``id-ctrl``, ``id-ns`` and ``fw-log`` with ``-o json`` -> what they tell.  Pure.

Every shape from nvme-cli 1.x to 2.11 and later is read.  ``unknown`` says for each field that is
None why; a text without JSON raises ``ValueError`` with a sentence.
Source: NVM Express Base and NVM Command Set specifications, Identify and Firmware Slot pages.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from kvbench.host.tool_json import Reader, document, number, tables, words

KELVIN_ZERO_C = 273
_FIRMWARE = re.compile(r"\d+\s+\((.*)\)")  # 2.x: the eight bytes as one number, then as text
_FDP_BIT, _DIRECTIVES_BIT = 19, 5  # of CTRATT and of OACS
_HMB_UNIT_BYTES = 4096
_FORMATS_OF_LOW_BITS = 16


class ListedNamespace(Struct, frozen=True, kw_only=True):
    """One row of ``nvme list``."""

    node: str  # "/dev/nvme0n1"
    controller: str | None  # "nvme1" may own nvme0n1; only nested output tells
    nsid: int | None
    model: str | None
    serial: str | None
    firmware: str | None
    size_bytes: int | None
    lba_bytes: int | None
    used_bytes: int | None
    unknown: dict[str, str]


class Controller(Struct, frozen=True, kw_only=True):
    """``nvme id-ctrl``."""

    model: str | None
    serial: str | None
    firmware: str | None
    volatile_write_cache: bool | None
    power_states: int | None
    apst: bool | None  # whether it can change power states by itself
    hmb_wanted_bytes: int | None  # host memory that it would like; 0 is none
    fdp: bool | None  # flexible data placement
    directives: bool | None  # streams and the like
    warning_temperature_c: int | None
    critical_temperature_c: int | None
    unknown: dict[str, str]


class NamespaceDetail(Struct, frozen=True, kw_only=True):
    """``nvme id-ns``."""

    size_bytes: int | None
    used_bytes: int | None
    lba_bytes: int | None
    metadata_bytes: int | None
    lba_format: int | None
    eui64: str | None
    nguid: str | None
    unknown: dict[str, str]


class FirmwareSlots(Struct, frozen=True, kw_only=True):
    """``nvme fw-log``: which slot runs, and what each holds."""

    active: int | None
    revisions: dict[int, str]
    unknown: dict[str, str]


def parse_list(text: str) -> tuple[ListedNamespace, ...]:
    """Return the namespaces of ``nvme list``; () when it lists none.

    Raises:
        ValueError: no JSON was printed, as older versions do without a device.
    """
    found: list[ListedNamespace] = []
    for device in tables(document(text).get("Devices", [])):
        if "Subsystems" in device:
            for subsystem in tables(device["Subsystems"]):
                found += _of_subsystem(subsystem)
        elif "DevicePath" in device:
            found.append(_listed(device, None))
    return tuple(found)


def _of_subsystem(subsystem: dict[str, object]) -> Iterator[ListedNamespace]:
    controllers = tables(subsystem.get("Controllers", []))
    for controller in controllers:
        for row in tables(controller.get("Namespaces", [])):
            yield _listed(row, controller)
    only = controllers[0] if len(controllers) == 1 else None
    for row in tables(subsystem.get("Namespaces", [])):
        yield _listed(row, only)


def _listed(row: dict[str, object], controller: dict[str, object] | None) -> ListedNamespace:
    read = Reader({**(controller or {}), **row}, "nvme list")
    name = words(row.get("DevicePath")) or words(row.get("NameSpace")) or ""
    nsid = read.number("nsid", ("NSID", "NameSpace"))
    return ListedNamespace(
        node=name if name.startswith("/") else f"/dev/{name}",
        controller=read.words("controller", ("Controller",)),
        nsid=nsid,
        model=read.words("model", ("ModelNumber",)),
        serial=read.words("serial", ("SerialNumber",)),
        firmware=read.words("firmware", ("Firmware", "FirmwareRevision")),
        size_bytes=read.number("size_bytes", ("PhysicalSize",)),
        lba_bytes=read.number("lba_bytes", ("SectorSize",)),
        used_bytes=read.number("used_bytes", ("UsedBytes",)),
        unknown=read.unknown,
    )


def parse_id_ctrl(text: str) -> Controller:
    """Return what a controller tells of itself."""
    read = Reader(document(text), "nvme id-ctrl")
    last_state = read.number("power_states", ("npss",))
    wanted = read.number("hmb_wanted_bytes", ("hmpre",))
    return Controller(
        model=read.words("model", ("mn",)),
        serial=read.words("serial", ("sn",)),
        firmware=_firmware(read.words("firmware", ("fr",))),
        volatile_write_cache=_bit(read, "volatile_write_cache", "vwc", 0),
        power_states=None if last_state is None else last_state + 1,
        apst=_bit(read, "apst", "apsta", 0),
        hmb_wanted_bytes=None if wanted is None else wanted * _HMB_UNIT_BYTES,
        fdp=_bit(read, "fdp", "ctratt", _FDP_BIT),
        directives=_bit(read, "directives", "oacs", _DIRECTIVES_BIT),
        warning_temperature_c=_threshold(read, "warning_temperature_c", "wctemp"),
        critical_temperature_c=_threshold(read, "critical_temperature_c", "cctemp"),
        unknown=read.unknown,
    )


def _bit(read: Reader, field: str, key: str, bit: int) -> bool | None:
    value = read.number(field, (key,))
    return None if value is None else bool(value >> bit & 1)


def _threshold(read: Reader, field: str, key: str) -> int | None:
    kelvin = read.number(field, (key,))
    if kelvin == 0:
        read.not_known(field, "the drive has no such threshold")
        return None
    return None if kelvin is None else kelvin - KELVIN_ZERO_C


def parse_id_ns(text: str) -> NamespaceDetail:
    """Return what a namespace tells of itself; its sizes are counted in its own blocks."""
    read = Reader(document(text), "nvme id-ns")
    flags = read.number("lba_format", ("flbas",))
    formats = tables(read.values.get("lbafs", []))
    index = None
    if flags is not None:
        high = (flags >> 5 & 3) << 4 if len(formats) > _FORMATS_OF_LOW_BITS else 0
        index = flags & 15 | high
    chosen = formats[index] if index is not None and index < len(formats) else {}
    power = number(chosen.get("ds"))
    lba = 1 << power if power is not None and 0 < power < 32 else None
    if lba is None:
        read.not_known("lba_bytes", "nvme id-ns does not show the format in use")
    metadata = number(chosen.get("ms"))
    if metadata is None:
        read.not_known("metadata_bytes", "nvme id-ns does not show the format in use")
    size, used = (
        _blocks(read, field, key, lba)
        for field, key in (("size_bytes", "nsze"), ("used_bytes", "nuse"))
    )
    return NamespaceDetail(
        size_bytes=size,
        used_bytes=used,
        lba_bytes=lba,
        metadata_bytes=metadata,
        lba_format=index,
        eui64=_identifier(read, "eui64"),
        nguid=_identifier(read, "nguid"),
        unknown=read.unknown,
    )


def _blocks(read: Reader, field: str, key: str, lba_bytes: int | None) -> int | None:
    blocks = read.number(field, (key,))
    if blocks is None:
        return None
    if lba_bytes is None:
        read.not_known(field, "the size of a block is not known")
        return None
    return blocks * lba_bytes


def _identifier(read: Reader, key: str) -> str | None:
    text = read.words(key, (key,))
    if text is None:
        return None
    if not text.replace("-", "").strip("0"):
        read.not_known(key, "the drive has none")
        return None
    return text


def parse_fw_log(text: str) -> FirmwareSlots:
    """Return the firmware slots; a slot that holds nothing is left out."""
    values = document(text)
    inner = tables(list(values.values()))
    slots = inner[0] if inner else values
    read = Reader(slots, "nvme fw-log")
    revisions: dict[int, str] = {}
    active = None
    for key, value in slots.items():
        if match := re.search(r"slot\s*(\d)", key, re.IGNORECASE):
            revision = _firmware(words(value))
            if revision:
                revisions[int(match[1])] = revision
        elif "afi" in key.lower():
            told = number(value)
            active = None if told is None else told & 7 or None
    if active is None:
        read.not_known("active", "nvme fw-log does not tell the slot that runs")
    if not revisions:
        read.not_known("revisions", "nvme fw-log shows no slot that holds firmware")
    return FirmwareSlots(active=active, revisions=revisions, unknown=read.unknown)


def _firmware(text: str | None) -> str | None:
    """Return a revision; ``2314885530819505713 (1.0.....)`` is "1.0", its dots stand for blanks."""
    if text is None:
        return None
    match = _FIRMWARE.fullmatch(text)
    return (match[1].rstrip(". ") if match else text) or None


def count_namespaces(text: str) -> int:
    """Return how many namespaces ``nvme list-ns --all -o json`` lists.

    Raises:
        ValueError: no JSON, or no list in it.
    """
    listed = document(text).get("nsid_list")
    if not isinstance(listed, list) or not listed:
        raise ValueError("nvme list-ns lists no namespace")
    return len(listed)


def format_hits_all(text: str) -> bool:
    """Return whether a format, or its erasure, hits every namespace of the drive.

    Source: Identify Controller, FNA bits 0 (format) and 1 (secure erase).

    Raises:
        ValueError: no JSON, or the drive does not tell.
    """
    told = number(document(text).get("fna"))
    if told is None:
        raise ValueError("nvme id-ctrl does not tell fna")
    return bool(told & 0b11)
