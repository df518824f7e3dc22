"""``kvbench prepare``: purge a device, fill it, and run rounds until it is steady."""

import argparse
import platform
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from msgspec.structs import replace

from kvbench.cli import output
from kvbench.cli.options import DEFAULT_SEED, spec_of
from kvbench.cli.prepare_words import (
    Todo,
    cost_words,
    describe,
)
from kvbench.cli.stored import add_results_argument
from kvbench.cli.taking import (
    add_redact_argument,
    check_engine_works,
    check_label,
    check_mode,
    enter,
    record_of,
    shown_serial,
    stop_on_signals,
)
from kvbench.errors import ExitCode, Interrupted, KvbenchError, Refused, UsageError
from kvbench.fio.launch import LiveCounters
from kvbench.fio.probe import FioTool, find_fio
from kvbench.fio.sections import section_seed
from kvbench.host import guard, lease, probe
from kvbench.host.model import EraseAbilities, Identity, Written
from kvbench.plan import Plan, make_plan
from kvbench.prepare.fill import coverage, fill_pass, passes
from kvbench.prepare.purge import choose, purge
from kvbench.prepare.rounds import run_rounds
from kvbench.session import Session
from kvbench.stats.steady import WINDOW_ROUNDS
from kvbench.store import layout
from kvbench.store.preparation import (
    FORMAT,
    Preparation,
    PurgeMethod,
    SteadyMetric,
    binding_of,
    can_be_bound,
)
from kvbench.store.records import FORMAT as RECORD_FORMAT
from kvbench.store.records import EndRecord
from kvbench.store.redact import hider
from kvbench.store.stamps import drop_stamp, encode, hidden_binding, save_stamp
from kvbench.store.write import RunWriter, write_derived
from kvbench.units import (
    format_bandwidth,
    format_clock,
    format_size,
    parse_duration,
    parse_size,
)
from kvbench.workload import catalog

