"""CompareView -> one self-contained HTML page.  Every text is escaped; nothing is loaded."""

from markupsafe import Markup

from kvbench.report.compare_model import CompareView
from kvbench.report.html import drawings, environment, styles

TEMPLATE = "compare.html.j2"
STYLES = ("report.css", "roles.css", "compare.css")


def render(view: CompareView) -> str:
    """Return the page as text: one file, no script, no network, no fonts to fetch."""
    figures = [figure for role in view.roles for figure in role.figures]
    return (
        environment()
        .get_template(TEMPLATE)
        .render(
            view=view,
            css=Markup(styles(STYLES)),  # noqa: S704 - our own files
            drawings={figure.figure_id: drawings(figure) for figure in figures},
            notes={doubt.mark: doubt.text for doubt in view.doubts if doubt.mark},
        )
    )
