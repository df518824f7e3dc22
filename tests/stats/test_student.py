"""Student's t: held against scipy."""

from math import inf

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_ind

from kvbench.stats.student import p_below_zero, p_larger, upper_tail


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 10, 15, 33, 200])
@pytest.mark.parametrize("t", [-3.0, -0.5, 0.0, 0.3, 1.0, 2.776, 10.0, inf])
def test_the_tail_is_scipys(t: float, freedom: int) -> None:
    assert upper_tail(t, freedom) == pytest.approx(student.sf(t, freedom), abs=1e-12)


def test_a_spread_needs_two_values() -> None:
    with pytest.raises(ValueError, match="degree of freedom"):
        upper_tail(1.0, 0)


def test_two_samples_are_compared_as_scipy_does() -> None:
    a, b = [1.0, 2.0, 3.0], [4.0, 5.0, 7.0, 6.0]
    assert p_larger(a, b) == pytest.approx(ttest_ind(b, a, alternative="greater").pvalue)
    assert p_larger(b, a) == pytest.approx(1 - p_larger(a, b))


def test_samples_that_do_not_vary_differ_or_not() -> None:
    assert p_larger([1.0, 1.0], [2.0, 2.0]) == 0.0
    assert p_larger([1.0, 1.0], [1.0, 1.0]) == 1.0
    assert p_below_zero([[-1.0, -1.0], [0.0, 0.0]]) == [0.0, 1.0]


def test_single_values_have_no_spread_and_tell_nothing() -> None:
    assert p_below_zero([[-1.0], [0.5]]) == [1.0, 1.0]


def test_neighbours_by_chance_are_seldom_below_zero() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(2000):
        levels = rng.normal(0, 0.25, (8, 3))
        hits += min(p_below_zero((levels[:-1] - levels[1:]).tolist())) <= 0.05 / 7
    assert hits <= 0.06 * 2000
