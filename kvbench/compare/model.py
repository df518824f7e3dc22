"""What a comparison is made of.  Data only."""

from typing import Literal

from msgspec import Struct

from kvbench.measure.model import IoDirection
from kvbench.workload.schema import Role, SweepValue

Verdict = Literal["BETTER", "WORSE", "SAME", "UNCLEAR", "MISSING", "INCOMPARABLE"]
VERDICTS: tuple[Verdict, ...] = ("BETTER", "WORSE", "SAME", "UNCLEAR", "MISSING", "INCOMPARABLE")


class Side(Struct, frozen=True, kw_only=True):
    """One run as a column of the comparison.

    ``name`` is short and differs from the others' names; ``device`` is the drive by model, serial
    and namespace (never by path), "" where it tells neither.  ``incomplete`` says what of the run
    is missing, "" when all of it is there.
    """

    name: str
    run_id: str
    label: str
    created_at: str
    device: str
    repetitions: int
    incomplete: str
    caveats: tuple[str, ...] = ()


class Difference(Struct, frozen=True, kw_only=True):
    """One aspect in which the runs differ.

    ``values`` has one entry per side; None is unknown.  ``effect`` is "blocks" where the policy
    says that it must not differ, "allowed" where it may, "noted" where the policy says nothing.
    """

    aspect: str
    values: tuple[str | None, ...]
    effect: Literal["blocks", "allowed", "noted"]
    text: str


class Key(Struct, frozen=True, kw_only=True):
    """What pairs a number of one run with that of another."""

    workload: str
    parameters: dict[str, SweepValue]
    alone: str | None
    stream: str
    direction: IoDirection
    metric: str


class Sample(Struct, frozen=True, kw_only=True):
    """A metric of one run.  Without values, ``reason`` says why.

    ``excluded`` counts repetitions that were invalid or failed; ``outliers`` are places in
    ``values``; ``drift`` is the trend over the repetitions as a share of the median, None where
    none stands out from luck.  ``censored`` says that the median is at least this, and values from
    ``censored_from`` on are; smaller ones are exact.  Where ``lacking`` repetitions that count have
    no value there is no median, and ``partial`` has the values of the others.
    """

    values: tuple[float, ...]
    median: float | None
    low: float | None
    high: float | None
    interval: Literal["95 %", "range", "none"]
    n: int
    io_count: int
    excluded: int
    censored: bool
    reason: str
    doubts: tuple[str, ...]
    outliers: tuple[int, ...] = ()
    drift: float | None = None
    partial: tuple[float, ...] = ()
    lacking: int = 0
    censored_from: float | None = None

    @property
    def known(self) -> tuple[float, ...]:
        """The values of the repetitions that have one."""
        return self.values or self.partial

    @property
    def lacking_share(self) -> float:
        """The share of the repetitions that count in which there is no value."""
        if not self.known:
            return 1.0
        return self.lacking / (self.lacking + len(self.known))

    @property
    def notes(self) -> tuple[str, ...]:
        """What the order of the values and the odd one among them tell."""
        notes = []
        if self.outliers:
            places = ", ".join(str(place + 1) for place in self.outliers)
            notes.append(f"outlier: value {places} of {self.n}")
        if self.drift is not None:
            notes.append(f"drift: {100 * self.drift:+.0f} % over {self.n} repetitions")
        return tuple(notes)


class Change(Struct, frozen=True, kw_only=True):
    """One side against the first.

    ``kind`` "ratio": ``estimate`` is side over first.  "difference": side less first, in the
    metric's unit; it stands where a value is zero or below.  ``low`` and ``high`` are its interval
    at the policy's confidence.  ``p`` is corrected for the number of tests.  ``margin`` is the
    share that the policy allows.  ``more`` is about how many more repetitions per side would
    decide, and in a gate ``more_candidate`` how many of the candidate alone, by a rerun; None
    where nobody can say or nothing is open.
    """

    verdict: Verdict
    reason: str
    kind: Literal["ratio", "difference"] = "ratio"
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    margin: float | None = None
    more: int | None = None
    more_candidate: int | None = None
    doubts: tuple[str, ...] = ()


class Row(Struct, frozen=True, kw_only=True):
    """One number over all sides.  ``samples`` and ``changes`` have one entry per side.

    A sample is None where the run does not have the number at all; the change of the first side
    is None.
    """

    key: Key
    role: Role
    unit: str
    primary: bool
    samples: tuple[Sample | None, ...]
    changes: tuple[Change | None, ...]


class RoleWinner(Struct, frozen=True, kw_only=True):
    """Which side is best for a role; ``winner`` is None where the evidence allows none."""

    role: Role
    winner: int | None
    text: str


class Unshared(Struct, frozen=True, kw_only=True):
    """A workload that not every run has.  ``sides`` are the places of those that have it."""

    workload: str
    sides: tuple[int, ...]


class Comparison(Struct, frozen=True, kw_only=True):
    """Everything that may be said of several runs side by side."""

    sides: tuple[Side, ...]
    differences: tuple[Difference, ...]
    rows: tuple[Row, ...]
    winners: tuple[RoleWinner, ...]
    unshared: tuple[Unshared, ...]
    confidence: float
    tests: int  # primary numbers tested per side; p is corrected for those of all sides
    decides_from_n: int | None  # repetitions per side from which a verdict is possible at all
    policy: str
