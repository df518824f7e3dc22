"""A measured run -> the reloads in it: how long one read of a KV block or chunk took.  Pure.

Everything is looked up from the plan, so that a point that was not measured says so.  Only the
summaries are used, so invalid and failed cells never count.
"""

from collections.abc import Iterator
from math import isfinite
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from kvbench.measure.model import MeasuredRun, Summary
from kvbench.metrics import METRICS
from kvbench.units import KIB, format_time
from kvbench.workload.schema import Evidence, Role, Stream, SweepValue, Workload
from kvbench.workload.sweep import points

RELOAD_BYTES_MIN = 64 * KIB  # below this a read is a row or a lookup, not a KV block
RELOAD_ROLES: tuple[Role, ...] = ("performance", "capacity")
MEAN_SLACK = 0.05  # a mean over the whole runtime has the host's time between two requests too
NOT_RUN = "no cell of this point is in the archive"

_Key = tuple[str, tuple[tuple[str, SweepValue], ...], str | None, str, str]


class Figure(Struct, frozen=True, kw_only=True):
    """One metric over the ``n`` repetitions that count: the median and its spread, in ``unit``.

    ``value`` is None when it was not measured, and ``reason`` says why; beside a value the reason
    says what some repetitions lack.
    """

    value: float | None
    low: float | None
    high: float | None
    interval: Literal["95 %", "range", "none"]
    n: int
    unit: str
    reason: str


class ReloadPoint(Struct, frozen=True, kw_only=True):
    """One measured request that stands for a reload, ``in_flight`` of them at once.

    Behind a barrier the request is all its groups; else it is one block, and its time the latency
    of one read.  ``request_count`` is over all repetitions.  ``excluded`` counts repetitions that
    were invalid or failed.
    """

    workload: str
    role: Role
    evidence: Evidence
    parameters: dict[str, SweepValue]
    stream: Stream
    alone: bool  # one tenant of several, measured by itself
    others: int  # streams beside it in the same cell
    request_bytes: int
    in_flight: int
    p50: Figure
    p99: Figure
    bandwidth: Figure
    request_count: int
    excluded: int
    doubts: tuple[str, ...]

    @property
    def mean(self) -> Figure:
        """The mean time of a request, in which it makes room for the next.

        So many in flight over so many per second (Little's law); many requests in turn take so
        long each, where their median would leave out the tail.  It follows from the bandwidth, so
        that both say the same of a reload.
        """
        rate = self.bandwidth
        if rate.value is None:
            return _none("s", rate.reason)
        in_flight_bytes = self.request_bytes * self.in_flight
        low, high = (in_flight_bytes / b if b else None for b in (rate.high, rate.low))
        return replace(rate, value=in_flight_bytes / rate.value, low=low, high=high, unit="s")

    @property
    def slow(self) -> Figure:
        """The time of a request in a slow reload: its p99, or the mean where that is longer.

        Where a few requests stand still for long, the mean lies above the p99, and a reload takes
        the mean.  Its interval and n are those of the p99.
        """
        p99, mean = self.p99, self.mean
        if p99.value is None or mean.value is None or mean.value <= p99.value:
            return p99
        return replace(p99, value=mean.value, low=None, high=None, interval="none")

    def slow_ends(self) -> tuple[float, float] | None:
        """Return the time of a request in a slow reload at both ends of its interval.

        At each end it is the p99 or the mean, whichever is longer there; None without an interval
        of the p99.
        """
        p99, mean = _ends(self.p99), _ends(self.mean)
        if p99 is None or self.mean.value is None:
            return p99
        low, high = mean or (self.mean.value, self.mean.value)
        return max(p99[0], low), max(p99[1], high)

    def mean_ends(self) -> tuple[float, float] | None:
        """Return the mean time of a request at both ends of its interval, None without one."""
        return _ends(self.mean)


class LeftOut(Struct, frozen=True, kw_only=True):
    """A read stream of the run that stands for no reload, and why."""

    workload: str
    stream: str
    reason: str


class Reloads(Struct, frozen=True, kw_only=True):
    """The reloads of a run in the plan's order, and the read streams left out."""

    points: tuple[ReloadPoint, ...]
    left_out: tuple[LeftOut, ...]


def find_reloads(run: MeasuredRun, workload: str | None = None) -> Reloads:
    """Return the reloads of ``run``.

    Args:
        run: the measured run.
        workload: only this one, which may then rest on projected evidence or go through the page
            cache; None is all that do not.
    """
    summaries = {
        _key(s.workload, s.parameters, s.alone, s.stream, s.metric): s
        for s in run.summaries
        if s.purpose == "measure" and s.direction == "read"
    }
    found: list[ReloadPoint] = []
    left_out: dict[LeftOut, None] = {}
    for member in run.record.plan.workloads:
        if workload not in (None, member.name):
            continue
        for parameters, alone, others, stream in _read_streams(member):
            reason = _unfit(member, stream, named=workload is not None)
            if reason:
                left_out[LeftOut(workload=member.name, stream=stream.name, reason=reason)] = None
            else:
                found.append(_point(member, parameters, alone, others, stream, summaries))
    return Reloads(points=tuple(found), left_out=tuple(left_out))


