"""HeatPanel -> a drawing, for files outside a page, where the matrix is a table."""

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from kvbench.report.figures import FONT_PT, Save, T, drawing_style
from kvbench.report.model import HeatPanel
from kvbench.report.svg import INK

CELL_IN = (1.4, 0.46)
NAME_IN, HEAD_IN, EDGE_IN = 1.7, 0.4, 0.1
CHARS = 20  # of a name beside its row
# As in report.css; ink on each is above 4.5 to 1.
SHADES = ("#f2f6fa", "#d9e7f3", "#b3d0e8", "#84b4d9", "#f2a65a")
NONE = "#ffffff"


def draw_heat_with(panel: HeatPanel, save: Save[T]) -> T:
    """Return what ``save`` makes of the drawing of ``panel``; every cell has its number."""
    columns, rows = len(panel.columns), len(panel.rows)
    width = NAME_IN + columns * CELL_IN[0] + EDGE_IN
    key_in = 0.3 if panel.key else 0.0
    height = HEAD_IN + rows * CELL_IN[1] + EDGE_IN + key_in
    with drawing_style() as new:
        drawing, _ = new((), height_in=height, width_in=width, empty=True)
        axes = drawing.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)  # rows downwards, as in a table
        _text(axes, 0.05, HEAD_IN / 2, panel.corner, bold=True)
        for place, name in enumerate(panel.columns):
            _text(axes, _left(place) + CELL_IN[0] / 2, HEAD_IN / 2, name, ha="center", bold=True)
        for row, (name, below, cells) in enumerate(panel.rows):
            top = HEAD_IN + row * CELL_IN[1]
            _text(axes, 0.05, top + 0.16, name, bold=True)
            _text(axes, 0.05, top + 0.33, below, small=True)
            for place, cell in enumerate(cells):
                _box(axes, (_left(place), top), CELL_IN, cell.level)
                middle = _left(place) + CELL_IN[0] / 2
                _text(axes, middle, top + 0.16, cell.text, ha="center", bold=True)
                _text(axes, middle, top + 0.33, cell.detail, ha="center", small=True)
        for place, (level, words) in enumerate(panel.key):
            left = 0.05 + place * (width - 0.1) / len(panel.key)
            _box(axes, (left, height - key_in), (0.16, 0.16), level)
            _text(axes, left + 0.21, height - key_in + 0.08, words, small=True)
        return save(drawing, panel.title, panel.description)


def _left(column: int) -> float:
    return NAME_IN + column * CELL_IN[0]


def _box(
    axes: Axes, corner: tuple[float, float], size: tuple[float, float], level: int | None
) -> None:
    colour = NONE if level is None else SHADES[min(level, len(SHADES) - 1)]
    axes.add_patch(Rectangle(corner, *size, facecolor=colour, edgecolor=INK, linewidth=0.4))


def _text(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    *,
    ha: str = "left",
    bold: bool = False,
    small: bool = False,
) -> None:
    shown = text if len(text) <= CHARS + 8 else f"{text[: CHARS + 7]}…"
    axes.text(
        x,
        y,
        shown,
        ha=ha,
        va="center",
        fontsize=FONT_PT - (2.5 if small else 1),
        fontweight="bold" if bold else "normal",
    )
