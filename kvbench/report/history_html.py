"""HistoryView -> one self-contained HTML page.  Every text is escaped; nothing is loaded."""

from markupsafe import Markup

from kvbench.report.history_model import HistoryView, trends_of
from kvbench.report.html import environment, styles
from kvbench.report.trend_figure import draw_trend

TEMPLATE = "history.html.j2"
STYLES = ("report.css", "compare.css", "history.css")


def render(view: HistoryView) -> str:
    """Return the page as text: one file, no script, no network, no fonts to fetch."""
    return (
        environment()
        .get_template(TEMPLATE)
        .render(
            view=view,
            css=Markup(styles(STYLES)),  # noqa: S704 - our own files
            drawings={
                trend.figure_id: Markup(  # noqa: S704 - built as XML
                    draw_trend(trend.panel, trend.figure_id)
                )
                for trend in trends_of(view)
                if trend.panel is not None
            },
        )
    )
