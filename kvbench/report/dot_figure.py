"""DotPanel -> a drawing: one row per point, its value, and the value that it should stay below."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from kvbench.report.figures import (
    BOTTOM_IN,
    FONT_PT,
    LEGEND_ROW_IN,
    RIGHT_IN,
    WIDTH_IN,
    Save,
    T,
    drawing_style,
)
from kvbench.report.hover import note
from kvbench.report.model import DotPanel, DotRow
from kvbench.report.scales import tick
from kvbench.report.svg import INK, PALETTE, svg_named

ROW_IN, EDGE_IN, SIDE_IN = 0.36, 0.08, 0.16
VALUE, DOUBTED = PALETTE[0], PALETTE[1]
LABEL_CHARS_MAX = 60
DECADES_MIN = 2


def draw_dots(panel: DotPanel, figure_id: str) -> str:
    """Return ``panel`` as SVG text; ``figure_id`` is unique in its page."""
    return draw_dots_with(panel, svg_named(figure_id, panel.mark))


def draw_dots_with(panel: DotPanel, save: Save[T]) -> T:
    """Return what ``save`` makes of the drawing of ``panel``."""
    rows = len(panel.rows)
    height = EDGE_IN + rows * ROW_IN + BOTTOM_IN + LEGEND_ROW_IN
    with drawing_style() as new:
        drawing, _ = new((), height_in=height, empty=True)
        axes = drawing.add_axes(
            (
                SIDE_IN / WIDTH_IN,
                (BOTTOM_IN + LEGEND_ROW_IN) / height,
                (WIDTH_IN - SIDE_IN - RIGHT_IN) / WIDTH_IN,
                rows * ROW_IN / height,
            )
        )
        axes.patch.set_visible(False)
        left = _scale(axes, panel)
        _lines(axes, panel, left)
        for place, row in enumerate(panel.rows):
            _words(axes, place, row)
        _values(axes, panel, left)
        axes.set_xlabel(panel.x_label)
        handles = [
            Line2D([], [], color=VALUE, marker="o", linestyle="", markersize=5),
            Line2D([], [], color=INK, marker="|", linestyle="", markersize=9, markeredgewidth=1.6),
            Line2D([], [], color=DOUBTED, alpha=0.45, linewidth=5),
        ]
        drawing.legend(
            handles,
            ["measured", "the host's ceiling", panel.limit_label],
            loc="lower left",
            bbox_to_anchor=(SIDE_IN / WIDTH_IN - 0.02, 0),
            ncols=3,
            fontsize=FONT_PT - 0.5,
            borderpad=0,
            borderaxespad=0.1,
            handlelength=1.4,
            columnspacing=1.2,
        )
        return save(drawing, panel.title, panel.description)


def _scale(axes: Axes, panel: DotPanel) -> float:
    """Make x logarithmic; return its left end, where a value of zero stands and says so."""
    values = [v for row in panel.rows for v in (row.value, row.end)]
    positive = [value for value in values if value > 0] or [1.0]
    low, high = float(min(positive) / 1.6), float(max(positive) * 1.3)
    if min(values) <= 0:
        low /= 3
    low = min(low, high / 10.0**DECADES_MIN)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    decades = np.log10(high / low)
    axes.xaxis.set_major_locator(LogLocator(10, subs=(1.0,) if decades > 2.5 else (1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value, panel.unit)))
    axes.set_ylim(len(panel.rows) - 0.45, -0.75)
    axes.yaxis.set_major_locator(NullLocator())
    axes.spines["left"].set_visible(False)
    return low


def _lines(axes: Axes, panel: DotPanel, left: float) -> None:
    places = [place + 0.2 for place in range(len(panel.rows))]
    ends, limits = [row.end for row in panel.rows], [row.limit for row in panel.rows]
    axes.hlines(places, left, ends, color=PALETTE[6], linewidth=0.8, alpha=0.6)
    axes.hlines(places, limits, ends, color=DOUBTED, linewidth=5, alpha=0.45)


def _words(axes: Axes, place: int, row: DotRow) -> None:
    across = axes.get_yaxis_transform()
    label = row.label
    if len(label) > LABEL_CHARS_MAX:
        label = f"{label[: LABEL_CHARS_MAX - 1]}\N{HORIZONTAL ELLIPSIS}"
    y = place - 0.18
    small = FONT_PT - 0.5
    axes.text(0, y, label, transform=across, ha="left", va="center", fontsize=small)
    axes.text(1, y, row.text, transform=across, ha="right", va="center", fontsize=small)


def _values(axes: Axes, panel: DotPanel, left: float) -> None:
    places = [place + 0.2 for place in range(len(panel.rows))]
    axes.plot(
        [row.end for row in panel.rows],
        places,
        "|",
        color=INK,
        markersize=8,
        markeredgewidth=1.6,
    )
    shown = [row.value if row.value > 0 else left for row in panel.rows]
    (dots,) = axes.plot(shown, places, "o", color=VALUE, markersize=5, clip_on=False)
    note(dots, [row.says for row in panel.rows])
    for place, row in enumerate(panel.rows):
        if row.value <= 0:  # a log axis has no zero; it stands at the edge by its name
            axes.annotate(
                "0",
                (left, place + 0.2),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=FONT_PT - 1,
            )
