"""What a reader sees of a drive's history, as data: every text is final.  No drawing here."""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from kvbench.report.model import Level

Called = Literal["WORSE", "BETTER", "MISSING", ""]


class TrendPoint(Struct, frozen=True, kw_only=True):
    """One number of one run on a trend.

    ``run`` counts from 1.  ``joined`` is the run that a line comes from, None where nothing may
    be joined.  ``called`` is a change that the gate calls, and ``change`` its size in words.
    """

    run: int
    median: float
    low: float | None
    high: float | None
    doubted: bool
    joined: int | None
    called: Called
    change: str
    says: str = ""  # its value with unit, interval, n and run, where a pointer rests on it


class TrendPanel(Struct, frozen=True, kw_only=True):
    """A metric over the runs of a drive.

    ``firmware`` has (run, revision) where a revision begins.  ``missing`` are runs that have the
    number without a value.
    """

    title: str
    description: str
    metric: str
    unit: str
    runs: int
    points: tuple[TrendPoint, ...]
    missing: tuple[int, ...]
    firmware: tuple[tuple[int, str], ...]
    mark: str = ""  # which runs are not of a steady device, inside the drawing


class RunRow(Struct, frozen=True, kw_only=True):
    """One run of the drive."""

    number: int
    run_id: str
    started: str
    firmware: str
    new_firmware: bool
    label: str
    suite: str
    repetitions: int
    against: str  # "run 2", "" for none
    outcome: str
    note: str  # what is incomplete, or why it stands apart


class ValueRow(Struct, frozen=True, kw_only=True):
    """One number of one run, in words."""

    number: int  # of the run
    firmware: str
    value: str
    detail: str
    known: bool
    verdict: str  # "WORSE against run 2"
    change: str  # "-12.1 % (-14.0 to -10.2)"
    called: Called
    doubts: str


class TrendView(Struct, frozen=True, kw_only=True):
    """One number over all runs; ``panel`` is None where it is not drawn.

    ``values`` are the first, all that changed and the newest, where there is no room for all;
    ``unshown`` counts the others.
    """

    figure_id: str
    point: str  # "4 KiB, depth 32, 1 job", "" where there is one only
    values: tuple[ValueRow, ...]
    panel: TrendPanel | None
    unshown: int = 0


class MetricView(Struct, frozen=True, kw_only=True):
    """One metric of one stream at all points of its workload."""

    stream: str
    metric: str
    meaning: str
    trends: tuple[TrendView, ...]


class WorkloadTrends(Struct, frozen=True, kw_only=True):
    """One workload with its metrics."""

    name: str
    evidence: str
    metrics: tuple[MetricView, ...]


class RoleTrends(Struct, frozen=True, kw_only=True):
    """One role."""

    role: str
    words: str
    workloads: tuple[WorkloadTrends, ...]


class ChangeRow(Struct, frozen=True, kw_only=True):
    """One change that the gate calls."""

    called: Called
    number: str  # which number
    values: str
    change: str
    figure_id: str
    doubts: str


class ChangePair(Struct, frozen=True, kw_only=True):
    """The changes between two runs that were held against each other."""

    where: str  # "run 2 (FW1) to run 3 (FW2)"
    counts: str  # "12 worse, 1 better"
    rows: tuple[ChangeRow, ...]


class HistoryView(Struct, frozen=True, kw_only=True):
    """The whole history."""

    title: str
    verdict: str
    state: Level
    device: str
    runs: tuple[RunRow, ...]
    apart: tuple[str, ...]  # runs that may not be held against the run before, with the reason
    left_out: tuple[str, ...]
    changes: tuple[ChangePair, ...]  # the newest first
    roles: tuple[RoleTrends, ...]
    undrawn: int  # numbers without a figure, for want of room
    method: tuple[tuple[str, str], ...]


def trends_of(view: HistoryView) -> Iterator[TrendView]:
    """Yield every number in the order of the page."""
    for role in view.roles:
        for workload in role.workloads:
            for metric in workload.metrics:
                yield from metric.trends
