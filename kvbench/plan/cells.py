"""Workload -> the cells of one pass over it, and the cells that measure the host.  Pure."""

import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kvbench.plan.model import Cell, CellLoad, Placed
from kvbench.plan.place import place
from kvbench.workload.schema import Engine, Load, Stream, SweepValue, Timing, Workload
from kvbench.workload.subject import PEAK
from kvbench.workload.sweep import points

CEILING_TIMING = Timing(runtime_s=0.5, ramp_s=0.0)

Together = tuple[Cell, ...]  # cells that stay together, in this order, when a pass is shuffled


class Mode(Struct, frozen=True, kw_only=True):
    """How the cells of a plan do their I/O."""

    engine: Engine
    direct: bool
    on_file: bool
    runtime_s: float | None  # in the place of each workload's own


def cells_of(workload: Workload, span_bytes: int, mode: Mode) -> Iterator[Together]:
    """Yield the cells of one pass over ``workload``.

    Cells stand alone, but for a load curve, whose rates are shares of a peak, which drifts, and
    for phases, which follow each other.

    Raises:
        UsageError: the target is too small for it.
    """
    for streams, parameters in points(workload.streams, workload.sweep):
        placed = tuple(place(workload, stream, span_bytes) for stream in streams)
        if workload.load is not None:
            yield tuple(_curve(workload, workload.load, placed, parameters, mode))
        elif workload.in_order:
            yield tuple(
                _cell(workload, (one,), parameters | {"phase": one.stream.name}, mode)
                for one in placed
            )
        elif workload.matrix:
            yield from ((cell,) for cell in _matrix(workload, placed, mode))
        else:
            yield (_cell(workload, placed, parameters, mode),)
            if workload.isolate:
                for one in placed:
                    yield (_cell(workload, (one,), parameters, mode, alone=one.stream.name),)


def shuffled(passes: Sequence[Together], rng: random.Random) -> list[Cell]:
    """Return the cells of one repetition in a random order; inside a load curve, its shares."""
    order = list(passes)
    rng.shuffle(order)
    cells: list[Cell] = []
    for together in order:
        shares = [c for c in together if c.load is not None and c.load.kind == "share"]
        rng.shuffle(shares)
        left = iter(shares)
        cells += [next(left) if c.load and c.load.kind == "share" else c for c in together]
    return cells


def ceilings(cells: Sequence[Cell]) -> Iterator[Cell]:
    """Yield one null-engine cell per distinct closed-loop shape."""
    for shape, cell in {ceiling_shape(cell): cell for cell in reversed(cells)}.items():
        if shape:
            yield replace(
                cell,
                purpose="ceiling",
                point_id=f"ceiling-{shape}",
                engine="null",
                direct=False,
                timing=CEILING_TIMING,
                load=None,
            )


def ceiling_shape(cell: Cell) -> str:
    """Return a key for the job shape, equal where the generator does the same work; "" for none.

    A stream that is paced, pauses or trims does not go as fast as the generator can, and one that
    goes through the page cache works in the kernel.
    """
    for placed in cell.placed:
        stream = placed.stream
        paced = stream.rate_iops is not None or stream.burst_ios is not None
        if paced or stream.trims or stream.buffered or stream.verify or cell.undecided:
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


def _matrix(workload: Workload, placed: tuple[Placed, ...], mode: Mode) -> Iterable[Cell]:
    """Return every victim beside every aggressor, and each stream alone."""
    victims = [one for one in placed if one.stream.side == "victim"]
    aggressors = [one for one in placed if one.stream.side == "aggressor"]
    for victim in victims:
        for aggressor in aggressors:
            names: dict[str, SweepValue] = {
                "victim": victim.stream.name,
                "aggressor": aggressor.stream.name,
            }
            yield _cell(workload, (victim, aggressor), names, mode)
    for one in placed:
        yield _cell(workload, (one,), {}, mode, alone=one.stream.name)


def _curve(
    workload: Workload,
    load: Load,
    placed: tuple[Placed, ...],
    parameters: dict[str, SweepValue],
    mode: Mode,
) -> Iterable[Cell]:
    """Return the peak, the open loops at shares of it, and the search for the usable rate."""
    peak = _cell(workload, placed, parameters | {"load": PEAK}, mode)
    yield replace(peak, load=CellLoad(kind="peak"))
    open_loop = tuple(replace(one, stream=_open(one.stream, load)) for one in placed)
    for percent in load.percents:
        share = _cell(workload, open_loop, parameters | {"load": f"{percent} %"}, mode)
        yield replace(share, load=CellLoad(kind="share", percent=percent))
    for step in range(1, load.search_steps + 1):
        search = _cell(workload, open_loop, parameters | {"load": f"search {step}"}, mode)
        yield replace(search, purpose="search", load=CellLoad(kind="search", step=step))


def _open(stream: Stream, load: Load) -> Stream:
    return replace(stream, queue_depth=load.queue_depth, jobs=load.jobs, shape="latency")


def _cell(
    workload: Workload,
    placed: tuple[Placed, ...],
    parameters: dict[str, SweepValue],
    mode: Mode,
    alone: str | None = None,
) -> Cell:
    timing = workload.timing
    if mode.runtime_s is not None:
        timing = replace(timing, runtime_s=mode.runtime_s)
    key = msgspec.json.encode((workload.name, workload.digest, sorted(parameters.items()), alone))
    return Cell(
        cell_id="",
        point_id=hashlib.sha256(key).hexdigest()[:12],
        repetition=0,
        purpose="measure",
        workload=workload.name,
        workload_digest=workload.digest,
        role=workload.role,
        parameters=parameters,
        alone=alone,
        placed=placed,
        timing=timing,
        engine=mode.engine,
        direct=mode.direct,
        seed=0,
        trims_by_holes=mode.on_file and any(one.stream.trims for one in placed),
    )
