"""What a reader sees of role cards and controller requirements, as data.  No drawing here."""

from msgspec import Struct


class Chip(Struct, frozen=True, kw_only=True):
    """A verdict in a word.  ``kind`` is good, bad or open; colour never stands alone."""

    text: str
    kind: str


class RequirementView(Struct, frozen=True, kw_only=True):
    """One requirement with what was measured."""

    what: str  # "usable IOPS of load-curve"
    point: str  # "4 KiB, depth 64", "" where there is only one
    limit: str  # "at least 2.50M IOPS"
    measured: str
    detail: str  # the interval with its n, or why there is no number
    known: bool
    margin: str
    chip: Chip
    evidence: str
    evidence_words: str
    projected: bool
    why: str
    source: str
    controller: str  # the title of the controller requirement that it is also about
    doubts: tuple[str, ...]


class LevelView(Struct, frozen=True, kw_only=True):
    """One level.  ``rows`` is empty and ``unmeasured`` says why where nothing was measured.

    ``reasons`` are the kinds of reasons in it, each once.
    """

    name: str
    title: str
    summary: str
    source: str
    chip: Chip
    score: str  # "2 met, 1 missed"
    projected_score: str
    decided: str  # the row that decided, in words
    only_projected: bool
    rows: tuple[RequirementView, ...]
    unmeasured: str
    reasons: tuple[str, ...]


class CardView(Struct, frozen=True, kw_only=True):
    """One role: its headline and its levels; no levels where nothing was measured."""

    role: str
    summary: str
    chip: Chip
    headline: str
    counts: str
    levels: tuple[LevelView, ...]
    unmeasured: str


class ReadingView(Struct, frozen=True, kw_only=True):
    """One number of a probe, at one point."""

    point: str
    value: str
    detail: str
    known: bool
    doubts: tuple[str, ...] = ()


class ProbeView(Struct, frozen=True, kw_only=True):
    """One probe with its numbers; the first few where there are many."""

    what: str
    tells: str
    readings: tuple[ReadingView, ...]
    more: str
    missing: str  # "not measured: run --workload map-span"


class ControllerView(Struct, frozen=True, kw_only=True):
    """One requirement on the controller and the probes that stand for it."""

    key: str
    title: str
    asks: str
    probes: tuple[ProbeView, ...]
    confounders: str
    cannot_prove: str
    source: str
    measured: bool
