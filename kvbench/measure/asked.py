"""Checks of what was asked for against what fio did.  Pure; each yields findings.

Thresholds come from real runs of fio 3.33 on ext4 and tmpfs here (512 B to 2 MiB, depth 1 to 64,
1 to 4 jobs); the comment at each says what was seen.
"""

from collections.abc import Iterator
from datetime import datetime
from math import sqrt

from kvbench.fio.sections import stream_engine
from kvbench.measure.evidence import Evidence, StreamRows
from kvbench.measure.model import Finding, Severity
from kvbench.units import MS_PER_S, NS_PER_S, format_count, format_size

RUNTIME_SHARE = 0.02
RUNTIME_SLACK_S = 1.0
RUNTIME_SHARE_SHORT = 0.25
DEPTH_SHARE_MIN = 0.5  # seen: 0.90 to 1.08 of the depth asked for in every job shape; psync 1/N
SUBMISSION_SHARE_MAX = 0.9  # seen: up to 0.80 for honest direct I/O, 0.94 to 0.97 when blocked
FULL_QUEUE_PERCENT_MAX = 1.0
HELD_BACK_MAX = 0.1  # I/Os of a paced submitter in flight; each holds back the next arrival
RATE_SHARE = 0.05
BUSY_PERCENT_MIN = 90.0
CLOCK_SLACK_S = 5.0  # fio's stamp is taken by another clock reading, and a VM's clock is stepped
DEEPEST_LEVEL = 64  # fio's levels end with ">=64"


def _finding(check: str, severity: Severity, text: str, stream: str | None = None) -> Finding:
    return Finding(check=check, severity=severity, text=text, stream=stream)


def runtime_tolerance_s(asked_s: float) -> float:
    """Return by how much a runtime may differ from ``asked_s``.

    Two percent or one second, whichever is larger, is right for runs of many seconds.  A second
    would let a one-second cell end at once, so short cells are held to a quarter of their length.
    """
    return max(RUNTIME_SHARE * asked_s, min(RUNTIME_SLACK_S, RUNTIME_SHARE_SHORT * asked_s))


def runtime(evidence: Evidence) -> Iterator[Finding]:
    """Each job ran for the time asked for; at the end it may wait for its slowest I/O."""
    if evidence.cell.once:
        return  # it took as long as every block takes
    asked_s = evidence.cell.timing.runtime_s
    slack_s = runtime_tolerance_s(asked_s)
    for rows in evidence.streams:
        for _, _, row in rows.rows():
            got_s = row.runtime_ms / MS_PER_S
            timed = row.lat or row.clat
            waits_s = min(timed.max_ns / NS_PER_S, asked_s) if timed else 0.0
            if rows.stream.rate_iops:  # a paced job wakes up for its next arrival, then ends
                waits_s += 4 * rows.stream.jobs / rows.stream.rate_iops
            waits_s += rows.stream.pause_s or 0.0  # a pause is not cut short
            if not asked_s - slack_s <= got_s <= asked_s + slack_s + waits_s:
                text = f"asked for {asked_s:g} s, ran {got_s:g} s (allowed: {slack_s:.2g} s off)"
                yield _finding("runtime", "invalid", text, rows.stream.name)
                break


def direction(evidence: Evidence) -> Iterator[Finding]:
    """No I/O in a direction that was not asked for: such a row is not of this stream."""
    for rows in evidence.streams:
        for job in rows.jobs:
            allowed = (*rows.directions, "read") if rows.stream.once else rows.directions
            wrong = [name for name in job.directions() if name not in allowed]
            if wrong:
                asked = " and ".join(rows.directions)
                text = f"asked for {asked} only, fio reports {' and '.join(wrong)} as well"
                yield _finding("direction", "invalid", text, rows.stream.name)
                break


def engine(evidence: Evidence) -> Iterator[Finding]:
    """The I/O engine that ran, as far as fio tells."""
    for rows in evidence.streams:
        asked = stream_engine(rows.stream, evidence.cell)
        seen = {job.options.get("ioengine", asked) for job in rows.jobs} - {asked}
        if seen:
            text = f"asked for engine {asked}, fio used {', '.join(sorted(seen))}"
            yield _finding("engine", "invalid", text, rows.stream.name)


