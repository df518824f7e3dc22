"""Checks that fio's numbers agree with each other.  Pure; each yields findings.

A result that breaks one of these was misread, or fio is wrong about it; either way nothing may be
concluded from it.
"""

from collections.abc import Iterator

from kvbench.fio.model import FioDirection, LatencyStats
from kvbench.measure.evidence import Evidence, per_second
from kvbench.measure.model import Finding
from kvbench.units import MS_PER_S, NS_PER_S, format_count, format_time

RATE_TOLERANCE = 0.01
CLAT_TOLERANCE = 0.05
CLAT_SLACK_NS = 1000.0  # two clock readings lie between the sections
LITTLE_TOLERANCE = 1.1
LATENCY_SLACK_S = 1.0
_ROUNDING = 1.0  # fio writes whole bytes per second and I/Os


def _invalid(check: str, text: str, stream: str) -> Finding:
    return Finding(check=check, severity="invalid", text=text, stream=stream)


def whole_ios(evidence: Evidence) -> Iterator[Finding]:
    """No I/O came back short, and none was dropped."""
    for rows in evidence.streams:
        short = sum(row.short_ios for _, _, row in rows.rows())
        dropped = sum(row.drop_ios for _, _, row in rows.rows())
        if short or dropped:
            text = f"{short} I/Os were short and {dropped} were dropped, asked for was none"
            yield _invalid("whole-ios", text, rows.stream.name)


def rates(evidence: Evidence) -> Iterator[Finding]:
    """Bytes and I/Os over the runtime are the rates that fio states."""
    for rows in evidence.streams:
        for _, name, row in rows.rows():
            bandwidth = per_second(row.io_bytes, row.runtime_ms)
            if _differ(bandwidth, row.bandwidth_bytes_per_s):
                text = (
                    f"{name}: bytes over runtime give {format_count(bandwidth)}B/s, "
                    f"fio states {format_count(row.bandwidth_bytes_per_s)}B/s"
                )
                yield _invalid("bandwidth", text, rows.stream.name)
            iops = per_second(row.total_ios, row.runtime_ms)
            if _differ(iops, row.iops):
                text = (
                    f"{name}: I/Os over runtime give {format_count(iops)}/s, "
                    f"fio states {format_count(row.iops)}/s"
                )
                yield _invalid("iops", text, rows.stream.name)


def counts(evidence: Evidence) -> Iterator[Finding]:
    """The histogram holds as many I/Os as fio timed, and fio timed those that it did."""
    for rows in evidence.streams:
        for job, _, row in rows.rows():
            for section, stats in _sections(row):
                binned = None if stats.bin_counts is None else int(stats.bin_counts.sum())
                if binned is not None and binned != stats.count:
                    text = f"the bins of {section} hold {binned} I/Os, fio timed {stats.count}"
                    yield _invalid("bins", text, rows.stream.name)
                # Seen: after a ramp exactly the I/Os in flight at its end, depth - 1, are timed
                # and not counted; with fsync a few less.
                apart = abs(stats.count + job.total_err - row.total_ios)
                if apart > rows.stream.queue_depth:
                    text = (
                        f"{section} has {stats.count} samples for {row.total_ios} I/Os, "
                        f"of which {job.total_err} failed"
                    )
                    yield _invalid("samples", text, rows.stream.name)


def completion_within_total(evidence: Evidence) -> Iterator[Finding]:
    """Completion latency is a part of the whole latency."""
    if not evidence.measures_target:
        return  # fio's null engine completes at once and times that wrongly; only its rate is used
    for rows in evidence.streams:
        for _, _, row in rows.rows():
            if row.clat is None or row.lat is None:
                continue
            if row.clat.mean_ns > row.lat.mean_ns * (1 + CLAT_TOLERANCE) + CLAT_SLACK_NS:
                text = (
                    f"completion latency {format_time(row.clat.mean_ns / NS_PER_S)} is longer "
                    f"than the whole latency {format_time(row.lat.mean_ns / NS_PER_S)} "
                    "(fio before 3.36 with sqthread_poll does this)"
                )
                yield _invalid("clat-over-lat", text, rows.stream.name)
                break


def latency_within_run(evidence: Evidence) -> Iterator[Finding]:
    """No I/O took longer than the run."""
    if not evidence.measures_target:
        return
    ramp_s = evidence.cell.timing.ramp_s
    for rows in evidence.streams:
        for _, _, row in rows.rows():
            ran_s = row.runtime_ms / MS_PER_S + ramp_s
            slowest_s = max((s.max_ns for _, s in _sections(row)), default=0.0) / NS_PER_S
            if slowest_s > ran_s + LATENCY_SLACK_S:
                text = (
                    f"the slowest I/O took {format_time(slowest_s)}, "
                    f"longer than the whole run of {format_time(ran_s)}"
                )
                yield _invalid("latency-over-runtime", text, rows.stream.name)
                break


def littles_law(evidence: Evidence) -> Iterator[Finding]:
    """Rate x mean latency is not more than the I/Os that may be in flight.

    I/Os under way when measuring began bring latency from before it: at most a full queue of the
    slowest I/O, which is allowed for.
    """
    if not evidence.measures_target:
        return
    for rows in evidence.streams:
        for section in ("lat", "clat"):
            in_flight = slowest_share = 0.0
            for _, _, row in rows.rows():
                stats = dict(_sections(row)).get(section)
                if stats is None or row.runtime_ms <= 0:
                    continue
                runtime_ns = row.runtime_ms / MS_PER_S * NS_PER_S
                in_flight += stats.count * stats.mean_ns / runtime_ns
                # Longer than the run is the business of latency_within_run.
                slowest_share = max(slowest_share, min(1.0, stats.max_ns / runtime_ns))
            allowed = LITTLE_TOLERANCE * rows.in_flight_max * (1 + slowest_share)
            if in_flight > allowed:
                text = (
                    f"rate x mean {section} makes {format_count(in_flight)} I/Os in flight, "
                    f"asked for were {rows.in_flight_max}"
                )
                yield _invalid("little-law", text, rows.stream.name)
                break


def _sections(row: FioDirection) -> list[tuple[str, LatencyStats]]:
    return [(name, s) for name, s in (("lat", row.lat), ("clat", row.clat)) if s is not None]


def _differ(computed: float, stated: float) -> bool:
    return abs(computed - stated) > RATE_TOLERANCE * max(computed, stated) + _ROUNDING
