"""Measured reloads against prefill, with numbers worked by hand."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kvbench.kv.breakeven import CONTEXTS
from kvbench.kv.prefill import Prefill, prefill_from_rate
from kvbench.measure.breakeven import (
    ContextReload,
    Question,
    Winning,
    contexts_of,
    reloads_of,
    winning_of,
)
from kvbench.measure.reload import ReloadPoint, find_reloads
from kvbench.units import MIB
from tests.measure.reloads import PLAIN, Values, a_reload, a_run, at_once

PER_TOKEN = 131_072  # 16 tokens are one block of 2 MiB


def a_question(
    tokens_per_s: float = 20_000.0,
    *,
    overhead_s: float = 0.0,
    ttft_s: float | None = None,
    prefill: Callable[[int], Prefill] | None = None,
) -> Question:
    return Question(
        kv_bytes=lambda tokens: tokens * PER_TOKEN,
        prefill=prefill or (lambda tokens: prefill_from_rate(tokens, tokens_per_s)),
        overhead_s=overhead_s,
        ttft_s=ttft_s,
    )


def a_point(jobs: int = 1, values: Values = PLAIN) -> ReloadPoint:
    """2 MiB in 1 ms in the mean and 4 ms at p99, ``jobs`` at once; 2.1 GB/s each."""
    if values["bandwidth"] is not None:
        values = values | {"bandwidth": jobs * 2 * MIB / 0.001}
    (point,) = find_reloads(a_run(a_reload(sweep=at_once(jobs)), values=values)).points
    return point


def row(question: Question, point: ReloadPoint, tokens: int = 1024) -> ContextReload:
    (found,) = reloads_of(question, point, contexts_of(question, [tokens]))
    return found


def winning(question: Question, point: ReloadPoint) -> dict[tuple[str, str], Winning]:
    found = winning_of(question, point, contexts_of(question))
    return {(w.pace, w.prefill): w for w in found}


def test_contexts_say_bytes_prefill_and_the_bandwidth_that_would_match() -> None:
    rows = contexts_of(a_question(20_000))
    assert [r.tokens for r in rows] == list(CONTEXTS)
    first = rows[0]
    assert (first.kv_bytes, first.prefill_basis) == (128 * MIB, "given")
    assert first.prefill_s == pytest.approx(0.0512)
    assert (first.prefill_low_s, first.prefill_high_s) == (first.prefill_s, first.prefill_s)
    assert first.bandwidth_needed_bytes_per_s == pytest.approx(128 * MIB / 0.0512)


def test_the_overhead_raises_the_bandwidth_that_would_match() -> None:
    (short,) = contexts_of(a_question(overhead_s=0.04), [1024])  # 51.2 ms to compute
    assert short.bandwidth_needed_bytes_per_s == pytest.approx(128 * MIB / 0.0112)
    (never,) = contexts_of(a_question(overhead_s=0.06), [1024])
    assert never.bandwidth_needed_bytes_per_s is None


def test_a_reload_is_so_many_requests_one_after_the_other() -> None:
    got = row(a_question(), a_point())  # 64 x 1 ms against 51.2 ms
    assert got.requests == 64
    assert got.reload_mean_s == pytest.approx(0.064)
    assert got.reload_p99_s == pytest.approx(0.256)
    assert (got.winner_mean, got.winner_p99) == ("recompute", "recompute")


def test_several_in_flight_make_fewer_rounds_and_mean_and_p99_may_disagree() -> None:
    got = row(a_question(), a_point(jobs=4))  # 16 rounds of 1 ms, or of 4 ms
    assert got.reload_mean_s == pytest.approx(0.016)
    assert got.reload_p99_s == pytest.approx(0.064)
    assert (got.winner_mean, got.winner_p99) == ("reload", "recompute")


def test_a_partly_filled_request_is_read_whole() -> None:
    got = row(a_question(), a_point(), tokens=1025)
    assert got.requests == 65
    assert got.reload_mean_s == pytest.approx(0.065)


def test_the_overhead_is_added_once() -> None:
    got = row(a_question(overhead_s=0.5), a_point(jobs=4))
    assert got.reload_mean_s == pytest.approx(0.516)


def test_without_a_p99_only_the_mean_is_compared() -> None:
    point = a_point(values=PLAIN | {"latency_p99": None})
    got = row(a_question(), point)
    assert (got.reload_p99_s, got.winner_p99) == (None, None)
    assert got.winner_mean == "recompute"
    found = winning(a_question(), point)
    assert found["p99", "estimate"].intervals is None
    assert found["mean", "estimate"].intervals == ()


def test_a_reload_inside_the_range_of_the_estimate_is_unclear() -> None:
    def between(low_s: float, high_s: float) -> Question:
        return a_question(
            prefill=lambda _: Prefill(
                seconds=0.07, low_s=low_s, high_s=high_s, basis="formula", note=""
            )
        )

    point = a_point()  # 64 ms in the mean
    assert row(between(0.060, 0.080), point).winner_mean == "unclear"
    assert row(between(0.065, 0.080), point).winner_mean == "reload"
    assert row(between(0.030, 0.063), point).winner_mean == "recompute"


def test_users_share_the_bandwidth_of_the_point() -> None:
    question = a_question(ttft_s=0.5)  # 0.5 s x 2 GB/s / 128 MiB = 7.45
    assert row(question, a_point()).users == 7
    assert row(question, a_point(), tokens=131_072).users == 0  # 8,192 ms for one alone
    assert row(a_question(), a_point()).users is None
    unknown = a_point(values=PLAIN | {"bandwidth": None})
    assert row(question, unknown).users is None


def test_reloading_wins_above_the_length_at_which_its_overhead_is_paid() -> None:
    # Per token 62.5 us against 100 us, and 50 ms more: even at about 1,340 tokens.
    question = a_question(10_000, overhead_s=0.05)
    (interval,) = winning(question, a_point())["mean", "estimate"].intervals or ()
    assert 1334 <= interval.low_tokens <= 1360
    assert (interval.from_start, interval.to_end) == (False, True)
    assert row(question, a_point(), interval.low_tokens).winner_mean == "reload"
    assert row(question, a_point(), interval.low_tokens - 1).winner_mean == "recompute"
    assert winning(question, a_point())["p99", "estimate"].intervals == ()


def test_where_reloading_wins_is_told_at_the_ends_of_what_was_measured() -> None:
    # Per token 62.5 us against 100 us, and 50 ms more; at 50 and 75 us even at 1,000 and 2,000.
    point = a_point()
    rate = 2 * MIB / 0.001
    bandwidth = replace(point.bandwidth, low=rate / 1.2, high=rate / 0.8, interval="range")
    found = winning(a_question(10_000, overhead_s=0.05), replace(point, bandwidth=bandwidth))
    mean = found["mean", "estimate"]
    (low,), (middle,), (high,) = (w or () for w in (mean.low, mean.intervals, mean.high))
    assert low.from_start
    assert 1334 <= middle.low_tokens <= 1360
    assert 2000 <= high.low_tokens <= 2040
    assert high.to_end
    slow = found["p99", "estimate"]
    assert (slow.low, slow.intervals, slow.high) == ((), (), ())


def test_the_ends_of_the_p99_are_no_quicker_than_those_of_the_mean() -> None:
    point = a_point()  # 1 ms in the mean, 4 ms at p99
    mean = replace(point.bandwidth, low=point.bandwidth.value, high=point.bandwidth.value)
    p99 = replace(point.p99, low=0.0005, high=0.006, interval="range")
    ends = replace(point, bandwidth=replace(mean, interval="range"), p99=p99).slow_ends()
    assert ends is not None
    assert list(ends) == pytest.approx([0.001, 0.006])


def test_one_repetition_has_no_ends() -> None:
    (point,) = find_reloads(a_run(a_reload(), repetitions=1)).points
    found = winning(a_question(), point)["mean", "estimate"]
    assert (found.low, found.high) == (None, None)
    assert found.intervals is not None


def test_reloading_may_win_everywhere() -> None:
    (interval,) = winning(a_question(1000), a_point())["mean", "estimate"].intervals or ()
    assert (interval.low_tokens, interval.high_tokens) == (1024, 131_072)
    assert interval.from_start
    assert interval.to_end


def test_the_ends_of_a_range_are_looked_at_as_well() -> None:
    question = a_question(
        prefill=lambda n: Prefill(
            seconds=n / 20_000, low_s=n / 40_000, high_s=n / 10_000, basis="formula", note=""
        )
    )
    found = winning(question, a_point())  # 16,000 tokens per second are reloaded
    assert {key for key in found if key[0] == "mean"} == {
        ("mean", "estimate"),
        ("mean", "low"),
        ("mean", "high"),
    }
    assert found["mean", "estimate"].intervals == ()
    assert found["mean", "low"].intervals == ()
    (always,) = found["mean", "high"].intervals or ()
    assert (always.from_start, always.to_end) == (True, True)


def test_a_reload_at_the_mean_takes_as_long_as_its_bytes_at_the_bandwidth() -> None:
    tail = PLAIN | {"latency_p50": 0.0001, "latency_p99": 0.050}  # the median leaves it out
    for jobs in (1, 4):
        point = a_point(jobs, values=tail)
        got = row(a_question(), point)
        assert point.bandwidth.value is not None
        assert got.reload_mean_s == pytest.approx(128 * MIB / point.bandwidth.value)
        needed = contexts_of(a_question(), [1024])[0].bandwidth_needed_bytes_per_s
        assert needed is not None
        assert (got.winner_mean == "reload") == (point.bandwidth.value > needed)


def test_the_mean_has_the_spread_of_the_bandwidth_and_its_reason() -> None:
    (point,) = find_reloads(a_run(a_reload(), values=PLAIN)).points
    mean, rate = point.mean, point.bandwidth
    assert rate.value is not None
    assert (mean.unit, mean.n, mean.interval) == ("s", rate.n, rate.interval)
    assert mean.value == pytest.approx(point.in_flight * point.request_bytes / rate.value)
    (none,) = find_reloads(a_run(a_reload(), values=PLAIN | {"bandwidth": None})).points
    assert none.mean.value is None
    assert none.mean.reason == none.bandwidth.reason != ""


def test_a_reload_at_p99_is_never_quicker_than_one_at_the_mean() -> None:
    # 1,000 reads of which 0.5 % take 1 s: a mean of 6 ms behind a p99 of 1 ms.
    stalls = PLAIN | {"latency_p50": 0.001, "latency_p99": 0.001, "bandwidth": 2 * MIB / 0.006}
    (point,) = find_reloads(a_run(a_reload(sweep=at_once(1)), values=stalls)).points
    got = row(a_question(), point)
    assert got.reload_mean_s == pytest.approx(64 * 0.006)
    assert got.reload_p99_s == got.reload_mean_s
    assert "(6.00 ms) is above its p99 (1.00 ms)" in point.doubts[-1]
    assert point.slow.interval == "none"
    quick = a_point()
    assert quick.slow == quick.p99
    assert not quick.doubts
