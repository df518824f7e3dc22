"""Trends over repetitions and odd values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

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
def test_what_is_left_out_quickly_is_never_significant(values: list[int]) -> None:
    if drift([float(v) for v in values]) is None:
        p = float(kendalltau(range(len(values)), values).pvalue)
        assert p > 0.02


def test_one_value_far_from_the_rest_is_an_outlier() -> None:
    assert outliers([100.0, 101.0, 99.0, 100.0, 900.0]) == (4,)


def test_a_second_group_is_not_a_set_of_outliers() -> None:
    assert outliers([100.0, 100.0, 60.0, 100.0, 60.0]) == ()


def test_quiet_repetitions_do_not_make_the_next_one_odd() -> None:
    assert outliers([100.0, 100.0, 100.0, 100.0, 101.0]) == ()


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 9.0, 1.0], [5.0] * 6])
def test_few_or_equal_values_have_no_outlier(values: list[float]) -> None:
    assert outliers(values) == ()
