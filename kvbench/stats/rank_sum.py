"""The exact distribution of the Mann-Whitney U statistic, and what follows from it.  Pure.

U counts the pairs (a, b) of two samples in which b is the larger one.  Without a difference every
order of the n_a + n_b values is equally likely, so its distribution is known exactly whatever the
values are distributed like: nothing has to be normal.  scipy has the p-value of one test; here the
same distribution also gives intervals and tests against a margin, and it is counted once per pair
of sample sizes and not once per metric.

Source: Mann and Whitney (1947); Hollander, Wolfe, Chicken, Nonparametric Statistical Methods, 3rd
edition, sections 4.1 to 4.3.
"""

from functools import lru_cache
from math import comb, floor, inf, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

EXACT_PAIRS_MAX = 10_000  # beyond 100 a side the normal approximation is as good, and quicker
SLACK = 1e-9  # 1/20 is not above 0.05, whatever its last bit says


@lru_cache(maxsize=256)
def upper_tail(n_a: int, n_b: int) -> NDArray[np.float64]:
    """Return P(U >= u) for u = 0 .. n_a * n_b, shape (n_a * n_b + 1,).

    Raises:
        ValueError: a sample is empty.
    """
    if n_a < 1 or n_b < 1:
        raise ValueError("both samples need a value")
    small, large = sorted((n_a, n_b))
    # ways[k][u]: subsets of size k of the ranks so far whose U is u, as in counting partitions
    ways = np.zeros((small + 1, n_a * n_b + 1))
    ways[0, 0] = 1.0
    for rank in range(1, small + large + 1):
        for size in range(min(small, rank), 0, -1):
            step = rank - size  # what this rank adds to U when it is the size-th smallest chosen
            if step > large:
                continue
            ways[size, step:] += ways[size - 1, : ways.shape[1] - step]
    counts = ways[small]
    tail: NDArray[np.float64] = np.cumsum(counts[::-1])[::-1] / counts.sum()
    tail.setflags(write=False)
    return tail


def p_of(u: float, n_a: int, n_b: int) -> float:
    """Return the chance of at least ``u`` pairs by luck alone."""
    if n_a * n_b > EXACT_PAIRS_MAX:
        middle, spread = _normal(n_a, n_b)
        return NormalDist(middle, spread).cdf(2 * middle - int(u) + 0.5)
    return float(upper_tail(n_a, n_b)[max(0, int(u))])


def edge_rank(n_a: int, n_b: int, chance: float) -> int:
    """Return which of the sorted pairwise differences bounds the shift from one side.

    The k-th smallest difference lies above the true shift with at most the given chance.  0 when
    the samples are too small for any bound.
    """
    pairs = n_a * n_b
    if pairs > EXACT_PAIRS_MAX:
        middle, spread = _normal(n_a, n_b)
        return max(0, floor(NormalDist(middle, spread).inv_cdf(chance) + 0.5))
    tail = upper_tail(n_a, n_b)
    # k differences or fewer lie below the shift exactly when U <= k, and U is symmetric
    rank = 0
    while rank < pairs // 2 and tail[pairs - rank] <= chance * (1 + SLACK):
        rank += 1
    return rank


def _normal(n_a: int, n_b: int) -> tuple[float, float]:
    """Return mean and standard deviation of U without a difference."""
    return n_a * n_b / 2, sqrt(n_a * n_b * (n_a + n_b + 1) / 12)


def smallest_p(n_a: int, n_b: int) -> float:
    """Return the smallest one-sided p-value that samples of these sizes can have."""
    return 1 / comb(n_a + n_b, n_a)


def smallest_n(chance: float, n_a: int | None = None) -> int | None:
    """Return the repetitions per side from which a p-value can be as small as ``chance``.

    With ``n_a`` those of one side, where the other has so many.  None when no number that anybody
    would run is enough.
    """
    if not 0 < chance < inf:
        return None
    allowed = chance * (1 + SLACK)
    return next((n for n in range(1, 101) if smallest_p(n_a or n, n) <= allowed), None)