def _read_streams(
    workload: Workload,
) -> Iterator[tuple[dict[str, SweepValue], str | None, int, Stream]]:
    """Yield parameters, who is alone, how many are beside it, and each stream that reads."""
    for streams, parameters in points(workload.streams, workload.sweep):
        reading = [stream for stream in streams if stream.reads]
        if not workload.matrix:  # else the cells are pairs, and each stream alone
            for stream in reading:
                yield parameters, None, len(streams) - 1, stream
        if workload.isolate or workload.matrix:
            for stream in reading:
                yield parameters, stream.name, 0, stream


def _unfit(workload: Workload, stream: Stream, *, named: bool) -> str:
    """Return why a stream stands for no reload, "" when it does."""
    if workload.role not in RELOAD_ROLES:
        return f"role {workload.role} reads rows and lookups, not blocks or chunks"
    if workload.load is not None:
        return "its rate is set to shares of a peak, so how many reads are in flight is not known"
    if (stream.chunk_bytes or stream.max_block_bytes) < RELOAD_BYTES_MIN:
        return f"its reads are smaller than {RELOAD_BYTES_MIN // KIB} KiB"
    if workload.evidence == "projected" and not named:
        return "it rests on projected evidence and was not named"
    if stream.buffered and not named:
        return "it goes through the page cache and was not named"
    if stream.direction == "mixed":
        return "it also writes, so how many reads are in flight is not known"
    if len(stream.block_mix) > 1:
        return "its reads are of several sizes"
    if stream.rate_iops is not None:
        return "its rate is paced, so how many reads are in flight is not known"
    return ""


def _point(
    workload: Workload,
    parameters: dict[str, SweepValue],
    alone: str | None,
    others: int,
    stream: Stream,
    summaries: dict[_Key, Summary],
) -> ReloadPoint:
    def of(metric: str) -> Summary | None:
        return summaries.get(_key(workload.name, parameters, alone, stream.name, metric))

    # A point in which nothing counts still has one summary: of iops, with the reason.
    whole = of("iops")
    missing = (whole.reason if whole is not None else "") or NOT_RUN
    kind = "request" if stream.barrier else "latency"
    half = of(f"{kind}_p50")
    known = half or whole
    block = stream.max_block_bytes
    found = ReloadPoint(
        workload=workload.name,
        role=workload.role,
        evidence=workload.evidence,
        parameters=parameters,
        stream=stream,
        alone=alone is not None,
        others=others,
        request_bytes=(
            block * stream.queue_depth * stream.request_steps if stream.barrier else block
        ),
        in_flight=stream.jobs if stream.barrier else stream.jobs * stream.queue_depth,
        p50=_figure(half, f"{kind}_p50", missing),
        p99=_figure(of(f"{kind}_p99"), f"{kind}_p99", missing),
        bandwidth=_figure(of("bandwidth"), "bandwidth", missing),
        request_count=half.io_count if half is not None else 0,
        excluded=known.excluded if known is not None else 0,
        doubts=known.doubts if known is not None else (),
    )
    return _doubted(found)


def _doubted(point: ReloadPoint) -> ReloadPoint:
    """Doubt a point whose p99 says less than its mean."""
    p99, mean = point.p99.value, point.mean.value
    if p99 is None or mean is None or mean <= p99 * (1 + MEAN_SLACK):
        return point
    text = (
        f"the mean time of a request ({format_time(mean)}) is above its p99 ({format_time(p99)}): "
        "a few very slow requests, or the time between two, make a reload longer than its p99 tells"
    )
    return replace(point, doubts=(*point.doubts, text))


def _figure(summary: Summary | None, metric: str, missing: str) -> Figure:
    unit = METRICS[metric].unit
    if summary is None:
        return _none(unit, missing)
    value = summary.median
    if value is None:
        return _none(unit, summary.reason or missing)
    if summary.censored_from is not None:
        return _none(unit, "some of it lies beyond what fio can see (17.1 s)")
    if not 0 < value < float("inf"):
        return _none(unit, f"{value:g} is no figure to compute with")
    bounds = [b if b is not None and isfinite(b) else None for b in (summary.low, summary.high)]
    return Figure(
        value=value,
        low=bounds[0],
        high=bounds[1],
        interval=summary.interval if None not in bounds else "none",
        n=summary.n,
        unit=unit,
        reason=summary.reason,
    )


def _ends(figure: Figure) -> tuple[float, float] | None:
    if figure.value is None or figure.interval == "none":
        return None
    if figure.low is None or figure.high is None or figure.low <= 0:
        return None
    return figure.low, figure.high


def _none(unit: str, reason: str) -> Figure:
    return Figure(value=None, low=None, high=None, interval="none", n=0, unit=unit, reason=reason)


def _key(
    workload: str, parameters: dict[str, SweepValue], alone: str | None, stream: str, metric: str
) -> _Key:
    return workload, tuple(sorted(parameters.items())), alone, stream, metric
