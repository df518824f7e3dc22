"""The signed rank statistic: its distribution against that of scipy, and its bounds."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import wilcoxon

from kvbench.stats.signed_rank import averages, edge_rank, p_of, smallest_p, upper_tail


@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_the_distribution_is_the_count_of_all_signs(n: int) -> None:
    sums = [
        sum(rank for rank, sign in zip(range(1, n + 1), signs, strict=True) if sign)
        for signs in product((0, 1), repeat=n)
    ]
    for w, share in enumerate(upper_tail(n)):
        assert share == pytest.approx(sum(one >= w for one in sums) / 2**n)
    assert smallest_p(n) == pytest.approx(upper_tail(n)[-1])


def test_the_p_value_is_that_of_scipy() -> None:
    rng = np.random.default_rng(3)
    for n in (5, 8, 12):
        d = rng.normal(0.3, 1, n)
        theirs = wilcoxon(d, alternative="greater", method="exact").pvalue
        assert p_of(float((averages(d) > 0).sum()), n) == pytest.approx(theirs)


def test_the_edge_of_the_interval_is_the_last_rank_that_is_rare() -> None:
    assert edge_rank(4, 0.05) == 0  # one sign in sixteen is not rare enough
    assert edge_rank(5, 0.05) == 1
    for n in (6, 8, 12):
        rank, count = edge_rank(n, 0.05), n * (n + 1) // 2
        assert upper_tail(n)[count - rank + 1] <= 0.05 < upper_tail(n)[count - rank]
