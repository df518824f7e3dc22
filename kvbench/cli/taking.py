"""From a plan to a target that is guarded, held, filled and proven, and a record of it.

Used by every verb that measures.
"""

import argparse
import platform
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from msgspec.structs import replace

from kvbench import __version__, target
from kvbench.cli import output
from kvbench.cli.options import Choice
from kvbench.cli.plan import paced_write_bytes, unpaced_writers
from kvbench.compare.aspects import fingerprint
from kvbench.errors import EnvironmentMissing, Interrupted, Refused, StoreError, UsageError
from kvbench.fio.probe import FioTool, check_engine, engines_fact
from kvbench.host import guard, lease, probe
from kvbench.host.boot import boot_id
from kvbench.host.model import Identity, Written
from kvbench.host.samples import is_empty, read_blocks, sample_offsets
from kvbench.plan import Plan, huge_pages_needed
from kvbench.store import layout
from kvbench.store.preparation import NOT_PREPARED, Condition, binding_of, can_be_bound, judge
from kvbench.store.records import FORMAT, Pairing, RunRecord
from kvbench.store.redact import hidden_serial, redact
from kvbench.store.stamps import as_bound, find_stamp
from kvbench.units import format_size

LABEL_MAX = 200
_SAMPLE_SEED = 1  # places that no mark of a purge is at are looked at too


def check_label(label: str) -> None:
    """Refuse a label that no report could show in a line.

    Raises:
        UsageError: it is too long, or holds what cannot be seen.
    """
    if not all(c.isprintable() for c in label) or len(label) > LABEL_MAX:
        raise UsageError(
            f"must be at most {LABEL_MAX} visible characters of UTF-8 text", where="--label"
        )


def take_target(choice: Choice, arguments: argparse.Namespace, held: ExitStack) -> Identity:
    """Make the default target when it is not there, pass the guard, and lock the target."""
    plan = choice.plan
    path = Path(plan.target.path)
    if choice.default_target and target.size_there(path) < plan.target.size_bytes:
        if arguments.read_only:
            raise UsageError(
                "kvbench's own file is not there, or too small, and --read-only forbids making it",
                where=str(path),
                hint="name a TARGET, or run once without --read-only",
            )
        if target.size_there(path) > 0:
            with lease.hold(guard.check_readable(str(path)), exclusive=False):
                pass  # in use by another run: this raises before that run's target is replaced
        output.advise(f"making {path} ({format_size(plan.target.size_bytes)})")
        target.make(path, plan.target.size_bytes)
    identity = choice.identity or guard.check_readable(str(path))
    enter(plan, identity, arguments, held)
    return identity


def enter(
    plan: Plan,
    identity: Identity,
    arguments: argparse.Namespace,
    held: ExitStack,
    *,
    before: str = "",
) -> None:
    """Pass the guard for what the plan does, have it confirmed, hold the target, and ask again.

    The guard's second answer counts: between the first and the confirmation anybody may have made
    a file system on the target.  ``before`` says what is written before the first cell.
    """
    writes = plan.writing_cells > 0 or arguments.destroy is not None
    if writes:
        guard.check_writable(identity, arguments.destroy, own_file=plan.target.own_file)
        if not plan.target.own_file:
            _confirm(plan, identity, arguments, before or _fill_words(plan, identity))
    exclusive = writes and identity.kind == "block"
    descriptor = held.enter_context(lease.hold(identity, exclusive=exclusive))
    if writes:
        guard.check_still_writable(identity, descriptor, own_file=plan.target.own_file)


