"""``kvbench ab``: one drive before and after a change, or two drives in turns, and the verdict."""

import argparse
import re
import signal
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from kvbench.cli import gate as gate_verb
from kvbench.cli import output
from kvbench.cli.exports import Exports, exports_of
from kvbench.cli.live import LiveView
from kvbench.cli.options import Choice, add_plan_arguments, choose, may_write, spec_of
from kvbench.cli.running import run_to_end
from kvbench.cli.taking import (
    add_redact_argument,
    check_engine_works,
    check_label,
    check_mode,
    condition_of,
    record_of,
    stop_on_signals,
    take_target,
    written_state,
)
from kvbench.compare.aspects import ASPECTS
from kvbench.compare.policy import Policy
from kvbench.errors import (
    EnvironmentMissing,
    ExitCode,
    Interrupted,
    NotComparable,
    StoreError,
    UsageError,
)
from kvbench.fio.cell_limits import refuse_unfit_plan
from kvbench.fio.launch import run_operators_command
from kvbench.fio.probe import FioTool, find_fio
from kvbench.host import guard, lease
from kvbench.host.model import Identity
from kvbench.plan import Cell
from kvbench.session import Session
from kvbench.store import layout
from kvbench.store.read import RunArchive, find_run, read_run
from kvbench.store.records import EndRecord, Pairing, RunEnd, RunRecord
from kvbench.store.write import RunWriter
from kvbench.target import default_path

SUITE = "gate"
SideName = Literal["A", "B"]
_BACKING_NUMBER = re.compile(r"^backing file .*(\(\d+:\d+ inode \d+\))$", re.DOTALL)
# What two sides must share to be a pair at all; a gate's policy asks for more.
SAME_OF_ANY = ("lba_format", "pcie_link", "preparation", "target_kind", "plan")
SAME_OF_ONE = ("model", "serial", "namespace", "capacity", "file", *SAME_OF_ANY)
WHICH_DRIVE = ("model", "serial", "namespace", "capacity", "firmware")


