"""The exact distribution of U: against counting every order, and against scipy."""

from itertools import combinations
from math import comb
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from kvbench.stats.rank_sum import edge_rank, p_of, smallest_n, upper_tail


@pytest.mark.parametrize(("n_a", "n_b"), [(1, 1), (2, 3), (3, 3), (4, 2), (5, 5)])
def test_the_tail_is_that_of_all_orders(n_a: int, n_b: int) -> None:
    ranks = range(n_a + n_b)
    us = [
        sum(b > a for b in chosen for a in set(ranks) - set(chosen))
        for chosen in combinations(ranks, n_b)
    ]
    counted = [sum(u >= least for u in us) / len(us) for least in range(n_a * n_b + 1)]
    assert upper_tail(n_a, n_b).tolist() == pytest.approx(counted)


@given(st.integers(1, 9), st.integers(1, 9), st.randoms(use_true_random=False))
def test_p_values_are_scipys(n_a: int, n_b: int, random: Random) -> None:
    values = random.sample(range(1000), n_a + n_b)
    a, b = values[:n_a], values[n_a:]
    u = sum(y > x for x in a for y in b)
    theirs = mannwhitneyu(b, a, alternative="greater", method="exact").pvalue
    assert p_of(u, n_a, n_b) == pytest.approx(float(theirs))


def test_ranks_of_the_interval_are_those_of_the_tables() -> None:
    # critical values of U at 2.5 % one-sided: Conover, table A7; the bound is the next difference
    critical = {(4, 4): 0, (5, 5): 2, (6, 6): 5, (7, 7): 8, (8, 8): 13, (10, 10): 23, (5, 8): 6}
    for (n_a, n_b), u in critical.items():
        assert edge_rank(n_a, n_b, 0.025) == u + 1


def test_three_against_three_have_no_95_percent_interval() -> None:
    assert edge_rank(3, 3, 0.025) == 0
    assert edge_rank(3, 3, 0.05) == 1  # one bound of 95 % they have: 1 of 20 orders


@pytest.mark.parametrize(("chance", "n"), [(0.05, 3), (0.05 / 12, 5), (0.05 / 13, 6), (0.5, 1)])
def test_the_smallest_n_is_where_one_order_in_all_is_rare_enough(chance: float, n: int) -> None:
    assert smallest_n(chance) == n
    assert 1 / comb(2 * n, n) <= chance + 1e-12
    assert n == 1 or 1 / comb(2 * n - 2, n - 1) > chance


def test_no_number_of_repetitions_is_enough_for_no_error_at_all() -> None:
    assert smallest_n(0.0) is None
    assert smallest_n(1e-300) is None


def test_empty_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="value"):
        upper_tail(0, 3)


def test_a_tail_that_is_shared_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        upper_tail(3, 3)[0] = np.float64(0)
