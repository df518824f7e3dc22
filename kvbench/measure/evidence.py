"""One cell's records brought together by stream: what was asked beside what fio reported.  Pure.

The one place where fio's milliseconds become rates per second.  Rows are matched to streams by
fio's group number alone (each section is a group of its own); names and options are for display.
"""

from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kvbench.fio.model import FioDirection, FioJob, FioResult, LatencyStats
from kvbench.host.model import Written
from kvbench.measure.model import IoDirection
from kvbench.plan import Cell
from kvbench.stats import histogram
from kvbench.store.preparation import Condition
from kvbench.store.records import CellRecord
from kvbench.units import MS_PER_S
from kvbench.workload.schema import Stream

NO_LATENCY = "fio measured no latency"
NO_BINS = "fio gave no histogram, and percentiles of several jobs cannot be merged without one"


class Merged(Struct, frozen=True, kw_only=True, eq=False):
    """All rows of one stream in one direction, added up.

    ``ios`` counts the I/Os that completed without error while fio measured, so that it agrees
    with ``io_bytes``.  ``section`` names the latency section that the bins are from: "lat" (from
    submission) or, where that has none, "clat"; None when there are no bins, and ``reason`` says
    why.
    """

    ios: int
    io_bytes: int
    iops: float
    bandwidth_bytes_per_s: float
    mean_ns: float | None
    max_ns: float | None
    section: str | None
    bin_ns: NDArray[np.float64]
    bin_counts: NDArray[np.int64]
    reason: str = ""


class StreamRows(Struct, frozen=True, kw_only=True, eq=False):
    """One stream of the cell and the rows that fio gave for it.

    ``first_job`` is the number that fio gives the stream's first job in log names, from 1.
    """

    stream: Stream
    jobs: tuple[FioJob, ...]
    first_job: int

    @property
    def directions(self) -> tuple[IoDirection, ...]:
        """The directions that the stream was asked for."""
        return asked_directions(self.stream)

    @property
    def in_flight_max(self) -> int:
        """The most I/Os that all submitters together may have in flight."""
        return self.stream.queue_depth * self.stream.jobs

    def rows(self) -> list[tuple[FioJob, IoDirection, FioDirection]]:
        """Return each job's row of each direction that was asked for and did I/O."""
        found = []
        asked = self.directions
        for job in self.jobs:
            done = job.directions()
            found += [(job, name, done[name]) for name in asked if name in done]
        return found

    def merged(self, direction: IoDirection) -> Merged | None:
        """Return the sum over the jobs, None when no job did I/O in this direction."""
        return _merged(self, direction)


class Evidence(Struct, frozen=True, kw_only=True, eq=False):
    """Everything that the checks of one cell look at."""

    record: CellRecord
    result: FioResult
    written: Written
    streams: tuple[StreamRows, ...]
    condition: Condition | None = None  # of a block device: is it as ``kvbench prepare`` left it
    link_at_start: str | None = None  # the PCIe link when the run began: "8.0 GT/s x4"

    @property
    def cell(self) -> Cell:
        """The cell that was asked for."""
        return self.record.cell

    @property
    def measures_target(self) -> bool:
        """Whether the cell measures the target, not the host's ceiling."""
        return self.cell.purpose != "ceiling"


def gather(
    record: CellRecord, result: FioResult, written: Written, condition: Condition | None = None
) -> Evidence:
    """Return the evidence of one cell; a stream without rows keeps its place."""
    streams = []
    first_job = 1
    for index, placed in enumerate(record.cell.placed):
        jobs = tuple(job for job in result.jobs if job.group_id == index)
        streams.append(StreamRows(stream=placed.stream, jobs=jobs, first_job=first_job))
        first_job += placed.stream.jobs
    return Evidence(
        record=record, result=result, written=written, streams=tuple(streams), condition=condition
    )


def asked_directions(stream: Stream) -> tuple[IoDirection, ...]:
    """Return the directions in which a stream does I/O."""
    every: tuple[tuple[IoDirection, bool], ...] = (
        ("read", stream.reads),
        ("write", stream.writes),
        ("trim", stream.trims),
    )
    return tuple(name for name, wanted in every if wanted)


def completed_ios(stream: Stream, job: FioJob, row: FioDirection) -> int:
    """Return the I/Os of one row that completed without error while fio measured.

    fio's own total counts those that were issued: it holds failed I/Os, and after a ramp it lacks
    the up to queue-depth many that were in flight when measuring began, whose bytes are counted.
    """
    timed = row.lat or row.clat
    if job.error or job.total_err:
        by_bytes = int(row.io_bytes / stream.mean_block_bytes)
        return min(timed.count, by_bytes) if timed else by_bytes
    return timed.count if timed else row.total_ios


def per_second(amount: float, runtime_ms: float) -> float:
    """Return a rate; a runtime of zero has none."""
    return amount * MS_PER_S / runtime_ms if runtime_ms > 0 else 0.0


@lru_cache(maxsize=32)  # every check of a cell asks again
def _merged(own: StreamRows, direction: IoDirection) -> Merged | None:
    rows = [(job, row) for job, name, row in own.rows() if name == direction]
    return _merge(own.stream, rows) if rows else None


def _merge(stream: Stream, rows: list[tuple[FioJob, FioDirection]]) -> Merged:
    ios = [completed_ios(stream, job, row) for job, row in rows]
    section, reason, bins = _bins([row for _, row in rows])
    timed = [row.lat or row.clat for _, row in rows]
    known = [stats for stats in timed if stats is not None]
    count = sum(stats.count for stats in known)
    complete = len(known) == len(rows) and count > 0
    return Merged(
        ios=sum(ios),
        io_bytes=sum(row.io_bytes for _, row in rows),
        iops=sum(
            per_second(done, row.runtime_ms) for done, (_, row) in zip(ios, rows, strict=True)
        ),
        bandwidth_bytes_per_s=sum(per_second(row.io_bytes, row.runtime_ms) for _, row in rows),
        mean_ns=sum(s.mean_ns * s.count for s in known) / count if complete else None,
        max_ns=max(s.max_ns for s in known) if complete else None,
        section=section,
        bin_ns=bins[0],
        bin_counts=bins[1],
        reason=reason,
    )


def _bins(
    rows: list[FioDirection],
) -> tuple[str | None, str, tuple[NDArray[np.float64], NDArray[np.int64]]]:
    """Return the section that all rows have bins of, or why there is none, and the merged bins."""
    sections: dict[str, list[LatencyStats | None]] = {
        "lat": [row.lat for row in rows],
        "clat": [row.clat for row in rows],
    }
    for name, parts in sections.items():
        binned = [
            (stats.bin_ns, stats.bin_counts)
            for stats in parts
            if stats is not None and stats.bin_ns is not None and stats.bin_counts is not None
        ]
        if binned and len(binned) == len(rows):
            return name, "", histogram.merge(binned)
    timed = any(stats is not None for parts in sections.values() for stats in parts)
    return None, NO_BINS if timed else NO_LATENCY, histogram.merge([])
