"""Histograms as two arrays, values and counts: merge, quantile, and the curve of nines.  Pure.

A merged histogram is the histogram of all samples; averaging the percentiles of the parts is not.
"""

from collections.abc import Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Counts = NDArray[np.int64]

# q * n is a float product: 0.999 * 10000 comes out above 9990.  A rank is only raised to the next
# whole number by more than this relative excess.
_RANK_SLACK = 1e-12


def merge(parts: Sequence[tuple[Values, Counts]]) -> tuple[Values, Counts]:
    """Return the histogram of all samples of ``parts``.

    Args:
        parts: pairs of values and counts, each pair of equal shape (bins,), in any order.

    Returns:
        The distinct values, ascending, and their summed counts, both of shape (bins,).  Bins
        without a sample are left out.  No parts give two empty arrays.
    """
    if not parts:
        return np.empty(0), np.empty(0, dtype=np.int64)
    if len(parts) == 1 and (np.diff(parts[0][0]) > 0).all():  # one sorted part is the answer
        values = np.asarray(parts[0][0], dtype=np.float64)
        counts = np.asarray(parts[0][1], dtype=np.int64)
        filled = counts > 0
        return values[filled], counts[filled]
    every_value = np.concatenate([np.asarray(values, dtype=np.float64) for values, _ in parts])
    every_count = np.concatenate([np.asarray(counts, dtype=np.int64) for _, counts in parts])
    values, place = np.unique(every_value, return_inverse=True)
    counts = np.zeros(values.shape, dtype=np.int64)
    np.add.at(counts, place, every_count)
    filled = counts > 0
    return values[filled], counts[filled]


def total(counts: Counts) -> int:
    """Return the number of samples."""
    return int(counts.sum())


def quantile(values: Values, counts: Counts, q: float) -> float:
    """Return the nearest-rank quantile: the smallest value with at least q*N samples up to it.

    Args:
        values: shape (bins,), ascending.
        counts: shape (bins,), samples at each value.
        q: 0 to 1; 0 is the smallest value and 1 the largest.

    Raises:
        ValueError: there are no samples, or ``q`` is not within 0 and 1.
    """
    n = total(counts)
    if n < 1:
        raise ValueError("a histogram without samples has no quantile")
    if not 0 <= q <= 1:
        raise ValueError(f"not a quantile: {q}")
    rank = max(1, ceil(q * n * (1 - _RANK_SLACK)))
    return float(values[np.searchsorted(np.cumsum(counts), rank)])


def nines_curve(
    values: Values, counts: Counts, max_points: int = 500
) -> tuple[Values, NDArray[np.float64]]:
    """Return a curve for a plot with a "nines" axis: how rare each value or a larger one is.

    The second array is ``-log10(share of samples that are at least this value)``: 0 for the
    smallest value, 2 where one sample in a hundred is as large, 3 for one in a thousand.  It
    never reaches infinity, because the largest value is always part of the curve.

    Args:
        values: shape (bins,), ascending.
        counts: shape (bins,).
        max_points: an upper limit for the length of the curve; both ends are always kept.

    Returns:
        Two arrays of shape (points,), both ascending.  No samples give two empty arrays.
    """
    filled = counts > 0
    values, counts = values[filled], counts[filled]
    if not values.size:
        return np.empty(0), np.empty(0)
    at_least = np.cumsum(counts[::-1])[::-1]
    nines = -np.log10(at_least / at_least[0]) + 0.0  # + 0.0 turns -0.0 into 0.0
    if values.size > max_points:
        # Equal steps in nines keep the rare tail, where bins are few and matter most.
        steps = np.linspace(0.0, nines[-1], max_points)
        keep = np.unique(np.searchsorted(nines, steps).clip(0, values.size - 1))
        values, nines = values[keep], nines[keep]
    return values, nines
