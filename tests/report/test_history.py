"""A drive's history as a page, as text and as a table."""

import csv
import io
import math

import pytest
from msgspec.structs import replace

from kvbench.compare.policy import find_policy
from kvbench.gate.history import History, LeftOut, history_of
from kvbench.measure.model import MeasuredRun
from kvbench.report import history_csv, history_html, history_text, history_view
from kvbench.report.columns import width
from kvbench.report.history_model import HistoryView, TrendPanel
from kvbench.report.trend_figure import draw_trend
from tests.report.page import Page
from tests.report.sides import SMALL, drive

HOSTILE = "<script>alert(1)</script>\"'|`=1+1` $x^2$ \u202egnp\x1b[31m\x00{{ 7 * 7 }}\nnext"


def runs_of(*steps: tuple[float, str, str]) -> list[MeasuredRun]:
    """Runs of one drive: (slower, firmware, kernel) each, a day apart."""
    made = []
    for n, (slower, firmware, kernel) in enumerate(steps):
        run = drive(
            f"h{n}",
            serial="S1",
            slower=slower,
            jitter=n,
            firmware=firmware,
            kernel=kernel,
            workloads=SMALL[1:],
        )
        record = replace(run.record, created_at=f"2026-03-{n + 1:02d}T10:00:00+00:00")
        made.append(replace(run, record=record))
    return made


def history(runs: list[MeasuredRun], *left_out: LeftOut) -> History:
    return history_of(runs, find_policy(None, "gate"), serial="S1", left_out=left_out)


RUNS = runs_of((1.0, "FW1", "6.1"), (1.25, "FW2", "6.1"), (1.0, "FW2", "6.9"), (1.0, "FW3", "6.1"))


@pytest.fixture(scope="module")
def view() -> HistoryView:
    return history_view.build(history(RUNS), RUNS)


def panels(view: HistoryView) -> list[TrendPanel]:
    return [
        trend.panel
        for role in view.roles
        for workload in role.workloads
        for metric in workload.metrics
        for trend in metric.trends
        if trend.panel is not None
    ]


def test_the_first_line_says_in_which_run_how_much_changed(view: HistoryView) -> None:
    numbers = len(panels(view))
    assert view.verdict.startswith(f"4 runs on firmware FW1, FW2, FW3, {numbers} numbers: changes ")
    assert "in run 2 (FW2): " in view.verdict
    assert "1 run may be held against no earlier one." in view.verdict
    assert view.state == "bad"


def test_changes_stand_with_size_interval_and_both_medians(view: HistoryView) -> None:
    assert [pair.where for pair in view.changes] == [
        "run 2 (FW2) to run 4 (FW3)",
        "run 1 (FW1) to run 2 (FW2)",
    ]
    row = view.changes[1].rows[0]
    assert row.called == "WORSE"
    assert " to " in row.values
    assert row.change.endswith("%)")


def test_points_are_joined_only_where_one_was_held_against_the_other(view: HistoryView) -> None:
    for panel in panels(view):
        assert [point.joined for point in panel.points] == [None, 1, None, 2]
        assert panel.firmware == ((1, "FW1"), (2, "FW2"), (4, "FW3"))
    assert [one.split(",")[0] for one in view.apart] == [
        "run 3 is not held against run 2",
        "run 4 is not held against run 3",
    ]


def test_numbers_stand_along_the_sweep(view: HistoryView) -> None:
    (role,) = view.roles
    metric = role.workloads[0].metrics[0]
    assert [trend.point for trend in metric.trends] == ["depth 1", "depth 2", "depth 4", "depth 8"]


def test_a_drawing_marks_what_is_called_and_says_it_in_words(view: HistoryView) -> None:
    panel = panels(view)[0]
    svg = draw_trend(panel, "trend-1")
    assert panel.points[1].change in svg
    assert "WORSE in run 2 (FW2)" in svg
    quiet = replace(
        panel,
        points=tuple(replace(p, called="", change="", says="") for p in panel.points),
        description="",
    )
    assert panel.points[1].change not in draw_trend(quiet, "trend-1")


def test_the_page_is_whole_and_loads_nothing(view: HistoryView) -> None:
    source = history_html.render(view)
    page = Page(source)
    assert page.problems == []
    assert page.foreign_scripts() == []
    assert "http" not in source.replace("http-equiv", "")
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.elements:
        if tag == "a":
            assert attributes["href"].removeprefix("#") in ids
    assert len(page.named("svg")) == len(panels(view))


def hostile() -> list[MeasuredRun]:
    runs = runs_of((1.0, HOSTILE, "6.1"), (1.25, "x" * 10_000, "6.1"), (1.0, HOSTILE, HOSTILE))
    return [
        replace(run, record=replace(run.record, label=HOSTILE, caveats=(HOSTILE,))) for run in runs
    ]


def test_hostile_names_are_text_in_the_page() -> None:
    runs = hostile()
    found = history(runs, LeftOut(run_id=HOSTILE, reason=HOSTILE))
    source = history_html.render(history_view.build(found, runs))
    page = Page(source)
    assert page.problems == []
    assert page.foreign_scripts() == []
    assert not set("\x00\x1b\u202e") & set(source)
    assert "{{ 7" in page.text()


@pytest.mark.parametrize("every_run", [False, True])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_text_keeps_to_100_columns_whatever_the_names(every_run: bool, ascii_only: bool) -> None:
    runs = hostile()
    found = history(runs, LeftOut(run_id=HOSTILE, reason=HOSTILE))
    view = history_view.build(found, runs, figures=False)
    text = history_text.render(view, every_run=every_run, ascii_only=ascii_only)
    for line in text.splitlines():
        assert line.isprintable()
        assert width(line) <= 100
    assert text.isascii() or not ascii_only


def test_text_of_every_run_has_every_value(view: HistoryView) -> None:
    text = history_text.render(view, every_run=True)
    for role in view.roles:
        for workload in role.workloads:
            for metric in workload.metrics:
                for trend in metric.trends:
                    assert len(trend.values) == 4
                    assert all(row.value in text and row.detail in text for row in trend.values)


def test_the_table_has_a_row_per_number_and_run() -> None:
    found = history(RUNS)
    rows = list(csv.DictReader(io.StringIO(history_csv.to_csv(found))))
    assert len(rows) == sum(len(series.points) for series in found.series)
    assert tuple(rows[0]) == history_csv.COLUMNS
    worse = [row for row in rows if row["called"] == "WORSE"]
    assert worse
    for row in worse:
        assert (row["run"], row["against"], row["verdict"]) == ("2", "1", "WORSE")
        assert row["change"] == "ratio"
        assert float(row["estimate"]) > 0


def test_the_largest_change_comes_first(view: HistoryView) -> None:
    for pair in view.changes:
        sizes = [
            abs(math.log1p(float(row.change.split(" %")[0]) / 100))
            for row in pair.rows
            if row.called == pair.rows[0].called
        ]
        assert sizes == sorted(sizes, reverse=True)
        assert len(set(sizes)) > 1


def test_a_point_says_its_run_its_value_with_interval_and_n_and_what_was_called(
    view: HistoryView,
) -> None:
    panel = next(p for p in panels(view) if any(point.called == "WORSE" for point in p.points))
    first, second = panel.points[:2]
    assert first.says.startswith("run 1 FW1\n")
    assert first.says.endswith("n=8)")
    assert "\nWORSE " in second.says
    svg = draw_trend(panel, "t")
    for point in panel.points:
        assert f"<title>{point.says}</title>" in svg
