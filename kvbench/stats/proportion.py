"""What a share of counted things tells of the share behind it.  Pure.

The interval is the exact one of Clopper and Pearson, whose ends are the shares at which so few or
so many hits have a chance of 2.5 % each.  It holds for things that are independent of each other.

Source: Clopper and Pearson, The use of confidence or fiducial limits illustrated in the case of
the binomial, Biometrika 26 (1934).
"""

from collections.abc import Callable
from functools import lru_cache
from math import ceil, exp, log

import numpy as np

CONFIDENCE = 0.95
HALVINGS = 50  # of the interval from 0 to 1


def share_interval(hits: int, count: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the ends of the interval of a share, each from 0 to 1.

    Args:
        hits: how many had it.
        count: how many there were.
        confidence: the wanted coverage, 0 to 1 (both excluded).

    Raises:
        ValueError: nothing was counted, or more hits than things.
    """
    if not 0 <= hits <= count or count < 1:
        raise ValueError(f"{hits} of {count} is no share")
    tail = (1 - confidence) / 2
    low = 0.0 if hits == 0 else _root(lambda p: _at_least(hits, count, p) < tail)
    high = 1.0 if hits == count else _root(lambda p: _at_least(hits + 1, count, p) < 1 - tail)
    return low, high


def count_needed(share: float, confidence: float = CONFIDENCE) -> int:
    """Return how many things, all of them hits, show that the share behind is at least ``share``.

    Args:
        share: 0 to 1 (both excluded).
        confidence: as in ``share_interval``.
    """
    return ceil(log((1 - confidence) / 2) / log(share))


def _root(below: Callable[[float], bool]) -> float:
    """Return where ``below`` turns from true to false."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return (low + high) / 2


def _at_least(hits: int, count: int, share: float) -> float:
    """Return the chance of ``hits`` or more of ``count``; it rises with ``share``."""
    place = np.arange(hits, count + 1, dtype=np.float64)
    logs = _log_ways(count)[hits:] + place * log(share) + (count - place) * log(1 - share)
    most = float(logs.max())
    return exp(most) * float(np.exp(logs - most).sum())


@lru_cache(maxsize=8)
def _log_ways(count: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return the logarithms of the binomial coefficients of ``count``, shape (count + 1,)."""
    steps = np.log(np.arange(1, count + 1, dtype=np.float64))
    factorial = np.concatenate(([0.0], np.cumsum(steps)))
    return np.asarray(factorial[count] - factorial - factorial[::-1])
