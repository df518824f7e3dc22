"""Figures -> PNG files: the drawings of the page, on white, with their titles."""

import io
from collections.abc import Iterable, Iterator
from textwrap import wrap

from matplotlib.figure import Figure as Drawing

from kvbench.report.dot_figure import draw_dots_with
from kvbench.report.figures import FONT_PT, draw_with
from kvbench.report.heat_figure import draw_heat_with
from kvbench.report.model import DotPanel, Figure, HeatPanel, Panel
from kvbench.report.timeline_figure import draw_timeline_with
from kvbench.report.timeline_model import TimelinePanel

DPI = 192  # twice that of a common screen
GRID = "#d8dce1"
INCH_PER_CHARACTER = 0.077
DESCRIPTION_CHARS_MAX = 4000


def file_names(figure: Figure) -> tuple[str, ...]:
    """Return the name of each panel's file; they depend on the figure's id alone."""
    if len(figure.panels) == 1:
        return (f"{figure.figure_id}.png",)
    return tuple(f"{figure.figure_id}-panel{n}.png" for n in range(1, len(figure.panels) + 1))


def pngs_of(figure: Figure) -> Iterator[tuple[str, bytes]]:
    """Yield (file name, PNG) for each panel of ``figure``."""
    for name, panel in zip(file_names(figure), figure.panels, strict=True):
        yield name, draw_png(panel, figure.title)


def of_figures(figures: Iterable[Figure]) -> Iterator[tuple[str, bytes]]:
    """Yield (file name, PNG) for each panel of each of ``figures``."""
    for figure in figures:
        yield from pngs_of(figure)


def draw_png(panel: Panel, heading: str) -> bytes:
    """Return ``panel`` as PNG; ``heading`` stands above its title unless it says the same."""

    def save(drawing: Drawing, title: str, description: str) -> bytes:
        above = () if heading in title else (heading,)
        marked = (panel.mark,) if panel.mark else ()
        return to_png(drawing, (*above, title, *marked), description)

    match panel:
        case HeatPanel():
            return draw_heat_with(panel, save)
        case DotPanel():
            return draw_dots_with(panel, save)
        case TimelinePanel():
            return draw_timeline_with(panel, save)
        case _:
            return draw_with(panel, save)


def to_png(drawing: Drawing, titles: tuple[str, ...], description: str) -> bytes:
    """Return ``drawing`` as PNG on white, its titles above it, its description inside the file."""
    width, height = drawing.get_size_inches()
    for axes in drawing.axes:
        axes.tick_params(grid_color=GRID)
    drawing.patch.set_visible(True)
    chars = max(30, int(width / INCH_PER_CHARACTER))
    lines = [line for title in titles for line in wrap(title, chars)]
    drawing.text(
        0.012,
        1 + 0.04 / height,
        "\n".join(lines),
        ha="left",
        va="bottom",
        fontsize=FONT_PT + 0.5,
        fontweight="bold",
    )
    buffer = io.BytesIO()
    drawing.savefig(
        buffer,
        format="png",
        dpi=DPI,
        facecolor="white",
        bbox_inches="tight",
        pad_inches=0.08,
        metadata={
            "Title": " / ".join(titles),
            "Description": description[:DESCRIPTION_CHARS_MAX],
            "Software": None,
        },
    )
    return buffer.getvalue()
