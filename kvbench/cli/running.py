"""Run a plan to its end, or until its numbers are precise enough, and show how it goes."""

import threading
from itertools import groupby

from kvbench.cli import output
from kvbench.fio.probe import FioTool
from kvbench.host.model import Identity
from kvbench.measure.precision import STOPPED_COVERAGE, Precision, precision
from kvbench.measure.run import measure_run
from kvbench.plan import INTERVAL_REPETITIONS_MIN, Plan
from kvbench.session import Session
from kvbench.store.read import read_run
from kvbench.store.records import EndRecord
from kvbench.store.write import RunWriter

NAMED_MAX = 5


def run_to_end(
    plan: Plan,
    *,
    tool: FioTool,
    identity: Identity,
    writer: RunWriter,
    stop: threading.Event,
    done: frozenset[str] = frozenset(),
    quiet: bool,
) -> EndRecord:
    """Run the cells of ``plan`` that are not in ``done``; return how the run ended.

    Raises:
        StoreError: the run folder can no longer be written; what it holds is kept.
    """
    from kvbench.cli.live import LiveView

    with LiveView(quiet=quiet, repetitions=plan.repetitions) as view:
        session = Session(
            plan,
            tool=tool,
            identity=identity,
            writer=writer,
            observer=view,
            stop=stop,
            done=done,
        )
        if plan.until_precise is None:
            session.run(plan.cells)
            return session.finish()
        return _until_precise(session, plan, plan.until_precise, writer, quiet=quiet)


def _until_precise(
    session: Session, plan: Plan, share: float, writer: RunWriter, *, quiet: bool
) -> EndRecord:
    """Run repetition by repetition; between two of them nothing is measured, so looking is free."""
    found: Precision | None = None
    for repetition, cells in groupby(plan.cells, key=lambda cell: cell.repetition):
        if not session.run(cells):
            return session.finish()
        if repetition < INTERVAL_REPETITIONS_MIN:
            continue
        found = precision(measure_run(read_run(writer.folder)), share)
        if not found.wide:
            said = _words(found, share, repetition)
            return session.finish(said, repetitions=repetition)
        if not quiet and repetition < plan.repetitions:
            output.advise(f"after {repetition} repetitions: {_words(found, share, repetition)}")
    return session.finish(_words(found, share, plan.repetitions) if found else "")


def _words(found: Precision, share: float, repetitions: int) -> str:
    width = f"{100 * share:g} %"
    rest = f", {found.unmeasured} have no value" if found.unmeasured else ""
    if not found.numbers:
        return f"no primary number has a value after {repetitions} repetitions"
    if not found.wide:
        return (
            f"every primary number that has a value ({found.numbers}{rest}) has an interval "
            f"narrower than {width} of its median after {repetitions} repetitions; stopping then "
            f"makes them too narrow: {STOPPED_COVERAGE}"
        )
    named = ", ".join(
        f"{name}: {'no interval' if w is None else f'{100 * w:.1f} %'}"
        for name, w in sorted(found.wide, key=lambda one: -(one[1] or float("inf")))[:NAMED_MAX]
    )
    more = f", and {len(found.wide) - NAMED_MAX} more" if len(found.wide) > NAMED_MAX else ""
    return (
        f"{len(found.wide)} of {found.numbers} primary numbers{rest} are not within {width} "
        f"after {repetitions} repetitions: {named}{more}"
    )
