"""Plot data -> SVG text or another format, by matplotlib's figure objects: no global state."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import matplotlib as mpl
import matplotlib.transforms
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from kvbench.report.curves import nines
from kvbench.report.hover import note
from kvbench.report.model import BarGroup, BarPanel, Curve, CurvePanel, LinePanel, LineSeries, Rule
from kvbench.report.scales import log_axis, thinned, tick, zero_axis, zero_x_axis
from kvbench.report.svg import FAINT, INK, PALETTE, svg_named
from kvbench.report.words import metric_label, micro, quantity
from kvbench.units import format_value

if TYPE_CHECKING:  # the name is younger than the oldest matplotlib that serves
    from matplotlib.typing import RcKeyType

T = TypeVar("T")
Save = Callable[[Drawing, str, str], T]  # a drawing, its title and its description -> a file

WIDTH_IN = 5.0
PLOT_IN = 2.4  # height of the axes
LEFT_IN, RIGHT_IN, TOP_IN, BOTTOM_IN = 0.74, 0.14, 0.3, 0.42
LEGEND_ROW_IN = 0.178
LEGEND_CHARS_MAX = 34  # of a label that shares its row with another
FONT_PT = 9
LINES: tuple[Literal["-", "--", ":", "-."], ...] = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
TICK_PERCENTS = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999)
TICKS_MIN = 2
BARS_PER_ROW = 3

_STYLE: "dict[RcKeyType, Any]" = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "kvbench",  # the same data gives the same bytes
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "font.family": ["DejaVu Sans"],
    "font.size": FONT_PT,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": FONT_PT - 0.5,
    "ytick.labelsize": FONT_PT - 0.5,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def draw(panel: CurvePanel | LinePanel | BarPanel, figure_id: str) -> str:
    """Return ``panel`` as SVG text; ``figure_id`` is unique in its page."""
    return draw_with(panel, svg_named(figure_id, panel.mark))


def draw_with(panel: CurvePanel | LinePanel | BarPanel, save: Save[T]) -> T:
    """Return what ``save`` makes of the drawing of ``panel``, in whatever format."""
    match panel:
        case CurvePanel():
            return latency_curves(panel, save)
        case LinePanel():
            return lines(panel, save)
        case BarPanel():
            return tenant_bars(panel, save)


def latency_curves(panel: CurvePanel, save: Save[T]) -> T:
    """Draw latency percentile curves: x in nines, y logarithmic, thin repetitions."""
    handles = []
    with drawing_style() as new:
        drawing, axes = new([curve.label for curve in panel.curves])
        for curve in panel.curves:
            colour = PALETTE[curve.colour % len(PALETTE)]
            dashes: Literal["-", "--"] = "--" if curve.dashed else "-"
            n = len(curve.repetitions)
            for number, (percent, latency_s) in enumerate(curve.repetitions, start=1):
                x = nines(np.asarray(percent))
                (line,) = axes.plot(x, latency_s, dashes, color=colour, linewidth=0.5, alpha=0.55)
                note(line, [f"{curve.label}\nrepetition {number} of {n}"], curve.colour)
            x = nines(np.asarray(curve.percent))
            (line,) = axes.plot(x, curve.latency_s, dashes, color=colour, linewidth=1.7)
            note(line, [f"{curve.label}\nmedian of n={n} repetitions"], curve.colour)
            (end,) = axes.plot(x[-1:], curve.latency_s[-1:], "o", color=colour, markersize=3)
            note(end, (), curve.colour)
            _percentile_notes(axes, curve)
            handles.append(Line2D([], [], color=colour, linestyle=dashes, linewidth=1.7))
        values = [v for c in panel.curves for v in c.latency_s]
        values += [v for c in panel.curves for _, own in c.repetitions for v in own]
        log_axis(axes, values, lambda value: quantity("latency_p50", "s", value))
        last = max(max(curve.percent) for curve in panel.curves)
        last = max([last, *(own[-1] for c in panel.curves for own, _ in c.repetitions)])
        ticks = [p for p in TICK_PERCENTS if p <= last + 1e-9]
        if len(ticks) < TICKS_MIN:  # few I/Os: the curve ends before 90 %
            ticks = [p for p in (50.0, 60.0, 75.0, 85.0) if p <= last + 1e-9]
        axes.set_xlim(float(nines(np.array([50.0]))[0]), float(nines(np.array([last]))[0]) + 0.08)
        axes.xaxis.set_major_locator(FixedLocator(nines(np.asarray(ticks)).tolist()))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{100 * (1 - 10**-x):.6g}"))
        _finish(drawing, axes, panel.x_label, panel.y_label)
        _legend(
            drawing,
            handles,
            [curve.label for curve in panel.curves],
            [c.colour for c in panel.curves],
        )
        return save(drawing, panel.title, panel.description)


def _percentile_notes(axes: Axes, curve: Curve) -> None:
    """Lay unseen markers at the usual percentiles of the median curve, which say its values."""
    percents = [p for p in (*TICK_PERCENTS, curve.percent[-1]) if p <= curve.percent[-1]]
    places = nines(np.asarray(percents))
    values = np.interp(places, nines(np.asarray(curve.percent)), curve.latency_s)
    n = len(curve.repetitions)
    labels = [
        f"{curve.label}\n{quantity('latency_p50', 's', float(value))} at {percent:.6g} %\n"
        f"median of n={n} repetitions"
        for percent, value in zip(percents, values, strict=True)
    ]
    _unseen(axes, places.tolist(), values.tolist(), labels, curve.colour)


def _unseen(
    axes: Axes, x: Sequence[float], y: Sequence[float], labels: Sequence[str], side: int
) -> None:
    """Draw markers that nobody sees and a pointer finds."""
    (markers,) = axes.plot(x, y, "o", color=INK, alpha=0, markersize=8, markeredgewidth=0)
    note(markers, labels, side)


def lines(panel: LinePanel, save: Save[T]) -> T:
    """Draw a metric against something numeric: lines, every repetition a dot, rules across."""
    handles = []
    with drawing_style() as new:
        drawing, axes = new([series.label for series in panel.series])
        for series in panel.series:
            handles.append(_line(axes, series, panel))
        values = [value for s in panel.series for value in (*s.median, *s.low, *s.high)]
        values += [value for series in panel.series for _, value in series.dots]
        values += [rule.value for rule in panel.rules if rule.axis == "y"]
        places = sorted({x for series in panel.series for x in series.x})
        crossed = [r.high or r.value for r in panel.rules if r.axis == "x"]
        if panel.x_scale == "linear":
            dots = [x for series in panel.series for x, _ in series.dots]
            zero_x_axis(axes, [*places, *dots, *crossed], panel.x_unit)
        else:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_locator(FixedLocator(thinned(places)))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: tick(x, panel.x_unit)))
        if panel.from_zero:
            zero_axis(axes, values, panel.unit)
        else:
            log_axis(axes, values, lambda value: quantity("latency_p99", panel.unit, value))
        for rule in panel.rules:
            _rule(axes, rule)
        _finish(drawing, axes, panel.x_label, panel.y_label)
        _legend(
            drawing,
            handles,
            [series.label for series in panel.series],
            [s.colour for s in panel.series],
        )
        return save(drawing, panel.title, panel.description)


def _point_label(panel: LinePanel, series: LineSeries, x: float, value: float, what: str) -> str:
    """Return what a point says: its line, its value with unit, its place, and of how many it is."""
    named = panel.y_label.partition(" (")[0]
    where = f"{panel.x_label.partition(' (')[0]}: {tick(x, panel.x_unit)}"
    return f"{series.label}\n{named}: {_amount(value, panel.unit)}\n{where}\n{what}"


def _amount(value: float, unit: str) -> str:
    """Return a value with its unit, also where an axis would leave that to its name."""
    return micro(format_value(value, unit)) + (" /s" if unit == "1/s" else "")


def _line(axes: Axes, series: LineSeries, panel: LinePanel) -> Line2D:
    """Draw one line with its band, dots and hollow points; return its entry of the legend."""
    colour = PALETTE[series.colour % len(PALETTE)]
    marker = MARKERS[series.variant % len(MARKERS)]
    line = LINES[series.variant % len(LINES)]
    if series.high:
        low = series.low or series.median
        band = axes.fill_between(series.x, low, series.high, color=colour, alpha=0.16, lw=0)
        note(band, (), series.colour)
    (drawn,) = axes.plot(series.x, series.median, line, color=colour, linewidth=1.4)
    note(drawn, (), series.colour)
    counts = Counter(x for x, _ in series.dots)
    said = [
        _point_label(panel, series, x, y, f"median of n={counts[x]}" if counts[x] else "median")
        for x, y in zip(series.x, series.median, strict=True)
    ]
    _unseen(axes, series.x, series.median, said, series.colour)
    if series.dots:
        x, y = zip(*series.dots, strict=True)
        (dots,) = axes.plot(
            x, y, marker, color=colour, markersize=3.6, alpha=0.75, markeredgewidth=0
        )
        said = [
            _point_label(panel, series, at, value, f"one of n={counts[at]} repetitions")
            for at, value in series.dots
        ]
        note(dots, said, series.colour)
    for place in series.hollow:
        (ring,) = axes.plot(
            series.x[place : place + 1],
            series.median[place : place + 1],
            "o",
            markersize=8,
            markerfacecolor="none",
            markeredgecolor=colour,
            markeredgewidth=1.3,
        )
        note(ring, (), series.colour)
    return Line2D(
        [],
        [],
        color=colour,
        linestyle=line,
        marker=marker if series.dots else "",
        markersize=4,
        linewidth=1.4,
    )


def _rule(axes: Axes, rule: Rule) -> None:
    """Draw a line across that marks one value, its interval as a strip, and its name."""
    colour = INK if rule.colour is None else PALETTE[rule.colour % len(PALETTE)]
    line = LINES[rule.variant % len(LINES)]
    if rule.axis == "y":
        axes.axhline(rule.value, color=colour, linestyle=line, linewidth=1.0)
        axes.annotate(
            rule.short_label,
            (0.01, rule.value),
            xycoords=axes.get_yaxis_transform(),
            xytext=(0, 2),
            textcoords="offset points",
            fontsize=FONT_PT - 1,
        )
        return
    if rule.low is not None and rule.high is not None:
        axes.axvspan(rule.low, rule.high, color=colour, alpha=0.12, lw=0)
    axes.axvline(rule.value, color=colour, linestyle=line, linewidth=1.0)
    axes.annotate(
        rule.short_label,
        (rule.value, 0.97),
        xycoords=axes.get_xaxis_transform(),
        xytext=(-3, 0),
        textcoords="offset points",
        ha="right",
        va="top",
        rotation=90,
        fontsize=FONT_PT - 1,
    )


def tenant_bars(panel: BarPanel, save: Save[T]) -> T:
    """Draw bars from zero, one small axis per tenant, every repetition a dot."""
    count = len(panel.groups)
    columns = min(count, BARS_PER_ROW)
    rows = ceil(count / columns)
    with drawing_style() as new:
        height = rows * (PLOT_IN * 0.72 + 0.62) + 0.05
        drawing, _ = new((), height_in=height, empty=True)
        for number, group in enumerate(panel.groups):
            row, column = divmod(number, columns)
            width = WIDTH_IN / columns
            bottom = height - (row + 1) * (PLOT_IN * 0.72 + 0.62) + 0.26
            place = (
                (column * width + LEFT_IN) / WIDTH_IN,
                bottom / height,
                (width - LEFT_IN - 0.1) / WIDTH_IN,
                PLOT_IN * 0.72 / height,
            )
            _tenant(drawing.add_axes(place), group)
        return save(drawing, panel.title, panel.description)


def _tenant(axes: Axes, group: BarGroup) -> None:
    values = []
    for place, bar in enumerate(group.bars):
        colour = PALETTE[bar.colour % len(PALETTE)]
        if bar.median is None:
            axes.text(place, 0, "no\nnumber", ha="center", va="bottom", fontsize=FONT_PT - 1)
            continue
        (column,) = axes.bar([place], [bar.median], width=0.62, color=colour, alpha=0.45)
        what = f"{group.label}, {bar.label}\n{quantity_label(group).partition(' (')[0]}: "
        n = len(bar.dots)
        note(column, [f"{what}{_amount(bar.median, group.unit)}\nmedian of n={n}"])
        axes.hlines([bar.median], place - 0.31, place + 0.31, color=colour, linewidth=1.6)
        offsets = np.linspace(-0.16, 0.16, len(bar.dots)) if len(bar.dots) > 1 else np.zeros(1)
        (dots,) = axes.plot(
            place + offsets, bar.dots, "o", color=INK, markersize=2.8, alpha=0.8, markeredgewidth=0
        )
        note(
            dots,
            [f"{what}{_amount(dot, group.unit)}\none of n={n} repetitions" for dot in bar.dots],
        )
        values += [bar.median, *bar.dots]
    axes.set_xlim(-0.6, len(group.bars) - 0.4)
    axes.xaxis.set_major_locator(FixedLocator(list(range(len(group.bars)))))
    names = [bar.label for bar in group.bars]
    axes.xaxis.set_major_formatter(FuncFormatter(lambda _, place: names[place or 0]))
    zero_axis(axes, values, group.unit)
    axes.grid(visible=False, axis="x")
    axes.tick_params(axis="both", length=2.5)
    label = quantity_label(group)
    axes.set_title(f"{group.label}\n{label}", fontsize=FONT_PT - 0.5, loc="left", x=-0.3)


def quantity_label(group: BarGroup) -> str:
    """Return the quantity of a tenant's axis; the ticks carry the unit."""
    names = {"iops": "IOPS (1/s)", "bandwidth": "bandwidth", "request_rate": "requests (1/s)"}
    return names.get(group.metric, metric_label(group.metric))


