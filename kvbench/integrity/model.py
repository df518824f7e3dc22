"""What a run must have left on its target, and what was found there.  Data only."""

from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

# good       whole, in its place, and of the last cell that wrote there
# older      likewise, of the cell before one that was cut off: it need not be newer
# unwritten  the first cell that writes there was cut off before it came to this block
# stale      whole and in its place, but older than what was surely written over it
# lost       no block of fio's where there surely was one
# torn       a header, or the data behind it, that does not fit its checksum
# misplaced  a block that was written for another place
# unreadable the device gave an error
Kind = Literal["good", "older", "unwritten", "stale", "lost", "torn", "misplaced", "unreadable"]
KINDS: tuple[Kind, ...] = (
    *("good", "older", "unwritten"),
    *("stale", "lost", "torn", "misplaced", "unreadable"),
)
BAD: tuple[Kind, ...] = ("stale", "lost", "torn", "misplaced", "unreadable")


class Layer(Struct, frozen=True, kw_only=True):
    """One cell that wrote a region, with when it did.

    ``end_s`` is None for a cell that was cut off: nobody knows when it ended.
    """

    cell_id: str
    workload: str
    stream: str
    boot_id: str
    begin_s: float
    end_s: float | None
    queue_depth: int
    durable: bool  # each write was on the device when it returned
    cell_blocks: int | None = None  # that the whole cell writes, once each


class Region(Struct, frozen=True, kw_only=True):
    """A part of the target in which every block was written by one of a few cells.

    ``layers`` are those whose blocks may be there, the newest first.  A ``settled`` region holds a
    block of one of them everywhere; in another one what was there before may still be there.
    """

    start_bytes: int
    end_bytes: int
    block_bytes: int
    layers: tuple[Layer, ...]
    settled: bool


class Span(Struct, frozen=True, kw_only=True):
    """Blocks of one kind that follow each other."""

    kind: Kind
    start_bytes: int
    end_bytes: int
    holds_offset_bytes: int | None = None  # misplaced: where the first one belongs


class RegionCheck(Struct, frozen=True, kw_only=True):
    """What was found in one region.

    ``spans`` are the first bad ones; ``more_spans`` says how many others there are.
    ``lost_durable`` counts writes that had returned as durable in a cell that was cut off, and of
    which nothing is there: at least so many.  ``not_ordered`` says why a block that another boot
    wrote at the same uptime would pass here; "" when it would be told by its number.
    """

    region: Region
    counts: dict[Kind, int]
    spans: tuple[Span, ...]
    more_spans: int
    lost_durable: int = 0
    not_ordered: str = ""

    @property
    def blocks(self) -> int:
        """How many blocks were looked at."""
        return sum(self.counts.values())

    @property
    def bad(self) -> int:
        """How many blocks are not what they must be."""
        return sum(self.counts.get(kind, 0) for kind in BAD) + self.lost_durable

    @property
    def unknown_bytes(self) -> int:
        """How much of it was read and cannot be judged."""
        return self.counts.get("unwritten", 0) * self.region.block_bytes


class Judged(Struct, frozen=True, kw_only=True, eq=False):
    """n neighbouring blocks, judged; every array has shape (n,).

    ``kinds`` are indices into ``KINDS``; ``layer`` is the place of the cell in the region's
    layers, -1 for none; ``offset_bytes``, ``number`` and ``time_s`` are what the header says.
    """

    kinds: NDArray[np.int8]
    layer: NDArray[np.int8]
    number: NDArray[np.uint16]
    offset_bytes: NDArray[np.uint64]
    time_s: NDArray[np.float64]
