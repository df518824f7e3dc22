"""What fio reported, in one internal model whatever fio's version: ns, bytes, bytes per second.

``None`` means that fio did not measure it.  A latency with no samples is None, never zero.
"""

from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Level = Literal["error", "warning", "note"]


class Diagnostic(Struct, frozen=True, kw_only=True):
    """One line that fio printed beside its JSON."""

    level: Level
    text: str


class LatencyStats(Struct, frozen=True, kw_only=True, eq=False):
    """One of fio's latency sections (slat, clat or lat) that has samples.

    ``bin_ns`` and ``bin_counts`` have shape (bins,), ascending, or are None when the output holds
    no bins (plain ``json``): such sections cannot be merged.
    """

    count: int
    min_ns: float
    max_ns: float
    mean_ns: float
    stddev_ns: float
    bin_ns: NDArray[np.float64] | None = None
    bin_counts: NDArray[np.int64] | None = None
    percentiles_ns: dict[float, float] = {}  # fio's own, for cross-checks only


class FioDirection(Struct, frozen=True, kw_only=True, eq=False):
    """What one job did in one direction."""

    io_bytes: int
    total_ios: int
    runtime_ms: float
    bandwidth_bytes_per_s: float
    iops: float
    short_ios: int = 0
    drop_ios: int = 0
    slat: LatencyStats | None = None
    clat: LatencyStats | None = None
    lat: LatencyStats | None = None


class FioJob(Struct, frozen=True, kw_only=True, eq=False):
    """One row of fio's ``jobs``.  ``index`` is its place; names may repeat (numjobs)."""

    index: int
    name: str
    group_id: int
    error: int
    total_err: int
    first_error: int
    job_runtime_ms: float | None
    user_cpu_percent: float | None
    system_cpu_percent: float | None
    depth_percent: dict[str, float]  # fio's iodepth_level
    options: dict[str, str]  # defaults + [global] + job, as far as fio told; for display only
    read: FioDirection | None = None  # None: no I/O in this direction
    write: FioDirection | None = None
    trim: FioDirection | None = None

    def directions(self) -> dict[str, FioDirection]:
        """Return the directions that did I/O, by name."""
        named = (("read", self.read), ("write", self.write), ("trim", self.trim))
        return {name: direction for name, direction in named if direction is not None}


class DiskUtil(Struct, frozen=True, kw_only=True):
    """One block device as fio saw it over the run (it counts other processes' I/O too)."""

    name: str
    read_ios: int
    write_ios: int
    read_sectors: int | None = None  # from fio 3.36


class FioResult(Struct, frozen=True, kw_only=True, eq=False):
    """One fio document and every line around it."""

    version: str
    timestamp_ms: int | None
    jobs: tuple[FioJob, ...]
    disk_util: tuple[DiskUtil, ...]
    diagnostics: tuple[Diagnostic, ...]
