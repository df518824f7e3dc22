"""A drive's own counters before and after a run -> a table of those that say something.  Pure."""

from collections.abc import Iterator

from kvbench.host.health_model import DriveHealth, SessionHealth
from kvbench.host.ocp import LatencyMonitor
from kvbench.report.model import PlainTable
from kvbench.report.words import DASH
from kvbench.units import format_size

_Told = tuple[str, str, int | None, int | None]  # name, kind, before, after
_SMART = (  # field, name, kind
    ("critical_warning", "critical warnings (bits)", "count"),
    ("temperature_c", "temperature", "celsius"),
    ("spare_percent", "spare left", "percent"),
    ("used_percent", "endurance used", "percent"),
    ("read_bytes", "read by the host", "bytes"),
    ("written_bytes", "written by the host", "bytes"),
    ("host_reads", "read commands", "count"),
    ("host_writes", "write commands", "count"),
    ("media_errors", "media errors", "count"),
    ("error_log_entries", "entries of the error log", "count"),
    ("unsafe_shutdowns", "unsafe shutdowns", "count"),
    ("power_cycles", "power cycles", "count"),
    ("power_on_hours", "hours under power", "count"),
    ("warning_temperature_min", "minutes over the warning temperature", "count"),
    ("critical_temperature_min", "minutes over the critical temperature", "count"),
    ("thermal_transitions", "thermal transitions", "count"),
    ("throttled_s", "seconds throttled", "count"),
)
_EXTENDED = (
    ("media_written_bytes", "written to the medium", "bytes"),
    ("media_read_bytes", "read from the medium", "bytes"),
    ("bad_user_blocks", "bad user blocks", "count"),
    ("uncorrectable_reads", "uncorrectable reads", "count"),
    ("soft_ecc_errors", "soft ECC errors", "count"),
    ("throttling_events", "throttling events", "count"),
    ("throttling_now", "throttling now (level)", "count"),
    ("pcie_correctable_errors", "PCIe errors, corrected", "count"),
    ("link_retrainings", "link retrainings", "count"),
    ("unaligned_ios", "unaligned I/Os", "count"),
    ("free_blocks_percent", "free blocks", "percent"),
)


def counters_table(sessions: tuple[SessionHealth, ...]) -> tuple[PlainTable | None, list[str]]:
    """Return the drive's own counters before and after, and a sentence of those that stay zero."""
    before, after = sessions[0].before, sessions[-1].after
    told = [
        *_fields(before, after, "smart", _SMART),
        *_fields(before, after, "extended", _EXTENDED),
    ]
    slow = list(_slow(before.latency_monitor, after.latency_monitor if after else None))
    zero = [name for name, _, first, last in told if first == last == 0]
    told += slow
    if slow and not any(last for *_, last in slow) and after and after.latency_monitor:
        zero.append(f"commands of {after.latency_monitor.thresholds_ms[0]} ms or more")
    rows = tuple(_row(*one) for one in told if one[2:] != (0, 0))
    if not told:
        return None, []
    table = PlainTable(
        caption="The drive's own counters", head=("", "Before", "After", "Change"), rows=rows
    )
    return table, [f"Zero before and after: {', '.join(zero)}."] if zero else []


def _fields(
    before: DriveHealth,
    after: DriveHealth | None,
    page: str,
    fields: tuple[tuple[str, str, str], ...],
) -> Iterator[_Told]:
    first, last = getattr(before, page), getattr(after, page, None)
    for field, name, kind in fields:
        values = [getattr(told, field, None) for told in (first, last)]
        if any(value is not None for value in values):
            yield name, kind, values[0], values[1]


def _slow(before: LatencyMonitor | None, after: LatencyMonitor | None) -> Iterator[_Told]:
    """Yield how many commands the drive itself found slow, by its thresholds.

    A bucket counts what took its own threshold or more and less than that of the next; the last
    one has no upper end (OCP Datacenter NVMe SSD, "Active Bucket Thresholds").
    """
    if before is None or after is None or not after.enabled:
        return
    ends = [f" to {end}" for end in after.thresholds_ms[1:]]
    for place, threshold in enumerate(after.thresholds_ms):
        end = ends[place] if place < len(ends) else ""
        for kind in ("reads", "writes"):
            counts = getattr(before, kind), getattr(after, kind)
            if any(place >= len(count) for count in counts):
                continue  # an archive that nobody here wrote
            first, last = counts[0][place], counts[1][place]
            yield f"{kind} of {threshold}{end} ms{'' if end else ' or more'}", "count", first, last


def _row(name: str, kind: str, first: int | None, last: int | None) -> tuple[str, ...]:
    change = DASH
    if first is not None and last is not None:
        change = "none" if first == last else _shown(last - first, kind, signed=True)
    return name, _shown(first, kind), _shown(last, kind), change


def _shown(value: int | None, kind: str, *, signed: bool = False) -> str:
    if value is None:
        return "not told"
    sign = ("+" if value > 0 else "-") if signed else ""
    size = abs(value) if signed else value
    match kind:
        case "bytes":
            return f"{sign}{format_size(size)}"
        case "percent":
            return f"{sign}{size} %"
        case "celsius":
            return f"{sign}{size} C"
        case _:
            return f"{sign}{size:,}"
