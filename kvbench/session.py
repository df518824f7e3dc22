"""The only loop with effects: check the target, launch a cell, store it, go on to the next.

It measures nothing itself and judges nothing: what a cell is worth is decided later, from the
archive.  It goes on after a failed cell and stops where going on would be wrong: the target is no
longer the same thing, a fio process could not be ended, or the store cannot be written.
"""

import gzip
import math
import os
import platform
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from kvbench import target
from kvbench.errors import CellFailed, KvbenchError, StoreError
from kvbench.fio.jobfile import render
from kvbench.fio.launch import LaunchResult, LiveCounters, launch
from kvbench.fio.output import parse
from kvbench.fio.probe import FioTool
from kvbench.fio.sections import environment
from kvbench.host import guard, lease, probe
from kvbench.host.boot import boot_id
from kvbench.host.health import HealthWatch
from kvbench.host.health_model import HealthSample, RunHealth, SessionHealth
from kvbench.host.model import Identity
from kvbench.integrity import trims
from kvbench.integrity.expected import verifiable
from kvbench.measure.curves import Curves
from kvbench.plan import Cell, Plan
from kvbench.store import journal, layout
from kvbench.store.read import read_health, read_run
from kvbench.store.records import FORMAT, AfterTrim, CellRecord, EndRecord, RunEnd
from kvbench.store.redact import hider
from kvbench.store.write import ROOM_AFTER_BYTES, ROOM_BEFORE_BYTES, RunWriter

STOPPED = "stopped by the user"
TICK_S = 0.25  # short cells have two ticks between which a rate can be seen
# fio's count leaves out what was trimmed in the ramp, which is about its share of the time
REWRITE_SPARE, REWRITE_SPARE_BLOCKS = 1.25, 8
_LAUNCHED_FILE = "launched.fio"  # stands in the folder of a cell while it runs
TIMEOUT_SPARE_S = 30.0  # beyond ramp and runtime: a slow device may take this long to drain


class Observer(Protocol):
    """What a run tells while it goes on."""

    def cell_started(self, cell: Cell, number: int, total: int, left_s: float) -> None:
        """A cell starts; ``left_s`` is the expected time to the end of the plan."""

    def cell_running(
        self, cell: Cell, counters: LiveCounters, samples: Sequence[HealthSample]
    ) -> None:
        """A cell has been running for a while; ``samples`` are of its drive, one a second."""

    def cell_stored(self, cell: Cell, record: CellRecord) -> None:
        """A cell is on disk."""


