"""ReportView -> one self-contained HTML page.  Every text is escaped; nothing is loaded."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from kvbench.report.dot_figure import draw_dots
from kvbench.report.figures import draw
from kvbench.report.model import DotPanel, Figure, HeatPanel, Panel, ReportView
from kvbench.report.timeline_figure import draw_timeline
from kvbench.report.timeline_model import TimelinePanel

HERE = Path(__file__).parent
TEMPLATE = "report.html.j2"
STYLES = ("report.css", "roles.css", "health.css")
SCRIPT = "report.js"


def render(view: ReportView) -> str:
    """Return the page as text: one file, whole without its script, nothing to fetch."""
    return (
        environment()
        .get_template(TEMPLATE)
        .render(
            view=view,
            css=Markup(styles(STYLES)),  # noqa: S704 - our own files
            drawings={figure.figure_id: drawings(figure) for figure in figures_of(view)},
            notes={doubt.mark: doubt.text for doubt in view.doubts if doubt.mark},
        )
    )


def figures_of(view: ReportView) -> list[Figure]:
    """Return every figure of a report, in no order that means anything."""
    figures = [figure for role in view.roles for figure in role.figures]
    if view.reload is not None and view.reload.figure is not None:
        figures.append(view.reload.figure)
    if view.preparation is not None and view.preparation.figure is not None:
        figures.append(view.preparation.figure)
    if view.health is not None and view.health.figure is not None:
        figures.append(view.health.figure)
    if view.ceilings is not None:
        figures.append(view.ceilings)
    return figures


@cache
def environment() -> Environment:
    """Return what renders the templates of this folder: everything is escaped.

    There is one, which compiles each template once.

    A template that puts ``script`` into a page allows that text alone, by ``script_policy``.
    """
    made = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (HERE / SCRIPT).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    made.globals["script"] = Markup(script)  # noqa: S704 - our own file
    made.globals["script_policy"] = f"script-src 'sha256-{digest}'"
    return made


def styles(names: Sequence[str]) -> str:
    """Return the style sheets of these names as one text."""
    return "\n".join((HERE / name).read_text(encoding="utf-8") for name in names)


def drawings(figure: Figure) -> tuple[Markup, ...]:
    """Return one piece of markup per panel; the drawing itself escapes its texts.

    A matrix is a table of the page, so nothing is drawn of it.
    """
    return tuple(
        _drawing(panel, f"{figure.figure_id}-{number}")
        for number, panel in enumerate(figure.panels)
    )


def _drawing(panel: Panel, figure_id: str) -> Markup:
    match panel:
        case HeatPanel():
            return Markup("")
        case DotPanel():
            return Markup(draw_dots(panel, figure_id))  # noqa: S704 - built as XML
        case TimelinePanel():
            return Markup(draw_timeline(panel, figure_id))  # noqa: S704 - built as XML
        case _:
            return Markup(draw(panel, figure_id))  # noqa: S704 - built as XML
