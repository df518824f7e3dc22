"""Checks of what the device saw against what fio says it moved, and of what was read.  Pure."""

from collections.abc import Iterator

from kvbench.fio.model import FioDirection, FioJob
from kvbench.fio.verify_messages import is_verify_line
from kvbench.host.model import DeviceCounters
from kvbench.measure.evidence import Evidence, StreamRows
from kvbench.measure.model import Finding, IoDirection
from kvbench.units import MIB, SECTOR_BYTES, format_size

# Other processes only add to the counters, and so does the ramp, whose bytes fio does not count.
DEVICE_SHARE_MIN = 0.9
# What is more than the cell explains was done by somebody else.  Seen on an idle machine: up to
# 1.1 of the expected bytes; journals and logs add a few hundred KiB.
FOREIGN_SHARE = 1.3
FOREIGN_BYTES_MIN = 8 * MIB
TAIL_SHARE_MIN = 0.5  # of the measured time; counts of less than that say little of the whole
READ_AHEAD = 2  # the kernel reads up to twice of what a buffered stream asks for
PAGE_BYTES = 4096  # the least that the page cache reads and writes
PAST: dict[IoDirection, str] = {"read": "read", "write": "written", "trim": "trimmed"}


def page_cache(evidence: Evidence) -> Iterator[Finding]:
    """Without O_DIRECT the page cache is measured, not the device."""
    if not evidence.measures_target:
        return
    if not evidence.cell.direct:
        text = "the page cache was used (no O_DIRECT), so this is not the speed of the device"
        yield Finding(check="page-cache", severity="doubt", text=text)
        return
    for rows in evidence.streams:
        if rows.stream.buffered:
            yield from _from_cache(evidence, rows)


def _from_cache(evidence: Evidence, rows: StreamRows) -> Iterator[Finding]:
    """A stream that goes through the page cache by intent says how much came out of it.

    What the direct streams beside it moved never was in the cache, so it is taken away from what
    the device saw.  Buffered streams of one direction share the rest: nobody can tell them apart.
    """
    record = evidence.record
    if record.before is None or record.after is None:
        text = "it went through the page cache, and no counters of the device tell its share"
        yield Finding(check="page-cache", severity="doubt", text=text, stream=rows.stream.name)
        return
    seen_bytes = _seen_bytes(record.before, record.after)
    for direction in rows.directions:
        if direction not in seen_bytes:
            continue
        direct_bytes = _moved_bytes(evidence, direction, buffered=False) * with_ramp(evidence)
        moved = round(_moved_bytes(evidence, direction, buffered=True) * with_ramp(evidence))
        seen = max(0, round(seen_bytes[direction] - direct_bytes))
        if seen < DEVICE_SHARE_MIN * moved:
            text = (
                f"of about {format_size(moved)} that were {PAST[direction]} the device saw "
                f"{format_size(seen)}; the rest was the page cache's"
            )
            yield Finding(check="page-cache", severity="doubt", text=text, stream=rows.stream.name)


def never_written(evidence: Evidence) -> Iterator[Finding]:
    """Reads are of data that was written; reads of nothing never reach the flash."""
    # what is checked by its header is there
    reads = any(rows.stream.reads and not rows.stream.once for rows in evidence.streams)
    if evidence.measures_target and reads and evidence.written.state == "unproven":
        text = f"nobody proved that what is read was ever written: {evidence.written.reason}"
        yield Finding(check="never-written", severity="doubt", text=text)


def device_bytes(evidence: Evidence) -> Iterator[Finding]:
    """With O_DIRECT the device saw at least the bytes that fio moved."""
    record = evidence.record
    if not evidence.measures_target or not evidence.cell.direct:
        return
    if record.before is not None and record.after is None:
        text = "the device went away while the cell ran: the kernel counts for it no more"
        yield Finding(check="device-gone", severity="invalid", text=text)
        return
    if record.device is None or record.before is None or record.after is None:
        text = "no counters of the device, so whether the I/O reached it cannot be checked"
        yield Finding(check="device-counters", severity="note", text=text)
        return
    for direction, seen_bytes in _seen_bytes(record.before, record.after).items():
        moved = _moved_bytes(evidence, direction, buffered=False)
        if seen_bytes >= DEVICE_SHARE_MIN * moved:
            continue
        text = (
            f"fio {'read' if direction == 'read' else 'wrote'} {format_size(moved)}, "
            f"but the device {record.device} saw {format_size(max(0, seen_bytes))}"
        )
        if direction == "read":
            yield Finding(
                check="never-written",
                severity="invalid",
                text=f"{text}: never-written data, or a cache answered",
            )
        else:
            yield Finding(check="device-counters", severity="invalid", text=text)


def foreign_io(evidence: Evidence) -> Iterator[Finding]:
    """Nobody else used the device meanwhile: what the counters saw is about what fio moved.

    Also without O_DIRECT: the page cache can only make the device see less, but for what the
    kernel reads ahead of what was asked for.  fio does not count what its ramp moves.  Where the
    device was looked at between the ramp and the end, only what it counted since then is held
    against fio's bytes; else the ramp is taken to be as quick as what followed, and the finding
    says that it may have been quicker.
    """
    record = evidence.record
    if not evidence.measures_target or record.before is None or record.after is None:
        return
    tail = _tail(evidence)
    before, share = tail or (record.before, with_ramp(evidence))
    unknown_ramp = tail is None and evidence.cell.timing.ramp_s > 0
    for direction, foreign in _unexplained(evidence, before, record.after, share).items():
        moved = _moved_bytes(evidence, direction, buffered=False)
        if unknown_ramp:
            what = f"something else may have used the device {record.device}"
            rest = (
                "; or the ramp, whose bytes fio does not count, was much quicker than what followed"
            )
        else:
            what, rest = f"something else used the device {record.device}", ""
        text = (
            f"{what}: about {format_size(round(foreign))} of {direction}s beside the "
            f"{format_size(moved)} that fio counted{rest}"
        )
        yield Finding(check="foreign-io", severity="doubt", text=text)


