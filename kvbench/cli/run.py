"""``kvbench run``: guard, prepare, measure, report."""

import argparse
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from kvbench import __version__, target
from kvbench.cli import output
from kvbench.cli.options import Choice, add_plan_arguments, choose
from kvbench.cli.plan import describe, paced_write_bytes, unpaced_writers
from kvbench.errors import EnvironmentMissing, ExitCode, Interrupted, Refused, UsageError
from kvbench.fio.cell_limits import refuse_unfit_plan
from kvbench.fio.probe import FioTool, check_engine, find_fio
from kvbench.host import guard, lease, probe
from kvbench.host.model import Identity, Written
from kvbench.plan import Plan, huge_pages_needed
from kvbench.session import run_plan
from kvbench.store import layout
from kvbench.store.read import find_run, read_run
from kvbench.store.records import FORMAT, RunRecord
from kvbench.store.write import RunWriter, finish_unended
from kvbench.units import format_size

LABEL_MAX = 200


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
    how.add_argument("--dry-run", action="store_true", help="print the plan and stop")
    how.add_argument("--quiet", action="store_true", help="no progress")
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run a plan, or the rest of one, and report it."""
    if arguments.yes and arguments.destroy is None and arguments.resume is None:
        raise UsageError("--yes only goes with --destroy")
    if not all(c.isprintable() for c in arguments.label) or len(arguments.label) > LABEL_MAX:
        raise UsageError(
            f"must be at most {LABEL_MAX} visible characters of UTF-8 text", where="--label"
        )
    if arguments.resume is not None:
        return _resume(arguments)
    choice = choose(arguments)
    if arguments.dry_run:
        return _dry_run(choice.plan, as_json=arguments.json)
    tool = find_fio()
    with ExitStack() as held:
        # Until the target is confirmed a signal ends kvbench at once; then it ends the cell.
        identity = _take_target(choice, arguments, held)
        stop = held.enter_context(_stop_on_signals())
        plan = choice.plan
        for scaled in plan.scaled:
            output.advise(f"fitted to the target: {scaled.workload}: {scaled.text}")
        _check_mode(plan, identity)
        _check_engine(plan, tool, identity)
        allowed = arguments.destroy is not None
        written = _written(choice, identity, tool, stop, allowed=allowed)
        record = _record(arguments, plan, identity, written, tool)
        writer = RunWriter.create(arguments.results, record)
        return _measure(arguments, plan, tool, identity, writer, stop)


def _dry_run(plan: Plan, *, as_json: bool) -> int:
    if as_json:
        output.print_json({"plan": plan})
    else:
        print("\n".join(describe(plan)))
    return int(ExitCode.OK)


def _take_target(choice: Choice, arguments: argparse.Namespace, held: ExitStack) -> Identity:
    """Make the default target when it is not there, pass the guard, and lock the target."""
    plan = choice.plan
    path = Path(plan.target.path)
    if choice.default_target and target.size_there(path) < plan.target.size_bytes:
        if path.exists():
            with lease.hold(guard.check_readable(str(path)), exclusive=False):
                pass  # in use by another run: this raises before that run's target is replaced
        output.advise(f"making {path} ({format_size(plan.target.size_bytes)})")
        target.make(path, plan.target.size_bytes)
    identity = choice.identity or guard.check_readable(str(path))
    _enter(plan, identity, arguments, held)
    return identity


def _enter(plan: Plan, identity: Identity, arguments: argparse.Namespace, held: ExitStack) -> None:
    """Pass the guard for what the plan does, have it confirmed, then hold the target."""
    writes = plan.writing_cells > 0 or arguments.destroy is not None
    if writes:
        guard.check_writable(identity, arguments.destroy, own_file=plan.target.own_file)
        if not plan.target.own_file:
            _confirm(plan, identity, arguments)
    held.enter_context(lease.hold(identity, exclusive=writes and identity.kind == "block"))


def _confirm(plan: Plan, identity: Identity, arguments: argparse.Namespace) -> None:
    """Show what will be destroyed and have it confirmed."""
    writers = ", ".join(unpaced_writers(plan)) or "none"
    output.advise(
        f"writing destroys the data on {identity.real_path} "
        f"({identity.kind}, {format_size(identity.size_bytes)}, serial "
        f"{identity.serial or 'unknown'}): {plan.writing_cells} cells write, paced "
        f"{format_size(paced_write_bytes(plan))}, as fast as the device takes it: {writers}"
        f"{_fill_words(plan, identity)}"
    )
    if arguments.yes:
        return
    if not sys.stdin.isatty():
        raise Refused(
            "writing was not confirmed, and there is no terminal to ask on",
            where=identity.real_path,
            hint="add --yes when you are sure",
        )
    print("type the target's name again to go on: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != arguments.destroy:
        raise Refused("not confirmed, nothing was written", where=identity.real_path)


def _fill_words(plan: Plan, identity: Identity) -> str:
    """Say what is written before the first cell."""
    if identity.kind == "block":
        return ""
    size = format_size(_span_bytes(plan, identity))
    return f"; where parts of it were never written, {size} are filled first"


def _check_mode(plan: Plan, identity: Identity) -> None:
    """O_DIRECT where it is asked for; the page cache only where it is asked for."""
    if not plan.direct:
        return
    works, reason = probe.supports_direct(identity.real_path)
    if not works:
        raise EnvironmentMissing(
            f"O_DIRECT does not work here: {reason}",
            where=identity.real_path,
            hint="use a target on a disk, or --buffered, which measures the page cache and says so",
        )


def _check_memory(plan: Plan) -> None:
    """A plan that is made now leaves out what lacks memory; one that is resumed cannot."""
    needed = max(huge_pages_needed([p.stream for p in cell.placed]) for cell in plan.cells)
    free = probe.huge_pages_free()
    if needed > free:
        raise EnvironmentMissing(
            f"this run needs {needed} huge pages of 2 MiB and {free} are free",
            hint=f"sysctl vm.nr_hugepages={needed}",
        )
    streams = [p.stream for cell in plan.cells for p in cell.placed]
    reason = probe.why_not_contiguous()
    if reason and any(stream.buffers == "contiguous" for stream in streams):
        raise EnvironmentMissing(f"this run needs contiguous buffers: {reason}")


def _check_engine(plan: Plan, tool: FioTool, identity: Identity) -> None:
    """Really read the target with the plan's engine, in the shape that needs most of the host."""
    streams = [placed.stream for cell in plan.cells for placed in cell.placed]
    registered = [stream for stream in streams if stream.shape == "throughput"]
    # Registered buffers are locked memory: depth x block is what a memlock limit refuses.
    largest = max(registered or streams, key=lambda s: s.queue_depth * s.max_block_bytes)
    with tempfile.TemporaryDirectory(prefix="kvbench-") as folder:
        check_engine(
            tool,
            plan.engine,
            target_path=identity.real_path,
            direct=plan.direct,
            workdir=Path(folder),
            registered=bool(registered),
            block_bytes=largest.max_block_bytes,
            queue_depth=largest.queue_depth,
        )