class Ready(Struct, frozen=True, kw_only=True):
    """A side that can be measured: its target is held and proven."""

    side: SideName
    choice: Choice
    identity: Identity
    record: RunRecord


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_plan_arguments(parser, default_suite=SUITE)
    parser.add_argument(
        "target_b",
        nargs="?",
        metavar="TARGET_B",
        help="a second drive: both are measured in turns, repetition by repetition (not with "
        "--between, --after, --destroy or --until-precise)",
    )
    how = parser.add_argument_group("how")
    how.add_argument("--label", default="", metavar="TEXT", help="names both sides; A or B follows")
    how.add_argument(
        "--between",
        metavar="COMMAND",
        help="one drive: your shell command that makes the change, e.g. flashes the firmware, "
        "once the first side is done; it finds KVBENCH_TARGET, KVBENCH_FROM and KVBENCH_TO in "
        "its environment",
    )
    how.add_argument(
        "--after",
        metavar="RUN",
        help="one drive: the first side was measured before as RUN (the change needed a reboot); "
        "measure the other side now",
    )
    how.add_argument("--reverse", action="store_true", help="measure B first, then A")
    how.add_argument(
        "--yes", action="store_true", help="with --destroy: do not ask, there is no terminal"
    )
    add_redact_argument(how)
    how.add_argument("--quiet", action="store_true", help="no progress")
    answer = parser.add_argument_group("answer")
    gate_verb.add_policy_arguments(answer)
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Measure both sides, and gate B against A."""
    check_label(arguments.label)
    _refuse_senseless(arguments)
    named = (arguments.target, arguments.target_b)
    targets = [default_path(arguments.results), *(Path(t) for t in named if t is not None)]
    exports = exports_of(arguments, kept=[arguments.policy, *targets])
    policy = gate_verb.policy_of(arguments.policy)
    with gate_verb.no_old_verdict(exports):
        return _measure_and_gate(arguments, exports, policy)


def _measure_and_gate(arguments: argparse.Namespace, exports: Exports, policy: Policy) -> int:
    if arguments.target_b is not None:
        folders = _in_turns(arguments)
        free = tuple(name for name in policy.must_not_differ if name not in WHICH_DRIVE)
        policy = replace(
            policy, must_not_differ=free, may_differ=(*policy.may_differ, *WHICH_DRIVE)
        )
    else:
        folders = _one_after_the_other(arguments)
    if folders is None:
        return int(ExitCode.INTERRUPTED)
    code = gate_verb.answer(arguments, exports, folders, policy)
    output.advise(f"all numbers: kvbench gate {folders[0].name} {folders[1].name} --all")
    return code


def _refuse_senseless(arguments: argparse.Namespace) -> None:
    two = arguments.target_b is not None
    if arguments.yes and arguments.destroy is None:
        raise UsageError("--yes only goes with --destroy")
    if two:
        for name in ("between", "after", "destroy", "until_precise"):
            if getattr(arguments, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')} is for one drive, and two are named")
    elif arguments.between is not None and not arguments.between.strip():
        raise UsageError("the command is empty", where="--between")
    elif arguments.between is None and arguments.after is None:
        raise UsageError(
            "what happens between the sides is not said",
            hint="give --between COMMAND, or a second TARGET; or measure with `kvbench run`, make "
            "the change, and give --after RUN",
        )
    elif arguments.between is not None and arguments.after is not None:
        raise UsageError("give --between or --after, not both")


def _order(arguments: argparse.Namespace) -> tuple[SideName, SideName]:
    return ("B", "A") if arguments.reverse else ("A", "B")


def _one_after_the_other(arguments: argparse.Namespace) -> list[Path] | None:
    """Return the run folders of A and B; None when the first side was interrupted."""
    tool = find_fio()
    order = _order(arguments)
    after: RunRecord | None = None
    if arguments.after is None:
        pair_id = layout.run_id(datetime.now(UTC), "ab")
        first = _measure_side(
            arguments, tool, Pairing(kind="ab", pair_id=pair_id, side=order[0], order="first")
        )
        if first is None:
            return None
        _make_the_change(arguments, order, first)
    else:
        first = find_run(arguments.results, arguments.after)
        _refuse_options_of_a_plan(arguments)
        _refuse_part(read_run(first))
        after = read_run(first).record
    before = read_run(first).record
    if before.pairing is not None and before.pairing.kind == "ab":
        pair_id = before.pairing.pair_id
        order = ("B", "A") if before.pairing.side == "B" else ("A", "B")
    else:
        pair_id = before.run_id
    pairing = Pairing(
        kind="ab",
        pair_id=pair_id,
        side=order[1],
        order="second",
        of=before.run_id,
        between=arguments.between or "",
    )
    second = _measure_side(arguments, tool, pairing, before, after)
    if second is None:
        return None
    return [first, second] if order[0] == "A" else [second, first]


def _same_plan(arguments: argparse.Namespace, first: RunRecord) -> Choice:
    """Return the plan of the first side on the target as it is found now."""
    identity = guard.check_readable(arguments.target or first.identity.path)
    plan = replace(first.plan, target=spec_of(identity))
    refuse_unfit_plan(plan, identity)
    return Choice(plan=plan, identity=identity, default_target=False)


def _refuse_options_of_a_plan(arguments: argparse.Namespace) -> None:
    """Refuse what would make another plan: the second side runs the plan of the first."""
    fresh = argparse.ArgumentParser()
    add_arguments(fresh)
    free = ("target", "results", "label", "after", "destroy", "yes", "quiet", "policy", "junit")
    files = ("html", "markdown", "xlsx")
    given = sorted(
        name
        for name, value in vars(arguments).items()
        if name not in (*free, *files, "json", "command") and value != fresh.get_default(name)
    )
    if given:
        raise UsageError(
            f"--after goes on with the plan of that run and does not take {', '.join(given)}"
        )


def _refuse_part(archive: RunArchive) -> None:
    """Refuse a first side that is not whole: a second one would be measured for nothing."""
    missing = len(archive.record.plan.cells) - len(archive.cells)
    whole = archive.end is not None and archive.end.end == "complete"
    if missing or not whole or archive.damage:
        raise UsageError(
            "this run is not whole, so no side can be held against it",
            where=archive.folder.name,
            hint=f"kvbench run --resume {archive.folder.name}",
        )


def _make_the_change(
    arguments: argparse.Namespace, order: tuple[SideName, SideName], first: Path
) -> None:
    """Run the operator's command; the target is not held meanwhile."""
    output.advise(f"side {order[0]} is done; now: {arguments.between}")
    go_on = (
        f"side {order[0]} is kept; make the change, then give --after {first.name} in the place "
        "of --between"
    )
    try:
        code = run_operators_command(
            arguments.between,
            {
                "KVBENCH_TARGET": read_run(first).record.identity.real_path,
                "KVBENCH_FROM": order[0],
                "KVBENCH_TO": order[1],
            },
            told=lambda number: output.advise_at_once(
                f"{signal.Signals(number).name}: ending once the command between the sides has"
            ),
        )
    except Interrupted as error:
        raise Interrupted(error.message, where=error.where, hint=go_on) from None
    if code != 0:
        raise EnvironmentMissing(
            f"the command between the sides ended with {code}, so side {order[1]} is not measured",
            where=arguments.between,
            hint=go_on,
        )


