"""Measured runs -> rows that pair their numbers, by an outer join.  Pure.

Numbers pair by workload, parameters, stream, direction and metric.  A number that one run lacks is
a row all the same, and its verdict is MISSING.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
from msgspec import Struct

from kvbench.compare.aspects import blocked, device_of, differences, in_turns
from kvbench.compare.judge import judge
from kvbench.compare.lacking import Sides
from kvbench.compare.letters import side_letter
from kvbench.compare.model import Change, Comparison, Difference, Key, Row, Sample, Side, Unshared
from kvbench.compare.policy import Policy
from kvbench.compare.question import Question, sample_of
from kvbench.compare.winners import winners
from kvbench.measure.model import MeasuredRun, Summary
from kvbench.measure.subjects import OF_A_CURVE
from kvbench.metrics import METRICS
from kvbench.plan import Cell, Plan
from kvbench.stats import rank_sum
from kvbench.workload.schema import Workload


class Paired(Struct, frozen=True, kw_only=True):
    """One number over all sides, not yet judged."""

    key: Key
    workload: Workload
    wanted: bool  # the policy is about it
    samples: tuple[Sample | None, ...]


def compare_runs(runs: Sequence[MeasuredRun], policy: Policy) -> Comparison:
    """Return ``runs`` side by side, each held against the first.

    Args:
        runs: at least two, in the order of their columns.  A workload that only one of them has
            is listed and has no rows.
        policy: margins, confidence, and what must not differ.
    """
    found = tuple(differences([run.record for run in runs], policy))
    alone = {one.workload for one in _unshared(runs) if len(one.sides) == 1}
    pairs = [paired for paired in pair(runs, policy) if paired.key.workload not in alone]
    names = [side_letter(place) for place in range(len(runs))]
    changes = changes_of(pairs, runs, found, policy, sides="two", names=names)
    rows = rows_of(pairs, changes)
    tests = sum(paired.wanted for paired in pairs)
    return Comparison(
        sides=sides_of(runs),
        differences=found,
        rows=rows,
        winners=winners(rows, runs, found, policy),
        unshared=tuple(_unshared(runs)),
        confidence=policy.confidence,
        tests=tests,
        decides_from_n=rank_sum.smallest_n(policy.chance / 2 / max(1, tests * (len(runs) - 1))),
        policy=policy.name,
    )


def pair(runs: Sequence[MeasuredRun], policy: Policy) -> list[Paired]:
    """Return the numbers of all runs, in the order of the first plan that has them."""
    found: dict[str, tuple[Key, Workload, list[Summary | None]]] = {}
    for side, run in enumerate(runs):
        workloads = {workload.name: workload for workload in run.record.plan.workloads}
        for summary in run.summaries:
            workload = workloads.get(summary.workload)
            if workload is None or not _counts(summary):
                continue
            key = _key(summary)
            name = msgspec.json.encode(key, order="sorted").decode()
            entry = found.setdefault(name, (key, workload, [None] * len(runs)))
            entry[2][side] = summary
    return [
        Paired(
            key=key,
            workload=workload,
            wanted=_wanted(key, workload, policy),
            samples=tuple(None if s is None else sample_of(s) for s in summaries),
        )
        for key, workload, summaries in found.values()
    ]


def changes_of(
    pairs: Sequence[Paired],
    runs: Sequence[MeasuredRun],
    found: Sequence[Difference],
    policy: Policy,
    *,
    sides: Sides,
    names: Sequence[str],
    looks: Sequence[int] = (),
) -> list[list[Change | None]]:
    """Return for each pair the change of each side against the first.

    The numbers that the policy is about are one family of tests over all sides, all others another.
    ``names`` are what reasons call the sides; ``looks`` how often each number was measured, once if
    empty.
    """
    changes: list[list[Change | None]] = [[None] * len(runs) for _ in pairs]
    others = range(1, len(runs))
    why = {side: blocked(found, side) for side in others}
    odd = {side: _odd_workloads(runs[0].record.plan, runs[side].record.plan) for side in others}
    together = {side: in_turns(runs[0].record, runs[side].record) for side in others}
    for wanted in (True, False):
        places = [
            (n, side) for side in others for n, one in enumerate(pairs) if one.wanted is wanted
        ]
        questions = [
            Question(
                a=pairs[n].samples[0],
                b=pairs[n].samples[side],
                better=METRICS[pairs[n].key.metric].better,
                margin=policy.margin(pairs[n].key.metric),
                blocked=why[side] or odd[side].get(pairs[n].key.workload, ""),
                interleaved=together[side],
                names=(names[0], names[side]),
                looks=looks[n] if looks else 1,
            )
            for n, side in places
        ]
        judged = judge(questions, policy.chance, sides=sides)
        for (n, side), change in zip(places, judged, strict=True):
            changes[n][side] = change
    return changes


def rows_of(pairs: Sequence[Paired], changes: Sequence[Sequence[Change | None]]) -> tuple[Row, ...]:
    """Return the rows of a comparison."""
    return tuple(
        Row(
            key=paired.key,
            role=paired.workload.role,
            unit=METRICS[paired.key.metric].unit,
            primary=paired.wanted,
            samples=paired.samples,
            changes=tuple(of_pair),
        )
        for paired, of_pair in zip(pairs, changes, strict=True)
    )


def sides_of(runs: Sequence[MeasuredRun]) -> tuple[Side, ...]:
    """Return the columns; names that would be the same get the run's id."""
    wanted = [_name(run) for run in runs]
    names = [
        name if wanted.count(name) == 1 else f"{name} ({run.record.run_id})"
        for name, run in zip(wanted, runs, strict=True)
    ]
    return tuple(
        Side(
            name=name,
            run_id=run.record.run_id,
            label=run.record.label,
            created_at=run.record.created_at,
            device=device_of(run.record),
            repetitions=run.record.plan.repetitions,
            incomplete=incomplete(run),
            caveats=run.record.caveats,
        )
        for name, run in zip(names, runs, strict=True)
    )


