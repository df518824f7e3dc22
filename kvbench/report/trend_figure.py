"""TrendPanel -> SVG: one small drawing of a metric over the runs of a drive."""

import re
from collections.abc import Iterator, Sequence
from math import nan
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from kvbench.report.figures import FONT_PT, Save, T, drawing_style
from kvbench.report.history_model import HistoryView, TrendPanel, TrendPoint, trends_of
from kvbench.report.hover import note
from kvbench.report.png import to_png
from kvbench.report.scales import tick
from kvbench.report.svg import INK, PALETTE, svg_named

WIDTH_IN, HEIGHT_IN = 3.3, 1.75
LEFT_IN, RIGHT_IN, TOP_IN, BOTTOM_IN = 0.66, 0.12, 0.24, 0.36
SHARE_MIN = 0.12  # of the median, either side: what is smaller looks as small as it is
RUN_TICKS_MAX = 8
NAME_CHARS_MAX = 60
_UNFIT = re.compile(r"[^a-z0-9]+")
CHARACTER_IN = 0.08  # of a firmware's name
LINE, GREY = PALETTE[0], PALETTE[6]
CALLED = {"WORSE": ("v", PALETTE[1]), "BETTER": ("^", PALETTE[2])}


def draw_trend(panel: TrendPanel, figure_id: str) -> str:
    """Return ``panel`` as SVG text; ``figure_id`` is unique in its page."""
    return draw_trend_with(panel, svg_named(figure_id, panel.mark))


def trend_pngs(view: HistoryView) -> Iterator[tuple[str, bytes]]:
    """Yield (file name, PNG) for each number that is drawn; a number keeps its name."""
    for trend in trends_of(view):
        if trend.panel is not None:
            words = _UNFIT.sub("-", trend.panel.title.lower()).strip("-")[:NAME_CHARS_MAX]
            yield f"{words}-{trend.figure_id}.png", _png(trend.panel)


def _png(panel: TrendPanel) -> bytes:
    titles = (panel.title, panel.mark) if panel.mark else (panel.title,)
    return draw_trend_with(panel, lambda drawing, _, words: to_png(drawing, titles, words))


def draw_trend_with(panel: TrendPanel, save: Save[T]) -> T:
    """Return what ``save`` makes of the drawing."""
    with drawing_style() as new:
        drawing, _ = new((), height_in=HEIGHT_IN, width_in=WIDTH_IN, empty=True)
        axes = drawing.add_axes(
            (
                LEFT_IN / WIDTH_IN,
                BOTTOM_IN / HEIGHT_IN,
                (WIDTH_IN - LEFT_IN - RIGHT_IN) / WIDTH_IN,
                (HEIGHT_IN - TOP_IN - BOTTOM_IN) / HEIGHT_IN,
            )
        )
        axes.patch.set_visible(False)
        _scales(axes, panel)
        _firmware(axes, panel)
        _values(axes, panel.points, panel.runs)
        if panel.missing:
            axes.plot(
                panel.missing,
                [0.04] * len(panel.missing),
                "x",
                color=GREY,
                markersize=4,
                transform=axes.get_xaxis_transform(),
            )
        return save(drawing, panel.title, panel.description)


def _scales(axes: Axes, panel: TrendPanel) -> None:
    ends = [v for p in panel.points for v in (p.median, p.low, p.high) if v is not None]
    low, high = min(ends), max(ends)
    middle = (low + high) / 2
    room = 1.6 if any(point.called for point in panel.points) else 1.25  # for what is written
    half = max((high - low) / 2 * room, abs(middle) * SHARE_MIN) or 1.0
    axes.set_ylim(middle - half, middle + half)
    axes.set_xlim(0.5, max(panel.runs, 2) + 0.5)
    axes.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value, panel.unit)))
    step = -(-panel.runs // RUN_TICKS_MAX)
    axes.xaxis.set_major_locator(FixedLocator(list(range(1, panel.runs + 1, step))))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0f}"))
    axes.grid(visible=False, axis="x")
    axes.tick_params(axis="both", length=2, labelsize=FONT_PT - 1)
    axes.set_xlabel("run", fontsize=FONT_PT - 1, labelpad=1)


