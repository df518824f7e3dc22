"""Histograms: hand-worked quantiles, and properties of merging."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvbench.stats.histogram import Counts, Values, merge, nines_curve, quantile, total

CASES = Path(__file__).resolve().parents[1] / "fixtures" / "cases"

Histogram = tuple[Values, Counts]


def build(samples: list[int]) -> Histogram:
    values, counts = np.unique(np.asarray(samples, dtype=np.float64), return_counts=True)
    return values, counts.astype(np.int64)


samples_of_one = st.lists(st.integers(1, 10**9), min_size=1, max_size=60)
samples_of_many = st.lists(samples_of_one, min_size=1, max_size=5)
quantiles = st.floats(0, 1)


def test_quantile_is_the_nearest_rank_of_hand_worked_numbers() -> None:
    values, counts = build([10, 20, 30, 40, 50, 60, 70, 80, 90, 100])
    assert quantile(values, counts, 0.5) == 50
    assert quantile(values, counts, 0.51) == 60
    assert quantile(values, counts, 0.9) == 90
    assert quantile(values, counts, 0.99) == 100
    assert quantile(values, counts, 0.0) == 10
    assert quantile(values, counts, 1.0) == 100


@pytest.mark.parametrize("q", [0.5, 0.9, 0.99, 0.999, 0.9999])
def test_a_float_product_just_above_a_rank_does_not_take_the_next_rank(q: float) -> None:
    n = 10_000
    values, counts = np.arange(1, n + 1, dtype=np.float64), np.ones(n, dtype=np.int64)
    assert quantile(values, counts, q) == round(q * n)


def test_a_histogram_without_samples_has_no_quantile() -> None:
    with pytest.raises(ValueError, match="without samples"):
        quantile(*merge([]), 0.5)


@pytest.mark.parametrize("q", [-0.1, 1.1, float("nan")])
def test_a_share_outside_zero_and_one_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match="not a quantile"):
        quantile(*build([1, 2]), q)


@given(samples_of_many.flatmap(lambda parts: st.tuples(st.just(parts), st.permutations(parts))))
def test_merging_in_any_order_gives_the_same_histogram(
    orders: tuple[list[list[int]], list[list[int]]],
) -> None:
    forward = merge([build(p) for p in orders[0]])
    backward = merge([build(p) for p in orders[1]])
    np.testing.assert_array_equal(forward[0], backward[0])
    np.testing.assert_array_equal(forward[1], backward[1])


@given(samples_of_many)
def test_splitting_the_samples_changes_nothing(parts: list[list[int]]) -> None:
    merged = merge([build(p) for p in parts])
    whole = build([sample for part in parts for sample in part])
    np.testing.assert_array_equal(merged[0], whole[0])
    np.testing.assert_array_equal(merged[1], whole[1])


@given(samples_of_many, quantiles)
def test_a_merged_quantile_lies_between_those_of_the_parts(
    parts: list[list[int]], q: float
) -> None:
    of_parts = [quantile(*build(p), q) for p in parts]
    assert min(of_parts) <= quantile(*merge([build(p) for p in parts]), q) <= max(of_parts)


@given(samples_of_one, st.integers(2, 1000), quantiles)
def test_scaling_values_scales_the_quantile(samples: list[int], factor: int, q: float) -> None:
    values, counts = build(samples)
    assert quantile(values * factor, counts, q) == quantile(values, counts, q) * factor


@given(samples_of_one, st.integers(2, 1000), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_the_same_histogram_many_times_has_the_same_quantiles(
    samples: list[int], times: int, q: float
) -> None:
    values, counts = build(samples)
    assert quantile(values, counts * times, q) == quantile(values, counts, q)


@given(samples_of_one, quantiles, quantiles)
def test_a_larger_share_has_no_smaller_quantile(samples: list[int], a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert quantile(*build(samples), low) <= quantile(*build(samples), high)


def test_bins_without_samples_are_left_out_of_a_merge() -> None:
    values, counts = merge([(np.array([3.0, 1.0]), np.array([0, 2])), build([1])])
    assert values.tolist() == [1.0]
    assert counts.tolist() == [3]


def test_jobs_of_unequal_size_merge_to_the_percentiles_of_all_ios() -> None:
    document = json.loads(
        (CASES / "08-averaged-percentiles" / "two-jobs-jsonplus.json").read_text()
    )
    parts = []
    for job in document["jobs"]:
        bins = {int(k): v for k, v in job["read"]["clat_ns"]["bins"].items()}
        parts.append(
            (np.array(sorted(bins), dtype=float), np.array([bins[k] for k in sorted(bins)]))
        )
    merged = merge(parts)
    assert total(merged[1]) == 52157 + 160
    assert quantile(*merged, 0.99) == pytest.approx(322e3, rel=0.01)
    assert quantile(*merged, 0.50) == pytest.approx(24e3, rel=0.02)
    naive = np.mean([quantile(*part, 0.99) for part in parts])
    assert naive > 20 * quantile(*merged, 0.99)


def test_the_curve_of_nines_of_hand_worked_numbers() -> None:
    values, nines = nines_curve(np.array([1.0, 2.0, 3.0]), np.array([90, 9, 1]))
    assert values.tolist() == [1.0, 2.0, 3.0]
    assert nines.tolist() == pytest.approx([0.0, 1.0, 2.0])


@given(samples_of_one, st.integers(2, 20))
def test_a_shortened_curve_keeps_both_ends_and_its_length(samples: list[int], most: int) -> None:
    values, counts = build(samples)
    short, nines = nines_curve(values, counts, most)
    assert len(short) <= most
    assert (short[0], short[-1]) == (values[0], values[-1])
    assert (np.diff(short) > 0).all()
    assert (np.diff(nines) >= 0).all()
    assert np.isfinite(nines).all()


def test_no_samples_give_an_empty_curve() -> None:
    values, nines = nines_curve(*merge([]))
    assert values.size == nines.size == 0
