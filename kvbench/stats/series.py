"""What the order of the repetitions and the odd one among them tell.  Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
TREND_Z_MIN = 2.0
DRIFT_N_MIN = 5  # of fewer repetitions every order is likely enough by luck
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
    """Return the trend of ``values`` in order of repetition; None where none stands out at all.

    Source: Kendall (1938); Sen (1968), the median of all slopes.
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.size < DRIFT_N_MIN or np.ptp(sample) == 0:
        return None
    middle = float(np.median(sample))
    if middle == 0:
        return None
    if not _may_be_a_trend(sample):
        return None
    from scipy.stats import kendalltau, theilslopes

    order = np.arange(sample.size)
    slope = float(theilslopes(sample, order).slope)
    p = float(kendalltau(order, sample).pvalue)
    return Drift(change=slope * (sample.size - 1) / abs(middle), p=p)


def _may_be_a_trend(sample: Numbers) -> bool:
    """Whether Kendall's S is two standard deviations from none: below that p is above 4 %.

    Most samples are not, and scipy takes a thousand times as long to say so.
    """
    n = sample.size
    rises = np.sign(sample[None, :] - sample[:, None])[np.triu_indices(n, 1)].sum()
    return bool(abs(rises) >= TREND_Z_MIN * np.sqrt(n * (n - 1) * (2 * n + 5) / 18))


def outliers(values: Sequence[float]) -> tuple[int, ...]:
    """Return the places of values that lie apart from the rest.  They are told, never dropped.

    Distance is in median absolute deviations (times 1.4826, a standard deviation of a normal
    sample), because the odd value itself would inflate a standard deviation.
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.size < OUTLIER_N_MIN:
        return ()
    middle = float(np.median(sample))
    away = np.abs(sample - middle)
    usual = _MAD_TO_SIGMA * float(np.median(away))
    odd = (away > OUTLIER_SPREADS * usual) & (away > OUTLIER_SHARE * abs(middle)) & (away > 0)
    if odd.sum() > OUTLIER_COUNT_SHARE * sample.size:
        return ()
    return tuple(np.flatnonzero(odd).tolist())
