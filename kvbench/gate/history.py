"""Runs of one drive in the order of time -> its history, with the changes that a gate calls.  Pure.

Each run is held against the latest earlier run that it may be held against; only what the gate
calls WORSE, or better beyond the margin, is a change.  A run that may be held against no earlier
one begins a line of its own, and says why.
"""

from collections.abc import Iterator, Mapping, Sequence
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
    """

    run: int
    sample: Sample
    against: int | None
    verdict: RowVerdict | None
    change: Change | None
    called: Literal["WORSE", "BETTER", ""]


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
    rows: list[dict[str, GateRow]] = []
    for place, (run, side) in enumerate(zip(runs, sides_of(runs), strict=True)):
        against, apart = _earlier(runs, place, free)
        gate = None if against is None else decide(runs[against], run, free, Judgement())
        rows.append({} if gate is None else {_name(row.key): row for row in gate.rows})
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
        series=tuple(_series(runs, told, rows, free)),
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


def _series(
    runs: Sequence[MeasuredRun],
    told: Sequence[HistoryRun],
    rows: Sequence[Mapping[str, GateRow]],
    policy: Policy,
) -> Iterator[HistorySeries]:
    for paired in pair(runs, policy):
        if not paired.wanted:
            continue
        name = _name(paired.key)
        points = tuple(
            _point(place, sample, told[place].against, rows[place].get(name))
            for place, sample in enumerate(paired.samples)
            if sample is not None
        )
        if any(point.sample.values for point in points):
            yield HistorySeries(
                key=paired.key,
                role=paired.workload.role,
                evidence=paired.workload.evidence,
                unit=METRICS[paired.key.metric].unit,
                points=points,
            )


def _point(place: int, sample: Sample, against: int | None, row: GateRow | None) -> HistoryPoint:
    called: Literal["WORSE", "BETTER", ""] = ""
    if row is not None and row.verdict == "WORSE":
        called = "WORSE"
    elif row is not None and row.improved:
        called = "BETTER"
    return HistoryPoint(
        run=place,
        sample=sample,
        against=None if row is None or row.baseline is None else against,
        verdict=None if row is None else row.verdict,
        change=None if row is None else row.change,
        called=called,
    )


def _name(key: Key) -> str:
    return msgspec.json.encode(key, order="sorted").decode()
