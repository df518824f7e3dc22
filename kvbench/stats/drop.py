"""Where a series falls from one level to a lower one, if it does.

The place is the cut into two parts whose logarithms have the least squared distance from their own
means.  It counts as a drop when the later level is clearly lower and nearly every value after the
cut is below nearly every value before it; a dip that recovers is none.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

SHARE_MAX = 0.75  # the later level over the earlier one
PAIRS_MIN = 0.95  # pairs of an earlier and a later value of which the later is lower
PART_MIN = 3  # values on each side of the cut, and
PART_SHARE_MIN = 1 / 8  # of all values
VALUES_MIN = 2 * PART_MIN + 2


@dataclass(frozen=True)
class Drop:
    """A fall: ``place`` is the index of the first value after it, levels are medians."""

    place: int
    before: float
    after: float


def find_drop(values: NDArray[np.float64]) -> Drop | None:
    """Return the drop of a series of rates, None when it has none.

    Args:
        values: shape (n,), none negative, in the order of time.
    """
    if values.size < VALUES_MIN or not np.isfinite(values).all() or not (values > 0).any():
        return None
    least = values[values > 0].min()
    logs = np.log(np.maximum(values, least / 2))  # a second without I/O is low, not endlessly low
    part = max(PART_MIN, ceil(PART_SHARE_MIN * values.size))
    cuts = range(part, values.size - part + 1)
    place = min(cuts, key=lambda cut: _distance(logs[:cut]) + _distance(logs[cut:]))
    early, late = values[:place], values[place:]
    before, after = float(np.median(early)), float(np.median(late))
    lower = (late[None, :] < early[:, None]).mean()
    if before <= 0 or after > SHARE_MAX * before or lower < PAIRS_MIN:
        return None
    return Drop(place=place, before=before, after=after)


def _distance(part: NDArray[np.float64]) -> float:
    return float(((part - part.mean()) ** 2).sum())
