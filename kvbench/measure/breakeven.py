"""Measured reloads against estimated prefill times, by length of context.  Pure.

A context of B bytes is modelled as ``ceil(B / request_bytes)`` requests of the measured size, so
many in flight at a time, one round after the other.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from kvbench.kv.breakeven import (
    CONTEXTS,
    Interval,
    Requests,
    SecondsOf,
    bandwidth_needed,
    reload_s,
    users_at_once,
    winning_intervals,
)
from kvbench.kv.prefill import Basis, Prefill
from kvbench.measure.reload import Figure, ReloadPoint

Pace = Literal["mean", "p99"]
Bound = Literal["estimate", "low", "high"]
Winner = Literal["reload", "recompute", "unclear"]

PACES: tuple[Pace, ...] = ("mean", "p99")


class Question(Struct, frozen=True, kw_only=True):
    """What a context weighs, how long it takes to compute, and what a reload costs beside reads.

    ``kv_bytes`` and ``prefill`` are by tokens.  ``ttft_s`` is the budget of a user, None when
    nobody asked for users.
    """

    kv_bytes: Callable[[int], int]
    prefill: Callable[[int], Prefill]
    overhead_s: float = 0.0
    ttft_s: float | None = None


class Context(Struct, frozen=True, kw_only=True):
    """One length of prompt, whatever the drive.  Low and high differ for the formula only.

    ``bandwidth_needed_bytes_per_s`` is None where no bandwidth is enough: the overhead of a reload
    alone takes as long as computing.
    """

    tokens: int
    kv_bytes: int
    prefill_s: float
    prefill_low_s: float
    prefill_high_s: float
    prefill_basis: Basis
    bandwidth_needed_bytes_per_s: float | None


class ContextReload(Struct, frozen=True, kw_only=True):
    """One length of prompt, reloaded.  None: not measured; the point's figures say why.

    ``reload_p99_s`` has every request at its p99, or at the mean where that is longer.

    ``users`` is None also when no budget was given.  A winner is "unclear" when the reload lies
    inside the range of the prefill's estimate.
    """

    tokens: int
    requests: int
    reload_mean_s: float | None
    reload_p99_s: float | None
    winner_mean: Winner | None
    winner_p99: Winner | None
    users: int | None


class Winning(Struct, frozen=True, kw_only=True):
    """The lengths at which reloading wins, with every request at one pace.

    ``prefill`` says which end of the estimate is compared with.  None: not measured.  ``low`` and
    ``high`` are where it wins with the request time at the low and at the high end of its measured
    interval; None where it has no interval.  The low end is the quick one.
    """

    pace: Pace
    prefill: Bound
    intervals: tuple[Interval, ...] | None
    low: tuple[Interval, ...] | None = None
    high: tuple[Interval, ...] | None = None


def contexts_of(question: Question, tokens: Sequence[int] = CONTEXTS) -> tuple[Context, ...]:
    """Return what each length weighs and costs to compute, and the bandwidth that would match.

    Raises:
        UsageError: the prefill time of a length is not known.
    """
    rows = []
    for length in tokens:
        size, prefill = question.kv_bytes(length), question.prefill(length)
        rows.append(
            Context(
                tokens=length,
                kv_bytes=size,
                prefill_s=prefill.seconds,
                prefill_low_s=prefill.low_s,
                prefill_high_s=prefill.high_s,
                prefill_basis=prefill.basis,
                bandwidth_needed_bytes_per_s=bandwidth_needed(
                    size, prefill.seconds, overhead_s=question.overhead_s
                ),
            )
        )
    return tuple(rows)


def reloads_of(
    question: Question, point: ReloadPoint, contexts: Sequence[Context]
) -> tuple[ContextReload, ...]:
    """Return the reload of each of ``contexts`` by the requests of ``point``."""
    usual, slow = _requests(point, point.mean), _requests(point, point.slow)
    rows = []
    for context in contexts:
        at_mean, at_p99 = (
            reload_s(context.kv_bytes, r, overhead_s=question.overhead_s) if r else None
            for r in (usual, slow)
        )
        rows.append(
            ContextReload(
                tokens=context.tokens,
                requests=-(-context.kv_bytes // point.request_bytes),
                reload_mean_s=at_mean,
                reload_p99_s=at_p99,
                winner_mean=_winner(at_mean, context),
                winner_p99=_winner(at_p99, context),
                users=_users(question, context.kv_bytes, usual, point.bandwidth),
            )
        )
    return tuple(rows)


def winning_of(
    question: Question, point: ReloadPoint, contexts: Sequence[Context]
) -> tuple[Winning, ...]:
    """Return where reloading wins between the first and the last of ``contexts``.

    The ends of an estimate that is a range are looked at too: with the low one recomputing is
    fast, so where reloading wins even then it wins whatever the estimate.
    """
    ranged = any(c.prefill_low_s != c.prefill_high_s for c in contexts)
    bounds: dict[Bound, SecondsOf] = {"estimate": lambda n: question.prefill(n).seconds}
    if ranged:
        bounds["low"] = lambda n: question.prefill(n).low_s
        bounds["high"] = lambda n: question.prefill(n).high_s
    found = []
    for pace in PACES:
        figure, ends = (
            (point.mean, point.mean_ends()) if pace == "mean" else (point.slow, point.slow_ends())
        )
        times = (figure.value, *(ends or (None, None)))
        for bound, seconds in bounds.items():
            intervals, low, high = (
                _intervals(question, _at(point, time_s), seconds, contexts) for time_s in times
            )
            found.append(Winning(pace=pace, prefill=bound, intervals=intervals, low=low, high=high))
    return tuple(found)


def _requests(point: ReloadPoint, figure: Figure) -> Requests | None:
    return _at(point, figure.value)


def _at(point: ReloadPoint, request_s: float | None) -> Requests | None:
    if request_s is None:
        return None
    return Requests(
        request_bytes=point.request_bytes, request_s=request_s, in_flight=point.in_flight
    )


def _winner(reloaded_s: float | None, context: Context) -> Winner | None:
    if reloaded_s is None:
        return None
    if reloaded_s < context.prefill_low_s:
        return "reload"
    return "recompute" if reloaded_s >= context.prefill_high_s else "unclear"


def _users(
    question: Question, kv_bytes: int, requests: Requests | None, bandwidth: Figure
) -> int | None:
    if question.ttft_s is None or requests is None or bandwidth.value is None:
        return None
    return users_at_once(
        kv_bytes, requests, bandwidth.value, question.ttft_s, overhead_s=question.overhead_s
    )


def _intervals(
    question: Question,
    requests: Requests | None,
    seconds: SecondsOf,
    contexts: Sequence[Context],
) -> tuple[Interval, ...] | None:
    if requests is None:
        return None

    def reload(tokens: int) -> float:
        return reload_s(question.kv_bytes(tokens), requests, overhead_s=question.overhead_s)

    low, high = contexts[0].tokens, contexts[-1].tokens
    return tuple(winning_intervals(reload, seconds, low=low, high=high))
