"""The interval of a median: ranks against the published table, and the small samples."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvbench.stats.interval import median_interval

# n -> r: the interval is from the r-th smallest to the r-th largest (95 %, two-sided), worked out
# by hand from the binomial: n=8 has 1 - 2/256 = 99.2 % at r=1 and 1 - 18/256 = 93.0 % at r=2.
RANKS = {6: 1, 7: 1, 8: 1, 9: 2, 10: 2, 11: 2, 12: 3, 14: 3, 15: 4, 17: 5, 20: 6, 25: 8}


@pytest.mark.parametrize(("n", "rank"), RANKS.items())
def test_the_ranks_are_those_of_the_table(n: int, rank: int) -> None:
    found = median_interval([float(i) for i in range(1, n + 1)])
    assert (found.low, found.high) == (rank, n + 1 - rank)
    assert (found.kind, found.n) == ("95 %", n)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_fewer_than_six_values_have_a_range_and_no_interval(n: int) -> None:
    found = median_interval([float(i) for i in range(n)])
    assert (found.low, found.high, found.kind) == (0.0, n - 1, "range")


def test_one_value_has_neither() -> None:
    found = median_interval([3.5])
    assert (found.median, found.low, found.high, found.kind) == (3.5, None, None, "none")


def test_the_median_of_an_even_sample_is_the_middle_of_the_two_in_the_middle() -> None:
    assert median_interval([4.0, 1.0, 3.0, 2.0]).median == 2.5


def test_an_empty_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        median_interval([])


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_a_value_that_is_not_finite_is_refused(odd: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        median_interval([1.0, odd])


def test_a_higher_confidence_needs_more_values() -> None:
    seven = [float(i) for i in range(7)]
    assert median_interval(seven, confidence=0.99).kind == "range"
    assert median_interval([*seven, 7.0], confidence=0.99).kind == "99 %"


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=40))
def test_the_median_lies_in_its_interval_in_any_order(sample: list[float]) -> None:
    found = median_interval(sample)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.median <= found.high
    assert median_interval(sample[::-1]) == found
