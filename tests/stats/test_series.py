"""Trends over repetitions and odd values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, theilslopes

from kvbench.stats.series import drift, outliers


def test_a_steady_fall_is_a_drift_with_its_size() -> None:
    found = drift([100.0, 98.0, 96.0, 94.0, 92.0, 90.0])
    assert found is not None
    assert found.change == pytest.approx(-10 / 95)
    assert found.p < 0.01


@pytest.mark.parametrize("values", [[5.0] * 8, [1.0, 2.0, 3.0, 4.0], [0.0, 0, 0, 1, 0, 0], []])
def test_constant_few_or_zero_values_have_no_drift(values: list[float]) -> None:
    assert drift(values) is None


@given(st.lists(st.integers(1, 10**6), min_size=5, max_size=12, unique=True))
def test_the_chance_of_a_trend_and_its_slope_are_scipys(values: list[int]) -> None:
    found = drift([float(v) for v in values])
    assert found is not None
    order = range(len(values))
    assert found.p == pytest.approx(float(kendalltau(order, values, method="exact").pvalue))
    slope = float(theilslopes(values, order).slope)
    assert found.change == pytest.approx(slope * (len(values) - 1) / float(np.median(values)))


def test_equal_values_make_a_trend_less_sure() -> None:
    rising, level = drift([1.0, 2, 3, 4, 5, 6]), drift([1.0, 2, 2, 4, 5, 6])
    assert rising is not None
    assert level is not None
    assert rising.p < level.p


def test_one_value_far_from_the_rest_is_an_outlier() -> None:
    assert outliers([100.0, 101.0, 99.0, 100.0, 900.0]) == (4,)


def test_a_second_group_is_not_a_set_of_outliers() -> None:
    assert outliers([100.0, 100.0, 60.0, 100.0, 60.0]) == ()


def test_quiet_repetitions_do_not_make_the_next_one_odd() -> None:
    assert outliers([100.0, 100.0, 100.0, 100.0, 101.0]) == ()


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 9.0, 1.0], [5.0] * 6])
def test_few_or_equal_values_have_no_outlier(values: list[float]) -> None:
    assert outliers(values) == ()
