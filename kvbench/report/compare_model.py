"""What a reader sees of a comparison, as data: every text is final.  No drawing here."""

from typing import Literal

from msgspec import Struct

from kvbench.report.model import Doubt, Figure, Level


class SideView(Struct, frozen=True, kw_only=True):
    """One run: its letter, its colour on the whole page, and what it was."""

    letter: str
    colour: int
    name: str
    run_id: str
    facts: tuple[tuple[str, str], ...]  # firmware, repetitions, when
    incomplete: str


class DeviceView(Struct, frozen=True, kw_only=True):
    """A drive, known by model, serial and namespace, with the runs on it."""

    name: str
    sides: tuple[SideView, ...]


class DifferenceView(Struct, frozen=True, kw_only=True):
    """One aspect in which the runs differ; ``values`` has one entry per side."""

    aspect: str
    values: tuple[str, ...]
    effect: Literal["blocks", "allowed", "noted"]
    text: str  # in one line, letters and values


class CellView(Struct, frozen=True, kw_only=True):
    """One number of one side, and what may be said of it against the first.

    ``verdict`` is "" for the first side.  ``change`` is "" where nothing is known of it.
    """

    value: str
    spread: str  # "9.68-14.5k", "" without one
    sample: str  # "n=6", "range, n=3" without an interval, or why there is no number
    known: bool
    change: str = ""
    change_interval: str = ""
    verdict: str = ""
    reason: str = ""
    notes: str = ""  # outliers, a drift, repetitions that do not count
    marks: tuple[str, ...] = ()
    raw: float | None = None  # the value in the metric's own unit, to sort by


class NumberRow(Struct, frozen=True, kw_only=True):
    """One number over all sides; ``cells`` has one entry per side."""

    parameters: str
    stream: str
    metric: str
    margin: str
    cells: tuple[CellView, ...]


class WorkloadView(Struct, frozen=True, kw_only=True):
    """The numbers of one workload; ``common`` is a reason that all its open cells share."""

    name: str
    evidence: str
    summary: str
    common: str
    rows: tuple[NumberRow, ...]


class WinnerView(Struct, frozen=True, kw_only=True):
    """Which side is best for a role, or why none is."""

    role: str
    winner: SideView | None
    text: str


class CompareRole(Struct, frozen=True, kw_only=True):
    """One role: its primary numbers, all other numbers, and its figures."""

    role: str
    words: str
    counts: str  # "5 BETTER, 40 UNCLEAR" of the primary numbers
    others: str  # how many of the other numbers are BETTER or WORSE, "" for none
    workloads: tuple[WorkloadView, ...]
    more: tuple[WorkloadView, ...]
    figures: tuple[Figure, ...]


class CompareView(Struct, frozen=True, kw_only=True):
    """The whole comparison."""

    title: str
    verdict: str
    state: Level
    devices: tuple[DeviceView, ...]
    doubts: tuple[Doubt, ...]
    differences: tuple[DifferenceView, ...]
    winners: tuple[WinnerView, ...]
    roles: tuple[CompareRole, ...]
    reasons: tuple[str, ...]  # why primary numbers are open, with how many
    unshared: tuple[str, ...]
    decides: str  # how many repetitions decide
    method: tuple[tuple[str, str], ...]

    @property
    def sides(self) -> tuple[SideView, ...]:
        """All runs, in the order of their letters."""
        found = [side for device in self.devices for side in device.sides]
        return tuple(sorted(found, key=lambda side: side.colour))