def stale(evidence: Evidence) -> Iterator[Finding]:
    """The time stamp lies within this launch; else the output is of another one."""
    stamp_ms = evidence.result.timestamp_ms
    if stamp_ms is None:
        text = "fio's output has no time stamp, so it cannot be shown to be of this launch"
        yield _finding("stale", "invalid", text)
        return
    try:
        started_s = datetime.fromisoformat(evidence.record.started_at).timestamp()
    except ValueError:
        text = f"the start {evidence.record.started_at!r} of the launch is not a time"
        yield _finding("stale", "invalid", text)
        return
    after_s = stamp_ms / MS_PER_S - started_s
    if not -CLOCK_SLACK_S <= after_s <= evidence.record.wall_s + CLOCK_SLACK_S:
        text = (
            f"fio's output is stamped {after_s:+.0f} s from the start of a launch "
            f"that took {evidence.record.wall_s:.1f} s: it is of another launch"
        )
        yield _finding("stale", "invalid", text)


def block_size(evidence: Evidence) -> Iterator[Finding]:
    """The bytes moved fit the block sizes asked for."""
    for rows in evidence.streams:
        stream = rows.stream
        for job, _, row in rows.rows():
            if job.error or job.total_err:
                continue  # failed I/Os have no bytes; said by failures.no_errors
            timed = row.lat or row.clat
            # fio counts I/Os when issued and bytes when done, and an I/O that ends the ramp may
            # count in one and not in the other: up to a queue's worth apart.
            counts = (row.total_ios, timed.count if timed else row.total_ios)
            low = (min(counts) - stream.queue_depth) * stream.min_block_bytes
            high = (max(counts) + stream.queue_depth) * stream.max_block_bytes
            if not low <= row.io_bytes <= high:
                text = (
                    f"{row.total_ios} I/Os of {format_size(stream.min_block_bytes)} to "
                    f"{format_size(stream.max_block_bytes)} cannot be {row.io_bytes} bytes"
                )
                yield _finding("block-size", "invalid", text, stream.name)
                break


def depth(evidence: Evidence) -> Iterator[Finding]:
    """A closed loop keeps its queue as full as asked for."""
    for rows in evidence.streams:
        stream = rows.stream
        paused = stream.burst_ios is not None
        if stream.queue_depth == 1 or stream.rate_iops or paused or not evidence.measures_target:
            continue
        alone = [job.depth_percent.get("1", 0.0) for job in rows.jobs]
        got = _mean_in_flight(rows)
        # Who fills and sums up every block may not get round to the next before one is done.
        severity: Severity = "doubt" if stream.once else "invalid"
        # An fsync empties the queue by design, so its mean depth says nothing of the engine.
        by_design = stream.write_policy == "fsync"
        single = [share for share in alone if share >= 99.0]
        if single:
            which = "" if len(single) == len(alone) else f" in {len(single)} of {len(alone)} jobs"
            text = (
                f"asked for depth {stream.queue_depth}, "
                f"{min(single):.0f} % of the I/Os were alone in the queue{which}"
            )
            yield _finding("depth", severity, text, stream.name)
        elif got is None and rows.rows():
            text = (
                f"asked for {rows.in_flight_max} I/Os in flight, "
                "how many were cannot be told: fio timed not every job"
            )
            yield _finding("depth", "doubt", text, stream.name)
        elif got is not None and got < DEPTH_SHARE_MIN * rows.in_flight_max and not by_design:
            text = (
                f"asked for {rows.in_flight_max} I/Os in flight, "
                f"{got:.3g} were (rate x mean latency)"
            )
            yield _finding("depth", severity, text, stream.name)


def submission(evidence: Evidence) -> Iterator[Finding]:
    """The jobs do not spend all their time in submission, one I/O after the other.

    fio counts an I/O as in flight while its submission blocks, so a full queue proves nothing.
    """
    for rows in evidence.streams:
        stream = rows.stream
        # In a batch the wait for the batch to fill counts as submission: seen 5 to 19 x jobs.
        batched = stream.barrier or stream.shape == "throughput"
        if stream.queue_depth == 1 or batched or not evidence.measures_target:
            continue
        share = 0.0
        for _, _, row in rows.rows():
            if row.slat and row.runtime_ms > 0:
                share += row.slat.mean_ns * row.slat.count / NS_PER_S / (row.runtime_ms / MS_PER_S)
        share /= stream.jobs
        if share > SUBMISSION_SHARE_MAX:
            # io_uring serves a page-cache hit during submission; such a run is doubted as a whole.
            cached = evidence.cell.engine == "io_uring" and not evidence.cell.direct
            text = (
                f"asked for depth {stream.queue_depth}, but {share:.0%} of the time went into "
                "submitting, so I/Os ran one after the other"
            )
            # An open loop near the peak spends its time submitting too, and its latency holds that:
            # whether it kept up is the business of `overloaded`.
            # So does a stream that is checked: it fills and sums up every block before it writes.
            lenient = cached or stream.rate_iops or stream.once
            severity: Severity = "doubt" if lenient else "invalid"
            yield _finding("submission-bound", severity, text, stream.name)