def _measure_side(
    arguments: argparse.Namespace,
    tool: FioTool,
    pairing: Pairing,
    before: RunRecord | None = None,
    after: RunRecord | None = None,
) -> Path | None:
    """Measure one side and return its folder; None when it was interrupted.

    before: the record of the other side.  after: the same where its plan is taken over.
    """
    if before is not None:
        output.advise(f"the first side is kept: {before.run_id}")
    with ExitStack() as held:
        side = pairing.side
        assert side  # noqa: S101 - an ab pairing names its side
        ready = _ready(arguments, tool, pairing, held, before, after)
        writer = RunWriter.create(arguments.results, ready.record)
        held.enter_context(lease.hold_run(writer.folder))
        output.advise(f"side {side}: {writer.folder.name}")
        stop = held.enter_context(stop_on_signals())
        end = run_to_end(
            ready.choice.plan,
            tool=tool,
            identity=ready.identity,
            writer=writer,
            stop=stop,
            quiet=arguments.quiet or arguments.json,
        )
    return _ended([(writer.folder, end)])


def _ended(sides: Sequence[tuple[Path, EndRecord]]) -> Path | None:
    """Return the folder of the last side when all ended in order; None when interrupted.

    Raises:
        EnvironmentMissing: one failed.
    """
    stopped = [str(folder) for folder, end in sides if end.end == "interrupted"]
    if stopped:
        output.advise(f"interrupted; what was measured is kept in {' and '.join(stopped)}")
        return None
    for folder, end in sides:
        if end.end == "failed":
            raise EnvironmentMissing(
                f"the run failed: {end.reason}",
                where=folder.name,
                hint=f"kvbench run --resume {folder.name}, then ab --after",
            )
    return sides[-1][0]


def _ready(
    arguments: argparse.Namespace,
    tool: FioTool,
    pairing: Pairing,
    held: ExitStack,
    before: RunRecord | None,
    after: RunRecord | None = None,
) -> Ready:
    """Guard, hold, fill and prove the target of one side; refuse it where it is no pair."""
    choice = choose(arguments) if after is None else _same_plan(arguments, after)
    # Until the target is confirmed a signal ends kvbench at once: nobody looks at a flag meanwhile.
    identity = take_target(choice, arguments, held)
    with stop_on_signals() as stop:
        check_mode(choice.plan, identity)
        check_engine_works(choice.plan, tool, identity)
        condition = condition_of(arguments.results, identity)
        allowed = may_write(arguments, own_file=choice.plan.target.own_file)
        written = written_state(choice, identity, tool, stop, allowed=allowed, condition=condition)
        if stop.is_set():
            raise Interrupted("interrupted before the first cell", where=identity.real_path)
    side = pairing.side or "A"
    record = record_of(
        arguments,
        choice.plan,
        identity,
        written,
        tool,
        label=f"{arguments.label} {side}".strip(),
        pairing=pairing,
        condition=condition,
    )
    if before is not None:
        refuse_unlike(before, record, SAME_OF_ONE)
    return Ready(side=side, choice=choice, identity=identity, record=record)


def refuse_unlike(first: RunRecord, second: RunRecord, names: Sequence[str]) -> None:
    """Refuse to pair two sides.

    Raises:
        NotComparable: an aspect that must be the same is not; the message says all of them.
    """
    unlike = []
    for name in names:
        title, read = ASPECTS[name]
        ours, theirs = read(first), read(second)
        if ours != theirs:
            unlike.append(f"{title} was {ours or 'unknown'} and is {theirs or 'unknown'}")
    if unlike:
        raise NotComparable(
            f"the two sides are no pair: {'; '.join(unlike)}",
            where=second.identity.path,
            hint="nothing was measured on this side; bring it into the state of the other",
        )