class Session:
    """One run under way: its cells, some at a time, then its end.

    Args:
        plan: what to run, in order.
        tool: the fio to run it with.
        identity: the target, checked again before every cell.
        writer: the run folder.
        observer: told of every step.
        stop: set by a signal handler; the running cell is ended and kept.
        done: ids of cells that an earlier session stored.
        now: the clock of the records.
        watch: the health of the drive under the target; None makes one.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        tool: FioTool,
        identity: Identity,
        writer: RunWriter,
        observer: Observer,
        stop: threading.Event,
        done: frozenset[str] = frozenset(),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        watch: HealthWatch | None = None,
    ) -> None:
        self.plan = plan
        self._tool = tool
        self._identity = identity
        self._writer = writer
        self._observer = observer
        self._stop = stop
        self._now = now
        self._device = probe.device_under(identity)
        self._watch = watch or HealthWatch(
            identity, self._device, clean=hider(identity, platform.node()), now=now
        )
        self._earlier: tuple[SessionHealth, ...] = ()
        self._done = set(done)
        self._left_s = sum(c.expected_s for c in plan.cells if c.cell_id not in done)
        self._curves = Curves(plan, writer.folder)
        self._journals = verifiable(plan)
        self._end: RunEnd = "complete"
        self._reason = ""
        self._unfinished = True  # kvbench may have been killed while it wrote again

    @property
    def stored(self) -> int:
        """How many cells are on disk."""
        return len(self._done)

    def run(self, cells: Iterable[Cell]) -> bool:
        """Run those of ``cells`` that are not stored; return whether the session may go on.

        Raises:
            StoreError: the run folder can no longer be written; what it holds is kept.
        """
        try:
            if self._unfinished:
                self._unfinished = False
                self._earlier = _health_so_far(self._writer.folder)
                self._keep_health(self._watch.begin())
                write_left_trimmed(
                    self.plan, self._identity, tool=self._tool, folder=self._writer.folder
                )
            for cell in cells:
                if self._end != "complete":
                    return False
                if cell.cell_id not in self._done:
                    self._one(cell)
        except StoreError as error:
            self._end, self._reason = "failed", str(error)
            raise
        except KvbenchError as error:
            self._end, self._reason = "failed", str(error)
        return self._end == "complete"

    @property
    def end(self) -> tuple[RunEnd, str]:
        """How the run would end now, and why."""
        return self._end, self._reason

    def cut_short(self, end: RunEnd, reason: str) -> None:
        """Give a run that nothing is wrong with the end of another, where it lacks cells for it."""
        if self._end == "complete" and self.stored < len(self.plan.cells):
            self._end, self._reason = end, reason

    def finish(self, reason: str = "", repetitions: int | None = None) -> EndRecord:
        """Write how the run ended, and return it.

        Args:
            reason: why it ended, where it ended in order.
            repetitions: where it ended in order before its last planned repetition.
        """
        if not self._unfinished:
            self._keep_health(self._watch.finish())
        self._watch.close()
        early = self._end == "complete"
        finished = EndRecord(
            format=FORMAT,
            end=self._end,
            ended_at=_stamp(self._now()),
            cells_done=self.stored,
            reason=self._reason or reason,
            repetitions=repetitions if early else None,
        )
        self._writer.finish(finished)
        return finished

    def _one(self, cell: Cell) -> None:
        if self._stop.is_set():
            self._end, self._reason = "interrupted", STOPPED
            return
        self._observer.cell_started(cell, self.stored + 1, len(self.plan.cells), self._left_s)
        guard.same_device(self._identity)
        decided, reason_not = self._curves.decided(cell)
        self._writer.check_room(cell.cell_id, ROOM_BEFORE_BYTES)
        if self._journals and cell.writes:
            entry = journal.Begun(cell_id=cell.cell_id, boot_id=boot_id(), begin_s=time.monotonic())
            journal.append(self._writer.folder, entry)
        if cell.trims:
            journal.append(
                self._writer.folder, journal.Trimmed(cell_id=cell.cell_id, written=False)
            )
        with _told_of_trims(cell):
            record = _run_cell(
                decided,
                not_run=reason_not,
                tool=self._tool,
                identity=self._identity,
                device=self._device,
                watch=self._watch,
                writer=self._writer,
                observer=self._observer,
                stop=self._stop,
                now=self._now,
            )
            self._done.add(cell.cell_id)
            self._write_again(record)
        self._curves.add(record)
        self._left_s -= cell.expected_s
        self._observer.cell_stored(cell, record)
        if record.end == "interrupted":
            self._end, self._reason = "interrupted", STOPPED
        elif record.survivors:
            pids = ", ".join(map(str, record.survivors))
            self._end = "failed"
            self._reason = f"fio could not be ended (pid {pids}), the target is not quiet"
            if cell.trims:
                self._reason += f"; {_left_words(cell)}"

    def _keep_health(self, of_session: SessionHealth) -> None:
        sessions = (*self._earlier, of_session)
        self._writer.keep_health(RunHealth(format=FORMAT, sessions=sessions))

    def _write_again(self, record: CellRecord) -> None:
        cell, folder = record.cell, self._writer.folder
        if not cell.trims or record.survivors:  # while fio goes on trimming nothing can be mended
            return
        _write_again(cell, record, self._identity, self.plan, tool=self._tool, folder=folder)
        journal.append(folder, journal.Trimmed(cell_id=cell.cell_id, written=True))


@contextmanager
def _told_of_trims(cell: Cell) -> Iterator[None]:
    """Say with an error that ends a run what a cell that trims has left behind."""
    try:
        yield
    except KvbenchError as error:
        if not cell.trims:
            raise
        raise type(error)(
            f"{error.message}; {_left_words(cell)}", where=error.where, hint=error.hint
        ) from error


def _left_words(cell: Cell) -> str:
    return f"what cell {cell.cell_id} trimmed holds no data until --resume has written it again"


def _health_so_far(folder: Path) -> tuple[SessionHealth, ...]:
    """Return what earlier sessions of a run told of the drive; what cannot be read is let go."""
    try:
        known = read_health(folder)
    except StoreError:
        return ()
    return known.sessions if known is not None else ()


def write_left_trimmed(plan: Plan, identity: Identity, *, tool: FioTool, folder: Path) -> None:
    """Write what cells of a run that was killed, or failed, have trimmed and not written again.

    Raises:
        Refused: the target is no longer the same thing.
        StoreError, EnvironmentMissing: as for ``target.fill``.
    """
    left = journal.left_trimmed(folder)
    if not left:
        return
    stored = {one.record.cell.cell_id: one.record for one in read_run(folder).cells}
    for cell in plan.cells:
        if cell.cell_id in left:
            _write_again(cell, stored.get(cell.cell_id), identity, plan, tool=tool, folder=folder)
            journal.append(folder, journal.Trimmed(cell_id=cell.cell_id, written=True))


def _write_again(
    cell: Cell,
    record: CellRecord | None,
    identity: Identity,
    plan: Plan,
    *,
    tool: FioTool,
    folder: Path,
) -> None:
    """Write what a cell has trimmed, so that the next one finds data everywhere.

    fio trims in order, from the start of the span, and tells how much; but not what it trimmed in
    the ramp, so more is written than that.  Of a cell that did not end in order, without a
    ``record`` or with one that says so, as much is written as its pace allows in the longest time
    that it can have had, and all of its span where fio outlived it.  A stop waits for it: trims are
    paced, so it is little, and a range without data would spoil whatever is measured on the target
    later.

    Raises:
        Refused: the target is no longer the same thing.
        StoreError, EnvironmentMissing: as for ``target.fill``.
    """
    if not cell.trims or (record is not None and record.end == "not-run"):
        return
    guard.same_device(identity)
    timing = cell.timing
    whole_share = (timing.ramp_s + timing.runtime_s) / timing.runtime_s * REWRITE_SPARE
    for placed in cell.placed:
        if not placed.stream.trims:
            continue
        block_bytes, rate_iops = placed.stream.max_block_bytes, placed.stream.rate_iops
        trimmed = None if record is None else _trimmed_bytes(record, folder, placed.stream.name)
        size = placed.size_bytes
        if trimmed is not None:
            blocks = trimmed * whole_share / block_bytes + REWRITE_SPARE_BLOCKS
            size = min(size, math.ceil(blocks) * block_bytes)
        elif rate_iops is not None and not (record and record.survivors):
            longest_s = cell.longest_s + TIMEOUT_SPARE_S if record is None else record.wall_s
            blocks = rate_iops * longest_s * REWRITE_SPARE + REWRITE_SPARE_BLOCKS
            size = min(size, math.ceil(blocks) * block_bytes)
        target.fill(
            identity,
            size,
            offset_bytes=placed.offset_bytes,
            folder=folder / f"{layout.REWRITE_PREFIX}{cell.cell_id}",
            tool=tool,
            direct=plan.direct,
            engine=plan.engine,
        )


def _trimmed_bytes(record: CellRecord, folder: Path, stream: str) -> int | None:
    """Return what fio says that it trimmed, None when it did not end in order."""
    if record.end != "exited" or record.exit_code != 0:
        return None
    return _trimmed_in(layout.cell_folder(folder, record.cell.cell_id), stream)


def _trimmed_in(folder: Path, stream: str) -> int | None:
    """Return what the output in a cell's folder says that was trimmed, None when it cannot."""
    try:
        said, errors = (
            (folder / name).read_text(encoding="utf-8", errors="replace")
            for name in (layout.OUTPUT_FILE, layout.STDERR_FILE)
        )
        result = parse(said, stderr=errors)
    except (CellFailed, OSError):
        return None
    rows = [job.trim for job in result.jobs if job.name == stream and job.trim is not None]
    return sum(row.io_bytes for row in rows)


