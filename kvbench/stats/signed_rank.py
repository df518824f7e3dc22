"""The exact distribution of the Wilcoxon signed rank statistic, for values in pairs.  Pure.

W is the number of averages of two differences (each with itself too) that are above zero; without
a change each difference is as likely to be above as below, so W is a sum of the ranks 1 to n, each
taken or not.  What both values of a pair share, a drift of the device, takes no part in it.

Source: Wilcoxon (1945); Hollander, Wolfe, Chicken, Nonparametric Statistical Methods, 3rd edition,
sections 3.1 to 3.3.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kvbench.stats.rank_sum import SLACK


@lru_cache(maxsize=64)
def upper_tail(n: int) -> NDArray[np.float64]:
    """Return P(W >= w) for w = 0 .. n (n + 1) / 2, shape (n (n + 1) / 2 + 1,)."""
    shares = np.ones(1)
    for rank in range(1, n + 1):
        taken = np.zeros(shares.size + rank)
        taken[rank:] = shares / 2
        taken[: shares.size] += shares / 2
        shares = taken
    tail: NDArray[np.float64] = np.cumsum(shares[::-1])[::-1]
    tail.setflags(write=False)
    return tail


def p_of(w: float, n: int) -> float:
    """Return the chance of at least ``w`` averages above zero by luck alone."""
    return min(1.0, float(upper_tail(n)[max(0, int(w))]))


def edge_rank(n: int, chance: float) -> int:
    """Return which of the sorted averages bounds the shift from one side, 0 where none does."""
    tail, count = upper_tail(n), n * (n + 1) // 2
    rank = 0
    while rank < count // 2 and tail[count - rank] <= chance * (1 + SLACK):
        rank += 1
    return rank


def smallest_p(n: int) -> float:
    """Return the smallest one-sided p-value that so many pairs can have."""
    return 0.5**n


def averages(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the averages of all two differences and of each with itself, ascending.

    Args:
        differences: shape (n,).

    Returns:
        Shape (n (n + 1) / 2,); their median is the Hodges-Lehmann estimate of the shift.
    """
    early, late = np.triu_indices(differences.size)
    return np.sort((differences[early] + differences[late]) / 2)
