"""Blocks of a region -> what each one is, and what that says of the region.  Pure."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kvbench.integrity.header import Headers, read_headers
from kvbench.integrity.model import BAD, KINDS, Judged, Kind, Region, RegionCheck, Span
from kvbench.integrity.order import ORDER_BLOCKS_MAX, out_of_order, why_not_ordered

SPANS_MAX = 20  # that are told one by one
# numberio wraps at 2^16; beyond, the numbers of a cell that was cut off cannot be told apart
_NUMBERS_MAX = 2**16 - 1
_BAD_CODES = np.array([KINDS.index(kind) for kind in BAD], dtype=np.int8)


def judge(blocks: NDArray[np.uint8], region: Region, start_bytes: int) -> Judged:
    """Return what each of some neighbouring blocks is.

    Args:
        blocks: shape (n, block size).
        region: where they are from.
        start_bytes: the place of the first one.
    """
    headers = read_headers(blocks)
    places = np.uint64(start_bytes) + np.arange(len(blocks), dtype=np.uint64) * np.uint64(
        region.block_bytes
    )
    layer = _layers(headers, region)
    in_place = headers.offset_bytes == places
    ours = headers.sound & (layer >= 0)
    codes = np.full(len(blocks), KINDS.index("good"), dtype=np.int8)
    # in the order of what decides: each line is about what the lines after it leave
    _set(codes, ours & (layer > 0), "older")
    _set(codes, headers.sound & ~ours, "stale" if region.settled else "unwritten")
    _set(codes, headers.sound & ~headers.whole & (ours | region.settled), "torn")
    _set(codes, headers.sound & ~in_place & (ours | region.settled), "misplaced")
    _set(codes, headers.present & ~headers.sound, "torn" if region.settled else "unwritten")
    _set(codes, ~headers.present, "lost" if region.settled else "unwritten")
    return Judged(
        kinds=codes,
        layer=layer,
        number=headers.number,
        offset_bytes=headers.offset_bytes,
        time_s=headers.time_s,
    )


def unreadable(count: int) -> Judged:
    """Return the judgement of blocks that the device did not give."""
    return Judged(
        kinds=np.full(count, KINDS.index("unreadable"), dtype=np.int8),
        layer=np.full(count, -1, dtype=np.int8),
        number=np.zeros(count, dtype=np.uint16),
        offset_bytes=np.zeros(count, dtype=np.uint64),
        time_s=np.zeros(count, dtype=np.float64),
    )


class Tally:
    """Adds the judgements of a region up, part by part, in order."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.counts: dict[Kind, int] = {}
        self._spans: list[_Open] = []
        self._more = 0
        self._next = region.start_bytes
        self._numbers: set[int] = set()
        self._whole: list[_Whole] = []
        self._may_order = _blocks(region) <= ORDER_BLOCKS_MAX

    def add(self, judged: Judged) -> None:
        """Take in the blocks that follow those before."""
        codes, amounts = np.unique(judged.kinds, return_counts=True)
        for code, amount in zip(codes, amounts, strict=True):
            kind = KINDS[int(code)]
            self.counts[kind] = self.counts.get(kind, 0) + int(amount)
        self._add_spans(judged)
        if self._durable:
            # a header that is damaged may hold any number
            newest = (judged.layer == 0) & (judged.kinds == KINDS.index("good"))
            self._numbers.update(int(number) for number in judged.number[newest])
        if self._may_order:
            self._whole.append(_whole_ones(judged, self._next, self.region.block_bytes))
        self._next += len(judged.kinds) * self.region.block_bytes

    def result(self) -> RegionCheck:
        """Return what was found."""
        not_ordered = self._take_strays_out()
        spans = tuple(one.span() for one in sorted(self._spans, key=lambda s: s.start_bytes))
        return RegionCheck(
            region=self.region,
            counts={kind: self.counts[kind] for kind in KINDS if kind in self.counts},
            spans=spans,
            more_spans=self._more,
            lost_durable=self._lost_durable(),
            not_ordered=not_ordered,
        )

    @property
    def _durable(self) -> bool:
        """Whether the numbers of the writes tell what is missing."""
        newest, region = self.region.layers[0], self.region
        return newest.durable and newest.end_s is None and _blocks(region) < _NUMBERS_MAX

    def _lost_durable(self) -> int:
        """Return how many durable writes are gone.

        When write n was made all before it had returned, but for those in flight beside it.
        """
        if not self._numbers:
            return 0
        damaged = sum(self.counts.get(kind, 0) for kind in BAD)  # told already; each had a number
        missing = max(self._numbers) - len(self._numbers - {0}) - damaged
        return max(0, missing - (self.region.layers[0].queue_depth - 1))

    def _take_strays_out(self) -> str:
        """Judge anew what another boot wrote; return why that cannot be told, "" when it can."""
        reasons = (
            set() if self._may_order else {"it has too many blocks for their order to be kept"}
        )
        for place, layer in enumerate(self.region.layers):
            mine = [one.of_layer(place) for one in self._whole]
            if not sum(len(one.place_bytes) for one in mine):
                continue
            places, times, numbers = (
                np.concatenate([getattr(one, name) for one in mine])
                for name in ("place_bytes", "time_s", "number")
            )
            others = [one for one in self.region.layers if one is not layer]
            why = why_not_ordered(layer, len(places), others)
            if why:
                reasons.add(why)
                continue
            stray = out_of_order(times, numbers, layer)
            self._stray(places[stray], "older" if place else "good")
            if self._durable and not place:
                self._numbers = {int(number) for number in numbers[~stray]}
        return "; ".join(sorted(reasons))

    def _stray(self, places: NDArray[np.int64], taken_for: Kind) -> None:
        if not places.size:
            return
        kind: Kind = "stale" if self.region.settled else "unwritten"
        self.counts[kind] = self.counts.get(kind, 0) + len(places)
        self.counts[taken_for] -= len(places)
        if not self.counts[taken_for]:
            del self.counts[taken_for]
        if kind not in BAD:
            return
        size = self.region.block_bytes
        for part in np.split(places, np.flatnonzero(np.diff(places) > size) + 1):
            if len(self._spans) < SPANS_MAX:
                self._spans.append(_Open(kind, int(part[0]), int(part[-1]) + size, None))
            else:
                self._more += 1

    def _add_spans(self, judged: Judged) -> None:
        bad = np.flatnonzero(np.isin(judged.kinds, _BAD_CODES))
        if not bad.size:
            return
        kinds, size = judged.kinds[bad], self.region.block_bytes
        breaks = np.flatnonzero((np.diff(bad) > 1) | (np.diff(kinds) != 0)) + 1
        for part in np.split(bad, breaks):
            first, kind = int(part[0]), KINDS[int(judged.kinds[part[0]])]
            start = self._next + first * size
            end = self._next + (int(part[-1]) + 1) * size
            last = self._spans[-1] if self._spans and not self._more else None
            if last is not None and last.kind == kind and last.end_bytes == start:
                last.end_bytes = end
            elif len(self._spans) < SPANS_MAX:
                holds = int(judged.offset_bytes[first]) if kind == "misplaced" else None
                self._spans.append(_Open(kind, start, end, holds))
            else:
                self._more += 1