@contextmanager
def drawing_style() -> Iterator[Callable[..., tuple[Drawing, Axes]]]:
    """Draw in kvbench's style, whatever the user's own matplotlib settings are."""
    with warnings.catch_warnings(), mpl.rc_context():
        # A name may hold letters that the measuring font lacks; the browser has its own fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield _new


def _new(
    labels: Sequence[str],
    *,
    height_in: float | None = None,
    width_in: float = WIDTH_IN,
    empty: bool = False,
) -> tuple[Drawing, Axes]:
    """Return a figure with room for its legend, and its axes."""
    legend = _legend_rows(labels) * LEGEND_ROW_IN
    height = TOP_IN + PLOT_IN + BOTTOM_IN + legend + 0.04 if height_in is None else height_in
    drawing = Drawing(figsize=(width_in, height))
    drawing.patch.set_visible(False)
    width = width_in - LEFT_IN - RIGHT_IN
    place = (
        LEFT_IN / width_in,
        (height - TOP_IN - PLOT_IN) / height,
        width / width_in,
        PLOT_IN / height,
    )
    axes = drawing.add_axes(place)
    if empty:
        axes.remove()
    return drawing, axes


def _legend_columns(labels: Sequence[str]) -> int:
    return 1 if any(len(label) > LEGEND_CHARS_MAX for label in labels) else 2


