"""Workloads x target x repetitions -> the ordered cells, with expected time and bytes.  Pure.

Cells are shuffled inside each repetition by the plan's seed, so that a drifting device does not
favour a workload, and fio's seed changes with every cell, so that no cell replays another's
offsets.  Ceiling cells (fio's null engine, the same job shape) come first: they tell what this
host can generate.
"""

import hashlib
import random
import re
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Literal, Protocol

import msgspec
from msgspec import Struct

from kvbench.document import found, printable
from kvbench.errors import Refused, UsageError
from kvbench.units import HUGE_PAGE_BYTES, MIB, format_size
from kvbench.workload.schema import Engine, Role, Stream, SweepValue, Timing, Workload
from kvbench.workload.sweep import points

FORMAT = 1
CELL_OVERHEAD_S = (
    0.4  # starting and ending fio, storing: what one cell costs beyond ramp and runtime
)
CEILING_TIMING = Timing(runtime_s=0.5, ramp_s=0.0)
UNITS_PER_JOB_MIN = 8  # a target must hold this many blocks or chunks per submitter
ALIGN_BYTES = MIB  # spans start and end on this, so that no LBA size and no file system minds

CELL_ID = r"[0-9]{4,9}"  # also the name of a folder

# measure: a point of the report; search: a probe for the usable rate, whose rate differs from
# repetition to repetition; ceiling: what the host generates without a device
Purpose = Literal["measure", "search", "ceiling"]
CellEngine = Literal["io_uring", "libaio", "psync", "null"]  # null does no I/O at all
TargetKind = Literal["file", "block"]


class Placed(Struct, frozen=True, kw_only=True):
    """A stream and the part of the target that it may touch."""

    stream: Stream
    offset_bytes: int
    size_bytes: int


class CellLoad(Struct, frozen=True, kw_only=True):
    """What a cell of a load curve is.

    The rate of a share or a search step follows from cells before it in the same repetition; the
    session decides it, and the stored cell has it.  In the plan its stream has no rate.
    """

    kind: Literal["peak", "share", "search"]
    percent: float | None = None  # share: of the peak
    step: int | None = None  # search: 1 for the first


class Cell(Struct, frozen=True, kw_only=True):
    """One fio invocation, fully decided but for the rate of a cell with ``load``.

    ``point_id`` is the same in every repetition of the same point.  ``alone`` names the only
    stream of a cell that measures a tenant by itself.
    """

    cell_id: str
    point_id: str
    repetition: int
    purpose: Purpose
    workload: str
    workload_digest: str
    role: Role
    parameters: dict[str, SweepValue]
    alone: str | None
    placed: tuple[Placed, ...]
    timing: Timing
    engine: CellEngine
    direct: bool
    seed: int
    load: CellLoad | None = None
    trims_by_holes: bool = False  # the target is a file, where a trim punches a hole

    @property
    def writes(self) -> bool:
        """Whether the cell changes the target; only an engine that does no I/O never does."""
        return self.engine != "null" and any(p.stream.changes for p in self.placed)

    @property
    def expected_s(self) -> float:
        """The wall time that the cell should take."""
        return self.timing.ramp_s + self.timing.runtime_s + CELL_OVERHEAD_S


class TargetSpec(Struct, frozen=True, kw_only=True):
    """The target as the plan sees it."""

    path: str
    kind: TargetKind
    size_bytes: int
    own_file: bool  # kvbench made it, so kvbench may write it
    logical_block_bytes: int = 512