def _written(
    choice: Choice, identity: Identity, tool: FioTool, stop: threading.Event, *, allowed: bool
) -> Written:
    """Return whether the target holds written data, filling it where that is allowed and needed."""
    plan = choice.plan
    path = Path(identity.real_path)
    if identity.kind == "block":
        if not plan.direct:
            return target.prove(path, identity.size_bytes, direct=False)
        return Written(
            state="unproven",
            reason="nobody has proved that this block device was filled; reads of blocks never "
            "written, or trimmed, may not reach the flash and look too fast",
        )
    span = _span_bytes(plan, identity)
    proof = target.prove(path, span, direct=True)
    if proof.state != "proven" and (plan.target.own_file or allowed):
        output.advise(f"filling {path} with incompressible data ({format_size(span)})")
        if stop.is_set():
            raise Interrupted("interrupted, nothing was written", where=str(path))
        target.fill(path, span, tool=tool, direct=plan.direct, engine=plan.engine, stop=stop)
        proof = target.prove(path, span, direct=True)
    if not plan.direct:
        return target.prove(path, span, direct=False)
    if proof.state != "proven" and (proof.hole_bytes or proof.unwritten_bytes):
        raise UsageError(
            f"parts of it were never written, so reads would not reach the device: {proof.reason}",
            where=identity.path,
            hint=f"write the whole file first, or let kvbench fill it: --destroy {identity.path}",
        )
    return proof


def _span_bytes(plan: Plan, identity: Identity) -> int:
    """Return how much of the target, from its start, must hold written data."""
    if plan.target.own_file:
        return identity.size_bytes
    span = max(p.offset_bytes + p.size_bytes for cell in plan.cells for p in cell.placed)
    return min(span, identity.size_bytes)


