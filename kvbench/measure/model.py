"""What a run measured.  Data only.

A ``Measurement`` is one number of one cell; a ``Summary`` is one metric of one point over the
repetitions.  ``None`` means "not measured" and the ``reason`` beside it says why.
"""

from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kvbench.host.health_model import RunHealth
from kvbench.plan import Cell, Purpose
from kvbench.store.records import AfterTrim, EndRecord, RunRecord
from kvbench.workload.schema import Role, SweepValue

Severity = Literal["invalid", "doubt", "note"]
Outcome = Literal["valid", "doubtful", "invalid", "failed"]
IoDirection = Literal["read", "write", "trim"]


class Finding(Struct, frozen=True, kw_only=True):
    """One answer of one asked-against-got check that is not simply "as asked".

    invalid: the cell's numbers are kept and shown, never summarised.
    doubt:   they are summarised, and the doubt stands beside every figure made from them.
    note:    worth knowing, nothing is wrong.
    """

    check: str  # the check's name, e.g. "runtime", "little-law", "never-written"
    severity: Severity
    text: str  # one sentence with both numbers: what was asked, what was got
    stream: str | None = None


class Measurement(Struct, frozen=True, kw_only=True):
    """One number of one cell, for one stream and direction."""

    stream: str
    direction: IoDirection
    metric: str  # a name in kvbench.metrics.METRICS
    value: float | None  # in that metric's unit
    io_count: int  # the I/Os (or requests) behind it
    reason: str = ""  # why value is None
    censored: bool = False  # the true value is at least this (fio cannot see beyond 17.1 s)
    doubts: tuple[str, ...] = ()  # of other cells that the value was made from


class StreamHistogram(Struct, frozen=True, kw_only=True, eq=False):
    """The merged latency histogram of one stream and direction in one cell.

    ``latency_s`` and ``counts`` have shape (bins,), ascending.  ``what`` is "latency" (one I/O),
    "step" (the slowest I/O of a barrier group) or "request" (the sum of its steps).
    """

    stream: str
    direction: IoDirection
    what: Literal["latency", "request", "step"]
    latency_s: NDArray[np.float64]
    counts: NDArray[np.int64]


class MeasuredCell(Struct, frozen=True, kw_only=True, eq=False):
    """One cell with everything that may be said of it."""

    cell: Cell
    outcome: Outcome
    findings: tuple[Finding, ...]
    measurements: tuple[Measurement, ...]
    histograms: tuple[StreamHistogram, ...]
    after_trim: tuple[AfterTrim, ...] = ()


class Summary(Struct, frozen=True, kw_only=True):
    """One metric of one point over the repetitions that count.

    ``low`` and ``high`` are a distribution-free 95 % interval of the median when ``interval`` is
    "95 %" (n >= 6), and the smallest and largest value when it is "range".  ``excluded`` counts
    repetitions that were invalid or failed; ``doubts`` are those of the cells that were used.
    ``censored`` says that the median is at least this; ``censored_from`` is the smallest of the
    values that are (fio cannot see beyond 17.1 s), so every smaller one is exact.
    Where ``lacking`` repetitions that count have no value there is no summary, and ``partial`` has
    the values of the others.
    """

    point_id: str
    purpose: Purpose
    workload: str
    role: Role
    parameters: dict[str, SweepValue]
    alone: str | None
    stream: str
    direction: IoDirection
    metric: str
    unit: str
    median: float | None
    low: float | None
    high: float | None
    interval: Literal["95 %", "range", "none"]
    n: int
    values: tuple[float, ...]  # one per repetition that counts, in order of repetition
    io_count: int  # I/Os (or requests) behind all values
    excluded: int
    censored: bool
    reason: str
    doubts: tuple[str, ...]
    partial: tuple[float, ...] = ()
    lacking: int = 0
    censored_from: float | None = None


class MeasuredRun(Struct, frozen=True, kw_only=True, eq=False):
    """A run, measured.  ``damage`` says what of the archive could not be read."""

    record: RunRecord
    end: EndRecord | None
    cells: tuple[MeasuredCell, ...]
    summaries: tuple[Summary, ...]
    damage: tuple[str, ...]
    health: RunHealth | None = None
    unwatched: dict[str, str] = {}  # what of the drive was not seen during cells, and why
