"""``nvme smart-log -o json`` and ``smartctl -j`` -> one health record, and its change.  Pure.

nvme-cli prints kelvin, smartctl degrees Celsius; both are degrees Celsius here.  A value that is
not told is None with the reason in ``unknown``, never 0.
Source: NVM Express Base specification, SMART / Health Information; smartctl(8), "EXIT STATUS".
"""

from msgspec import Struct

from kvbench.host.nvme_json import KELVIN_ZERO_C
from kvbench.host.tool_json import Reader, document, number, tables, words

DATA_UNIT_BYTES = 512_000  # a thousand blocks of 512 B
NOT_MEASURED_K = frozenset({0, 0xFFFF})
PLAUSIBLE_C = range(-60, 200)
_REPORTED_UNCORRECTABLE = 187  # the number of that SATA attribute
_SMARTCTL_NO_DATA = 0b11  # bits 0 and 1: the command line was wrong, the device did not open
_SMARTCTL_BITS = {
    2: "a command to the drive failed",
    3: "the drive says that it is failing",
    4: "an attribute is at its threshold",
    5: "an attribute was at its threshold in the past",
    6: "the drive's error log has entries",
    7: "the drive's self-test log has errors",
}
# Counters, and what their rise means.
RISES_OF_HEAT = (
    ("thermal_transitions", "{} thermal transitions"),
    ("throttled_s", "{} s throttled"),
    ("warning_temperature_min", "{} min over the warning temperature"),
    ("critical_temperature_min", "{} min over the critical temperature"),
)
RISES_OF_TROUBLE = (
    ("media_errors", "{} media errors"),
    ("unsafe_shutdowns", "{} unsafe shutdowns"),
)


class SmartLog(Struct, frozen=True, kw_only=True):
    """The health of a drive at one moment."""

    critical_warning: int | None  # bits; 0 is none
    temperature_c: int | None
    sensors_c: tuple[int, ...]  # only those that measure
    spare_percent: int | None
    used_percent: int | None  # may pass 100
    read_bytes: int | None
    written_bytes: int | None
    host_reads: int | None
    host_writes: int | None
    power_cycles: int | None
    power_on_hours: int | None
    unsafe_shutdowns: int | None
    media_errors: int | None
    error_log_entries: int | None
    warning_temperature_min: int | None
    critical_temperature_min: int | None
    thermal_transitions: int | None  # to either throttled state
    throttled_s: int | None  # in either
    unknown: dict[str, str]
    notes: tuple[str, ...] = ()


def parse_smart_log(text: str) -> SmartLog:
    """Return what ``nvme smart-log -o json`` printed.

    Raises:
        ValueError: no JSON was printed.
    """
    values = document(text)
    sensors = [values[key] for key in sorted(values) if key.startswith("temperature_sensor_")]
    kelvin = [number(sensor) for sensor in sensors]
    return _log(
        Reader(values, "nvme smart-log"),
        sensors_c=tuple(k - KELVIN_ZERO_C for k in kelvin if k is not None and _measures(k)),
        zero_c=KELVIN_ZERO_C,
    )


def parse_smartctl(text: str) -> SmartLog:
    """Return what ``smartctl -j -a`` printed of a drive; of SATA and SAS it tells less.

    Raises:
        ValueError: no JSON, or smartctl had no data; the message is what it said.
    """
    values = document(text)
    status, messages = _smartctl_end(values)
    log = values.get("nvme_smart_health_information_log")
    told = log if isinstance(log, dict) else _of_other_kinds(values)
    if status & _SMARTCTL_NO_DATA or not told:
        raise ValueError(messages or f"smartctl shows no health log (exit status {status})")
    listed = told.get("temperature_sensors")
    sensors = [number(one) for one in listed] if isinstance(listed, list) else []
    return _log(
        Reader(told, "smartctl"),
        sensors_c=tuple(c for c in sensors if c and c in PLAUSIBLE_C),
        zero_c=0,
        notes=tuple(said for bit, said in _SMARTCTL_BITS.items() if status >> bit & 1),
    )


def _of_other_kinds(values: dict[str, object]) -> dict[str, object]:
    """Return what smartctl tells of a SATA or SAS drive under the names of the NVMe log."""
    places = {
        "temperature": ("temperature", "current"),
        "power_on_hours": ("power_on_time", "hours"),
        "percentage_used": ("endurance_used", "current_percent"),
        "available_spare": ("spare_available", "current_percent"),
    }
    found: dict[str, object] = {}
    for name, (table, key) in places.items():
        part = values.get(table)
        if isinstance(part, dict) and key in part:
            found[name] = part[key]
    if "power_cycle_count" in values:
        found["power_cycles"] = values["power_cycle_count"]
    attributes = values.get("ata_smart_attributes")
    for row in tables(attributes.get("table", [])) if isinstance(attributes, dict) else []:
        if number(row.get("id")) == _REPORTED_UNCORRECTABLE:
            found["media_errors"] = row.get("raw")
    return found