def quick_ramp(evidence: Evidence) -> bool:
    """Return whether the ramp moved so much that the counters over both tell nothing of a cell."""
    before, after = evidence.record.before, evidence.record.after
    if before is None or after is None:
        return False
    return bool(_unexplained(evidence, before, after, with_ramp(evidence)))


def _unexplained(
    evidence: Evidence, before: DeviceCounters, after: DeviceCounters, share: float
) -> dict[IoDirection, float]:
    """Return the bytes beyond what ``share`` times fio's bytes explain, where they are many."""
    found: dict[IoDirection, float] = {}
    for direction, seen_bytes in _seen_bytes(before, after).items():
        moved = _moved_bytes(evidence, direction, buffered=False)
        expected = (moved + _through_cache_bytes_max(evidence, direction)) * share
        foreign = seen_bytes - expected
        if seen_bytes > FOREIGN_SHARE * expected and foreign > FOREIGN_BYTES_MIN:
            found[direction] = foreign
    return found


def _tail(evidence: Evidence) -> tuple[DeviceCounters, float] | None:
    """Return what the device had counted when the ramp surely was over, and which share followed.

    The launch takes longer than ramp and runtime; nobody knows how much of that lies before the
    ramp, so the ramp surely is over when all of it has gone by as well.  The share is the largest
    that can be left of the measured time.  None without a ramp, and where no sample of the drive
    comes soon enough after it.
    """
    timing, health = evidence.cell.timing, evidence.record.health
    if timing.ramp_s <= 0 or health is None:
        return None
    end_s = max(evidence.record.wall_s, timing.ramp_s + timing.runtime_s)
    over_s = end_s - timing.runtime_s
    for sample in health.samples:
        share = min(1.0, (end_s - sample.at_s) / timing.runtime_s)
        if sample.counters is not None and sample.at_s >= over_s and share >= TAIL_SHARE_MIN:
            return sample.counters, share
    return None


def _seen_bytes(before: DeviceCounters, after: DeviceCounters) -> dict[IoDirection, int]:
    return {
        "read": (after.read_sectors - before.read_sectors) * SECTOR_BYTES,
        "write": (after.write_sectors - before.write_sectors) * SECTOR_BYTES,
    }


def with_ramp(evidence: Evidence) -> float:
    """Return by what the counters of the device exceed fio's: these leave out the ramp."""
    timing = evidence.cell.timing
    return (timing.ramp_s + timing.runtime_s) / timing.runtime_s


def _moved_bytes(evidence: Evidence, direction: IoDirection, *, buffered: bool) -> int:
    """Return the bytes of the streams that are buffered by intent, or of the others."""
    return sum(row.io_bytes for row in _rows(evidence, direction, buffered=buffered))


def _through_cache_bytes_max(evidence: Evidence, direction: IoDirection) -> int:
    """Return what the device may see for the buffered streams: whole pages, and read-ahead."""
    factor = READ_AHEAD if direction == "read" else 1
    rows = _rows(evidence, direction, buffered=True)
    return sum(factor * max(row.io_bytes, row.total_ios * PAGE_BYTES) for row in rows)


def _rows(evidence: Evidence, direction: IoDirection, *, buffered: bool) -> list[FioDirection]:
    return [
        row
        for rows in evidence.streams
        if rows.stream.buffered == buffered
        for _, name, row in (*rows.rows(), *_read_back(rows))
        if name == direction
    ]


def _read_back(rows: StreamRows) -> list[tuple[FioJob, IoDirection, FioDirection]]:
    """Return what a stream that writes read back to check it."""
    if not (rows.stream.once and rows.stream.writes):
        return []
    return [(job, "read", job.read) for job in rows.jobs if job.read is not None]


def other_devices(evidence: Evidence) -> Iterator[Finding]:
    """The counters are of the device that fio watched."""
    device = evidence.record.device
    names = [disk.name for disk in evidence.result.disk_util]
    if evidence.measures_target and device and names and device not in names:
        text = f"fio reports device {', '.join(names)}, the counters here are of {device}"
        yield Finding(check="device", severity="note", text=text)


def said(evidence: Evidence) -> Iterator[Finding]:
    """What fio said beside its JSON, short of an error."""
    for line in evidence.result.diagnostics:
        if line.level != "error" and not is_verify_line(line.text):
            yield Finding(check="fio-said", severity="note", text=f"fio said: {line.text}")


def latency_section(evidence: Evidence) -> Iterator[Finding]:
    """Percentiles are of the whole latency, from submission on."""
    for rows in evidence.streams:
        sections = {m.section for d in rows.directions if (m := rows.merged(d)) is not None}
        if "clat" in sections:
            text = "percentiles are of completion latency: fio gave no histogram of the whole"
            yield Finding(
                check="latency-section", severity="note", text=text, stream=rows.stream.name
            )