def busy_submitters(evidence: Evidence) -> Iterator[Finding]:
    """The submitters of a closed loop had time left to wait for the device.

    Streams that poll for completions are busy by design, so nothing can be said of them.
    """
    for rows in evidence.streams:
        stream = rows.stream
        polls = stream.shape == "throughput" and stream.queue_depth > 1
        # A copy out of the page cache is CPU time by design.
        if (
            polls
            or stream.buffered
            or stream.trims
            or stream.rate_iops
            or not evidence.measures_target
        ):
            continue
        busy = [
            (job.user_cpu_percent or 0.0) + (job.system_cpu_percent or 0.0) for job in rows.jobs
        ]
        if busy and sum(busy) / len(busy) >= BUSY_PERCENT_MIN:
            text = (
                f"host-bound: the submitters used {sum(busy) / len(busy):.0f} % of a core each, "
                "so the rate may be this host's"
            )
            yield _finding("host-bound", "doubt", text, stream.name)


def overloaded(evidence: Evidence) -> Iterator[Finding]:
    """An open loop achieved the rate that was offered, and its queue was never full."""
    for rows in evidence.streams:
        stream = rows.stream
        if not stream.rate_iops:
            continue
        achieved = sum(m.iops for d in rows.directions if (m := rows.merged(d)) is not None)
        expected_ios = max(1.0, stream.rate_iops * evidence.cell.timing.runtime_s)
        # Four standard deviations of a Poisson count, where that is wider.
        slack = max(RATE_SHARE, 4 / sqrt(expected_ios))
        offered = format_count(stream.rate_iops)
        full = _full_queue_percent(rows, achieved)
        if achieved < stream.rate_iops * (1 - slack):
            text = f"overloaded: offered {offered}/s, achieved {format_count(achieved)}/s"
            yield _finding("overloaded", "doubt", text, stream.name)
        elif full > FULL_QUEUE_PERCENT_MAX:
            text = (
                f"overloaded: offered {offered}/s, achieved {format_count(achieved)}/s, "
                f"and the queue of {stream.queue_depth} was full for {full:.1f} % of the I/Os"
            )
            yield _finding("overloaded", "doubt", text, stream.name)
        elif achieved > stream.rate_iops * (1 + slack):
            text = f"offered {offered}/s, but fio issued {format_count(achieved)}/s"
            yield _finding("rate", "doubt", text, stream.name)


def held_back(evidence: Evidence) -> Iterator[Finding]:
    """Arrivals at random do not wait for what is in flight; those of fio's jobs do.

    fio 3.33 lets all I/Os of a paced job end before it sleeps until the next arrival (its inline
    submission; the other kind does not work with io_uring).  The wait is in no latency, so the
    tail is too short by what was held back.  The mean number in flight per job is about the share
    of the arrivals that find one.
    """
    for rows in evidence.streams:
        stream = rows.stream
        in_flight = _mean_in_flight(rows)
        if not stream.rate_iops or in_flight is None or stream.trims:
            continue
        share = min(1.0, in_flight / stream.jobs)
        if share > HELD_BACK_MAX:
            text = (
                f"held back: about {share:.0%} of the arrivals waited for an I/O of their "
                "submitter that was in flight, and that wait is in no latency: the tail is longer "
                "than shown (more jobs of a lower rate each come closer)"
            )
            yield _finding("held-back", "doubt", text, stream.name)


def _mean_in_flight(rows: StreamRows) -> float | None:
    """Return the mean I/Os in flight over all directions, None when a latency is unknown."""
    found = [m for d in rows.directions if (m := rows.merged(d)) is not None]
    if not found:
        return None
    parts = [m.iops * m.mean_ns / NS_PER_S for m in found if m.mean_ns is not None]
    return sum(parts) if len(parts) == len(found) else None


def _full_queue_percent(rows: StreamRows, achieved: float) -> float:
    """Return the share of the I/Os that filled the queue, in percent.

    fio tells depths in powers of two, so for another depth the level just below it counts as
    full.  A queue of one is full while an I/O is under way.  Above 64 fio does not tell levels;
    then the queue counts as full when half of it is used on average.
    """
    stream = rows.stream
    if stream.queue_depth == 1:
        mean = _mean_in_flight(rows)
        return 0.0 if mean is None or not achieved else 100 * mean / stream.jobs
    if stream.queue_depth > DEEPEST_LEVEL:
        mean = _mean_in_flight(rows)
        return 100.0 if mean is not None and mean > rows.in_flight_max / 2 else 0.0
    level = 1 << (stream.queue_depth.bit_length() - 1)
    name = f">={level}" if level == DEEPEST_LEVEL else str(level)
    return max((job.depth_percent.get(name, 0.0) for job in rows.jobs), default=0.0)