def _firmware(axes: Axes, panel: TrendPanel) -> None:
    """Draw a rule where a firmware revision begins, and its name where that has room."""
    run_in = (WIDTH_IN - LEFT_IN - RIGHT_IN) / max(panel.runs, 2)
    ends = [*(run for run, _ in panel.firmware[1:]), max(panel.runs, 2) + 1]
    rules = [(run - 0.5, 0.0, 1.0) for run, _ in panel.firmware[1:]]
    if rules:
        _strokes(
            axes,
            rules,
            transform=axes.get_xaxis_transform(),
            color=INK,
            linewidth=0.7,
            linestyle=":",
        )
    for (run, revision), end in zip(panel.firmware, ends, strict=False):
        if len(revision) * CHARACTER_IN <= (end - run) * run_in:
            axes.annotate(
                revision,
                (run - 0.45, 1.02),
                xycoords=axes.get_xaxis_transform(),
                ha="left",
                va="bottom",
                fontsize=FONT_PT - 1.5,
            )


def _values(axes: Axes, points: tuple[TrendPoint, ...], runs: int) -> None:
    """Draw few artists, whatever the number of runs: each costs time and room in the page."""
    at = {point.run: point for point in points}
    joined = [(at[p.joined], p) for p in points if p.joined in at]
    for chain in _chains(joined):
        axes.plot([p.run for p in chain], [p.median for p in chain], color=LINE, linewidth=1.0)
    ranges = [(p.run, p.low, p.high) for p in points if p.low is not None and p.high is not None]
    if ranges:
        _strokes(axes, ranges, color=LINE, linewidth=2.4, alpha=0.4, solid_capstyle="butt")
    for doubted in (False, True):
        own = [p for p in points if p.doubted is doubted]
        (dots,) = axes.plot(
            [p.run for p in own],
            [p.median for p in own],
            "o",
            color=LINE,
            markersize=3.4,
            markerfacecolor="none" if doubted else LINE,
            markeredgewidth=0.9,
        )
        note(dots, [p.says for p in own])
    for point in points:
        if point.called:
            _call(axes, point, at.get(point.joined or 0), runs)


def _strokes(
    axes: Axes,
    spans: Sequence[tuple[float, float, float]],
    **style: Any,  # noqa: ANN401 - what matplotlib knows of lines
) -> None:
    """Draw vertical strokes (x, low, high) as one path, whatever their number."""
    xs = [at for x, _, _ in spans for at in (x, x, nan)]
    ys = [at for _, low, high in spans for at in (low, high, nan)]
    axes.plot(xs, ys, **style)


def _chains(joined: Sequence[tuple[TrendPoint, TrendPoint]]) -> list[list[TrendPoint]]:
    """Return lines as long as they go on from end to end."""
    chains: list[list[TrendPoint]] = []
    for before, point in joined:
        for chain in chains:
            if chain[-1] is before:
                chain.append(point)
                break
        else:
            chains.append([before, point])
    return chains


def _call(axes: Axes, point: TrendPoint, before: TrendPoint | None, runs: int) -> None:
    """Mark a change, its size on the side to which the line went."""
    marker, colour = CALLED[point.called]
    (triangle,) = axes.plot([point.run], [point.median], marker, color=colour, markersize=7)
    note(triangle, [point.says])
    up = before is None or point.median >= before.median
    ends = [v for v in (point.low, point.median, point.high) if v is not None]
    edge = {1: "left", runs: "right"}
    axes.annotate(
        point.change,
        (point.run, max(ends) if up else min(ends)),
        xytext=(0, 4 if up else -4),
        textcoords="offset points",
        ha=edge.get(point.run, "center"),
        va="bottom" if up else "top",
        fontsize=FONT_PT - 1,
        fontweight="bold",
    )
