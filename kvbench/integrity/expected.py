"""A stored run, also one that was killed -> what its target must hold.  Pure.

The cells that changed the target are gone through in the order in which they began.  Each one that
writes with verify headers gives its part of the target a new layer: when it ended in order nothing
else may be there, when it was cut off the blocks of before may still be.  Whatever else changes the
target takes what it touched out of what can be judged.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from kvbench.integrity.model import Layer, Region
from kvbench.plan import Cell, Placed, Plan
from kvbench.store.journal import Begun
from kvbench.store.records import CellRecord, RunRecord

# Between the note in the journal and fio's start lies what a slow store takes.  Blocks of this boot
# are told apart by the beginnings alone; the end only keeps out those of other boots.
SLACK_S = 30.0


def verifiable(plan: Plan) -> bool:
    """Return whether any cell of a plan leaves blocks with verify headers."""
    return any(
        placed.stream.once and placed.stream.writes and cell.engine != "null"
        for cell in plan.cells
        for placed in cell.placed
    )


def expected_regions(
    record: RunRecord, begun: Sequence[Begun], stored: Iterable[CellRecord]
) -> tuple[Region, ...]:
    """Return the parts of the target that can be judged, by their place.

    Args:
        record: the run.
        begun: its cells that change the target, in the order in which they began.
        stored: its cells that are on disk.
    """
    cells = {cell.cell_id: cell for cell in record.plan.cells}
    records = {one.cell.cell_id: one for one in stored}
    last = {entry.cell_id: place for place, entry in enumerate(begun)}
    regions: list[Region] = []
    for place, entry in enumerate(begun):
        cell = cells.get(entry.cell_id)
        if cell is None:
            continue
        # measured anew: only its last launch is the one that is stored
        kept = records.get(entry.cell_id) if last[entry.cell_id] == place else None
        for placed in cell.placed:
            if placed.stream.changes:
                regions = _painted(regions, cell, placed, entry, kept)
    return tuple(sorted(regions, key=lambda region: region.start_bytes))


def _painted(
    regions: list[Region], cell: Cell, placed: Placed, entry: Begun, kept: CellRecord | None
) -> list[Region]:
    start, end = placed.offset_bytes, placed.offset_bytes + placed.size_bytes
    outside = [part for one in regions for part in _cut(one, start, end)]
    if not placed.stream.once:
        return outside
    complete = kept is not None and kept.end == "exited" and kept.exit_code == 0
    stream = placed.stream
    layer = Layer(
        cell_id=cell.cell_id,
        workload=cell.workload,
        stream=stream.name,
        boot_id=entry.boot_id,
        begin_s=entry.begin_s,
        end_s=entry.begin_s + kept.wall_s + SLACK_S if complete and kept is not None else None,
        queue_depth=stream.queue_depth,
        durable=stream.write_policy == "dsync",
        cell_blocks=placed.size_bytes // stream.max_block_bytes,
    )
    whole = Region(
        start_bytes=start,
        end_bytes=end - placed.size_bytes % stream.max_block_bytes,
        block_bytes=stream.max_block_bytes,
        layers=(layer,),
        settled=complete,
    )
    if complete:
        return [*outside, whole]
    return outside + _over(whole, regions)


def _over(new: Region, before: Sequence[Region]) -> list[Region]:
    """Return a region that was written in part, each piece with the layers under it."""
    pieces: list[Region] = []
    place = new.start_bytes
    for old in sorted(before, key=lambda one: one.start_bytes):
        inner = _within(old, new.start_bytes, new.end_bytes)
        fits = (
            inner is not None
            and inner.block_bytes == new.block_bytes
            and (inner.start_bytes - new.start_bytes) % new.block_bytes == 0
        )
        if inner is None or not fits:
            continue
        if inner.start_bytes > place:
            pieces.append(replace(new, start_bytes=place, end_bytes=inner.start_bytes))
        pieces.append(replace(inner, layers=(*new.layers, *inner.layers)))
        place = inner.end_bytes
    if place < new.end_bytes:
        pieces.append(replace(new, start_bytes=place))
    return pieces


def _cut(region: Region, start: int, end: int) -> list[Region]:
    """Return what is left of a region without what lies from ``start`` to ``end``."""
    parts = (
        _within(region, region.start_bytes, min(start, region.end_bytes)),
        _within(region, max(end, region.start_bytes), region.end_bytes),
    )
    return [part for part in parts if part is not None]


def _within(region: Region, start: int, end: int) -> Region | None:
    """Return the whole blocks of a region that lie in a range, None when there is none."""
    size = region.block_bytes
    first = max(0, -(-(start - region.start_bytes) // size))
    last = (min(end, region.end_bytes) - region.start_bytes) // size
    if last <= first:
        return None
    return replace(
        region,
        start_bytes=region.start_bytes + first * size,
        end_bytes=region.start_bytes + last * size,
    )
