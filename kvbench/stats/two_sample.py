"""Two samples of repetitions -> their ratio, its interval and the evidence.  Pure.

The ratio is the Hodges-Lehmann estimate on logarithms: the median of all ratios b/a.  Its interval
holds the ratios that the Mann-Whitney test does not refuse, so interval and test never contradict
each other.  It was chosen over a bootstrap because it is exact for the three to twelve repetitions
that people run, where a bootstrap is too sure of itself, and because it needs no random numbers:
the same archive gives the same verdict.

Where a value is not above zero there is no ratio, and the same is done with differences.

Samples that were measured in turns can be held against each other pair by pair: the same by the
Wilcoxon signed rank test, in which a drift that both share takes no part.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, inf, log1p, pi, sqrt
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kvbench.stats import rank_sum, signed_rank

Numbers = NDArray[np.float64]
MORE_MAX = 200  # more repetitions than this are not advice
POWER = 0.8  # how sure more repetitions shall be to decide
_WIDTHS_MIN = 1e-6  # spreads between a shift and its limit: any less is as good
LOG_RATIO_MAX = 700.0  # beyond it a ratio is no float; only denormal numbers lead there
_ROUNDING = 1e-12  # relative: two sums in another order are the same number


@dataclass(frozen=True, kw_only=True)
class TwoSample:
    """Sample b against sample a.

    ``kind`` "ratio": ``estimate`` is b/a, 1 is no change.  "difference": it is b - a in the unit of
    the values, 0 is no change.  ``low`` and ``high`` are the interval at the confidence asked for;
    None where the samples are too small for one.  ``p_larger`` and ``p_smaller`` are one-sided.
    """

    kind: Literal["ratio", "difference"]
    estimate: float
    shift: float  # the estimate on the scale of ``steps``
    low: float | None
    high: float | None
    p_larger: float
    p_smaller: float
    n_a: int
    n_b: int
    steps: Numbers  # all pairwise shifts, ascending; logarithms of ratios, or differences
    paired: bool = False  # ``steps`` are the averages of all two shifts within a pair

    def p_beyond(self, shift: float) -> float:
        """Return the chance of this sample were the true shift at most ``shift``."""
        return self._p(self.steps > shift + _slack(shift))

    def p_below(self, shift: float) -> float:
        """Return the chance of this sample were the true shift at least ``shift``."""
        return self._p(self.steps < shift - _slack(shift))

    def _p(self, steps: NDArray[np.bool_]) -> float:
        if self.paired:
            return signed_rank.p_of(float(steps.sum()), self.n_a)
        return _p(steps, self.n_a, self.n_b)


def compare(a: Sequence[float], b: Sequence[float], confidence: float) -> TwoSample:
    """Return ``b`` against ``a``.

    Args:
        a: shape (n_a,), one value per repetition.
        b: shape (n_b,), in the same unit.
        confidence: coverage of the two-sided interval, 0 to 1 (both excluded).

    Raises:
        ValueError: an empty sample, or a value that is not finite.
    """
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if not left.size or not right.size:
        raise ValueError("both samples need a value")
    left, right, positive = _on_scale(left, right)
    steps = np.sort((right[None, :] - left[:, None]).ravel())
    rank = rank_sum.edge_rank(left.size, right.size, (1 - confidence) / 2)
    return _result(steps, rank, (left.size, right.size), positive=positive, paired=False)


def compare_pairs(a: Sequence[float], b: Sequence[float], confidence: float) -> TwoSample:
    """Return ``b`` against ``a``, value by value: the n-th of one and of the other are a pair.

    Args:
        a: shape (n,).
        b: shape (n,), in the same unit.
        confidence: as for ``compare``.

    Raises:
        ValueError: the samples are empty or not of one size, or a value is not finite.
    """
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if not left.size or left.size != right.size:
        raise ValueError("pairs need as many values of one as of the other")
    left, right, positive = _on_scale(left, right)
    n = int(left.size)
    steps = signed_rank.averages(right - left)
    rank = signed_rank.edge_rank(n, (1 - confidence) / 2)
    return _result(steps, rank, (n, n), positive=positive, paired=True)


def _on_scale(
    left: NDArray[np.float64], right: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    """Return both samples, as logarithms where all values are positive, and whether they are."""
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise ValueError("a sample holds only finite values")
    positive = bool((left > 0).all() and (right > 0).all())
    return (np.log(left), np.log(right), True) if positive else (left, right, False)


def _result(
    steps: NDArray[np.float64], rank: int, sizes: tuple[int, int], *, positive: bool, paired: bool
) -> TwoSample:
    """Return what sorted steps from one sample to the other tell; ``rank`` 0: no interval."""
    shift = _middle(steps)
    shown = _as_ratio if positive else float

    def p_of(these: NDArray[np.bool_]) -> float:
        return signed_rank.p_of(float(these.sum()), sizes[0]) if paired else _p(these, *sizes)

    return TwoSample(
        kind="ratio" if positive else "difference",
        estimate=shown(shift),
        shift=shift,
        low=shown(steps[rank - 1]) if rank else None,
        high=shown(steps[-rank]) if rank else None,
        p_larger=p_of(steps > _slack(0.0)),
        p_smaller=p_of(steps < -_slack(0.0)),
        n_a=sizes[0],
        n_b=sizes[1],
        steps=steps,
        paired=paired,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected for their number, in the order given, each at most 1.

    Source: Holm (1979), A simple sequentially rejective multiple test procedure.
    """
    order = np.argsort(p_values, kind="stable")
    corrected = [1.0] * len(order)
    running = 0.0
    for place, which in enumerate(order.tolist()):
        running = max(running, min(1.0, (len(order) - place) * p_values[which]))
        corrected[which] = running
    return corrected


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A verdict that more repetitions could bring.

    ``limits`` are shifts that the test must refuse, each at the one-sided error ``chance``.  Where
    ``beyond`` is set, the estimate has to come out beyond it as well.
    """

    limits: tuple[float, ...]
    chance: float
    beyond: float | None = None


def more_repetitions(
    a: Sequence[float],
    b: Sequence[float],
    goals: Sequence[Goal],
    *,
    fixed_a: bool = False,
    paired: bool = False,
) -> int | None:
    """Return about how many more repetitions would reach the nearest goal, None for none that will.

    It takes the spread and the shift seen so far for the true ones, so it is a guess from few
    values: the distance to the limits against the standard error of a normal sample, with the
    efficiency of the rank test (3/pi), at 80 % power.

    Args:
        a: shape (n_a,).
        b: shape (n_b,).
        goals: any of which decides.
        fixed_a: only ``b`` gets more; else both get as many.
        paired: the values come in pairs, and so would more of them.
    """
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if (left > 0).all() and (right > 0).all():
        left, right = np.log(left), np.log(right)
    if paired:
        shift = _middle(signed_rank.averages(right - left))
        spread = sqrt(_variance(right - left) / 2)
    else:
        shift = _middle(np.sort((right[None, :] - left[:, None]).ravel()))
        spread = sqrt((_variance(left) + _variance(right)) / 2)
    now = right.size if fixed_a else min(left.size, right.size)
    fixed = left.size if fixed_a else None
    needs = [n for goal in goals if (n := _needed(goal, shift, spread, fixed)) is not None]
    more = max(1, min(needs) - now) if needs else None
    return more if more is not None and more <= MORE_MAX else None


def _needed(goal: Goal, shift: float, spread: float, n_a: int | None) -> int | None:
    """Return how many repetitions a side reach a goal, or of b alone beside ``n_a`` of a."""
    least = rank_sum.smallest_n(goal.chance, n_a)
    distance = min(abs(shift - limit) for limit in goal.limits)
    over = inf if goal.beyond is None else abs(shift - goal.beyond)
    if least is None or not distance or not over:
        return None
    power = NormalDist().inv_cdf(POWER)
    asked = NormalDist().inv_cdf(1 - goal.chance) + power
    widths = max(asked * spread / distance, power * spread / over)
    widths = max(widths, _WIDTHS_MIN)
    if widths > MORE_MAX:  # its square is further than anybody goes
        return None
    room = 3 / pi / widths**2  # what 1/n_a + 1/n_b may be
    if n_a is None:
        return max(least, ceil(2 / room))
    room -= 1 / n_a
    return max(least, ceil(1 / room)) if room > 1 / (n_a + 2 * MORE_MAX) else None


def ratio_room(share: float) -> tuple[float, float]:
    """Return how far up and how far down a ratio may go, both above 0, on the scale of ``steps``.

    5 % is from 0.95 to 1.05, as people read it.  Nothing can fall by 100 %, so from there on the
    share is a factor: 100 % is from half to double, 150 % from 1/2.5 to 2.5.
    """
    return log1p(share), -log1p(-share) if share < 1 else log1p(share)


def _as_ratio(shift: float) -> float:
    return exp(min(shift, LOG_RATIO_MAX))


def _middle(ascending: Numbers) -> float:
    """Return the median of values that are sorted."""
    half = ascending.size // 2
    if ascending.size % 2:
        return float(ascending[half])
    return float(ascending[half - 1] + ascending[half]) / 2


def _variance(values: Numbers) -> float:
    return float(values.var(ddof=1)) if values.size > 1 else 0.0


def _p(pairs: NDArray[np.bool_], n_a: int, n_b: int) -> float:
    # Equal values count for nobody: against equal odds that can only make p larger.
    return rank_sum.p_of(float(pairs.sum()), n_a, n_b)


def _slack(shift: float) -> float:
    return _ROUNDING * max(1.0, abs(shift))
