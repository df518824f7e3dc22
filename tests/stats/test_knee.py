"""The knee of a curve: found where there is one, and not made up from noise."""

import numpy as np
import pytest
from numpy.typing import NDArray

from kvbench.stats.knee import POINTS_MIN, find_knee

POINTS = range(POINTS_MIN, 11)


def rising(points: int, knee: int, rise: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A curve that is 1 up to the knee and then goes in a straight line to 1 + rise."""
    x = np.arange(points, dtype=np.float64)
    return x, 1 + rise * np.maximum(x - knee, 0) / (points - 1 - knee)


def share_with_knee(points: int, knee: int, rise: float, noise: float, curves: int) -> float:
    """The share of noisy curves in which a knee is found; the same at every call."""
    rng = np.random.default_rng(points)
    x, y = rising(points, knee, rise)
    noisy = y * (1 + noise * rng.standard_normal((curves, points)))
    return sum(find_knee(x, one) is not None for one in noisy) / curves


@pytest.mark.parametrize("points", POINTS)
def test_noise_of_ten_percent_makes_a_knee_in_at_most_2_of_100_flat_curves(points: int) -> None:
    assert share_with_knee(points, 0, 0.0, noise=0.1, curves=1000) <= 0.02


@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("late", [False, True])
def test_a_rise_of_half_is_found_through_a_little_noise(points: int, late: bool) -> None:
    knee = points - 3 if late else 0
    assert share_with_knee(points, knee, 0.5, noise=0.03, curves=200) >= 0.97


@pytest.mark.parametrize("points", POINTS)
def test_without_noise_the_knee_and_the_slope_are_those_of_the_curve(points: int) -> None:
    for knee in range(points - 1):
        x, y = rising(points, knee, 0.5)
        found = find_knee(x + 20, 1e-4 * y)
        assert found is not None
        assert found.x == knee + 20
        assert found.slope == pytest.approx(1e-4 * 0.5 / (points - 1 - knee))


@pytest.mark.parametrize("rise", [0.0, 0.1, -0.5])
def test_a_curve_that_is_flat_or_falls_has_no_knee(rise: float) -> None:
    assert find_knee(*rising(8, 3, rise)) is None


def test_a_single_slow_point_in_the_middle_is_no_knee() -> None:
    x = np.arange(8.0)
    assert find_knee(x, np.where(x == 4, 2.0, 1.0)) is None


def test_too_few_points_are_refused() -> None:
    with pytest.raises(ValueError, match="4 points"):
        find_knee(np.arange(3.0), np.ones(3))
