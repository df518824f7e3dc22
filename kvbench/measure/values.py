"""Evidence of one cell -> its measurements and histograms, per stream and direction.  Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, cast

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from kvbench.host.model import ticks_between
from kvbench.measure.device import foreign_io, quick_ramp, with_ramp
from kvbench.measure.evidence import Evidence, Merged, StreamRows
from kvbench.measure.model import Finding, IoDirection, Measurement, StreamHistogram
from kvbench.measure.requests import Requests
from kvbench.measure.stall import stalls_ns
from kvbench.metrics import METRICS, Metric
from kvbench.stats import histogram
from kvbench.units import MS_PER_S, NS_PER_S, SECTOR_BYTES
from kvbench.workload.schema import Stream

# fio keeps latencies in 29 groups of 64 buckets (stat.h: FIO_IO_U_PLAT_GROUP_NR and _VAL).  The
# last bucket holds everything from 2^33 + 63 * 2^27 ns on and is labelled with its middle,
# 2^33 + 63.5 * 2^27 ns = 17.1 s; buckets that large are 0.8 % wide to either side.
FIO_LAST_BIN_NS = 2**33 + 63 * 2**27 + 2**26

NO_IO = "no I/O was done"
PER_IO_SLACK = 0.05  # of requests per I/O: as many requests as I/Os
TICKS_MS_MIN = 50  # fewer are too coarse for a mean

_PERCENTILE_METRICS: dict[str, tuple[Metric, ...]] = {
    what: tuple(
        metric
        for metric in METRICS.values()
        if metric.percentile is not None and metric.name.startswith(f"{what}_p")
    )
    for what in ("latency", "request", "step", "stall")
}


class CellValues(Struct, frozen=True, kw_only=True, eq=False):
    """What was measured in one cell."""

    measurements: tuple[Measurement, ...]
    histograms: tuple[StreamHistogram, ...]


class _Place(Struct, frozen=True, kw_only=True):
    """The stream and direction that a measurement is of, and the I/Os behind it."""

    stream: str
    direction: IoDirection
    io_count: int

    def measured(self, metric: str, value: float | None, reason: str = "") -> Measurement:
        return Measurement(
            stream=self.stream,
            direction=self.direction,
            metric=metric,
            value=value,
            io_count=self.io_count,
            reason=reason if value is None else "",
        )


def measure_values(
    evidence: Evidence, findings: Iterable[Finding], requests: Mapping[str, Requests]
) -> CellValues:
    """Return all measurements of a cell.

    Args:
        evidence: the cell's records.
        findings: those of the checks; an overloaded stream has no percentiles.
        requests: the requests of each barrier stream, by stream name.
    """
    overloaded = {f.stream: f.text for f in findings if f.check == "overloaded"}
    measurements: list[Measurement] = []
    histograms: list[StreamHistogram] = []
    for rows in evidence.streams:
        refusal = overloaded.get(rows.stream.name, "")
        for direction in rows.directions:
            merged = rows.merged(direction)
            if merged is None:
                place = _Place(stream=rows.stream.name, direction=direction, io_count=0)
                measurements.append(place.measured("iops", None, NO_IO))
                continue
            place = _Place(stream=rows.stream.name, direction=direction, io_count=merged.ios)
            measurements += _rates(place, merged)
            if not rows.stream.barrier:
                # Behind a barrier every I/O is reaped with its batch, so the latency of one I/O
                # is the batch's; the request metrics say it by its name.
                measurements += percentiles(
                    "latency", place.stream, direction, merged.bin_ns, merged.bin_counts,
                    refusal=refusal or merged.reason,
                )  # fmt: skip
                if merged.section:
                    bins = (merged.bin_ns, merged.bin_counts)
                    histograms.append(_histogram(place, "latency", *bins))
            if evidence.measures_target:  # a ceiling cell has no device
                measurements += _device(place, evidence, rows.stream, merged)
            if rows.stream.payload_bytes is not None:
                mean_bytes = merged.io_bytes / merged.ios if merged.ios else None
                value = None if mean_bytes is None else mean_bytes / rows.stream.payload_bytes
                measurements.append(place.measured("read_amplification", value, NO_IO))
            if direction == rows.directions[0]:
                measurements.append(_cpu(place, rows))
                if rows.stream.name in requests:
                    found = requests[rows.stream.name]
                    measurements += _requests(place, rows.stream, found, refusal)
                    histograms += _request_histograms(place, rows.stream, found)
    return CellValues(measurements=tuple(measurements), histograms=tuple(histograms))


def percentiles(
    what: str,
    stream: str,
    direction: IoDirection,
    value_ns: NDArray[np.float64],
    counts: NDArray[np.int64],
    *,
    refusal: str = "",
) -> list[Measurement]:
    """Return the percentiles of one histogram, each under the ten-beyond rule.

    Args:
        what: "latency", "request", "step" or "stall": the family of metrics.
        stream: the stream's name.
        direction: the direction.
        value_ns: shape (bins,), ascending.
        counts: shape (bins,).
        refusal: why no percentile may be shown at all, "" when they may.
    """
    n = histogram.total(counts)
    found = []
    for metric in _PERCENTILE_METRICS[what]:
        value, reason, censored = None, refusal, False
        if not reason and n < metric.min_ios:
            unit = {"latency": "I/Os", "step": "steps"}.get(what, "requests")
            reason = f"too few {unit}: {n:,} of {metric.min_ios:,} needed"
        if not reason and metric.percentile is not None:
            value_at = histogram.quantile(value_ns, counts, metric.percentile / 100)
            # Only fio's histogram has an end; request times are exact.
            censored = what == "latency" and value_at >= FIO_LAST_BIN_NS
            value = value_at / NS_PER_S
        found.append(
            Measurement(
                stream=stream,
                direction=direction,
                metric=metric.name,
                value=value,
                io_count=n,
                reason=reason,
                censored=censored,
            )
        )
    return found


def _rates(place: _Place, merged: Merged) -> Iterator[Measurement]:
    yield place.measured("iops", merged.iops)
    yield place.measured("bandwidth", merged.bandwidth_bytes_per_s)
    mean_s = None if merged.mean_ns is None else merged.mean_ns / NS_PER_S
    yield place.measured("latency_mean", mean_s, merged.reason or "not every job timed its I/Os")
    in_flight = None if mean_s is None else merged.iops * mean_s
    yield place.measured("depth_mean", in_flight, "it needs the mean latency")


def _cpu(place: _Place, rows: StreamRows) -> Measurement:
    """CPU time of all jobs over all I/Os of the stream, in both directions."""
    spent_s = 0.0
    for job in rows.jobs:
        if None in (job.user_cpu_percent, job.system_cpu_percent, job.job_runtime_ms):
            return place.measured("cpu_per_io", None, "fio did not tell its CPU time")
        percent = (job.user_cpu_percent or 0.0) + (job.system_cpu_percent or 0.0)
        spent_s += percent / 100 * (job.job_runtime_ms or 0.0) / MS_PER_S
    ios = sum(m.ios for d in rows.directions if (m := rows.merged(d)) is not None)
    return place.measured("cpu_per_io", spent_s / ios if ios else None, NO_IO)


def _device(
    place: _Place, evidence: Evidence, stream: Stream, merged: Merged
) -> Iterator[Measurement]:
    """What the device saw of the stream's I/Os.

    Ratios of sizes, not of counts: the counters also saw the ramp, whose I/Os fio does not count.
    """
    if stream.trims:
        return
    seen, reason = _seen(place, evidence, merged)
    names = ("device_requests_per_io", "device_request_bytes")
    values: tuple[float | None, ...] = (None, None)
    none = reason or "the device saw no request"
    if seen is not None and all(seen):
        request_bytes = seen[1] / seen[0]
        values = (merged.io_bytes / merged.ios / request_bytes, request_bytes)
    for name, value in zip(names, values, strict=True):
        yield place.measured(name, value, none)
    yield from _split(place, evidence, stream, merged, seen, reason)
    if stream.buffered:
        moved = merged.io_bytes * with_ramp(evidence)
        share = 100 * seen[1] / moved if seen is not None else None
        yield place.measured("device_byte_share", share, reason)


def _split(
    place: _Place,
    evidence: Evidence,
    stream: Stream,
    merged: Merged,
    seen: tuple[int, int] | None,
    reason: str,
) -> Iterator[Measurement]:
    """Split the mean latency at the entry to the kernel's block layer.

    The block layer's own mean is over the whole cell with its ramp.
    """
    below_s, none = None, reason
    if seen is not None:
        below_s, none = _below_s(place, evidence, stream, merged, seen)
    above_s = None
    if below_s is not None and merged.mean_ns is not None:
        above_s = merged.mean_ns / NS_PER_S - below_s
        if above_s < 0:  # the ramp was slower, or the counters are coarser than the difference
            below_s = above_s = None
            none = "the block layer's mean over the ramp and the cell is longer than fio's"
    yield place.measured("device_latency_mean", below_s, none)
    yield place.measured("host_latency_mean", above_s, none)


def _below_s(
    place: _Place, evidence: Evidence, stream: Stream, merged: Merged, seen: tuple[int, int]
) -> tuple[float | None, str]:
    """Return the mean time of a request from the block layer down, or why it does not compare."""
    before, after = evidence.record.before, evidence.record.after
    if before is None or after is None:
        return None, "no counters of the device"
    name = f"{place.direction}_ticks_ms"
    first, last = getattr(before, name, None), getattr(after, name, None)
    if first is None or last is None:
        return None, "the times of the block layer were not kept"
    if stream.buffered or not evidence.cell.direct:
        return None, "the page cache stands between an I/O and the block layer"
    if stream.barrier:
        return None, "behind a barrier an I/O waits for its batch as well"
    if merged.mean_ns is None:
        return None, "fio measured no latency"
    requests, size = seen
    per_io = merged.io_bytes / merged.ios / (size / requests) if requests and size else 0.0
    if abs(per_io - 1) > PER_IO_SLACK:
        return (
            None,
            f"the block layer made {per_io:.2g} requests of an I/O, so times do not compare",
        )
    ticks = ticks_between(first, last)
    if ticks < TICKS_MS_MIN:
        return None, f"the block layer counts milliseconds, and saw only {ticks}"
    return ticks / MS_PER_S / requests, ""


def _seen(place: _Place, evidence: Evidence, merged: Merged) -> tuple[tuple[int, int] | None, str]:
    """Return the requests and bytes that the device counted, or why they are not known."""
    record = evidence.record
    if not merged.ios or not merged.io_bytes:
        return None, NO_IO
    if len(evidence.streams) > 1:
        return None, "the device's counters cannot be split by stream"
    if record.device is None or record.before is None or record.after is None:
        return None, "no counters of the device"
    if any(foreign_io(evidence)):
        return None, "something else used the device meanwhile"
    if quick_ramp(evidence):
        return None, "the ramp was much quicker than what followed, and the device counts both"
    before, after = record.before, record.after
    if place.direction == "read":
        requests = after.read_ios - before.read_ios
        sectors = after.read_sectors - before.read_sectors
    else:
        requests = after.write_ios - before.write_ios
        sectors = after.write_sectors - before.write_sectors
    return (max(0, requests), max(0, sectors) * SECTOR_BYTES), ""


def _requests(
    place: _Place, stream: Stream, found: Requests, refusal: str
) -> Iterator[Measurement]:
    none = found.reason or "not one whole request was done"
    n = found.time_ns.size
    whole = structs.replace(place, io_count=n)
    yield whole.measured("request_rate", found.rate_per_s if n else None, none)
    families = {"request": found.time_ns.astype(np.float64)}
    if stream.request_steps > 1:
        families["step"] = found.steps_ns.ravel().astype(np.float64)
    if stream.compute_s is not None:
        compute_ns = stream.compute_s * NS_PER_S
        families["stall"] = stalls_ns(found.steps_ns, compute_ns, stream.prefetch_steps)
    for what, times_ns in families.items():
        values, counts = np.unique(times_ns, return_counts=True)
        yield from percentiles(
            what, place.stream, place.direction, values, counts.astype(np.int64),
            refusal=found.reason or refusal,
        )  # fmt: skip
    if stream.deadline_s is not None:
        in_time = found.steps_ns.cumsum(axis=1) <= stream.deadline_s * NS_PER_S
        hit = 100 * float(in_time[:, -1].mean()) if n else None
        yield whole.measured("deadline_hit_share", hit, none)
        steps = structs.replace(place, io_count=in_time.size)
        share = 100 * float(in_time.mean()) if n else None
        yield steps.measured("deadline_step_share", share, none)


def _request_histograms(place: _Place, stream: Stream, found: Requests) -> list[StreamHistogram]:
    families = {"request": found.time_ns}
    if stream.request_steps > 1:
        families["step"] = found.steps_ns.ravel()
    made = []
    for what, times_ns in families.items():
        if times_ns.size:
            values, counts = np.unique(times_ns, return_counts=True)
            made.append(_histogram(place, what, values.astype(np.float64), counts.astype(np.int64)))
    return made


def _histogram(
    place: _Place, what: str, value_ns: NDArray[np.float64], counts: NDArray[np.int64]
) -> StreamHistogram:
    return StreamHistogram(
        stream=place.stream,
        direction=place.direction,
        what=cast("Literal['latency', 'request', 'step']", what),
        latency_s=value_ns / NS_PER_S,
        counts=counts,
    )
