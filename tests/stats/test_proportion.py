"""The interval of a share, held against scipy and published values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from kvbench.stats.proportion import count_needed, share_interval


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    # By hand: all of n have the lower end 0.025^(1/n), none of n the upper end 1 - 0.025^(1/n).
    [(10, 10, 0.6915, 1.0), (0, 10, 0.0, 0.3085), (8, 10, 0.4439, 0.9748), (1, 1, 0.025, 1.0)],
)
def test_small_counts_have_the_published_interval(
    hits: int, count: int, low: float, high: float
) -> None:
    found = share_interval(hits, count)
    assert found[0] == pytest.approx(low, abs=1e-4)
    assert found[1] == pytest.approx(high, abs=1e-4)


@given(st.data())
def test_it_is_the_exact_interval(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 5000))
    hits = data.draw(st.integers(0, count))
    exact = binomtest(hits, count).proportion_ci(0.95, method="exact")
    found = share_interval(hits, count)
    assert found[0] == pytest.approx(exact.low, abs=1e-7)
    assert found[1] == pytest.approx(exact.high, abs=1e-7)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99, 0.999])
def test_so_many_hits_show_a_share_and_one_less_does_not(share: float) -> None:
    needed = count_needed(share)
    assert share_interval(needed, needed)[0] >= share
    assert share_interval(needed - 1, needed - 1)[0] < share


@pytest.mark.parametrize(("hits", "count"), [(0, 0), (3, 2), (-1, 2)])
def test_what_is_no_share_is_refused(hits: int, count: int) -> None:
    with pytest.raises(ValueError, match="no share"):
        share_interval(hits, count)