def incomplete(run: MeasuredRun) -> str:
    """Return what of a run is missing, "" when nothing is."""
    parts = []
    if run.end is None:
        parts.append("how it ended is not recorded")
    elif run.end.end != "complete":
        parts.append(f"it is {run.end.end}")
    planned = {cell.cell_id for cell in run.record.plan.cells}
    missing = len(planned - {cell.cell.cell_id for cell in run.cells})
    if missing:
        parts.append(f"{missing} of {len(run.record.plan.cells)} cells are missing")
    parts += run.damage[:1]
    if len(run.damage) > 1:
        parts.append(f"and {len(run.damage) - 1} more damaged parts")
    return "; ".join(parts)


def _name(run: MeasuredRun) -> str:
    record = run.record
    firmware = next((f.value for f in record.facts if f.name == "device_firmware"), None)
    described = " ".join(part for part in (device_of(record), firmware) if part)
    return record.label or described or record.run_id


def _wanted(key: Key, workload: Workload, policy: Policy) -> bool:
    return key.alone is None and policy.wants(workload, key.stream, key.metric)


def _counts(summary: Summary) -> bool:
    if summary.purpose == "measure":
        return True
    return summary.purpose == "search" and summary.metric in OF_A_CURVE


def _key(summary: Summary) -> Key:
    return Key(
        workload=summary.workload,
        parameters=summary.parameters,
        alone=summary.alone,
        stream=summary.stream,
        direction=summary.direction,
        metric=summary.metric,
    )


def _odd_workloads(a: Plan, b: Plan) -> dict[str, str]:
    """Return the workloads of one name that do other I/O in the two plans, with the reason."""
    ours, theirs = ({w.name: w.digest for w in plan.workloads} for plan in (a, b))
    odd = {
        name: f"the two runs did other I/O under the name {name}"
        for name in ours.keys() & theirs.keys()
        if ours[name] != theirs[name]
    }
    times = [_timings(plan.cells) for plan in (a, b)]
    for name in times[0].keys() & times[1].keys() - odd.keys():
        if times[0][name] != times[1][name]:
            odd[name] = f"{name} ran for {times[0][name]:g} s and for {times[1][name]:g} s a cell"
    return odd


def _timings(cells: Sequence[Cell]) -> dict[str, float]:
    return {cell.workload: cell.timing.runtime_s for cell in cells if cell.purpose == "measure"}


def _unshared(runs: Sequence[MeasuredRun]) -> Iterator[Unshared]:
    names = [{w.name for w in run.record.plan.workloads} for run in runs]
    if all(a == b for a, b in pairwise(names)):
        return
    ordered = dict.fromkeys(w.name for run in runs for w in run.record.plan.workloads)
    for name in ordered:
        sides = tuple(side for side, known in enumerate(names) if name in known)
        if len(sides) < len(runs):
            yield Unshared(workload=name, sides=sides)