def _run_cell(
    cell: Cell,
    *,
    not_run: str,
    tool: FioTool,
    identity: Identity,
    device: str | None,
    watch: HealthWatch,
    writer: RunWriter,
    observer: Observer,
    stop: threading.Event,
    now: Callable[[], datetime],
) -> CellRecord:
    if not_run:
        return _store_not_run(cell, not_run, writer=writer, device=device, now=now)
    argv = (tool.path, "--output-format=json+", layout.JOB_FILE)
    looked = trims.look_before(identity.real_path, cell.placed)
    folder = writer.begin_cell(cell.cell_id, render(cell, identity.real_path))
    watched = watch.cell(measures=cell.purpose != "ceiling")
    started = now()
    before = probe.device_counters(device) if device else None

    def on_tick(counters: LiveCounters) -> None:
        watched.tick(counters.elapsed_s)
        observer.cell_running(cell, counters, watched.samples)

    with _launched(argv, cell, identity, folder) as launched:
        result = launch(
            launched,
            cwd=folder,
            timeout_s=cell.longest_s + TIMEOUT_SPARE_S,
            stdout=folder / layout.OUTPUT_FILE,
            stderr=folder / layout.STDERR_FILE,
            on_tick=on_tick,
            tick_s=TICK_S,
            stop=stop,
            environment=environment(cell),
        )
    after = probe.device_counters(device) if device else None
    health = watched.end(result.wall_s)
    if result.end == "exited":
        # Before the logs are packed, which gives room back: fio writes its output to a full disk
        # without a word, and such a cell must not count as measured.
        writer.check_room(cell.cell_id, ROOM_AFTER_BYTES)
        if result.exit_code == 0:
            _check_logs(folder)
    after_trim: tuple[AfterTrim, ...] = ()
    if result.end == "exited" and result.exit_code == 0:
        after_trim = tuple(
            trims.look_after(identity.real_path, one, _trimmed_in(folder, one.stream) or 0)
            for one in looked
        )
    try:
        keep_logs(folder)
    except OSError as error:
        raise StoreError(
            f"the logs cannot be stored: {error.strerror}",
            where=str(folder),
            hint="free space; the cells before this one are kept",
        ) from error
    record = CellRecord(
        format=FORMAT,
        cell=cell,
        argv=argv,
        started_at=_stamp(started),
        wall_s=result.wall_s,
        end=result.end,
        exit_code=result.exit_code,
        survivors=result.survivors,
        device=device,
        before=before,
        after=after,
        note=_note(result),
        after_trim=after_trim,
        health=health,
    )
    writer.commit_cell(record)
    return record


