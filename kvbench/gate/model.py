"""What a gate says.  Data only."""

from typing import Literal

from msgspec import Struct

from kvbench.compare.model import Change, Difference, Key, Sample, Side
from kvbench.compare.policy import RequiredLevel
from kvbench.workload.schema import Role

Outcome = Literal["PASS", "FAIL", "UNCLEAR", "INCOMPARABLE"]
RowVerdict = Literal["PASS", "WORSE", "UNCLEAR", "MISSING", "INCOMPARABLE"]


class GateRow(Struct, frozen=True, kw_only=True):
    """One gated number.  ``improved`` is set where it is better beyond the margin."""

    key: Key
    role: Role
    unit: str
    baseline: Sample | None
    candidate: Sample | None
    change: Change
    verdict: RowVerdict
    improved: bool = False


class Ungated(Struct, frozen=True, kw_only=True):
    """A number that the policy is about and the baseline could not give either."""

    key: Key
    reason: str


class RequiredRow(Struct, frozen=True, kw_only=True):
    """A level of a role card that the policy asks of the candidate."""

    required: RequiredLevel
    verdict: Literal["met", "missed", "cannot say"]
    reason: str


class Gate(Struct, frozen=True, kw_only=True):
    """The verdict over all gated numbers and required levels.

    ``reasons`` say what stands in the way of PASS, the worst first.  ``more`` is about how many
    more repetitions per side would decide what is open and can be decided, ``more_candidate`` how
    many of the candidate alone, beside the baseline as it is.  ``looks`` counts how often the
    candidate was measured for this decision; every further look at a number asks for stronger
    evidence.
    """

    outcome: Outcome
    sides: tuple[Side, Side]
    differences: tuple[Difference, ...]
    rows: tuple[GateRow, ...]
    ungated: tuple[Ungated, ...]
    required: tuple[RequiredRow, ...]
    reasons: tuple[str, ...]
    confidence: float
    decides_from_n: int | None
    more: int | None
    policy: str
    looks: int = 1
    more_candidate: int | None = None
    doubts: tuple[str, ...] = ()  # why all numbers may be wrong, whatever the verdict
    reruns: tuple[str, ...] = ()  # ids of the runs whose repetitions were added to the candidate
