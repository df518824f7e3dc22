"""fio's logs of time windows of an open loop -> times in which I/Os are missing.

Each job of an open loop adds its latencies up over windows of 100 ms and writes a line at the
first completion after a window's end (and one of the rest at its own end).  Windows begin at
multiples of 100 ms from the end of the ramp.  So whatever completed before a line at 216 ms and
after the line before it was done by 200 ms: no line until 2,726 ms means that nothing completed
from 300 ms on.  Seen with fio 3.33: a stall of two seconds leaves a line before and one after it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kvbench.fio.sections import WINDOW_MS
from kvbench.measure.evidence import Evidence, StreamRows
from kvbench.measure.logs import read_columns
from kvbench.measure.model import Finding, IoDirection
from kvbench.stats import histogram
from kvbench.units import MS_PER_S, NS_PER_MS, format_count

# Arrivals are Poisson, so a time in which 30 are due sees none with a chance of exp(-30), 1e-13:
# not once in all the windows that anyone will ever measure.
IOS_DUE_MIN = 30.0
_DIRECTION_CODES: dict[IoDirection, int] = {"read": 0, "write": 1, "trim": 2}  # in fio's logs


class Gap(Struct, frozen=True, kw_only=True):
    """A time of one job in which nothing completed, counted from the end of the ramp."""

    begin_ms: float
    end_ms: float

    @property
    def length_ms(self) -> float:
        """How long it is at least: it may have begun up to a window earlier."""
        return self.end_ms - self.begin_ms


def windows_without_io(evidence: Evidence, logs: Mapping[int, Path]) -> tuple[Finding, ...]:
    """Return at most one finding for each open loop: its longest time without a completion.

    Every job is judged by itself and by its own rate, as each has arrivals and a clock of its own.

    Args:
        evidence: the cell.
        logs: fio's window logs by job number.
    """
    paced = (rows for rows in evidence.streams if rows.stream.rate_iops and not rows.stream.barrier)
    runtime_ms = evidence.cell.timing.runtime_s * MS_PER_S
    return tuple(finding for rows in paced for finding in _of_stream(rows, logs, runtime_ms))


def read_windows(path: Path) -> NDArray[np.int64]:
    """Return time (ms) and direction of each line, shape (lines, 2); a log may be compressed.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not such a log.
    """
    return read_columns(path, (0, 2))


def longest_gap(stamps_ms: NDArray[np.int64], first_ms: float, runtime_ms: float) -> Gap:
    """Return the longest time without a completion inside the measured time.

    Args:
        stamps_ms: shape (lines,), the times of one job's lines of one direction.
        first_ms: no I/O can have completed earlier.
        runtime_ms: of the measured time; what completes later was due before it.
    """
    begins = np.concatenate([[0], stamps_ms]) // WINDOW_MS * WINDOW_MS + WINDOW_MS
    ends = np.concatenate([stamps_ms, [runtime_ms]])
    begins = np.maximum(begins, first_ms)
    lengths = np.minimum(ends, runtime_ms) - begins
    place = int(np.argmax(lengths))
    begin_ms = float(begins[place])
    return Gap(begin_ms=begin_ms, end_ms=begin_ms + max(0.0, float(lengths[place])))


def _of_stream(rows: StreamRows, logs: Mapping[int, Path], runtime_ms: float) -> Iterator[Finding]:
    name = rows.stream.name
    numbers = range(rows.first_job, rows.first_job + rows.stream.jobs)
    if not any(number in logs for number in numbers):
        text = "times without any I/O cannot be seen: this run kept no log of time windows"
        yield Finding(check="windows", severity="note", text=text, stream=name)
        return
    worst: tuple[Gap, int, float] | None = None
    for number in numbers:
        try:
            lines = read_windows(logs[number])
        except KeyError:
            yield _unknown(name, f"fio left no log of time windows of job {number}")
            return
        except (OSError, ValueError) as error:
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            yield _unknown(name, f"the log of time windows of job {number} cannot be used: {said}")
            return
        for direction in rows.directions:
            stamps = lines[lines[:, 1] == _DIRECTION_CODES[direction], 0]
            gap = longest_gap(np.sort(stamps), _first_ms(rows, direction), runtime_ms)
            due = _rate_per_ms(rows, direction) * gap.length_ms
            missing = gap.length_ms >= WINDOW_MS and due >= IOS_DUE_MIN
            if missing and (worst is None or gap.length_ms > worst[0].length_ms):
                worst = (gap, number, due)
    if worst is not None:
        gap, number, due = worst
        text = (
            f"overloaded: from {gap.begin_ms / MS_PER_S:.2f} s to {gap.end_ms / MS_PER_S:.2f} s "
            f"not one I/O of job {number} completed, and {format_count(due)} were due"
        )
        yield Finding(check="overloaded", severity="doubt", text=text, stream=name)


def _first_ms(rows: StreamRows, direction: IoDirection) -> float:
    """Return when the first I/O can have completed: without a ramp the queue begins empty."""
    merged = rows.merged(direction)
    if merged is None or not merged.bin_counts.size:
        return 0.0
    return histogram.quantile(merged.bin_ns, merged.bin_counts, 0.5) / NS_PER_MS


def _rate_per_ms(rows: StreamRows, direction: IoDirection) -> float:
    """Return what arrives at one job in one direction."""
    stream = rows.stream
    share = 1.0
    if stream.read_percent is not None:
        share = (stream.read_percent if direction == "read" else 100 - stream.read_percent) / 100
    return (stream.rate_iops or 0.0) / stream.jobs * share / MS_PER_S


def _unknown(stream: str, reason: str) -> Finding:
    return Finding(check="windows", severity="doubt", text=reason, stream=stream)
