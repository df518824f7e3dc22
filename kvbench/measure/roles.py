"""A measured run against role cards: met, missed, or why nothing can be said.  Pure.

Evidence is never mixed: a level's score counts the rows on shipping software, traces and probes;
its projected rows have a score of their own, and never decide whether the level is met.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from kvbench.measure.model import MeasuredRun
from kvbench.measure.subjects import NOT_IN_RUN, Figure, Lookup
from kvbench.measure.verdicts import RequirementRow, judge_row
from kvbench.workload.roles import ControllerKey, ControllerRequirement, Level, RoleCard
from kvbench.workload.schema import Role, SweepValue

LevelVerdict = Literal["met", "missed", "cannot say"]


class Score(Struct, frozen=True, kw_only=True):
    """The verdict over some rows of a level, and which row (by its place in it) decided."""

    verdict: LevelVerdict
    met: int
    missed: int
    unclear: int
    not_measurable: int
    decided_by: int


class JudgedLevel(Struct, frozen=True, kw_only=True):
    """One level.  ``score`` is over all rows that are not projected; None where there are none."""

    name: str
    title: str
    summary: str
    source: str
    rows: tuple[RequirementRow, ...]
    score: Score | None
    projected: Score | None


class JudgedRole(Struct, frozen=True, kw_only=True):
    """One card.  ``highest`` names the last level that is met, in the card's order.

    ``measured`` is not set where no row could be measured, and ``reason`` says why in one line.
    """

    role: Role
    summary: str
    levels: tuple[JudgedLevel, ...]
    highest: str | None
    measured: bool
    reason: str


class ProbeReading(Struct, frozen=True, kw_only=True):
    """The numbers of one probe; without any, ``reason`` says why."""

    workload: str
    stream: str
    metric: str
    unit: str
    at: dict[str, SweepValue]
    tells: str
    figures: tuple[Figure, ...]
    reason: str


class ControllerReading(Struct, frozen=True, kw_only=True):
    """What the run tells of one controller requirement.  There is no verdict: a host sees little.

    A card's rows that name the requirement are judged with the card.
    """

    key: ControllerKey
    title: str
    asks: str
    confounders: str
    cannot_prove: str
    source: str
    probes: tuple[ProbeReading, ...]


class Judgement(Struct, frozen=True, kw_only=True):
    """A run against all cards and controller requirements."""

    roles: tuple[JudgedRole, ...] = ()
    controller: tuple[ControllerReading, ...] = ()


def judge(
    run: MeasuredRun,
    cards: Iterable[RoleCard],
    controller: Iterable[ControllerRequirement] = (),
) -> Judgement:
    """Return what ``run`` says of each card's levels and of the controller requirements."""
    lookup = Lookup(run)
    return Judgement(
        roles=tuple(_card(lookup, card) for card in cards),
        controller=tuple(_reading(lookup, requirement) for requirement in controller),
    )


def _card(lookup: Lookup, card: RoleCard) -> JudgedRole:
    levels = tuple(_level(lookup, level) for level in card.levels)
    met = [level.name for level in levels if level.score and level.score.verdict == "met"]
    rows = [row for level in levels for row in level.rows]
    measured = any(row.verdict != "not measurable" for row in rows)
    return JudgedRole(
        role=card.role,
        summary=card.summary,
        levels=levels,
        highest=met[-1] if met else None,
        measured=measured,
        reason="" if measured else _common_reason(rows, card.role),
    )


def _common_reason(rows: Sequence[RequirementRow], role: Role) -> str:
    """Return in one line why none of the rows was measured."""
    kinds = list(dict.fromkeys(row.reason.partition(":")[0] for row in rows))
    if kinds == [NOT_IN_RUN]:
        return f"no workload that its card asks for is in this run: run --role {role}"
    if len(kinds) == 1:
        return rows[0].reason
    told = next(row.reason for row in rows if not row.reason.startswith(NOT_IN_RUN))
    return f"{told}; the other rows: {', '.join(k for k in kinds if k not in told)}"


def _level(lookup: Lookup, level: Level) -> JudgedLevel:
    rows = tuple(judge_row(lookup, requirement) for requirement in level.requirements)
    return JudgedLevel(
        name=level.name,
        title=level.title,
        summary=level.summary,
        source=level.source,
        rows=rows,
        score=_score(rows, projected=False),
        projected=_score(rows, projected=True),
    )


def _score(rows: Sequence[RequirementRow], *, projected: bool) -> Score | None:
    """Return the score of one kind of rows: one missed row is a miss, all must be met."""
    mine = [
        (place, row) for place, row in enumerate(rows) if (row.evidence == "projected") is projected
    ]
    if not mine:
        return None
    verdicts = [row.verdict for _, row in mine]
    missed = [entry for entry in mine if entry[1].verdict == "missed"]
    open_rows = [entry for entry in mine if entry[1].verdict in ("unclear", "not measurable")]
    verdict: LevelVerdict
    if missed:
        verdict, decided_by = "missed", min(missed, key=lambda entry: _margin_of(entry[1]))[0]
    elif open_rows:
        verdict, decided_by = "cannot say", open_rows[0][0]
    else:
        verdict, decided_by = "met", min(mine, key=lambda entry: _margin_of(entry[1]))[0]
    return Score(
        verdict=verdict,
        met=verdicts.count("met"),
        missed=verdicts.count("missed"),
        unclear=verdicts.count("unclear"),
        not_measurable=verdicts.count("not measurable"),
        decided_by=decided_by,
    )


def _margin_of(row: RequirementRow) -> float:
    """Return the margin; a latency of zero is better than any limit."""
    return float("inf") if row.margin is None else row.margin


def _reading(lookup: Lookup, requirement: ControllerRequirement) -> ControllerReading:
    probes = []
    for probe in requirement.probes:
        found = lookup.find(probe.subject)
        probes.append(
            ProbeReading(
                workload=probe.subject.workload,
                stream=probe.subject.stream,
                metric=probe.subject.metric,
                unit=probe.subject.unit,
                at=probe.subject.at,
                tells=probe.tells,
                figures=found.figures,
                reason=found.reason,
            )
        )
    return ControllerReading(
        key=requirement.key,
        title=requirement.title,
        asks=requirement.asks,
        confounders=requirement.confounders,
        cannot_prove=requirement.cannot_prove,
        source=requirement.source,
        probes=tuple(probes),
    )