def _confirm(plan: Plan, identity: Identity, arguments: argparse.Namespace, before: str) -> None:
    """Show what will be destroyed and have it confirmed."""
    paced = paced_write_bytes(plan)
    writers = [f"paced {format_size(paced)}"] if paced else []
    free = unpaced_writers(plan)
    writers += [f"as fast as the device takes it: {', '.join(free)}"] if free else []
    output.advise(
        f"writing destroys the data on {identity.real_path} "
        f"({identity.kind}, {format_size(identity.size_bytes)}, serial "
        f"{shown_serial(identity, hide=_hides(arguments) and arguments.yes)}): "
        f"{', '.join((f'{plan.writing_cells} cells write', *writers))}"
        f"{before}"
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


def shown_serial(identity: Identity, *, hide: bool) -> str:
    """Return a target's serial as it is printed; with ``hide``, its hash."""
    return (hidden_serial(identity.serial) if hide else identity.serial) or "unknown"


def _hides(arguments: argparse.Namespace) -> bool:
    """Return whether what names the drive is hidden; who is asked on a terminal still sees it."""
    return bool(getattr(arguments, "redact", False))


def _fill_words(plan: Plan, identity: Identity) -> str:
    """Say what is written before the first cell."""
    if identity.kind == "block":
        return ""
    size = format_size(_span_bytes(plan, identity))
    return f"; where parts of it were never written, {size} are filled first"


def check_mode(plan: Plan, identity: Identity) -> None:
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


def check_memory(plan: Plan) -> None:
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


def check_engine_works(plan: Plan, tool: FioTool, identity: Identity) -> None:
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


def written_state(
    choice: Choice,
    identity: Identity,
    tool: FioTool,
    stop: threading.Event,
    *,
    allowed: bool,
    condition: Condition | None = None,
) -> Written:
    """Return whether the target holds written data, filling it where that is allowed and needed."""
    plan = choice.plan
    path = Path(identity.real_path)
    if identity.kind == "block":
        if not plan.direct:
            return target.prove(path, identity.size_bytes, direct=False)
        if condition is not None and condition.covered:
            return Written(state="prepared", reason=condition.text)
        if condition is not None and condition.run_id:
            return Written(state="unproven", reason=condition.text)
        return Written(
            state="unproven",
            reason="nobody has proved that this block device was filled; reads of blocks never "
            "written, or trimmed, may not reach the flash and look too fast",
        )
    span = _span_bytes(plan, identity)
    proof = target.prove(path, span, direct=True)
    if proof.state != "proven" and allowed:
        output.advise(f"filling {path} with incompressible data ({format_size(span)})")
        if stop.is_set():
            raise Interrupted("interrupted, nothing was written", where=str(path))
        target.fill(identity, span, tool=tool, direct=plan.direct, engine=plan.engine, stop=stop)
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


def condition_of(results: Path, identity: Identity) -> Condition | None:
    """Return whether a block device still is as ``kvbench prepare`` left it; None for a file.

    A stamp that cannot be used is told, and counts as none.
    """
    if identity.kind != "block":
        return None
    binding = binding_of(identity, probe.logical_block_bytes(identity))
    if not can_be_bound(binding):
        return NOT_PREPARED
    try:
        stamp = find_stamp(results, binding)
    except StoreError as error:
        output.advise(
            f"warning: {error.where}: the record of a preparation {error.message}; it counts as "
            "none (kvbench prepare makes a new one)"
        )
        stamp = None
    if stamp is None:
        return NOT_PREPARED
    try:
        offsets = sample_offsets(identity.size_bytes, _SAMPLE_SEED)
        empty = sum(is_empty(block) for block in read_blocks(identity.real_path, offsets))
    except OSError as error:
        raise EnvironmentMissing(
            f"sampled blocks cannot be read: {error.strerror or error}", where=identity.path
        ) from error
    bound = as_bound(stamp, binding)
    return judge(stamp, bound, probe.write_history(identity), empty_samples=empty)


def _span_bytes(plan: Plan, identity: Identity) -> int:
    """Return how much of the target, from its start, must hold written data."""
    if plan.target.own_file:
        return identity.size_bytes
    span = max(p.offset_bytes + p.size_bytes for cell in plan.cells for p in cell.placed)
    return min(span, identity.size_bytes)


def still_written(plan: Plan, identity: Identity, written: Written) -> None:
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


def still_prepared(record: RunRecord, results: Path, identity: Identity) -> None:
    """Refuse to go on with a device whose preparation held when its run began and does not by now.

    What the run itself wrote does not count, as its later cells follow on that in any case; and
    what it trims it writes again.

    Raises:
        UsageError: with what speaks against it.
    """
    then = record.condition
    if then is None or (then.state != "holds" and record.written.state != "prepared"):
        return
    now = condition_of(results, identity) or NOT_PREPARED
    plan = record.plan
    trims = any(placed.stream.trims for cell in plan.cells for placed in cell.placed)
    bare = record.written.state == "prepared" and not now.covered and not trims
    worse = then.state == "holds" and now.state != "holds" and not plan.writing_cells
    if now.run_id != then.run_id or bare or worse:
        raise UsageError(
            f"was in its prepared state when this run began, and is not any more: {now.text}",
            where=identity.path,
            hint="start a new run; cells of the two states would not compare",
        )


def record_of(
    arguments: argparse.Namespace,
    plan: Plan,
    identity: Identity,
    written: Written,
    tool: FioTool,
    *,
    label: str | None = None,
    pairing: Pairing | None = None,
    condition: Condition | None = None,
) -> RunRecord:
    """Return what is known before the first cell."""
    now = datetime.now(UTC)
    label = arguments.label if label is None else label
    record = RunRecord(
        format=FORMAT,
        run_id=layout.run_id(now, label),
        kvbench_version=__version__,
        created_at=now.isoformat(timespec="seconds"),
        label=label,
        command=arguments.command,
        plan=plan,
        identity=identity,
        written=written,
        facts=(*probe.target_facts(identity), *probe.host_facts(), engines_fact(tool)),
        fio_version=tool.version_text,
        pairing=pairing,
        condition=condition,
        boot_id=boot_id(),
    )
    if _hides(arguments):
        record = redact(record, platform.node())
        record = replace(record, run_id=layout.run_id(now, record.label))
    return replace(record, fingerprint=fingerprint(record))


def add_redact_argument(group: argparse._ActionsContainer) -> None:
    """Declare the option of the verbs that store a run."""
    group.add_argument(
        "--redact",
        action="store_true",
        help="store hashes in the place of serial, wwid, EUI, NGUID, UUIDs, backing file, chosen "
        "names in /dev and host name; such a run cannot be resumed",
    )


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Turn INT, TERM and HUP into a flag: the running cell is ended, stored, and reported."""
    stop = threading.Event()

    def request(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            return
        stop.set()
        output.advise_at_once(f"{signal.Signals(number).name}: ending what runs now")

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
