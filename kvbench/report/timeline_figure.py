"""TimelinePanel -> SVG: axes one below the other that share the time."""

from html import escape
from math import ceil

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from kvbench.report.figures import FONT_PT, LEFT_IN, Save, T, drawing_style
from kvbench.report.scales import log_axis, zero_axis
from kvbench.report.svg import INK, PALETTE, svg_named
from kvbench.report.timeline_model import TimeAxis, TimeLine, TimelinePanel
from kvbench.report.words import quantity

WIDTH_IN = 10.4
AXIS_IN, GAP_IN, TOP_IN, BOTTOM_IN, RIGHT_IN = 1.25, 0.42, 0.32, 0.44, 0.12
BAD, CEILING = PALETTE[1], PALETTE[6]
HEAT_ALPHA = 0.75
POINTS_PER_IN = 72.0
MINUTES_FROM_S = 600.0  # from here on the time is in minutes


def draw_timeline(panel: TimelinePanel, figure_id: str) -> str:
    """Return ``panel`` as SVG text; ``figure_id`` is unique in its page."""
    drawn = draw_timeline_with(panel, svg_named(figure_id, panel.mark))
    before, end, after = drawn.rpartition("</svg>")
    return f"{before}{_strips(panel)}{end}{after}"


def _strips(panel: TimelinePanel) -> str:
    """Return what nobody sees and a pointer finds, over all axes; written without matplotlib.

    Hundreds of artists would cost more time than the rest of the drawing.
    """
    if not panel.strips or panel.end_s <= 0:
        return ""
    height = _height_in(panel)
    scale = (WIDTH_IN - LEFT_IN - RIGHT_IN) * POINTS_PER_IN / panel.end_s
    top, bottom = TOP_IN * POINTS_PER_IN, (height - BOTTOM_IN) * POINTS_PER_IN
    rects = (
        f'<path d="M{LEFT_IN * POINTS_PER_IN + strip.begin_s * scale:.2f} {top:.1f}'
        f"h{max(0.3, (strip.end_s - strip.begin_s) * scale):.2f}V{bottom:.1f}"
        f'H{LEFT_IN * POINTS_PER_IN + strip.begin_s * scale:.2f}z">'
        f"<title>{escape(strip.text)}</title></path>"
        for strip in panel.strips
    )
    return f'<g class="strips" fill="none" pointer-events="all">{"".join(rects)}</g>'


def _height_in(panel: TimelinePanel) -> float:
    count = len(panel.axes)
    return TOP_IN + count * AXIS_IN + (count - 1) * GAP_IN + BOTTOM_IN


def draw_timeline_with(panel: TimelinePanel, save: Save[T]) -> T:
    """Return what ``save`` makes of the drawing of ``panel``."""
    count, height = len(panel.axes), _height_in(panel)
    with drawing_style() as new:
        drawing, _ = new((), height_in=height, width_in=WIDTH_IN, empty=True)
        for number, one in enumerate(panel.axes):
            bottom = height - TOP_IN - AXIS_IN - number * (AXIS_IN + GAP_IN)
            place = (
                LEFT_IN / WIDTH_IN,
                bottom / height,
                (WIDTH_IN - LEFT_IN - RIGHT_IN) / WIDTH_IN,
                AXIS_IN / height,
            )
            axes = drawing.add_axes(place)
            _axis(axes, one, panel, last=number == count - 1)
        return save(drawing, panel.title, panel.description)


def _axis(axes: Axes, one: TimeAxis, panel: TimelinePanel, *, last: bool) -> None:
    axes.patch.set_visible(False)
    for band in panel.bands:
        colour, alpha = (BAD, 0.2) if band.level == "bad" else (CEILING, 0.13)
        axes.axvspan(band.begin_s, band.end_s, color=colour, alpha=alpha, lw=0)
    _heat(axes, one)
    for line in one.lines:
        _line(axes, line)
    for mark in panel.marks:
        axes.axvline(mark.at_s, color=BAD, linewidth=1.1)
    values = [value for line in one.lines for _, piece in line.pieces for value in piece]
    values += [edge for strip in one.heat for edge in (strip.low, strip.high)]
    if one.scale == "log":
        log_axis(axes, values, lambda value: quantity("latency_p99", one.unit, value))
        ticks = list(axes.get_yticks())
        axes.yaxis.set_major_locator(FixedLocator(ticks[:: max(1, ceil(len(ticks) / 6))]))
    elif one.scale == "zero":
        zero_axis(axes, values, one.unit)
        axes.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    else:
        low, high = min(values), max(values)
        axes.set_ylim(low - 2, high + 2)  # a steady temperature is a line in the middle
        axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f} {one.unit}"))
    _time(axes, panel.end_s, last=last)
    axes.annotate(one.label, (-0.055, 1.06), xycoords="axes fraction", ha="left", va="bottom")
    axes.legend(
        [Line2D([], [], color=PALETTE[line.colour], linewidth=1.6) for line in one.lines],
        [line.label for line in one.lines],
        loc="lower right",
        bbox_to_anchor=(1.0, 0.99),
        ncols=len(one.lines),
        fontsize=FONT_PT - 0.5,
        borderpad=0,
        borderaxespad=0.2,
        handlelength=1.4,
        columnspacing=1.4,
    )


def _heat(axes: Axes, one: TimeAxis) -> None:
    """Draw where the I/Os lie as strips, darker where there are more of them, as one picture.

    The shade is the fourth root of the share, so that one I/O in a thousand still shows.
    """
    if not one.heat:
        return
    corners = [
        [(s.begin_s, s.low), (s.end_s, s.low), (s.end_s, s.high), (s.begin_s, s.high)]
        for s in one.heat
    ]
    shades = [to_rgba(PALETTE[6], HEAT_ALPHA * strip.share**0.25) for strip in one.heat]
    strips = PolyCollection(corners, facecolors=shades, edgecolors="none", linewidths=0)
    strips.set_rasterized(True)  # thousands of rectangles would be megabytes of text
    axes.add_collection(strips)


def _line(axes: Axes, line: TimeLine) -> None:
    colour = PALETTE[line.colour]
    for at, values in line.pieces:
        if line.steps:
            axes.stairs(values, at, baseline=None, color=colour, linewidth=1.2)
        else:
            axes.plot(at, values, "-", color=colour, linewidth=1.1, marker="o", markersize=1.7)


def _time(axes: Axes, end_s: float, *, last: bool) -> None:
    """Make x the time from the first cell on."""
    unit, scale = ("min", 60.0) if end_s >= MINUTES_FROM_S else ("s", 1.0)
    axes.set_xlim(0, end_s if end_s > 0 else 1)
    steps = MaxNLocator(10, steps=[1, 2, 3, 5, 6, 10]).tick_values(0, max(end_s, 1e-3) / scale)
    axes.xaxis.set_major_locator(FixedLocator([step * scale for step in steps]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / scale:g}" if last else ""))
    axes.tick_params(axis="both", length=2.5)
    if last:
        axes.set_xlabel(f"Time since the first cell began ({unit})", color=INK)