def _in_turns(arguments: argparse.Namespace) -> list[Path] | None:
    """Measure two drives repetition by repetition, ABBA; return the folders of A and B."""
    if arguments.target is None:
        raise UsageError("two drives need two names")
    tool = find_fio()
    paths = {"A": arguments.target, "B": arguments.target_b}
    identities = {side: guard.check_readable(path) for side, path in paths.items()}
    _refuse_one_drive_twice(identities["A"], identities["B"])
    if arguments.span is None:  # the same span on both, or the larger drive is asked for more
        arguments.span = str(min(identity.size_bytes for identity in identities.values()))
    pair_id = layout.run_id(datetime.now(UTC), "ab")
    with ExitStack() as held:
        ready: dict[str, Ready] = {}
        for side in _order(arguments):
            own = argparse.Namespace(**{**vars(arguments), "target": paths[side]})
            pairing = Pairing(kind="ab", pair_id=pair_id, side=side, order="turns")
            ready[side] = _ready(own, tool, pairing, held, None)
        refuse_unlike(ready["A"].record, ready["B"].record, SAME_OF_ANY)
        stop = held.enter_context(stop_on_signals())
        ended = _take_turns(arguments, tool, [ready[side] for side in _order(arguments)], stop)
    if _ended(list(ended.values())) is None:
        return None
    return [ended["A"][0], ended["B"][0]]


def _take_turns(
    arguments: argparse.Namespace, tool: FioTool, sides: Sequence[Ready], stop: threading.Event
) -> dict[str, tuple[Path, EndRecord]]:
    """Run both plans a repetition at a time; who begins changes from one to the next."""
    quiet = arguments.quiet or arguments.json
    sessions: dict[str, tuple[Session, Path]] = {}
    with LiveView(quiet=True, repetitions=1) as view, ExitStack() as held:
        try:
            for ready in sides:
                writer = RunWriter.create(arguments.results, ready.record)
                held.enter_context(lease.hold_run(writer.folder))
                session = Session(
                    ready.choice.plan,
                    tool=tool,
                    identity=ready.identity,
                    writer=writer,
                    observer=view,
                    stop=stop,
                )
                sessions[ready.side] = (session, writer.folder)
            turns = [_repetitions(ready.choice.plan.cells) for ready in sides]
            for number, (first, second) in enumerate(zip(*turns, strict=True)):
                both = list(zip(sides, (first, second), strict=True))
                going = True
                for ready, cells in both[::-1] if number and number % 2 == 0 else both:
                    if not quiet and number:
                        output.advise(
                            f"repetition {number} of {ready.choice.plan.repetitions}: {ready.side}"
                        )
                    going = going and sessions[ready.side][0].run(cells)
                if not going:
                    break
        except BaseException as error:  # raised again: whatever it is, both sides get their end
            with suppress(StoreError):  # what came first is told
                _finish(sessions, "failed", str(error) or type(error).__name__)
            raise
        ends = [session.end for session, _ in sessions.values()]
        return _finish(sessions, *next((end for end in ends if end[0] != "complete"), ends[0]))


def _finish(
    sessions: dict[str, tuple[Session, Path]], end: RunEnd, reason: str
) -> dict[str, tuple[Path, EndRecord]]:
    """Store the end of both sides; the one that did not stop is not whole where it lacks cells.

    Raises:
        StoreError: an end cannot be stored; the other one was tried all the same.
    """
    finished: dict[str, tuple[Path, EndRecord]] = {}
    failed: StoreError | None = None
    for side, (session, folder) in sessions.items():
        session.cut_short(end, f"the other side ended: {reason}")
        try:
            finished[side] = (folder, session.finish())
        except StoreError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return finished


def _repetitions(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Return the cells by repetition; the host's ceilings, which come once, are the first."""
    grouped = [list(group) for _, group in groupby(cells, key=lambda cell: cell.repetition)]
    return grouped if cells and cells[0].repetition == 0 else [[], *grouped]


def _refuse_one_drive_twice(a: Identity, b: Identity) -> None:
    same = (a.kind, a.device_number, a.inode if a.kind == "file" else 0) == (
        b.kind,
        b.device_number,
        b.inode if b.kind == "file" else 0,
    )
    serials = a.serial is not None and (a.serial, a.wwid) == (b.serial, b.wwid)
    if same or serials or _world_wide(a) & _world_wide(b):
        raise UsageError(
            "both names lead to the same drive, which cannot differ from itself",
            where=f"{a.path}, {b.path}",
            hint="name one of them and give --between COMMAND",
        )


def _world_wide(identity: Identity) -> set[str]:
    """Return what names a target and nothing else: its world-wide name, or the number of its file.

    A loop device shows a file, which may have several names, and may be the other target itself.
    """
    if identity.kind == "file":
        return {f"({identity.device_number} inode {identity.inode})"}
    if identity.wwid is None or identity.wwid.startswith(("nsid ", "partition ")):
        return set()  # of nobody knows which drive
    backing = _BACKING_NUMBER.search(identity.wwid)
    return {identity.wwid, *(backing.groups() if backing else ())}
