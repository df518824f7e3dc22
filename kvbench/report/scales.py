"""Scales and ticks of the figures: rates from zero, latencies logarithmic, units at the ticks."""

from collections.abc import Callable, Sequence
from math import log2

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from kvbench.report.words import micro
from kvbench.units import format_value


def thinned(depths: Sequence[float]) -> list[float]:
    """Return the depths whose labels have room: no two closer than half a doubling."""
    kept: list[float] = []
    for depth in depths:
        if not kept or depth <= 0 or log2(depth / kept[-1]) >= 0.5:
            kept.append(depth)
    return kept


def zero_axis(axes: Axes, values: Sequence[float], unit: str) -> None:
    """Make y linear from zero."""
    top = max(values, default=0.0)
    axes.set_ylim(0, top * 1.08 if top > 0 else 1)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value, unit)))
    axes.patch.set_visible(False)


def zero_x_axis(axes: Axes, values: Sequence[float], unit: str) -> None:
    """Make x linear from zero."""
    top = max(values, default=0.0)
    axes.set_xlim(0, top * 1.04 if top > 0 else 1)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value, unit)))


def log_axis(axes: Axes, values: Sequence[float], label: Callable[[float], str]) -> None:
    """Make y logarithmic with ticks at 1, 2 and 5, or at 1 alone over many decades."""
    axes.set_yscale("log")
    positive = [value for value in values if value > 0] or [1e-6]
    low, high = min(positive) / 1.15, max(positive) * 1.15
    axes.set_ylim(low, high)
    decades = np.log10(high / low)
    steps: tuple[float, ...] = (1, 2, 5) if decades < 3.2 else (1,)
    if decades < 0.6:
        steps = (1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8)
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps]
    axes.yaxis.set_major_locator(FixedLocator([t for t in ticks if low <= t <= high]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _trimmed(label(value))))


def tick(value: float, unit: str) -> str:
    """Return the text at a tick; unit "1" is a plain number, tokens are counted in 1024."""
    if unit == "tokens":
        return f"{value / 1024:g}k"
    if unit == "1" and value != 0:
        return f"{value:g}"
    return "0" if value == 0 else _trimmed(micro(format_value(value, unit)))


def _trimmed(text: str) -> str:
    """Drop zeros that say nothing on an axis: ``2.00 ms`` -> ``2 ms``, ``20.0k`` -> ``20k``."""
    number = text.rstrip("kMGsµnmB/ KT")
    rest = text[len(number) :]
    return (number.rstrip("0").rstrip(".") if "." in number else number) + rest