@contextmanager
def _launched(
    argv: tuple[str, ...], cell: Cell, identity: Identity, folder: Path
) -> Iterator[tuple[str, ...]]:
    """Give what is really run: a cell that writes gets the target itself in place of its name.

    fio opens its file by name, some time after the target was looked at.  So the job that it runs
    names an open descriptor of this process; the one that is stored names the target.

    Raises:
        Refused: the name leads to something else by now; nothing was written.
    """
    if not cell.writes:
        yield argv
        return
    job = folder / _LAUNCHED_FILE
    with lease.opened(identity) as name:
        try:
            job.write_text(render(cell, name), encoding="utf-8")
        except OSError as error:
            raise StoreError(
                f"cannot be written: {error.strerror}", where=str(folder), hint="free space"
            ) from error
        yield (*argv[:-1], job.name)
    job.unlink(missing_ok=True)


def _store_not_run(
    cell: Cell, reason: str, *, writer: RunWriter, device: str | None, now: Callable[[], datetime]
) -> CellRecord:
    """Store a cell whose rate cannot be decided, with the reason."""
    writer.begin_cell(cell.cell_id, f"# not run: {reason}\n")
    record = CellRecord(
        format=FORMAT,
        cell=cell,
        argv=(),
        started_at=_stamp(now()),
        wall_s=0.0,
        end="not-run",
        exit_code=None,
        survivors=(),
        device=device,
        before=None,
        after=None,
        note=reason,
    )
    writer.commit_cell(record)
    return record


def _check_logs(folder: Path) -> None:
    """Return when each log that fio left ends with a whole line.

    Raises:
        StoreError: one breaks off: there was no room for it, though there is some again.
    """
    for path in folder.glob("*.log"):
        try:
            with path.open("rb") as log:
                if log.seek(0, os.SEEK_END) == 0:
                    continue
                log.seek(-1, os.SEEK_END)
                whole = log.read() == b"\n"
        except OSError as error:
            raise StoreError(f"cannot be read: {error.strerror}", where=str(path)) from error
        if not whole:
            raise StoreError(
                "breaks off, so its cell is not stored: the disk was full, or failed",
                where=str(path),
                hint="free space, then go on with --resume; finished cells are kept",
            )


def keep_logs(folder: Path) -> None:
    """Compress the logs of whole latencies; drop the others.

    fio writes two more logs beside the one asked for, which hold the parts of the same latencies.
    """
    for prefix, kind in layout.LOG_KINDS.items():
        for part in ("clat", "slat"):
            for path in folder.glob(f"{prefix}_{part}.*.log"):
                path.unlink()
        for path in folder.glob(f"{prefix}_{kind}.*.log"):
            with path.open("rb") as plain, gzip.open(f"{path}.gz", "wb", compresslevel=1) as packed:
                shutil.copyfileobj(plain, packed)
            path.unlink()


def _note(result: LaunchResult) -> str:
    return f"ended by {', '.join(result.escalation)}" if result.escalation else ""


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