class SmartctlIdentity(Struct, frozen=True, kw_only=True):
    """Which drive smartctl sees."""

    model: str | None
    serial: str | None
    firmware: str | None
    unknown: dict[str, str]


def parse_smartctl_identity(text: str) -> SmartctlIdentity:
    """Return what ``smartctl -j -i`` tells of a drive of any kind.

    Raises:
        ValueError: no JSON, or smartctl had no data.
    """
    values = document(text)
    status, messages = _smartctl_end(values)
    if status & _SMARTCTL_NO_DATA:
        raise ValueError(messages or f"smartctl shows no data (exit status {status})")
    read = Reader(values, "smartctl")
    return SmartctlIdentity(
        model=read.words("model", ("model_name", "scsi_model_name")),
        serial=read.words("serial", ("serial_number",)),
        firmware=read.words("firmware", ("firmware_version", "scsi_revision")),
        unknown=read.unknown,
    )


def rises(
    before: SmartLog,
    after: SmartLog,
    counters: tuple[tuple[str, str], ...] = (*RISES_OF_HEAT, *RISES_OF_TROUBLE),
) -> tuple[str, ...]:
    """Return what of the drive's own counters rose, which spoils what was measured between."""
    found = []
    for field, meaning in counters:
        first, last = getattr(before, field), getattr(after, field)
        if first is not None and last is not None and last > first:
            found.append(meaning.format(last - first))
    return tuple(found)


def _smartctl_end(values: dict[str, object]) -> tuple[int, str]:
    own = values.get("smartctl")
    if not isinstance(own, dict):
        return 0, ""
    said = [words(message.get("string")) for message in tables(own.get("messages", []))]
    return number(own.get("exit_status")) or 0, "; ".join(one for one in said if one)


def _measures(kelvin: int) -> bool:
    return kelvin not in NOT_MEASURED_K and kelvin - KELVIN_ZERO_C in PLAUSIBLE_C


def _log(
    read: Reader, *, sensors_c: tuple[int, ...], zero_c: int, notes: tuple[str, ...] = ()
) -> SmartLog:
    count = read.number
    return SmartLog(
        critical_warning=count("critical_warning", ("critical_warning",)),
        temperature_c=_temperature(read, zero_c),
        sensors_c=sensors_c,
        spare_percent=count("spare_percent", ("avail_spare", "available_spare")),
        used_percent=count("used_percent", ("percent_used", "percentage_used")),
        read_bytes=_units(read, "read_bytes", "data_units_read"),
        written_bytes=_units(read, "written_bytes", "data_units_written"),
        host_reads=count("host_reads", ("host_read_commands", "host_reads")),
        host_writes=count("host_writes", ("host_write_commands", "host_writes")),
        power_cycles=count("power_cycles", ("power_cycles",)),
        power_on_hours=count("power_on_hours", ("power_on_hours",)),
        unsafe_shutdowns=count("unsafe_shutdowns", ("unsafe_shutdowns",)),
        media_errors=count("media_errors", ("media_errors",)),
        error_log_entries=count("error_log_entries", ("num_err_log_entries",)),
        warning_temperature_min=count("warning_temperature_min", ("warning_temp_time",)),
        critical_temperature_min=count("critical_temperature_min", ("critical_comp_time",)),
        thermal_transitions=_both(read, "thermal_transitions", "trans_count"),
        throttled_s=_both(read, "throttled_s", "total_time"),
        unknown=read.unknown,
        notes=notes,
    )


def _temperature(read: Reader, zero_c: int) -> int | None:
    told = read.number("temperature_c", ("temperature",))
    if told is None:
        return None
    if told in NOT_MEASURED_K or told - zero_c not in PLAUSIBLE_C:
        read.not_known("temperature_c", f"the drive tells {told}, which is no measurement")
        return None
    return told - zero_c


def _units(read: Reader, field: str, key: str) -> int | None:
    units = read.number(field, (key,))
    return None if units is None else units * DATA_UNIT_BYTES


def _both(read: Reader, field: str, ending: str) -> int | None:
    """Return the sum over both throttled states."""
    parts = [read.number(field, (f"thm_temp{state}_{ending}",)) for state in (1, 2)]
    return None if None in parts else sum(part for part in parts if part is not None)