WORKLOAD = "steady-state"
ROUNDS_MAX = 25  # as the test specification allows
PASSES = 2
PASSES_MAX = 10
TELL_EVERY_S = 10.0
UNIT_MIN, UNIT_MAX = 512, 1024 * 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("target", metavar="TARGET", help="the block device, or a file, to prepare")
    parser.add_argument(
        "--destroy", metavar="TARGET", help="the same TARGET again: all that it holds is destroyed"
    )
    parser.add_argument("--yes", action="store_true", help="with --destroy: do not ask")
    what = parser.add_argument_group("what is done")
    what.add_argument(
        "--purge",
        choices=["auto", *get_args(PurgeMethod)],
        default="auto",
        help="how old data is removed; auto: an NVMe format with erasure where that hits this "
        "namespace alone, else a discard; sanitize hits the whole drive and is never chosen",
    )
    what.add_argument(
        "--passes",
        type=int,
        default=PASSES,
        metavar="N",
        help=f"writes of everything in order, then as many in random order (default: {PASSES})",
    )
    what.add_argument(
        "--indirection-unit",
        metavar="SIZE",
        help="block size of the random passes (default: what the device tells)",
    )
    what.add_argument(
        "--workload",
        default=WORKLOAD,
        metavar="W",
        help=f"what a round does; must write (default: {WORKLOAD})",
    )
    what.add_argument(
        "--round", metavar="S", help="seconds of a round (default: the workload's, 60 s)"
    )
    what.add_argument(
        "--rounds",
        type=int,
        default=ROUNDS_MAX,
        metavar="N",
        help=f"at most so many rounds (default: {ROUNDS_MAX}); it ends after {WINDOW_ROUNDS} in a "
        "row that are steady",
    )
    where = parser.add_argument_group("where")
    add_results_argument(
        where, "the results store; later runs look there for the record of the preparation"
    )
    parser.add_argument("--label", default="prepare", metavar="TEXT", help="names its run")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="decides all random places")
    add_redact_argument(parser)
    parser.add_argument("--dry-run", action="store_true", help="tell bytes and time, and stop")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Prepare a target, keep the record, and report the rounds."""
    if arguments.yes and arguments.destroy is None:
        raise UsageError("--yes only goes with --destroy")
    check_label(arguments.label)
    identity = guard.check_readable(arguments.target)
    abilities = probe.erase_abilities(identity)
    todo = _decide(arguments, identity, abilities)
    described = describe(todo, identity, shown_serial(identity, hide=arguments.redact))
    if arguments.dry_run:
        if arguments.json:
            output.print_json({"todo": todo})
        else:
            print("\n".join(described))
        return int(ExitCode.OK)
    tool = find_fio()
    plan = todo.plan
    with ExitStack() as held:
        enter(plan, identity, arguments, held, before=f"; {cost_words(todo)}")
        stop = held.enter_context(stop_on_signals())
        if not arguments.quiet:
            for line in described:
                output.advise(line)
        check_mode(plan, identity)
        check_engine_works(plan, tool, identity)
        binding = binding_of(identity, plan.target.logical_block_bytes)
        # The run comes first: a store that cannot be written shows before anything is destroyed,
        # and whoever asks later finds that this device was written to.
        unknown = Written(state="unproven", reason="this run was about to fill it")
        record = record_of(arguments, plan, identity, unknown, tool)
        writer = RunWriter.create(arguments.results, record)
        held.enter_context(lease.hold_run(writer.folder))
        drop_stamp(arguments.results, binding)  # from here on the device is no longer that
        held.enter_context(_told_when_it_fails(writer))
        scratch = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="kvbench-")))
        if stop.is_set():
            raise Interrupted("interrupted, nothing was written", where=identity.path)
        purged = purge(
            identity,
            todo.method,
            abilities,
            why=todo.why,
            seed=arguments.seed,
            folder=scratch,
            stop=stop,
        )
        purged = replace(purged, text=hider(identity, platform.node())(purged.text))
        _tell(arguments, purged.text)
        if not purged.verified and arguments.purge not in ("auto", "none"):
            raise Refused(purged.text, where=identity.path, hint="choose another --purge, or none")
        fills = []
        for number, one in enumerate(todo.passes, start=1):
            name = f"{one.pattern} pass {number} of {len(todo.passes)}"
            fills.append(
                fill_pass(
                    identity,
                    one,
                    tool=tool,
                    engine=plan.engine,
                    seed=section_seed(arguments.seed, f"fill {number}"),
                    folder=scratch / "fill",
                    stop=stop,
                    on_tick=_Progress(arguments, name, one.size_bytes).tick,
                )
            )
            took = fills[-1]
            rate = format_bandwidth(took.written_bytes / took.wall_s)
            _tell(arguments, f"{name}: {format_size(took.written_bytes)}, {rate}")
        covered = coverage(identity, fills, arguments.seed)
        _tell(arguments, covered.text)
        _, metrics = _rounds(arguments, plan, tool, identity, writer, stop)
        preparation = Preparation(
            format=FORMAT,
            run_id=record.run_id,
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            binding=hidden_binding(binding) if arguments.redact else binding,
            history=probe.write_history(identity),
            purge=purged,
            fills=tuple(fills),
            coverage=covered,
            workload=plan.workloads[0].name,
            workload_digest=plan.workloads[0].digest,
            round_s=plan.cells[-1].timing.runtime_s,
            metrics=metrics,
        )
        write_derived(writer.folder / layout.PREPARATION_FILE, encode(preparation).decode())
        if identity.kind == "file":
            _tell(arguments, "a file carries no stamp: later runs look at its extents instead")
        elif can_be_bound(binding):
            guard.same_device(identity)  # else the stamp would be of something that has gone
            save_stamp(arguments.results, preparation)
        else:
            output.advise(
                "this device has neither a serial nor a world-wide name, so no later run can know "
                "that it was prepared"
            )
        return _report(arguments, preparation, writer.folder)


@contextmanager
def _told_when_it_fails(writer: RunWriter) -> Iterator[None]:
    """Write how the run ended where it did not come to its first round."""
    try:
        yield
    except KvbenchError as error:
        if not (writer.folder / layout.END_FILE).exists():
            interrupted = isinstance(error, Interrupted)
            writer.finish(
                EndRecord(
                    format=RECORD_FORMAT,
                    end="interrupted" if interrupted else "failed",
                    ended_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
                    cells_done=0,
                    reason=str(error),
                )
            )
        raise


def _decide(arguments: argparse.Namespace, identity: Identity, abilities: EraseAbilities) -> Todo:
    if not 1 <= arguments.passes <= PASSES_MAX:
        raise UsageError(f"{arguments.passes} is not within 1 to {PASSES_MAX}", where="--passes")
    if not WINDOW_ROUNDS <= arguments.rounds <= 10_000:
        raise UsageError(
            f"{arguments.rounds} is not within {WINDOW_ROUNDS} to 10000", where="--rounds"
        )
    runtime = None
    if arguments.round is not None:
        runtime = parse_duration(arguments.round, where="--round")
        if not 0.1 <= runtime <= 24 * 3600:
            raise UsageError(f"{runtime:g} s is not within 0.1 s to 24 h", where="--round")
    spec = spec_of(identity)
    workload = catalog.find_workload(arguments.workload, None)
    if not any(stream.writes for stream in workload.streams):
        raise UsageError("does not write, so it settles nothing", where=arguments.workload)
    if workload.sweep or workload.load or workload.matrix or workload.isolate:
        raise UsageError(
            "has several points, and a round is one",
            where=arguments.workload,
            hint="use a workload without sweep, load curve and pairs",
        )
    if workload.in_order or any(s.trims or s.once or s.barrier for s in workload.streams):
        raise UsageError(
            "trims, checks or waits in groups, and a round is a steady load",
            where=arguments.workload,
            hint=f"use {WORKLOAD}, or a workload that only reads and writes",
        )
    unit, reason = probe.indirection_unit_bytes(identity)
    if arguments.indirection_unit is not None:
        unit, reason = (
            parse_size(arguments.indirection_unit, where="--indirection-unit"),
            "as asked",
        )
    if not UNIT_MIN <= unit <= UNIT_MAX or unit % spec.logical_block_bytes:
        raise UsageError(
            f"{unit} bytes are not within {UNIT_MIN} to {UNIT_MAX}, or no multiple of the logical "
            f"block of {spec.logical_block_bytes} B",
            where="--indirection-unit",
        )
    if identity.size_bytes % spec.logical_block_bytes or identity.size_bytes < unit:
        raise UsageError(
            f"its size of {identity.size_bytes} bytes is no whole number of blocks",
            where=identity.path,
        )
    plan = make_plan(
        [workload],
        spec,
        repetitions=arguments.rounds,
        seed=arguments.seed,
        may_write=True,
        runtime_s=runtime,
    )
    asked: PurgeMethod | None = None if arguments.purge == "auto" else arguments.purge
    method, why = choose(asked, abilities)
    return Todo(
        plan=plan,
        method=method,
        why=why,
        unit_bytes=unit,
        unit_reason=reason,
        passes=passes(identity.size_bytes, unit, arguments.passes, arguments.passes),
    )


class _Progress:
    """Tells now and then how far a pass is."""

    def __init__(self, arguments: argparse.Namespace, name: str, size_bytes: int) -> None:
        self._arguments = arguments
        self._name = name
        self._size_bytes = size_bytes
        self._told_s = 0.0

    def tick(self, counters: LiveCounters) -> None:
        """Look at what was written so far."""
        done = counters.write_bytes
        if done is None or done <= 0 or counters.elapsed_s - self._told_s < TELL_EVERY_S:
            return
        self._told_s = counters.elapsed_s
        rate = done / counters.elapsed_s
        left_s = max(0.0, self._size_bytes - done) / rate
        _tell(
            self._arguments,
            f"{self._name}: {min(100.0, 100 * done / self._size_bytes):.0f} %, "
            f"{format_bandwidth(rate)}, {format_clock(left_s)} left",
        )


def _tell(arguments: argparse.Namespace, text: str) -> None:
    if not arguments.quiet:
        output.advise(text)


def _rounds(
    arguments: argparse.Namespace,
    plan: Plan,
    tool: FioTool,
    identity: Identity,
    writer: RunWriter,
    stop: threading.Event,
) -> tuple[EndRecord, tuple[SteadyMetric, ...]]:
    from kvbench.cli.live import LiveView
    from kvbench.report.preparation import round_words

    def tell(number: int, metrics: tuple[SteadyMetric, ...]) -> None:
        _tell(arguments, round_words(number, metrics))

    with LiveView(quiet=True, repetitions=plan.repetitions) as view:
        session = Session(
            plan, tool=tool, identity=identity, writer=writer, observer=view, stop=stop
        )
        return run_rounds(session, plan, writer, tell)


def _report(arguments: argparse.Namespace, preparation: Preparation, folder: Path) -> int:
    from kvbench.cli import reporting

    reported = reporting.read_and_measure(folder)
    files = reporting.write_files(reported)
    if arguments.json:
        answer = {
            "run_id": preparation.run_id,
            "folder": str(folder),
            "state": preparation.state,
            "preparation": preparation,
            "files": [str(path) for path in files],
        }
        said = output.json_text(answer)
    else:
        shown = reported.view.preparation
        facts = shown.facts if shown is not None else ()
        lines = [f"{term:<14}{words}" for term, words in facts]
        said = "\n".join((*lines, f"report        {files[0]}"))
    failed = output.try_print(said)
    if failed is not None:
        output.advise(f"standard output: {failed.strerror}; the report is {files[0]}")
    if reported.exit_code is not ExitCode.OK and not arguments.quiet:
        output.advise("the preparation did not come to its end: to have one, prepare again")
    if reported.exit_code is not ExitCode.OK:
        return int(reported.exit_code)
    settled = preparation.state == "steady" and preparation.coverage.proven
    return int(output.code_after(ExitCode.OK if settled else ExitCode.INCONCLUSIVE, failed))