def _legend_rows(labels: Sequence[str]) -> int:
    return ceil(len(labels) / _legend_columns(labels)) if len(labels) > 1 else 0


def _legend(
    drawing: Drawing, handles: Sequence[Line2D], labels: Sequence[str], sides: Sequence[int]
) -> None:
    if len(labels) < 2:  # the title says what a single line is
        return
    made = drawing.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(LEFT_IN / WIDTH_IN - 0.02, 0),
        ncols=_legend_columns(labels),
        fontsize=FONT_PT - 0.5,
        borderpad=0,
        borderaxespad=0.1,
        handlelength=2.2,
        labelspacing=0.35,
    )
    for handle, text, side in zip(made.legend_handles, made.get_texts(), sides, strict=True):
        note(text, (), side)
        if handle is not None:
            note(handle, (), side)


def _finish(drawing: Drawing, axes: Axes, x_label: str, y_label: str) -> None:
    axes.patch.set_visible(False)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label, rotation=0, ha="left", va="bottom")
    axes.yaxis.set_label_coords(0.012, 1.03, transform=_beside(drawing, axes))


def _beside(drawing: Drawing, axes: Axes) -> mpl.transforms.Transform:
    """Return figure coordinates across and axes coordinates upwards."""
    return mpl.transforms.blended_transform_factory(drawing.transFigure, axes.transAxes)
