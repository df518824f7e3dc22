"""``kvbench run``: guard, prepare, measure, report."""

import argparse
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

from kvbench.cli import output
from kvbench.cli.options import add_plan_arguments, choose, may_write
from kvbench.cli.plan import decides_words, describe
from kvbench.cli.running import run_to_end
from kvbench.cli.taking import (
    add_redact_argument,
    check_engine_works,
    check_label,
    check_memory,
    check_mode,
    condition_of,
    enter,
    record_of,
    still_prepared,
    still_written,
    stop_on_signals,
    take_target,
    written_state,
)
from kvbench.errors import EnvironmentMissing, ExitCode, Interrupted, UsageError
from kvbench.fio.cell_limits import refuse_unfit_plan
from kvbench.fio.probe import FioTool, find_fio
from kvbench.host import guard, lease, probe
from kvbench.host.boot import boot_id
from kvbench.host.model import Identity
from kvbench.plan import Plan
from kvbench.session import write_left_trimmed
from kvbench.store import journal
from kvbench.store.read import RunArchive, find_run, read_run
from kvbench.store.records import RunRecord
from kvbench.store.redact import is_redacted
from kvbench.store.write import RunWriter, finish_unended, measured_anew


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_plan_arguments(parser)
    how = parser.add_argument_group("how")
    how.add_argument("--label", default="", metavar="TEXT", help="a note that names this run")
    how.add_argument(
        "--resume",
        metavar="RUN",
        help="add the cells that a stopped run lacks; what it measures stays as stored",
    )
    how.add_argument(
        "--yes", action="store_true", help="with --destroy: do not ask, there is no terminal"
    )
    add_redact_argument(how)
    how.add_argument("--dry-run", action="store_true", help="print the plan and stop")
    how.add_argument("--quiet", action="store_true", help="no progress")
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run a plan, or the rest of one, and report it."""
    if arguments.yes and arguments.destroy is None and arguments.resume is None:
        raise UsageError("--yes only goes with --destroy")
    check_label(arguments.label)
    if arguments.resume is not None:
        return _resume(arguments)
    choice = choose(arguments)
    if arguments.dry_run:
        return _dry_run(choice.plan, as_json=arguments.json)
    tool = find_fio()
    with ExitStack() as held:
        # Until the target is confirmed a signal ends kvbench at once; then it ends the cell.
        identity = take_target(choice, arguments, held)
        stop = held.enter_context(stop_on_signals())
        plan = choice.plan
        for scaled in plan.scaled:
            output.advise(f"fitted to the target: {scaled.workload}: {scaled.text}")
        if not (arguments.quiet or arguments.json):
            output.advise(f"decides: {decides_words(plan)}")
        check_mode(plan, identity)
        check_engine_works(plan, tool, identity)
        allowed = may_write(arguments, own_file=plan.target.own_file)
        condition = condition_of(arguments.results, identity)
        written = written_state(choice, identity, tool, stop, allowed=allowed, condition=condition)
        record = record_of(arguments, plan, identity, written, tool, condition=condition)
        writer = RunWriter.create(arguments.results, record)
        held.enter_context(lease.hold_run(writer.folder))
        return _measure(arguments, plan, tool, identity, writer, stop)


def _dry_run(plan: Plan, *, as_json: bool) -> int:
    if as_json:
        output.print_json({"plan": plan})
    else:
        print("\n".join(describe(plan)))
    return int(ExitCode.OK)


def _resume(arguments: argparse.Namespace) -> int:
    """Go on with a run that was stopped: the same plan, only the cells that are missing."""
    fresh = argparse.ArgumentParser()
    add_arguments(fresh)
    kept = ("resume", "results", "destroy", "yes", "quiet", "json", "command")
    given = sorted(
        name
        for name, value in vars(arguments).items()
        if name not in kept and value != fresh.get_default(name)
    )
    if given:
        raise UsageError(
            f"--resume goes on with the stored plan and does not take {', '.join(given)}",
            hint="leave them out, or start a new run",
        )
    with ExitStack() as held:
        folder = find_run(arguments.results, arguments.resume)
        held.enter_context(lease.hold_run(folder))  # before it is read: another one may add to it
        return _go_on(arguments, read_run(folder), held)


def _go_on(arguments: argparse.Namespace, archive: RunArchive, held: ExitStack) -> int:
    """Measure what a run lacks; its folder is held."""
    if archive.record.command[1:2] == ("prepare",):
        raise UsageError(
            "this is a preparation, which does not go on from the middle: its rounds must follow "
            "its fill without a pause",
            where=arguments.resume,
            hint="kvbench prepare again",
        )
    plan = archive.record.plan
    refuse_unfit_plan(plan, archive.record.identity)
    left = journal.left_trimmed(archive.folder)
    if not left and finish_unended(archive):
        return _report(arguments, archive.folder)
    again = measured_anew(archive)
    done = frozenset(cell.record.cell.cell_id for cell in archive.cells) - again
    if len(done) == len(plan.cells) and not left:
        raise UsageError("this run is complete, nothing is missing", where=arguments.resume)
    tool = find_fio()
    if tool.version_text != archive.record.fio_version:
        raise EnvironmentMissing(
            f"the run was made with {archive.record.fio_version}, here is {tool.version_text}",
            where=arguments.resume,
            hint="measure again; one run has one fio",
        )
    identity = archive.record.identity
    if is_redacted(identity):
        raise UsageError(
            "this run was stored with --redact, so nobody can tell whether this is its drive",
            where=arguments.resume,
            hint="measure anew",
        )
    identity = guard.found_again(identity, same_boot=archive.record.boot_id == boot_id())
    _check_unchanged(archive.record, identity)
    enter(plan, identity, arguments, held)
    stop = held.enter_context(stop_on_signals())
    if left:
        output.advise(f"writing again what was left trimmed: cell {', '.join(left)}")
    write_left_trimmed(plan, identity, tool=tool, folder=archive.folder)
    still_written(plan, identity, archive.record.written)
    still_prepared(archive.record, archive.folder.parent, identity)
    check_memory(plan)
    check_engine_works(plan, tool, identity)
    writer = RunWriter.reopen(archive.folder, again)
    return _measure(arguments, plan, tool, identity, writer, stop, done)


def _check_unchanged(record: RunRecord, identity: Identity) -> None:
    """Refuse to go on with a drive or a kernel that is another by now: one run, one of each."""
    from kvbench.compare.aspects import ASPECTS

    now = replace(record, facts=(*probe.target_facts(identity), *probe.host_facts()))
    for name in ("model", "firmware", "lba_format", "kernel"):
        words, read = ASPECTS[name]
        before, after = read(record), read(now)
        if None not in (before, after) and before != after:
            raise UsageError(
                f"the {words} was {before} when this run began, and is {after}",
                where=record.run_id,
                hint="start a new run; cells of the two would not compare",
            )


def _measure(
    arguments: argparse.Namespace,
    plan: Plan,
    tool: FioTool,
    identity: Identity,
    writer: RunWriter,
    stop: threading.Event,
    done: frozenset[str] = frozenset(),
) -> int:
    quiet = arguments.quiet or arguments.json
    end = run_to_end(
        plan, tool=tool, identity=identity, writer=writer, stop=stop, done=done, quiet=quiet
    )
    if end.cells_done == 0 and end.end == "interrupted":
        raise Interrupted("interrupted before the first cell was done", where=str(writer.folder))
    return _report(arguments, writer.folder)


def _report(arguments: argparse.Namespace, folder: Path) -> int:
    from kvbench.cli import reporting

    reported = reporting.read_and_measure(folder)
    text = reporting.summary_text(reported, ascii_only=not output.speaks_unicode(sys.stdout))
    # Before the files: a store that is full must not hide what is known.
    failed = None if arguments.json else output.try_print(text)
    files = reporting.write_files(reported)
    if arguments.json:
        failed = output.try_print(output.json_text(reporting.as_json(reported, files)))
    elif failed is None:
        failed = output.try_print(f"report  {files[0]}\ntable   {files[1]}")
    if failed is not None:
        output.advise(f"standard output: {failed.strerror}; the report is {files[0]}")
    if not arguments.json and reported.run.end is not None and reported.run.end.end != "complete":
        output.advise(f"{reported.run.end.end}: {reported.run.end.reason}")
        output.advise(f"to measure the rest: kvbench run --resume {folder.name}")
    return int(output.code_after(reported.exit_code, failed))
