"""What a reader sees of a gate, as data: every text is final.  No drawing here."""

from msgspec import Struct

from kvbench.report.model import Doubt, Level
from kvbench.report.role_model import Chip


class GateSide(Struct, frozen=True, kw_only=True):
    """The baseline or the candidate."""

    title: str
    name: str
    facts: tuple[tuple[str, str], ...]  # run, label, drive, when, repetitions
    incomplete: str


class GateValue(Struct, frozen=True, kw_only=True):
    """One number of one side, or the words that stand for it."""

    text: str  # "305 µs", "not in this run"
    detail: str  # "136-395, range, n=3", or why there is no number
    known: bool
    raw: float | None = None  # the value in the metric's own unit, to sort by
    notes: str = ""  # outliers, a drift


class Strip(Struct, frozen=True, kw_only=True):
    """A change on a line from 0 to 100 whose middle is no change; logarithmic, in margins.

    ``low`` and ``high`` are the interval; all is cut at the ends of the line, so that 0 and 100
    stand for "beyond".  ``inside`` is how far to either side the margin reaches.  ``words`` say
    the same.
    """

    estimate: float
    low: float
    high: float
    inside: float
    words: str


class GateNumber(Struct, frozen=True, kw_only=True):
    """One gated number."""

    word: str  # the verdict; BETTER where it passes by more than the margin
    metric: str
    stream: str
    point: str
    baseline: GateValue
    candidate: GateValue
    change: str  # "+12.1 % worse", "" where nothing is known of it
    interval: str  # "+9.0 to +15.2 %"
    margin: str  # "10 %"
    evidence: str  # "p=0.002", "" where it says nothing
    strip: Strip | None
    raw: float | None  # the change, to sort by
    reason: str
    needs: str  # "about 4 more a side", "no number of them", "" where nothing is open
    marks: tuple[str, ...] = ()


class GateGroup(Struct, frozen=True, kw_only=True):
    """The numbers of one workload."""

    workload: str
    rows: tuple[GateNumber, ...]


class GateDifference(Struct, frozen=True, kw_only=True):
    """One aspect in which the runs differ."""

    aspect: str
    baseline: str
    candidate: str
    effect: str
    blocks: bool


class RequiredView(Struct, frozen=True, kw_only=True):
    """A level of a role card that the policy asks for."""

    role: str
    level: str
    chip: Chip
    reason: str


class GateView(Struct, frozen=True, kw_only=True):
    """The whole page of a gate."""

    title: str
    outcome: str
    state: Level
    verdict: str
    counts: tuple[tuple[str, int], ...]  # (word, how many)
    next_step: str  # what would decide what is open, "" where nothing is
    sides: tuple[GateSide, ...]
    reruns: tuple[str, ...]
    open: tuple[GateGroup, ...]  # what is not simply PASS, worst first in each workload
    passed: tuple[GateGroup, ...]
    required: tuple[RequiredView, ...]
    differences: tuple[GateDifference, ...]
    doubts: tuple[Doubt, ...]
    ungated: tuple[tuple[str, str, str], ...]  # (workload, number, why)
    reasons: tuple[str, ...]  # why numbers are unclear, with how many
    method: tuple[tuple[str, str], ...]
    command: str
    decide: str  # the command that measures again, "" where that would decide nothing