class _Whole(Struct, frozen=True, eq=False):
    """Blocks that are whole, in their place and of a cell of the region; each shape (n,)."""

    place_bytes: NDArray[np.int64]
    time_s: NDArray[np.float64]
    number: NDArray[np.uint16]
    layer: NDArray[np.int8]

    def of_layer(self, layer: int) -> "_Whole":
        mine = self.layer == layer
        return _Whole(
            self.place_bytes[mine], self.time_s[mine], self.number[mine], self.layer[mine]
        )


def _whole_ones(judged: Judged, start_bytes: int, block_bytes: int) -> _Whole:
    chosen = np.flatnonzero(judged.kinds <= KINDS.index("older"))
    return _Whole(
        start_bytes + chosen * block_bytes,
        judged.time_s[chosen],
        judged.number[chosen],
        judged.layer[chosen],
    )


def _blocks(region: Region) -> int:
    return (region.end_bytes - region.start_bytes) // region.block_bytes


class _Open(Struct):
    """A span that may still grow."""

    kind: Kind
    start_bytes: int
    end_bytes: int
    holds_offset_bytes: int | None

    def span(self) -> Span:
        return Span(
            kind=self.kind,
            start_bytes=self.start_bytes,
            end_bytes=self.end_bytes,
            holds_offset_bytes=self.holds_offset_bytes,
        )


def _set(codes: NDArray[np.int8], where: NDArray[np.bool_], kind: Kind) -> None:
    codes[where] = KINDS.index(kind)


def _layers(headers: Headers, region: Region) -> NDArray[np.int8]:
    """Return the place of the layer in whose time each block was written, -1 for none.

    The clock begins anew with every boot.  A cell that ended left a window of its own length, which
    a block of another boot hits by chance only; one that was cut off has no end, but then blocks of
    before may be there as well.
    """
    found = np.full(len(headers.time_s), -1, dtype=np.int8)
    for place, layer in reversed(list(enumerate(region.layers))):
        end_s = np.inf if layer.end_s is None else layer.end_s
        newer = [one.begin_s for one in region.layers[:place] if one.boot_id == layer.boot_id]
        end_s = min([end_s, *newer])
        found[(headers.time_s >= layer.begin_s) & (headers.time_s <= end_s)] = place
    return found


def bad_blocks(checks: Sequence[RegionCheck]) -> int:
    """Return how many blocks of all regions are not what they must be."""
    return sum(check.bad for check in checks)