class Identified(Protocol):
    """What a plan must know of an identified target to be held against it."""

    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def real_path(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> TargetKind: ...  # noqa: D102
    @property
    def size_bytes(self) -> int: ...  # noqa: D102


class Skipped(Struct, frozen=True, kw_only=True):
    """A workload that is not run here, and why."""

    workload: str
    reason: str


class Scaled(Struct, frozen=True, kw_only=True):
    """What of a workload was made smaller to fit this target; its numbers still count."""

    workload: str
    text: str


class Plan(Struct, frozen=True, kw_only=True):
    """What ``kvbench run`` will do, in order."""

    format: int
    suite: str
    seed: int
    repetitions: int
    target: TargetSpec
    engine: Engine
    direct: bool
    workloads: tuple[Workload, ...]
    cells: tuple[Cell, ...]
    skipped: tuple[Skipped, ...]
    scaled: tuple[Scaled, ...] = ()

    @property
    def expected_s(self) -> float:
        """The wall time of all cells."""
        return sum(cell.expected_s for cell in self.cells)

    @property
    def writing_cells(self) -> int:
        """How many cells write."""
        return sum(cell.writes for cell in self.cells)


def make_plan(
    workloads: Sequence[Workload],
    target: TargetSpec,
    *,
    suite: str = "",
    repetitions: int,
    seed: int,
    engine: Engine = "io_uring",
    direct: bool = True,
    may_write: bool,
    huge_pages_free: int | None = None,
    runtime_s: float | None = None,
    span_bytes: int | None = None,
) -> Plan:
    """Return the plan of ``workloads`` on ``target``.

    Args:
        workloads: what to run, in the order in which reports show it.
        target: what to run it on.
        suite: the suite's name, "" when workloads were named one by one.
        repetitions: passes over all cells; the statistical sample size.
        seed: decides the order of cells and every offset that fio draws.
        engine: fio's I/O engine.
        direct: O_DIRECT, or the page cache.
        may_write: without it workloads that write are skipped, with the reason.
        huge_pages_free: reserved 2 MiB pages that nobody uses; workloads that need more of them
            are skipped, with the reason.  None skips none.
        runtime_s: overrides the runtime of every workload.
        span_bytes: only the first so many bytes of the target are used.

    Raises:
        UsageError: nothing is left to run, or the target is too small for a workload.
    """
    span = target.size_bytes if span_bytes is None else span_bytes
    if span > target.size_bytes:
        raise UsageError(
            f"span {format_size(span)} is larger than the target, "
            f"which has {format_size(target.size_bytes)}",
            where=target.path,
        )
    if repetitions < 1:
        raise UsageError(f"repetitions must be at least 1, not {repetitions}")
    runnable: list[Workload] = []
    skipped: list[Skipped] = []
    for workload in _distinct(workloads):
        reason = _why_not(workload, target, may_write=may_write, engine=engine)
        if reason is None and huge_pages_free is not None:
            reason = _why_no_memory(workload, huge_pages_free)
        if reason:
            skipped.append(Skipped(workload=workload.name, reason=reason))
        else:
            runnable.append(workload)
    if not runnable:
        reasons = "; ".join(f"{s.workload}: {s.reason}" for s in skipped)
        raise UsageError(f"nothing to run: {reasons or 'no workload was named'}")
    cells_of_a_pass = [
        cell
        for workload in runnable
        for cell in _cells(workload, span, engine=engine, direct=direct, runtime_s=runtime_s)
    ]
    rng = random.Random(seed)  # noqa: S311 - an order to repeat, not a secret
    ordered: list[Cell] = list(_ceilings(cells_of_a_pass))
    for repetition in range(1, repetitions + 1):
        shuffled = cells_of_a_pass[:]
        rng.shuffle(shuffled)
        ordered += [msgspec.structs.replace(cell, repetition=repetition) for cell in shuffled]
    cells = tuple(
        msgspec.structs.replace(cell, cell_id=f"{number:04d}", seed=rng.randrange(1, 2**31))
        for number, cell in enumerate(ordered, start=1)
    )
    return Plan(
        format=FORMAT,
        suite=suite,
        seed=seed,
        repetitions=repetitions,
        target=target,
        engine=engine,
        direct=direct,
        workloads=tuple(runnable),
        cells=cells,
        skipped=tuple(skipped),
    )


def check_stored(plan: Plan, identified: Identified) -> None:
    """Return when a plan that was stored is one that ``make_plan`` makes for this target.

    A stored plan is data from a file: what it says of the target must be what was identified, or
    the guard would look at one thing and fio write another, or beyond it.

    Args:
        plan: the stored plan.
        identified: what the guard holds to be its target.

    Raises:
        Refused: the plan contradicts the target or itself; the message says where.
    """
    target = plan.target
    path = identified.real_path
    if target.path not in (identified.path, path) or target.kind != identified.kind:
        raise _unfit(
            f"it is for the {target.kind} {found(target.path)}, this is a {identified.kind}", path
        )
    if not 0 < target.size_bytes <= identified.size_bytes:
        raise _unfit(
            f"it is for {target.size_bytes} bytes, the target has {identified.size_bytes}", path
        )
    if not plan.cells:
        raise _unfit("it has no cells", path)
    ids = [cell.cell_id for cell in plan.cells]
    if len(set(ids)) < len(ids):
        raise _unfit("two of its cells have the same number", path)
    for cell in plan.cells:
        problem = _cell_problem(cell, plan)
        if problem:
            raise _unfit(f"cell {found(cell.cell_id)} {problem}", path)


def _unfit(problem: str, path: str) -> Refused:
    return Refused(
        f"the stored plan cannot be used: {problem}",
        where=printable(path),
        hint="its run.json was changed, or not written by kvbench; start a new run",
    )


def _cell_problem(cell: Cell, plan: Plan) -> str:
    """Return what a stored cell has that no cell of its plan can have, "" when all is well."""
    if not re.fullmatch(CELL_ID, cell.cell_id, re.ASCII):
        return "has no number"
    ceiling = cell.purpose == "ceiling"
    if cell.engine != ("null" if ceiling else plan.engine):
        return f"uses the engine {cell.engine} and not the plan's"
    if cell.direct != (plan.direct and not ceiling):
        return "uses another mode than the plan"
    if not cell.placed:
        return "has no stream"
    for placed in cell.placed:
        if placed.offset_bytes < 0 or placed.size_bytes <= 0:
            return f"has {placed.size_bytes} bytes at {placed.offset_bytes}"
        if placed.offset_bytes + placed.size_bytes > plan.target.size_bytes:
            return "ends beyond the target"
    return ""


def min_target_bytes(workload: Workload) -> int:
    """Return the smallest target that every point of ``workload`` fits on."""
    return max(
        _span_for(stream)
        for streams, _ in points(workload.streams, workload.sweep)
        for stream in streams
    )


def _span_for(stream: Stream) -> int:
    """Return the span whose share for ``stream`` holds enough whole units."""
    grain = _grain(stream)
    needed = -(-UNITS_PER_JOB_MIN * stream.unit_bytes * stream.jobs // grain) * grain
    span = ceil(needed * 100 / stream.span_percent / ALIGN_BYTES) * ALIGN_BYTES
    # the share is a rounded floating-point product and may fall one byte short
    return span if int(span * stream.span_percent / 100) >= needed else span + ALIGN_BYTES


def _grain(stream: Stream) -> int:
    """Return what the size of a stream's part is a multiple of: whole blocks or chunks, always."""
    unit = stream.unit_bytes
    return ALIGN_BYTES if ALIGN_BYTES % unit == 0 else unit


def _distinct(workloads: Sequence[Workload]) -> Iterable[Workload]:
    """Return each workload once; a name with two meanings is refused."""
    by_name: dict[str, Workload] = {}
    for workload in workloads:
        if by_name.setdefault(workload.name, workload).digest != workload.digest:
            raise UsageError(
                f"two different workloads are called {workload.name}",
                hint="rename one file, as reports tell workloads apart by name",
            )
    return by_name.values()


def _why_not(
    workload: Workload, target: TargetSpec, *, may_write: bool, engine: Engine
) -> str | None:
    variants = [streams for streams, _ in points(workload.streams, workload.sweep)]
    streams = [s for streams in variants for s in streams]
    if not may_write and any(s.changes for s in streams):
        return "it writes, and this target is only read (give --destroy to allow writing)"
    if engine == "psync" and any(s.queue_depth > 1 for s in streams):
        return "it needs a queue depth above 1, which psync cannot give"
    sizes = sorted({share.size_bytes for s in streams for share in s.block_mix})
    unfit = [size for size in sizes if size % target.logical_block_bytes]
    if unfit:
        return (
            f"its {unfit[0]} B blocks are not a multiple of the device's "
            f"{target.logical_block_bytes} B logical block"
        )
    return None


def huge_pages_needed(streams: Iterable[Stream]) -> int:
    """Return the 2 MiB pages that fio maps for the buffers of ``streams``.

    Seen with fio 3.33: for every job the bytes in flight and 8 KiB less one to align them, in
    whole pages, and one page more.
    """
    return sum(
        stream.jobs * (1 - -(stream.queue_depth * stream.max_block_bytes + 8191) // HUGE_PAGE_BYTES)
        for stream in streams
        if stream.buffers == "huge"
    )


def _why_no_memory(workload: Workload, huge_pages_free: int) -> str | None:
    needed = max(
        huge_pages_needed(streams) for streams, _ in points(workload.streams, workload.sweep)
    )
    if needed <= huge_pages_free:
        return None
    return (
        f"its buffers need {needed} huge pages of 2 MiB and {huge_pages_free} are free "
        f"(sysctl vm.nr_hugepages={needed})"
    )


def _cells(
    workload: Workload, span_bytes: int, *, engine: Engine, direct: bool, runtime_s: float | None
) -> list[Cell]:
    timing = workload.timing
    if runtime_s is not None:
        timing = msgspec.structs.replace(timing, runtime_s=runtime_s)
    cells = []
    for streams, parameters in points(workload.streams, workload.sweep):
        placed = tuple(_place(workload, stream, span_bytes) for stream in streams)
        groups: list[tuple[str | None, tuple[Placed, ...]]] = [(None, placed)]
        if workload.isolate:
            groups += [(p.stream.name, (p,)) for p in placed]
        for alone, members in groups:
            key = msgspec.json.encode(
                (workload.name, workload.digest, sorted(parameters.items()), alone)
            )
            cells.append(
                Cell(
                    cell_id="",
                    point_id=hashlib.sha256(key).hexdigest()[:12],
                    repetition=0,
                    purpose="measure",
                    workload=workload.name,
                    workload_digest=workload.digest,
                    role=workload.role,
                    parameters=parameters,
                    alone=alone,
                    placed=members,
                    timing=timing,
                    engine=engine,
                    direct=direct,
                    seed=0,
                )
            )
    return cells


def _place(workload: Workload, stream: Stream, span_bytes: int) -> Placed:
    start = int(span_bytes * stream.span_start_percent / 100) // ALIGN_BYTES * ALIGN_BYTES
    size = min(int(span_bytes * stream.span_percent / 100), span_bytes - start)
    size = size // _grain(stream) * _grain(stream)
    if size < UNITS_PER_JOB_MIN * stream.unit_bytes * stream.jobs:
        raise UsageError(
            f"target too small for workload {workload.name}: it needs "
            f"{format_size(min_target_bytes(workload))} and has {format_size(span_bytes)}",
            where=f"stream {stream.name}",
            hint="use a larger target or span, or leave this workload out",
        )
    return Placed(stream=stream, offset_bytes=start, size_bytes=size)


def _ceilings(cells: Sequence[Cell]) -> Iterable[Cell]:
    """Yield one null-engine cell per distinct closed-loop shape."""
    for shape, cell in {ceiling_shape(cell): cell for cell in reversed(cells)}.items():
        if shape:
            yield msgspec.structs.replace(
                cell,
                purpose="ceiling",
                point_id=f"ceiling-{shape}",
                engine="null",
                direct=False,
                timing=CEILING_TIMING,
            )


def ceiling_shape(cell: Cell) -> str:
    """Return a key for the job shape, equal where the generator does the same work; "" if paced.

    A paced (open-loop) stream does not try to go as fast as it can, so it has no ceiling.
    """
    if any(p.stream.rate_iops is not None for p in cell.placed):
        return ""
    shape = [
        (
            p.stream.queue_depth,
            p.stream.jobs,
            p.stream.shape,
            p.stream.barrier,
            p.stream.direction,
            # a writer fills its buffers anew for every I/O, which costs time per byte
            p.stream.mean_block_bytes if p.stream.writes else None,
        )
        for p in cell.placed
    ]
    return hashlib.sha256(msgspec.json.encode(shape)).hexdigest()[:12]
