"""fio's latency logs of a barrier stream -> the time of each request.

With a barrier, N I/Os are submitted together and reaped together, so N consecutive entries of a
job's latency log are one step, and its time is its slowest I/O.  A request is one step, or several
that follow one another; then its time is their sum.  That the groups were told apart rightly can
be seen: steps follow one another, so their times add up to the runtime.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kvbench.measure.evidence import StreamRows, completed_ios, per_second
from kvbench.measure.logs import read_columns
from kvbench.measure.model import Finding
from kvbench.units import NS_PER_MS

# Seen with fio 3.33 on ext4 and tmpfs at depths 8 and 32: the times add up to 0.97 to 0.99 of the
# runtime.  More than the runtime means that requests overlapped; much less, that something other
# than the device took the time.
BUSY_SHARE_MIN = 0.80
BUSY_SHARE_MAX = 1.02


class Requests(Struct, frozen=True, kw_only=True, eq=False):
    """The requests of one stream, over all its jobs.

    ``steps_ns`` has shape (requests, steps of one request); the incomplete last request of a job
    is left out.  ``reason`` says why there are none.
    """

    steps_ns: NDArray[np.int64]
    rate_per_s: float
    findings: tuple[Finding, ...] = ()
    reason: str = ""

    @property
    def time_ns(self) -> NDArray[np.int64]:
        """The time of each request, shape (requests,)."""
        times: NDArray[np.int64] = self.steps_ns.sum(axis=1)
        return times


def read_log(path: Path) -> NDArray[np.int64]:
    """Return the latencies of one log in ns, shape (entries,), in the log's order.

    A log may be compressed (``.gz``).

    The columns are ``time_ms, value_ns, direction, block_bytes, ...``; newer fio appends more.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not such a log.
    """
    return read_columns(path, (1,))[:, 0]


def group_maxima(latency_ns: NDArray[np.int64], group: int) -> NDArray[np.int64]:
    """Return the slowest of every ``group`` entries; the incomplete last group is left out."""
    whole = latency_ns.size // group * group
    if not whole:
        return np.empty(0, dtype=np.int64)
    maxima: NDArray[np.int64] = latency_ns[:whole].reshape(-1, group).max(axis=1)
    return maxima


def gather_requests(rows: StreamRows, logs: Mapping[int, Path]) -> Requests:
    """Return the requests of a barrier stream.

    Args:
        rows: the stream with its rows; it reads or writes, not both.
        logs: fio's latency logs by job number.
    """
    stream = rows.stream
    steps: list[NDArray[np.int64]] = []
    findings: list[Finding] = []
    rate = 0.0
    for position, (job, _, row) in enumerate(rows.rows()):
        number = rows.first_job + position
        try:
            entries = read_log(logs[number])
        except KeyError:
            return _none(stream.name, f"fio left no latency log of job {number}")
        except (OSError, ValueError) as error:
            return _none(
                stream.name, f"the latency log of job {number} cannot be used: {_first(error)}"
            )
        expected = completed_ios(stream, job, row)
        if entries.size != expected:
            return _none(
                stream.name,
                f"the latency log of job {number} has {entries.size} entries "
                f"and fio counted {expected} I/Os, so the requests cannot be told apart",
            )
        maxima = group_maxima(entries, stream.queue_depth)
        findings += _busy_share(rows, number, maxima, row.runtime_ms)
        whole = maxima.size // stream.request_steps
        rate += per_second(maxima.size / stream.request_steps, row.runtime_ms)
        steps.append(maxima[: whole * stream.request_steps].reshape(whole, stream.request_steps))
    if not steps:
        return _none(stream.name, "no job of the stream did any I/O")
    return Requests(
        steps_ns=np.concatenate(steps), rate_per_s=rate, findings=tuple(_worst(findings))
    )


def _busy_share(
    rows: StreamRows, number: int, maxima: NDArray[np.int64], runtime_ms: float
) -> Sequence[Finding]:
    if runtime_ms <= 0 or not maxima.size:
        return ()
    share = float(maxima.sum()) / (runtime_ms * NS_PER_MS)
    paced = rows.stream.rate_iops is not None  # then the time between requests is asked for
    # The last request, cut off by the end, belongs to no complete group.
    least = BUSY_SHARE_MIN - float(maxima.max()) / (runtime_ms * NS_PER_MS)
    if share > BUSY_SHARE_MAX:
        text = f"the requests of job {number} add up to {share:.2f} of its runtime: they overlapped"
        return (Finding(check="barrier", severity="invalid", text=text, stream=rows.stream.name),)
    if share < least and not paced:
        text = (
            f"the requests of job {number} add up to only {share:.2f} of its runtime "
            f"(at least {BUSY_SHARE_MIN} expected): this host took long between two requests"
        )
        return (Finding(check="barrier", severity="doubt", text=text, stream=rows.stream.name),)
    return ()


def _worst(findings: Sequence[Finding]) -> Sequence[Finding]:
    """One finding for the stream is enough: the first of the worst."""
    invalid = [finding for finding in findings if finding.severity == "invalid"]
    return (invalid or findings)[:1]


def _none(stream: str, reason: str) -> Requests:
    finding = Finding(check="barrier", severity="invalid", text=reason, stream=stream)
    return Requests(
        steps_ns=np.empty((0, 1), dtype=np.int64),
        rate_per_s=0.0,
        findings=(finding,),
        reason=reason,
    )


def _first(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
