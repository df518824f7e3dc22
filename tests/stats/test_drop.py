"""Where a series falls from one level to a lower one."""

import numpy as np
import pytest
from numpy.typing import NDArray

from kvbench.stats.drop import VALUES_MIN, find_drop


def noisy(levels: list[tuple[int, float]], spread: float = 0.05) -> NDArray[np.float64]:
    rng = np.random.default_rng(5)
    return np.concatenate([level * rng.normal(1, spread, count) for count, level in levels])


def test_a_planted_cliff_is_found_where_it_is() -> None:
    drop = find_drop(noisy([(20, 3e9), (40, 1e9)]))
    assert drop is not None
    assert drop.place == 20
    assert drop.before == pytest.approx(3e9, rel=0.05)
    assert drop.after == pytest.approx(1e9, rel=0.05)


@pytest.mark.parametrize("place", [4, 10, 26])
def test_it_is_found_near_either_end(place: int) -> None:
    drop = find_drop(noisy([(place, 2.0), (30 - place, 1.0)]))
    assert drop is not None
    assert drop.place == place


@pytest.mark.parametrize(
    "levels",
    [
        [(30, 1e9)],
        [(10, 1e9), (5, 2e8), (15, 1e9)],  # a dip that recovers
        [(10, 1e9), (20, 2e9)],  # a rise
        [(15, 1.0), (15, 0.9)],  # too little to matter
    ],
)
def test_what_is_no_fall_to_a_lower_level_is_none(levels: list[tuple[int, float]]) -> None:
    assert find_drop(noisy(levels)) is None


def test_a_few_seconds_at_either_end_are_no_level() -> None:
    assert find_drop(noisy([(4, 2.0), (56, 1.0)])) is None
    assert find_drop(noisy([(57, 2.0), (3, 1.0)])) is None
    assert find_drop(noisy([(8, 2.0), (52, 1.0)])) is not None


def test_noise_alone_is_none() -> None:
    rng = np.random.default_rng(7)
    found = [find_drop(rng.lognormal(0, 0.6, 30)) for _ in range(200)]
    assert sum(drop is not None for drop in found) <= 2


def test_seconds_without_any_io_do_not_hide_or_make_one() -> None:
    values = noisy([(20, 1e9)])
    values[7] = 0.0
    assert find_drop(values) is None
    assert find_drop(np.array([1.0] * 10 + [0.0] * 10)) is not None


def test_too_few_or_impossible_values_are_none() -> None:
    assert find_drop(np.array([2.0] * 4 + [1.0] * 3)) is None
    assert VALUES_MIN == 8
    assert find_drop(np.zeros(20)) is None
    assert find_drop(np.array([np.nan] + [1.0] * 20)) is None
