"""ReportView -> one self-contained HTML page.  Every text is escaped; nothing is loaded."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from kvbench.report.figures import draw
from kvbench.report.model import Figure, ReportView

HERE = Path(__file__).parent
TEMPLATE = "report.html.j2"
STYLE = "report.css"


def render(view: ReportView) -> str:
    """Return the page as text: one file, no script, no network, no fonts to fetch."""
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    figures = [figure for role in view.roles for figure in role.figures]
    return environment.get_template(TEMPLATE).render(
        view=view,
        css=Markup((HERE / STYLE).read_text(encoding="utf-8")),  # noqa: S704 - our own file
        drawings={figure.figure_id: _drawings(figure) for figure in figures},
        notes={doubt.mark: doubt.text for doubt in view.doubts if doubt.mark},
    )


def _drawings(figure: Figure) -> tuple[Markup, ...]:
    """Return one piece of markup per panel; the drawing itself escapes its texts."""
    return tuple(
        Markup(draw(panel, f"{figure.figure_id}-{number}"))  # noqa: S704 - built as XML
        for number, panel in enumerate(figure.panels)
    )
