"""Student's t for samples of a few repetitions.  Pure.

It holds for values that are roughly normal; rates and times of repetitions are, as logarithms.
Unlike ranks it can tell a large difference from chance with three values a side.
"""

from collections.abc import Sequence
from math import atan, cos, inf, pi, sin, sqrt
from statistics import fmean

EFFECTIVE_SHARE = 2 / 3  # of the degrees of freedom, where neighbours share a sample


def upper_tail(t: float, freedom: int) -> float:
    """Return the chance that Student's t is ``t`` or more.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.

    Args:
        t: the statistic.
        freedom: degrees of freedom, at least 1.

    Raises:
        ValueError: no degree of freedom.
    """
    if freedom < 1:
        raise ValueError("a spread needs a degree of freedom")
    angle = atan(t / sqrt(freedom)) if t != inf else pi / 2
    cosine, total = cos(angle), 0.0
    odd = freedom % 2
    term = cosine if odd else 1.0
    for power in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine * cosine * (power - 1) / power
    within = 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
    return (1 - within) / 2


def p_larger(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the chance of so much larger a mean of ``b`` were both of one distribution.

    Args:
        a: shape (n_a,), two or more in one of the two.
        b: shape (n_b,).
    """
    freedom = len(a) + len(b) - 2
    spread = sqrt((_squares(a) + _squares(b)) / freedom * (1 / len(a) + 1 / len(b)))
    return _p(fmean(b) - fmean(a), spread, freedom)


def p_below_zero(samples: Sequence[Sequence[float]]) -> list[float]:
    """Return of each sample the chance of so low a mean were the true one 0.

    The spread is taken to be the same for all of them, so a few values each are enough.

    Args:
        samples: shape (samples, values); differences between neighbours, of which each shares
            one side with the next.
    """
    freedom = sum(len(one) - 1 for one in samples)
    if freedom < 1:
        return [1.0 for _ in samples]
    variance = sum(_squares(one) for one in samples) / freedom
    certain = max(1, int(freedom * EFFECTIVE_SHARE))
    return [_p(-fmean(one), sqrt(variance / len(one)), certain) for one in samples]


def _p(difference: float, spread: float, freedom: int) -> float:
    if spread == 0:
        return 0.0 if difference > 0 else 1.0
    return upper_tail(difference / spread, freedom)


def _squares(values: Sequence[float]) -> float:
    mean = fmean(values)
    return sum((value - mean) ** 2 for value in values)
