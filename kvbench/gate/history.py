"""Runs of one drive in the order of time -> its history, with the changes that a gate calls.  Pure.

Each run is held against the latest earlier run that it may be held against; only what the gate
calls WORSE or MISSING, or better beyond the margin, is a change.  So that no small steps add up
unseen, each number is also held against the run in which it last changed, or the first of its
line.  A run that is held against two has half the error for each.  A run that may be held against
no earlier one begins a line of its own, and says why.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kvbench.compare.aspects import ASPECTS, blocked, device_of, differences
from kvbench.compare.join import pair, sides_of
from kvbench.compare.model import Change, Key, Sample, Side
from kvbench.compare.policy import Policy
from kvbench.gate.decide import decide
from kvbench.gate.model import GateRow, Outcome, RowVerdict
from kvbench.measure.model import MeasuredRun
from kvbench.measure.roles import Judgement
from kvbench.metrics import METRICS
from kvbench.store.preparation import Condition
from kvbench.store.records import RunRecord
from kvbench.workload.schema import Evidence, Role

Called = Literal["WORSE", "BETTER", "MISSING", ""]
_Rows = dict[str, GateRow]
NOT_THERE = Sample(
    values=(), median=None, low=None, high=None, interval="none", n=0, io_count=0, excluded=0,
    censored=False, reason="not in this run", doubts=(),
)  # fmt: skip


class HistoryRun(Struct, frozen=True, kw_only=True):
    """One run of the drive.

    ``against`` is the place of the run that it was held against, ``outcome`` what the gate says of
    the pair.  ``apart`` says why the run right before it is not that one, "" where it is.
    ``condition`` is what the run knew of the preparation of the drive.
    """

    side: Side
    firmware: str | None
    suite: str
    against: int | None
    outcome: Outcome | None
    apart: str
    condition: Condition | None = None


class HistoryPoint(Struct, frozen=True, kw_only=True):
    """One number of one run.

    ``run`` is the run's place.  ``change`` is against the number in run ``against``, both None
    where there is nothing to hold it against.  ``called`` is set where the gate calls a change.
    Where it calls one only against the run in which the number last changed, or the first of the
    line, ``since`` is that run and ``change`` is against it.
    """

    run: int
    sample: Sample
    against: int | None
    verdict: RowVerdict | None
    change: Change | None
    called: Called
    since: int | None = None


class HistorySeries(Struct, frozen=True, kw_only=True):
    """One number over the runs that have it."""

    key: Key
    role: Role
    evidence: Evidence
    unit: str
    points: tuple[HistoryPoint, ...]


class LeftOut(Struct, frozen=True, kw_only=True):
    """A stored run of the drive that is no part of its history, with the reason."""

    run_id: str
    reason: str


class History(Struct, frozen=True, kw_only=True):
    """Everything that may be said of one drive over its runs, the oldest first."""

    device: str
    serial: str
    runs: tuple[HistoryRun, ...]
    series: tuple[HistorySeries, ...]
    left_out: tuple[LeftOut, ...]
    confidence: float
    policy: str


def history_of(
    runs: Sequence[MeasuredRun], policy: Policy, *, serial: str, left_out: Sequence[LeftOut] = ()
) -> History:
    """Return the history of one drive.

    Args:
        runs: measured runs of one drive, the oldest first; at least one.
        policy: margins, confidence, and what must not differ; levels that it requires of a
            candidate say nothing of a history.
        serial: how the drive was named.
        left_out: stored runs that are not in ``runs``, with the reasons.
    """
    free = replace(policy, require=())
    told: list[HistoryRun] = []
    rows: list[_Rows] = []
    since: list[dict[str, tuple[int, GateRow]]] = []
    anchors: list[dict[str, int]] = []  # of each run: where each number last changed
    for place, (run, side) in enumerate(zip(runs, sides_of(runs), strict=True)):
        against, apart = _earlier(runs, place, free)
        known = {} if against is None else anchors[against]
        held = _comparable(runs, place, {*known.values()} - {against}, free)
        strict = replace(free, confidence=1 - free.chance / 2) if held else free
        gate = None if against is None else decide(runs[against], run, strict, Judgement())
        mine = {} if gate is None else {_name(row.key): row for row in gate.rows}
        crept = {}
        for anchor in sorted(held):
            for row in decide(runs[anchor], run, strict, Judgement()).rows:
                name = _name(row.key)
                here = known.get(name) == anchor and not _called(mine.get(name), free)
                if here and _called(row, free) in ("WORSE", "BETTER"):
                    crept[name] = (anchor, row)
        anchors.append(_moved(run, place, known, mine, crept, free))
        rows.append(mine)
        since.append(crept)
        told.append(
            HistoryRun(
                side=side,
                firmware=firmware_of(run.record),
                suite=run.record.plan.suite,
                against=against,
                outcome=None if gate is None else gate.outcome,
                apart=apart,
                condition=run.record.condition,
            )
        )
    return History(
        device=device_of(runs[-1].record),
        serial=serial,
        runs=tuple(told),
        series=tuple(_series(runs, told, rows, since, free)),
        left_out=tuple(left_out),
        confidence=policy.confidence,
        policy=policy.name,
    )


def firmware_of(record: RunRecord) -> str | None:
    """Return the firmware revision that a run ran on, None where the drive did not tell."""
    return ASPECTS["firmware"][1](record)


def _earlier(runs: Sequence[MeasuredRun], place: int, policy: Policy) -> tuple[int | None, str]:
    """Return the latest earlier run that may be held against, and why the one before may not."""
    apart = ""
    for earlier in range(place - 1, -1, -1):
        records = [runs[earlier].record, runs[place].record]
        why = blocked(tuple(differences(records, policy)), 1)
        if not why:
            return earlier, apart
        apart = apart or why
    return None, apart


def _comparable(
    runs: Sequence[MeasuredRun], place: int, earlier: Collection[int], policy: Policy
) -> set[int]:
    """Return those of the ``earlier`` runs that the run may be held against."""
    return {
        one
        for one in earlier
        if not blocked(tuple(differences([runs[one].record, runs[place].record], policy)), 1)
    }


def _moved(
    run: MeasuredRun,
    place: int,
    known: Mapping[str, int],
    rows: Mapping[str, GateRow],
    crept: Collection[str],
    policy: Policy,
) -> dict[str, int]:
    """Return where each number last changed, now that this run is known too."""
    moved = dict(known)
    for paired in pair([run], policy):
        name = _name(paired.key)
        if not paired.wanted or not any(s and s.values for s in paired.samples):
            continue
        if name not in known or name in crept or _called(rows.get(name), policy):
            moved[name] = place
    return moved


def _called(row: GateRow | None, policy: Policy) -> Called:
    if row is None:
        return ""
    if row.verdict == "MISSING" and policy.missing == "fail":
        return "MISSING"
    if row.verdict == "WORSE":
        return "WORSE"
    return "BETTER" if row.improved else ""


def _series(
    runs: Sequence[MeasuredRun],
    told: Sequence[HistoryRun],
    rows: Sequence[Mapping[str, GateRow]],
    since: Sequence[Mapping[str, tuple[int, GateRow]]],
    policy: Policy,
) -> Iterator[HistorySeries]:
    for paired in pair(runs, policy):
        if not paired.wanted:
            continue
        name = _name(paired.key)
        points = tuple(
            _point(
                place,
                sample or NOT_THERE,
                told[place].against,
                rows[place].get(name),
                since[place].get(name),
                policy,
            )
            for place, sample in enumerate(paired.samples)
            if sample is not None or _called(rows[place].get(name), policy) == "MISSING"
        )
        if any(point.sample.values for point in points):
            yield HistorySeries(
                key=paired.key,
                role=paired.workload.role,
                evidence=paired.workload.evidence,
                unit=METRICS[paired.key.metric].unit,
                points=points,
            )


def _point(
    place: int,
    sample: Sample,
    against: int | None,
    row: GateRow | None,
    since: tuple[int, GateRow] | None,
    policy: Policy,
) -> HistoryPoint:
    anchor, shown = (None, row) if since is None else since
    return HistoryPoint(
        run=place,
        sample=sample,
        against=None if row is None or row.baseline is None else against,
        verdict=None if row is None else row.verdict,
        change=None if shown is None else shown.change,
        called=_called(shown, policy),
        since=anchor,
    )


def _name(key: Key) -> str:
    return msgspec.json.encode(key, order="sorted").decode()
