"""The median of a few repetitions and its distribution-free interval.  Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A median and what may be said of its uncertainty.

    ``kind`` is the confidence as people write it ("95 %"), "range" when the sample is too small
    for that confidence (low and high are the smallest and largest value), or "none" for a sample
    of one (low and high are None).
    """

    median: float
    low: float | None
    high: float | None
    kind: str
    n: int


def median_interval(sample: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Return the median and its distribution-free interval.

    The interval is from the r-th smallest to the r-th largest value, with the largest r for which
    ``1 - 2 * P(Binomial(n, 1/2) < r)`` is at least ``confidence``.  It holds for every continuous
    distribution.  At 95 %: n = 6 to 8 give r = 1 (the whole range), 9 to 11 give r = 2, and 12
    gives r = 3.  Below 6 no such interval exists.

    Source: Conover, Practical Nonparametric Statistics, 3rd edition, section 3.2; the table of
    ranks is also in ISO 16269-7 (2001), median, estimation and confidence intervals.

    Args:
        sample: shape (n,), one value per repetition (not per I/O).
        confidence: the wanted coverage, 0 to 1 (both excluded).

    Raises:
        ValueError: the sample is empty, or has a value that is not finite.
    """
    ordered = np.sort(np.asarray(sample, dtype=np.float64))
    n = int(ordered.size)
    if n < 1:
        raise ValueError("an empty sample has no median")
    if not np.isfinite(ordered).all():
        raise ValueError("a sample holds only finite values")
    median = float(np.median(ordered))
    if n == 1:
        return Interval(median=median, low=None, high=None, kind="none", n=1)
    rank = _rank(n, confidence)
    kind = f"{100 * confidence:g} %" if rank else "range"
    edge = max(rank, 1)
    return Interval(
        median=median, low=float(ordered[edge - 1]), high=float(ordered[n - edge]), kind=kind, n=n
    )


def _rank(n: int, confidence: float) -> int:
    """Return the largest r whose interval still has the confidence; 0 when not even r = 1 has."""
    allowed = (1 - confidence) / 2 * 2**n
    below, rank = 0, 0
    while rank < n // 2:
        below += comb(n, rank)
        if below > allowed:
            break
        rank += 1
    return rank
