"""Measure again what a gate could not decide: more repetitions of the candidate's unclear cells."""

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from kvbench.cli import output
from kvbench.cli.options import Choice, may_write, spec_of
from kvbench.cli.running import run_to_end
from kvbench.cli.taking import (
    check_engine_works,
    check_memory,
    check_mode,
    condition_of,
    record_of,
    stop_on_signals,
    take_target,
    written_state,
)
from kvbench.errors import CellFailed, Interrupted, StoreError, UsageError
from kvbench.fio.cell_limits import refuse_unfit_plan
from kvbench.fio.probe import find_fio
from kvbench.gate.model import Gate, GateRow
from kvbench.gate.pool import refuse_other
from kvbench.host import guard, lease
from kvbench.host.model import Identity
from kvbench.measure.subjects import OF_A_CURVE
from kvbench.plan import Plan, again
from kvbench.store.read import list_runs, read_run
from kvbench.store.records import Pairing, RunRecord
from kvbench.store.redact import is_redacted, same_drive
from kvbench.store.write import RunWriter
from kvbench.units import format_clock

REPETITIONS_DEFAULT = 8  # where nobody can say how many would decide
REPETITIONS_MAX = 60
RELATIVE = ("_over_", "usable_", "jain_", "span_")  # a number that other cells take part in


def rerun(arguments: argparse.Namespace, gate: Gate, folders: Sequence[Path]) -> Path:
    """Measure the unclear cells again on ``--rerun TARGET`` and return the new run's folder.

    The cells come in the order in which the baseline had them.

    Raises:
        UsageError: nothing is unclear, or the target is not the candidate's drive in its state.
        Interrupted, CellFailed: the new run did not end in order; what was measured is kept.
    """
    unclear = [row for row in gate.rows if row.verdict == "UNCLEAR"]
    if not unclear:
        raise UsageError(f"nothing is unclear, so nothing is measured again: {gate.outcome}")
    baseline, candidate = (read_run(folder).record for folder in folders[:2])
    identity = guard.check_readable(arguments.rerun)
    _refuse_other_drive(candidate, identity)
    arguments.redact = is_redacted(candidate.identity)  # or the two would not be one drive
    points, workloads = _parts(baseline.plan, unclear)
    repetitions = arguments.repetitions or _repetitions(gate, unclear)
    plan = again(
        candidate.plan if _same_points(candidate.plan, baseline.plan) else baseline.plan,
        points=points,
        workloads=workloads,
        target=spec_of(identity),
        repetitions=repetitions,
        seed=candidate.plan.seed + len(folders),
    )
    refuse_unfit_plan(plan, identity)
    output.advise(
        f"measuring what is unclear again: {len(plan.cells)} cells in {repetitions} "
        f"repetitions, about {format_clock(plan.expected_s)}"
    )
    choice = Choice(plan=plan, identity=identity, default_target=False)
    tool = find_fio()
    with ExitStack() as held:
        take_target(choice, arguments, held)
        stop = held.enter_context(stop_on_signals())
        check_mode(plan, identity)
        check_memory(plan)
        check_engine_works(plan, tool, identity)
        allowed = may_write(arguments, own_file=plan.target.own_file)
        condition = condition_of(arguments.results, identity)
        written = written_state(choice, identity, tool, stop, allowed=allowed, condition=condition)
        record = record_of(
            arguments,
            plan,
            identity,
            written,
            tool,
            label=f"{candidate.label} again".strip(),
            pairing=Pairing(kind="rerun", pair_id=candidate.run_id, of=candidate.run_id),
            condition=condition,
        )
        refuse_other(candidate, record)
        writer = RunWriter.create(arguments.results, record)
        held.enter_context(lease.hold_run(writer.folder))
        end = run_to_end(
            plan,
            tool=tool,
            identity=identity,
            writer=writer,
            stop=stop,
            quiet=arguments.quiet or arguments.json,
        )
    if end.end == "interrupted":
        raise Interrupted("interrupted; what was measured is kept", where=str(writer.folder))
    if end.end == "failed":
        raise CellFailed(f"the run failed: {end.reason}", where=str(writer.folder))
    return writer.folder


def _repetitions(gate: Gate, unclear: Sequence[GateRow]) -> int:
    """Return how often to measure again, and tell when the baseline is what is too small."""
    n = min((row.baseline.n for row in unclear if row.baseline is not None), default=0)
    short = [
        row for row in unclear if row.change.more is not None and row.change.more_candidate is None
    ]
    if short:
        output.advise(
            f"the baseline has too few repetitions ({n}) for {len(short)} of {len(unclear)} open "
            f"numbers, however often the candidate is measured: measure both with "
            f"--repetitions {n + min(gate.more or 0, REPETITIONS_MAX)}"
        )
    return min(gate.more_candidate or REPETITIONS_DEFAULT, REPETITIONS_MAX)


def stored_reruns(results: Path, folders: Sequence[Path]) -> list[Path]:
    """Return the stored reruns of the candidate that are not among ``folders``.

    Each was a look at the candidate, so none may be forgotten.
    """
    candidate = read_run(folders[1]).record.run_id
    known = {folder.resolve() for folder in folders}
    found = []
    for folder in list_runs(results):
        try:
            pairing = read_run(folder).record.pairing
        except StoreError:
            continue  # of another run, and nobody asked for it
        mine = pairing is not None and (pairing.kind, pairing.of) == ("rerun", candidate)
        if mine and folder.resolve() not in known:
            output.advise(f"with the repetitions of the rerun {folder.name}")
            found.append(folder)
    return found


def _refuse_other_drive(candidate: RunRecord, identity: Identity) -> None:
    """Refuse a target that is clearly not what the candidate was measured on."""
    before = candidate.identity
    same = before.kind == identity.kind
    if same and before.kind == "file":
        same = (before.device_number, before.inode) == (identity.device_number, identity.inode)
    elif same:
        same = same_drive(before, identity)
    if not same:
        raise UsageError(
            "is not what the candidate was measured on",
            where=identity.path,
            hint=f"that was {before.path}, serial {before.serial or 'unknown'}; a path may move",
        )


def _parts(plan: Plan, rows: Sequence[GateRow]) -> tuple[set[str], set[str]]:
    """Return the points to measure again, and the workloads that are needed whole."""
    loads = {workload.name for workload in plan.workloads if workload.load is not None}
    workloads = {
        row.key.workload
        for row in rows
        if row.key.workload in loads
        or row.key.metric in OF_A_CURVE
        or any(part in row.key.metric for part in RELATIVE)
    }
    points = {
        cell.point_id
        for cell in plan.cells
        for row in rows
        if cell.purpose == "measure"
        and (cell.workload, cell.parameters, cell.alone)
        == (row.key.workload, row.key.parameters, row.key.alone)
    }
    return points, workloads


def _same_points(a: Plan, b: Plan) -> bool:
    """Whether two plans have the same points in the same order, so that either's order serves."""
    ours, theirs = ([cell.point_id for cell in plan.cells] for plan in (a, b))
    return ours == theirs
