"""What of a target the regions of a run do not cover, and why.  Pure.

Everything that ``expected`` leaves out is accounted for here, so that judged and not judged always
add up to the whole target.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from kvbench.integrity.model import Region, RegionCheck
from kvbench.plan import Plan
from kvbench.store.journal import Begun

# outside    the run was never to write blocks with headers there
# not begun  it was, and no cell that was to do so has begun
# changed    a later cell trimmed it, or wrote it without headers
# partial    less than a whole block, or cut by a later cell of another block size
# unknown    read, but whether a cell came to it before it was cut off is not known
Why = Literal["outside", "not begun", "changed", "partial", "unknown"]
WHY_WORDS: dict[Why, str] = {
    "outside": "outside of what this run writes with headers",
    "not begun": "to be written by cells that have not begun",
    "changed": "trimmed, or written without headers, by a later cell of the run",
    "partial": "parts of blocks that another cell cut",
    "unknown": "in blocks of unknown state: the first cell there was cut off, and whether it came "
    "to them is not known",
}
PLACES_MAX = 8  # that are told one by one

Span = tuple[int, int]  # first byte, and the one after the last


class LeftOut(Struct, frozen=True, kw_only=True):
    """Bytes that are not judged for one reason.

    ``places`` are the first ranges, as (start, end) in bytes; those of unknown state are not told
    one by one.
    """

    why: Why
    bytes: int
    places: tuple[Span, ...] = ()
    more_places: int = 0


def left_out(
    plan: Plan,
    begun: Iterable[Begun],
    regions: Sequence[Region],
    checks: Iterable[RegionCheck],
    size_bytes: int,
) -> tuple[LeftOut, ...]:
    """Return what is not judged of a target of so many bytes, by reason."""
    parts: dict[Why, list[Span]] = {
        why: [] for why in ("outside", "not begun", "changed", "partial")
    }
    covered = sorted((one.start_bytes, one.end_bytes) for one in regions)
    painted = list(_painted(plan, begun, size_bytes))
    for start, end in _gaps(covered, size_bytes):
        for low, high, why in painted:
            if max(low, start) < min(high, end):
                parts[why].append((max(low, start), min(high, end)))
    found = [_one(why, _joined(sorted(spans))) for why, spans in parts.items() if spans]
    unknown = sum(check.unknown_bytes for check in checks)
    return (*found, *([LeftOut(why="unknown", bytes=unknown)] if unknown else []))


def _painted(plan: Plan, begun: Iterable[Begun], size_bytes: int) -> Iterable[tuple[int, int, Why]]:
    """Yield the whole target in parts, each with why no region would be there."""
    strokes: list[tuple[int, int, Why]] = [(0, size_bytes, "outside")]
    writers = [cell for cell in plan.cells if cell.writes]
    strokes += [
        (one.offset_bytes, one.offset_bytes + one.size_bytes, "not begun")
        for cell in writers
        for one in cell.placed
        if one.stream.once and one.stream.writes
    ]
    cells = {cell.cell_id: cell for cell in writers}
    for entry in begun:
        cell = cells.get(entry.cell_id)
        for one in cell.placed if cell is not None else ():
            if one.stream.changes:
                why: Why = "partial" if one.stream.once else "changed"
                strokes.append((one.offset_bytes, one.offset_bytes + one.size_bytes, why))
    edges = sorted({min(edge, size_bytes) for low, high, _ in strokes for edge in (low, high)})
    for low, high in pairwise(edges):
        last = [why for a, b, why in strokes if a <= low and high <= b]
        yield low, high, last[-1]


def _gaps(covered: Sequence[Span], size_bytes: int) -> Iterable[Span]:
    place = 0
    for start, end in covered:
        if start > place:
            yield place, start
        place = max(place, end)
    if place < size_bytes:
        yield place, size_bytes


def _joined(spans: Iterable[Span]) -> list[Span]:
    found: list[Span] = []
    for start, end in spans:
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _one(why: Why, spans: Sequence[Span]) -> LeftOut:
    return LeftOut(
        why=why,
        bytes=sum(end - start for start, end in spans),
        places=tuple(spans[:PLACES_MAX]),
        more_places=max(0, len(spans) - PLACES_MAX),
    )
