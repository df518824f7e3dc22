"""Has a drive settled?  A criterion over the last rounds of a measurement.  Pure.

Source: SNIA Solid State Storage Performance Test Specification, "Steady State": over a window of
five rounds the range of the values is at most 20 % of their average, and the least-squares line
through them rises or falls by at most 10 % of it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

WINDOW_ROUNDS = 5
RANGE_SHARE_MAX = 0.20
SLOPE_SHARE_MAX = 0.10
_ROUNDING = 1e-9  # a range of exactly 20 % is within it

State = Literal["steady", "not steady", "too few rounds"]


@dataclass(frozen=True, kw_only=True)
class Steadiness:
    """What the last rounds say of one metric.

    ``first_round`` counts from 1.  ``range_share`` is (highest - lowest) / mean, ``slope_share``
    the rise of the fitted line from the first round of the window to its last, over the mean,
    below 0 where it falls.  They and the mean are None where there is no window, or no mean to
    divide by.
    """

    state: State
    first_round: int
    rounds: int
    mean: float | None
    range_share: float | None
    slope_share: float | None


def steadiness(values: Sequence[float], window: int = WINDOW_ROUNDS) -> Steadiness:
    """Return whether the last ``window`` of ``values`` are steady.

    Only rounds that were measured belong into ``values``: a window that is not full is never
    filled up with zeros, which would thin its mean.

    Raises:
        ValueError: a window of fewer than two rounds, or a value that is no finite number.
    """
    if window < 2:
        raise ValueError(f"a window of {window} rounds has no slope")
    if not all(math.isfinite(value) for value in values):
        raise ValueError("a round without a value is no round")
    if len(values) < window:
        return Steadiness(
            state="too few rounds",
            first_round=1,
            rounds=len(values),
            mean=None,
            range_share=None,
            slope_share=None,
        )
    last = np.asarray(values[-window:], dtype=np.float64)
    mean = float(last.mean())
    first = len(values) - window + 1
    if mean <= 0:  # a drive that does nothing is not steady
        return Steadiness(
            state="not steady",
            first_round=first,
            rounds=window,
            mean=mean,
            range_share=None,
            slope_share=None,
        )
    span = float(np.ptp(last)) / mean
    slope = float(np.polyfit(np.arange(window), last, 1)[0]) * (window - 1) / mean
    within = span <= RANGE_SHARE_MAX + _ROUNDING and abs(slope) <= SLOPE_SHARE_MAX + _ROUNDING
    return Steadiness(
        state="steady" if within else "not steady",
        first_round=first,
        rounds=window,
        mean=mean,
        range_share=span,
        slope_share=slope,
    )
