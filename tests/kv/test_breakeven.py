"""Break-even: the published bandwidths, the searched interval, users of one drive."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvbench.errors import UsageError
from kvbench.kv.breakeven import (
    CONTEXTS,
    Interval,
    Requests,
    bandwidth_needed,
    break_even_bandwidth,
    break_even_rows,
    reload_s,
    users_at_once,
    winning_intervals,
)
from kvbench.kv.geometry import bytes_per_token, sequence_bytes
from kvbench.kv.prefill import prefill_s
from kvbench.units import MIB
from tests.kv.models import FIXTURES, GPUS, MODELS

GB = 1e9
LINE = re.compile(
    r"\| (\w+)_sxm \| (?:Meta-)?(\S+?)(?:-Instruct)?(-FP8)? \(TP(\d+)\) "
    r"\| ([\d,]+) \| \S+ \| (\S+) \|"
)
PUBLISHED = LINE.findall((FIXTURES / "breakeven.txt").read_text())


def needed(gpu: str, name: str, tp: int, tokens: int) -> float:
    """Return BW* in GB/s for a model in its own dtype."""
    model = MODELS[name]
    size = sequence_bytes(model.geometry, tokens, model.dtype)
    return break_even_bandwidth(size, prefill_s(model, GPUS.gpus[gpu], tp, tokens).seconds) / GB


@pytest.mark.parametrize(
    ("gpu", "name", "tp", "expected"),
    [
        ("h100", "llama-3.1-8b", 1, 5.38),
        ("b200", "qwen3-32b", 4, 14.86),
        ("h100", "deepseek-v3", 8, 1.08),
        ("h100", "deepseek-v3.2", 8, 0.38),
    ],
)
def test_the_bandwidth_needed_at_8k_is_the_published_one(
    gpu: str, name: str, tp: int, expected: float
) -> None:
    assert needed(gpu, name, tp, 8192) == pytest.approx(expected, abs=0.005)


def test_the_published_table_is_read_whole() -> None:
    assert len(PUBLISHED) == 50


@pytest.mark.parametrize("line", PUBLISHED)
def test_every_published_bandwidth_is_reproduced(line: tuple[str, ...]) -> None:
    gpu, name, fp8, tp, per_token, figures = line
    model = MODELS[name.lower()]
    for tokens, expected in zip((2048, 8192, 32768, 131_072), figures.split("/"), strict=True):
        seconds = prefill_s(
            model, GPUS.gpus[gpu], int(tp), tokens, weights="fp8" if fp8 else None
        ).seconds
        size = int(per_token.replace(",", "")) * tokens
        # The published figures come from times before they were rounded to 0.1 ms.
        found = break_even_bandwidth(size, seconds) / GB
        assert found == pytest.approx(float(expected), abs=0.006, rel=0.002)


def test_published_bytes_per_token_are_ours_without_sliding_layers() -> None:
    for _, name, _, _, per_token, _ in PUBLISHED:
        shape, dtype = MODELS[name.lower()].geometry, MODELS[name.lower()].dtype
        ours = bytes_per_token(shape, dtype) * shape.full_layers // shape.layers
        assert ours == int(per_token.replace(",", ""))


def test_the_bandwidth_needed_falls_for_long_contexts() -> None:
    figures = [needed("h100", "llama-3.1-8b", 1, tokens) for tokens in CONTEXTS[3:]]
    assert figures == sorted(figures, reverse=True)


def test_rows_cover_1k_to_128k_and_say_what_was_not_measured() -> None:
    model = MODELS["llama-3.1-8b"]
    rows = break_even_rows(
        lambda n: sequence_bytes(model.geometry, n, "bf16"),
        lambda n: prefill_s(model, GPUS.gpus["h100"], 1, n).seconds,
        None,
    )
    assert [row.tokens for row in rows] == [1024 * 2**n for n in range(8)]
    assert all(row.reload_s is None and row.reload_wins is None for row in rows)


def test_rows_compare_the_measured_reload_with_the_prefill() -> None:
    rows = break_even_rows(
        lambda tokens: tokens * 131_072,
        lambda tokens: tokens / 41_000,
        Requests(request_bytes=2 * MIB, request_s=0.0005),  # 4.2 GB/s, 5.4 are needed
    )
    assert not any(row.reload_wins for row in rows)
    faster = Requests(request_bytes=2 * MIB, request_s=0.0003)
    rows = break_even_rows(lambda tokens: tokens * 131_072, lambda tokens: tokens / 41_000, faster)
    assert all(row.reload_wins for row in rows)


def test_a_reload_is_whole_requests_so_many_at_a_time_and_the_overhead() -> None:
    one = Requests(request_bytes=100, request_s=0.01)
    assert reload_s(1000, one) == pytest.approx(0.10)
    assert reload_s(1001, one) == pytest.approx(0.11)
    four = Requests(request_bytes=100, request_s=0.01, in_flight=4)
    assert reload_s(1001, four, overhead_s=0.5) == pytest.approx(0.53)
    assert four.bandwidth_bytes_per_s == pytest.approx(40_000)
    by_size = Requests(request_bytes=100, request_s=lambda size: size / 1000)
    assert reload_s(1000, by_size) == pytest.approx(1.0)


@given(st.integers(1, 10**12), st.integers(1, 10**9), st.integers(1, 64))
def test_more_in_flight_at_the_same_time_is_never_slower(
    size: int, request: int, flight: int
) -> None:
    one = Requests(request_bytes=request, request_s=0.001)
    many = Requests(request_bytes=request, request_s=0.001, in_flight=flight)
    assert reload_s(size, many) <= reload_s(size, one)


def test_what_a_reload_takes_beside_its_reads_raises_the_bandwidth_needed() -> None:
    size = 1 << 30
    needed = bandwidth_needed(size, 0.3, overhead_s=0.2)
    assert needed is not None
    assert needed == pytest.approx(size / 0.1)
    assert bandwidth_needed(size, 0.3) == break_even_bandwidth(size, 0.3)
    for rate in (0.99 * needed, 1.01 * needed):
        one = Requests(request_bytes=size, request_s=size / rate)
        assert (reload_s(size, one, overhead_s=0.2) < 0.3) == (rate > needed)
    assert bandwidth_needed(size, 0.2, overhead_s=0.2) is None
    (row,) = break_even_rows(lambda _: size, lambda _: 0.1, None, overhead_s=0.2, contexts=(1024,))
    assert row.bandwidth_needed_bytes_per_s is None


def test_reloading_may_win_always_never_above_below_or_between() -> None:
    def linear(tokens: int) -> float:
        return float(tokens)

    everywhere = Interval(low_tokens=1024, high_tokens=131_072, from_start=True, to_end=True)
    assert winning_intervals(lambda n: n / 2, linear) == [everywhere]
    assert winning_intervals(lambda n: n * 2.0, linear) == []
    above = winning_intervals(lambda n: n / 2 + 5000.25, linear)
    assert above == [
        Interval(low_tokens=10_001, high_tokens=131_072, from_start=False, to_end=True)
    ]
    below = winning_intervals(lambda n: n * n / 10_000.5, linear)
    assert below == [Interval(low_tokens=1024, high_tokens=10_000, from_start=True, to_end=False)]
    between = winning_intervals(lambda n: 4000.0 + n * n / 40_000, linear)
    assert len(between) == 1
    assert not between[0].from_start
    assert not between[0].to_end
    low, high = between[0].low_tokens, between[0].high_tokens
    assert 4000 + low * low / 40_000 < low
    assert 4000 + (low - 1) ** 2 / 40_000 >= low - 1
    assert 4000 + high * high / 40_000 < high
    assert 4000 + (high + 1) ** 2 / 40_000 >= high + 1


def test_two_intervals_are_both_found() -> None:
    found = winning_intervals(lambda n: 1.0 if 4096 < n < 16_384 else -1.0, lambda _: 0.0)
    assert [(i.low_tokens, i.high_tokens) for i in found] == [(1024, 4096), (16_384, 131_072)]


@given(st.floats(0, 1e5), st.floats(0.01, 3))
def test_inside_an_interval_reloading_wins_and_just_outside_it_does_not(
    overhead: float, slope: float
) -> None:
    def reload(tokens: int) -> float:
        return overhead + slope * tokens

    def recompute(tokens: int) -> float:
        return tokens + tokens * tokens / 1e5

    for found in winning_intervals(reload, recompute):
        assert reload(found.low_tokens) < recompute(found.low_tokens)
        assert reload(found.high_tokens) < recompute(found.high_tokens)
        if not found.from_start:
            assert reload(found.low_tokens - 1) >= recompute(found.low_tokens - 1)


def test_users_share_the_drive_and_each_needs_a_lone_reload() -> None:
    requests = Requests(request_bytes=100, request_s=0.01)  # alone: 0.1 s for 1000 bytes
    at = {"overhead_s": 0.0}
    assert users_at_once(1000, requests, 40_000, 0.05, **at) == 0
    assert users_at_once(1000, requests, 40_000, 0.1, **at) == 4
    assert users_at_once(1000, requests, 40_000, 1.0, **at) == 40
    assert users_at_once(1000, requests, 40_000, 1.0, overhead_s=0.5) == 20
    assert users_at_once(1000, requests, 5_000, 0.1, **at) == 1  # the drive alone says 0.5


def test_users_read_whole_requests() -> None:
    requests = Requests(request_bytes=126 * MIB, request_s=0.05, in_flight=8)
    rate = requests.bandwidth_bytes_per_s
    users = users_at_once(130 * MIB, requests, rate, 2.0, overhead_s=0.0)
    read = 2 * 126 * MIB  # of which 130 MiB are needed
    assert users == 160
    assert users * read / rate <= 2.0 < (users + 1) * read / rate


def test_a_high_overhead_leaves_no_user() -> None:
    requests = Requests(request_bytes=100, request_s=0.01)
    assert users_at_once(1000, requests, 40_000, 0.5, overhead_s=0.6) == 0


@pytest.mark.parametrize(
    "requests",
    [
        Requests(request_bytes=0, request_s=0.1),
        Requests(request_bytes=1, request_s=0.1, in_flight=0),
        Requests(request_bytes=1, request_s=0.0),
        Requests(request_bytes=1, request_s=float("nan")),
    ],
)
def test_requests_that_measure_nothing_are_refused(requests: Requests) -> None:
    with pytest.raises(UsageError):
        _ = requests.seconds


def test_impossible_figures_are_refused() -> None:
    with pytest.raises(UsageError, match="prefill time"):
        break_even_bandwidth(1, 0.0)
    with pytest.raises(UsageError, match="make no range"):
        winning_intervals(float, float, low=10, high=5)
    with pytest.raises(UsageError, match="bandwidth must be above 0"):
        users_at_once(1, Requests(request_bytes=1, request_s=1.0), 0.0, 1.0, overhead_s=0.0)
