"""What the order of the repetitions and the odd one among them tell.  Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
DRIFT_N_MIN = 5  # of fewer repetitions every order is likely enough by luck
DRIFT_CHANCE = 0.02  # two-sided; one order in fifty looks like a trend by luck
DRIFT_SHARE_MIN = 0.02  # a smaller rise over the whole run is nobody's concern
OUTLIER_N_MIN = 4
OUTLIER_SPREADS = 6.0  # times the usual spread from the median
OUTLIER_COUNT_SHARE = 0.25  # more odd ones than this are a second group, not outliers
OUTLIER_SHARE = 0.2  # and at least this far, or quiet repetitions would call the next one odd
_MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True, kw_only=True)
class Drift:
    """A trend over the repetitions.

    ``change`` is the rise from the first repetition to the last along the Theil-Sen line, over
    the median (0.1 is 10 %).  ``p`` is two-sided, of Kendall's tau against no order at all.
    """

    change: float
    p: float


def drift(values: Sequence[float]) -> Drift | None:
    """Return the trend of ``values`` in order of repetition; None where none can be told.

    Source: Kendall (1938); Sen (1968), the median of all slopes.
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.size < DRIFT_N_MIN or np.ptp(sample) == 0:
        return None
    middle = _median(sample)
    if middle == 0:
        return None
    early, late = _pairs(sample.size)
    rises = sample[late] - sample[early]
    slope = _median(rises / (late - early))
    p = _p_of_order(sample.size, abs(int(np.sign(rises).sum())))
    return Drift(change=slope * (sample.size - 1) / abs(middle), p=p)


@lru_cache(maxsize=64)
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of the earlier and the later value of every pair."""
    early, late = np.triu_indices(n, 1)
    return early, late


def _median(sample: Numbers) -> float:
    """Return the median; numpy's own takes long to say what it is of a few values."""
    ascending = np.sort(sample)
    half = ascending.size // 2
    if ascending.size % 2:
        return float(ascending[half])
    return float(ascending[half - 1] + ascending[half]) / 2


def clear_drift(values: Sequence[float]) -> float | None:
    """Return the change of a trend that is rarely luck and large enough to matter, else None."""
    found = drift(values)
    if found is None or found.p > DRIFT_CHANCE or abs(found.change) < DRIFT_SHARE_MIN:
        return None
    return found.change


def _p_of_order(n: int, excess: int) -> float:
    """Return the chance that rising pairs outnumber falling ones by this, or the reverse.

    Counted over all orders of ``n`` different values.  Equal values make the excess smaller, so
    with them the chance comes out too large rather than too small.
    """
    pairs = n * (n - 1) // 2
    rising = (pairs + excess) // 2  # the fewest rising pairs with that excess
    return min(1.0, 2 * float(_orders(n)[rising:].sum()))


@lru_cache(maxsize=64)
def _orders(n: int) -> Numbers:
    """Return the share of all orders of ``n`` values with 0, 1, 2 ... rising pairs."""
    shares = np.ones(1)
    for place in range(2, n + 1):  # a new value rises over 0 to place - 1 of those before it
        shares = np.convolve(shares, np.full(place, 1 / place))
    return shares


def outliers(values: Sequence[float]) -> tuple[int, ...]:
    """Return the places of values that lie apart from the rest.  They are told, never dropped.

    Distance is in median absolute deviations (times 1.4826, a standard deviation of a normal
    sample), because the odd value itself would inflate a standard deviation.
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.size < OUTLIER_N_MIN:
        return ()
    middle = _median(sample)
    away = np.abs(sample - middle)
    usual = _MAD_TO_SIGMA * _median(away)
    odd = (away > OUTLIER_SPREADS * usual) & (away > OUTLIER_SHARE * abs(middle)) & (away > 0)
    if odd.sum() > OUTLIER_COUNT_SHARE * sample.size:
        return ()
    return tuple(np.flatnonzero(odd).tolist())