def _still_written(plan: Plan, identity: Identity, written: Written) -> None:
    """Refuse to go on with a file that held data when its run began and has holes by now."""
    if written.state != "proven":
        return
    proof = target.prove(Path(identity.real_path), _span_bytes(plan, identity), direct=True)
    if proof.state != "proven":
        raise UsageError(
            f"was all written when this run began and is not any more: {proof.reason}",
            where=identity.path,
            hint="start a new run; cells of the two states would not compare",
        )


def _record(
    arguments: argparse.Namespace, plan: Plan, identity: Identity, written: Written, tool: FioTool
) -> RunRecord:
    now = datetime.now(UTC)
    return RunRecord(
        format=FORMAT,
        run_id=layout.run_id(now, arguments.label),
        kvbench_version=__version__,
        created_at=now.isoformat(timespec="seconds"),
        label=arguments.label,
        command=arguments.command,
        plan=plan,
        identity=identity,
        written=written,
        facts=(*probe.target_facts(identity), *probe.host_facts()),
        fio_version=tool.version_text,
    )


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
    archive = read_run(find_run(arguments.results, arguments.resume))
    plan = archive.record.plan
    refuse_unfit_plan(plan, archive.record.identity)
    if finish_unended(archive):
        return _report(arguments, archive.folder)
    ends = {cell.record.cell.cell_id: cell.record.end for cell in archive.cells}
    again = frozenset(cell_id for cell_id, end in ends.items() if end == "interrupted")
    done = frozenset(ends) - again
    if len(done) == len(plan.cells):
        raise UsageError("this run is complete, nothing is missing", where=arguments.resume)
    tool = find_fio()
    if tool.version_text != archive.record.fio_version:
        raise EnvironmentMissing(
            f"the run was made with {archive.record.fio_version}, here is {tool.version_text}",
            where=arguments.resume,
            hint="measure again; one run has one fio",
        )
    identity = archive.record.identity
    with ExitStack() as held:
        guard.same_device(identity)
        _enter(plan, identity, arguments, held)
        stop = held.enter_context(_stop_on_signals())
        _still_written(plan, identity, archive.record.written)
        _check_memory(plan)
        _check_engine(plan, tool, identity)
        writer = RunWriter.reopen(archive.folder, again)
        return _measure(arguments, plan, tool, identity, writer, stop, done)


def _measure(
    arguments: argparse.Namespace,
    plan: Plan,
    tool: FioTool,
    identity: Identity,
    writer: RunWriter,
    stop: threading.Event,
    done: frozenset[str] = frozenset(),
) -> int:
    from kvbench.cli.live import LiveView

    quiet = arguments.quiet or arguments.json
    with LiveView(quiet=quiet, repetitions=plan.repetitions) as view:
        end = run_plan(
            plan,
            tool=tool,
            identity=identity,
            writer=writer,
            observer=view,
            stop=stop,
            done=done,
        )
    if end.cells_done == 0 and end.end == "interrupted":
        raise Interrupted("interrupted before the first cell was done", where=str(writer.folder))
    return _report(arguments, writer.folder)


def _report(arguments: argparse.Namespace, folder: Path) -> int:
    from kvbench.cli import reporting

    reported = reporting.read_and_measure(folder)
    if not arguments.json:  # before the files: a store that is full must not hide what is known
        print(reporting.summary_text(reported, ascii_only=not output.speaks_unicode(sys.stdout)))
        sys.stdout.flush()
    files = reporting.write_files(reported, None, None)
    if arguments.json:
        output.print_json(reporting.as_json(reported, files))
    else:
        print(f"report  {files[0]}")
        print(f"table   {files[1]}")
        if reported.run.end is not None and reported.run.end.end != "complete":
            output.advise(f"{reported.run.end.end}: {reported.run.end.reason}")
            output.advise(f"to measure the rest: kvbench run --resume {folder.name}")
    return int(reported.exit_code)


@contextmanager
def _stop_on_signals() -> Iterator[threading.Event]:
    """Turn INT, TERM and HUP into a flag: the running cell is ended, stored, and reported."""
    stop = threading.Event()

    def request(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            return
        stop.set()
        output.advise(f"{signal.Signals(number).name}: ending what runs now")

    # What the caller ignores stays ignored: `nohup kvbench run` outlives its terminal.
    signals = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    before = {number: signal.signal(number, request) for number in signals}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
