"""GateView -> one self-contained HTML page.  Every text is escaped; nothing is loaded."""

from markupsafe import Markup

from kvbench.report.gate_model import GateView
from kvbench.report.html import environment, styles
from kvbench.report.words import sentence

TEMPLATE, ERROR_TEMPLATE = "gate.html.j2", "gate_error.html.j2"
STYLES = ("report.css", "roles.css", "compare.css", "gate.css")


def render(view: GateView) -> str:
    """Return the page as text: one file, whole without its script, nothing to fetch."""
    return (
        environment()
        .get_template(TEMPLATE)
        .render(
            view=view,
            css=Markup(styles(STYLES)),  # noqa: S704 - our own files
            notes={doubt.mark: doubt.text for doubt in view.doubts if doubt.mark},
        )
    )


def of_error(message: str) -> str:
    """Return a page that says that the gate came to no verdict, so that no old one is read."""
    return (
        environment()
        .get_template(ERROR_TEMPLATE)
        .render(
            message=sentence(message),
            css=Markup(styles(STYLES)),  # noqa: S704 - our own files
        )
    )
