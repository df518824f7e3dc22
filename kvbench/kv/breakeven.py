"""Reload or recompute: prefill time against measured request times.  Pure.

Reloading a prompt's KV cache beats recomputing it above the bandwidth
``BW* = bytes / (prefill - overhead)``; where the overhead alone takes as long, it never does.
KV grows with the length and prefill a little faster, because attention is quadratic; but a short
prompt also has a fixed cost.  So BW* rises and then falls, and the lengths where reloading wins
may be none, all, or an interval: they are searched for, never assumed.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from kvbench.errors import UsageError

CONTEXTS: tuple[int, ...] = tuple(1024 << n for n in range(8))  # 1k to 128k tokens
STEPS_PER_OCTAVE = 16  # how finely a sign change is looked for between two lengths
OCTAVE = 2.0

SecondsOf = Callable[[int], float]


class Requests(Struct, frozen=True, kw_only=True):
    """How one reload is read: requests of a measured size, so many at once.

    ``request_s`` is the measured time of one request with ``in_flight`` of them at once: one
    figure, or seconds by the bytes of the request.  Serving software often has one in flight.
    """

    request_bytes: int
    request_s: float | SecondsOf
    in_flight: int = 1

    @property
    def seconds(self) -> float:
        """The time of one request.

        Raises:
            UsageError: nothing that a reload can be computed from.
        """
        if self.request_bytes < 1 or self.in_flight < 1:
            raise UsageError("a reload needs requests of at least one byte, at least one at once")
        given = self.request_s
        value = given(self.request_bytes) if callable(given) else given
        if not 0 < value < float("inf"):
            raise UsageError(f"a request time must be above 0 s, not {value}")
        return value

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """What ``in_flight`` such requests at once move."""
        return self.request_bytes * self.in_flight / self.seconds


class BreakEvenRow(Struct, frozen=True, kw_only=True):
    """One length of prompt.  ``reload_s`` is None when nothing was measured to reload with.

    ``bandwidth_needed_bytes_per_s`` is None where no bandwidth is enough.
    """

    tokens: int
    kv_bytes: int
    prefill_s: float
    bandwidth_needed_bytes_per_s: float | None
    reload_s: float | None

    @property
    def reload_wins(self) -> bool | None:
        """Whether reloading is faster; None when it was not measured."""
        return None if self.reload_s is None else self.reload_s < self.prefill_s


class Interval(Struct, frozen=True, kw_only=True):
    """Lengths, both ends included, between which reloading wins.

    ``from_start`` and ``to_end`` say that it also wins at that end of the lengths looked at, so
    the interval may go on beyond.
    """

    low_tokens: int
    high_tokens: int
    from_start: bool
    to_end: bool


def break_even_bandwidth(kv_bytes: int, prefill_s: float) -> float:
    """Return BW*, the bytes per second above which reloading wins.

    Raises:
        UsageError: the prefill takes no time.
    """
    if not 0 < prefill_s < float("inf"):
        raise UsageError(f"a prefill time must be above 0 s, not {prefill_s}")
    return kv_bytes / prefill_s


def bandwidth_needed(kv_bytes: int, prefill_s: float, *, overhead_s: float = 0.0) -> float | None:
    """Return BW* where a reload also takes ``overhead_s``; None where that is all of the prefill.

    Raises:
        UsageError: the prefill takes no time.
    """
    if 0 < prefill_s <= overhead_s:
        return None
    return break_even_bandwidth(kv_bytes, prefill_s - overhead_s)


def reload_s(kv_bytes: int, requests: Requests, *, overhead_s: float = 0.0) -> float:
    """Return the time to read ``kv_bytes``: whole requests, ``in_flight`` at a time, one by one.

    A last round that is not full takes as long as a full one, because that is what was measured.
    With the p99 of a request for each of them the result is neither the p99 of a reload nor a
    bound of it: not all of its requests are slow at once, but one in a hundred is slower.
    """
    rounds = -(-_count(kv_bytes, requests) // requests.in_flight)
    return overhead_s + rounds * requests.seconds


def _count(kv_bytes: int, requests: Requests) -> int:
    return -(-kv_bytes // requests.request_bytes)


def break_even_rows(
    kv_bytes: Callable[[int], int],
    prefill_s: SecondsOf,
    requests: Requests | None,
    *,
    overhead_s: float = 0.0,
    contexts: Sequence[int] = CONTEXTS,
) -> list[BreakEvenRow]:
    """Return one row per length of prompt.

    kv_bytes, prefill_s: by tokens (``geometry.sequence_bytes``, ``prefill.prefill_s``).
    """
    rows = []
    for tokens in contexts:
        size, seconds = kv_bytes(tokens), prefill_s(tokens)
        rows.append(
            BreakEvenRow(
                tokens=tokens,
                kv_bytes=size,
                prefill_s=seconds,
                bandwidth_needed_bytes_per_s=bandwidth_needed(size, seconds, overhead_s=overhead_s),
                reload_s=reload_s(size, requests, overhead_s=overhead_s) if requests else None,
            )
        )
    return rows


def winning_intervals(
    reload: SecondsOf, recompute: SecondsOf, *, low: int = CONTEXTS[0], high: int = CONTEXTS[-1]
) -> list[Interval]:
    """Return the intervals of tokens in ``low..high`` in which reloading is faster.

    Each end is exact to the token wherever the winner changes no more than once between two
    neighbours of the grid (``STEPS_PER_OCTAVE``).  Empty: recomputing always wins.
    """

    def wins(tokens: int) -> bool:
        return reload(tokens) < recompute(tokens)

    grid = _grid(low, high)
    won = [wins(tokens) for tokens in grid]
    found: list[Interval] = []
    start: int | None = grid[0] if won[0] else None
    for left, right, before, after in zip(grid, grid[1:], won, won[1:], strict=False):
        if before == after:
            continue
        last, first = _change(left, right, wins)
        if after:
            start = first
        else:
            found.append(_interval(start, last, low, high))
    if won[-1]:
        found.append(_interval(start, grid[-1], low, high))
    return found


def users_at_once(
    kv_bytes: int, requests: Requests, drive_bytes_per_s: float, ttft_s: float, *, overhead_s: float
) -> int:
    """Return how many users may reload at the same moment, all within ``ttft_s``.

    Each needs the time of a lone reload at least, and all share the drive's bandwidth, as
    measured with many requests at once, for whole requests: a last one that is partly needed is
    read whole.  0 when even one is too slow.  ``overhead_s`` is each user's own and not the
    drive's (scheduling, copying, the prefill of what is new).
    """
    if not 0 < drive_bytes_per_s < float("inf"):
        raise UsageError(f"a drive's bandwidth must be above 0, not {drive_bytes_per_s}")
    if reload_s(kv_bytes, requests, overhead_s=overhead_s) > ttft_s:
        return 0
    read_bytes = _count(kv_bytes, requests) * requests.request_bytes
    shared = int((ttft_s - overhead_s) * drive_bytes_per_s // max(1, read_bytes))
    return max(1, shared)


def _grid(low: int, high: int) -> list[int]:
    if not 1 <= low <= high:
        raise UsageError(f"lengths from {low} to {high} tokens make no range")
    points = {low, high}
    step, position = OCTAVE ** (1 / STEPS_PER_OCTAVE), float(low)
    while (position := position * step) < high:
        points.add(round(position))
    return sorted(points)


def _change(left: int, right: int, wins: Callable[[int], bool]) -> tuple[int, int]:
    """Return the neighbouring tokens between which the winner changes."""
    before = wins(left)
    while right - left > 1:
        middle = (left + right) // 2
        if wins(middle) == before:
            left = middle
        else:
            right = middle
    return left, right


def _interval(start: int | None, end: int, low: int, high: int) -> Interval:
    first = low if start is None else start
    return Interval(low_tokens=first, high_tokens=end, from_start=first == low, to_end=end == high)
