"""A drive's history as a page, as text and as a table."""

import csv
import io
import math
import re

import pytest
from msgspec.structs import replace

from kvbench.compare.policy import find_policy
from kvbench.gate.history import History, LeftOut, history_of
from kvbench.measure.model import MeasuredRun
from kvbench.report import (
    history_csv,
    history_html,
    history_markdown,
    history_text,
    history_view,
    markdown,
)
from kvbench.report.columns import width
from kvbench.report.history_model import HistoryView, TrendPanel, trends_of
from kvbench.report.trend_figure import draw_trend, trend_pngs
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


def many(numbers: int, count: int) -> HistoryView:
    """A history of about ``numbers`` numbers over ``count`` runs; every tenth has new firmware."""
    base = runs_of((1.0, "FW0", "6.1"))[0]
    runs = []
    for n in range(count):
        day = f"2026-{1 + n // 28:02d}-{1 + n % 28:02d}T10:00:00+00:00"
        facts = tuple(
            replace(fact, value=f"FW{n // 10}") if fact.name == "device_firmware" else fact
            for fact in base.record.facts
        )
        shift = 1.0 if n < count // 2 else 1.3
        summaries = tuple(
            replace(
                summary,
                values=tuple(v * shift * (1 + (n + k) % 7 / 1000) for k, v in enumerate(s)),
                median=shift * summary.median,
                low=shift * min(s),
                high=shift * max(s),
            )
            if summary.median is not None and (s := summary.values)
            else summary
            for summary in base.summaries
        )
        record = replace(base.record, run_id=f"h{n}", created_at=day, facts=facts)
        runs.append(replace(base, record=record, summaries=summaries))
    found = history(runs)
    again = -(-numbers // len(found.series))
    series = [
        replace(one, key=replace(one.key, parameters={**one.key.parameters, "jobs": k + 1}))
        for k in range(again)
        for one in found.series
    ]
    return history_view.build(replace(found, series=tuple(series)), runs)


@pytest.fixture(scope="module")
def large() -> HistoryView:
    return many(200, 50)


@pytest.fixture(scope="module")
def source(large: HistoryView) -> str:
    return history_html.render(large)


def test_a_page_of_50_runs_and_200_numbers_is_well_under_3_mb(
    large: HistoryView, source: str
) -> None:
    page = Page(source)
    assert page.problems == []
    drawn = len(page.named("svg"))
    assert drawn * 50 <= history_view.POINTS_MAX
    assert drawn + large.undrawn >= 200
    assert len(source.encode()) < 2_500_000


def test_a_table_without_room_keeps_the_first_the_newest_and_what_changed(
    large: HistoryView, source: str
) -> None:
    trends = list(trends_of(large))
    rows = history_view.ROWS_MAX // len(trends)
    called = 0
    for trend in trends:
        numbers = [row.number for row in trend.values]
        assert len(numbers) == rows
        assert trend.unshown == 50 - rows
        assert numbers == sorted(set(numbers))
        assert {1, 50} <= set(numbers)
        if any(row.called for row in trend.values):
            called += 1
            assert {25, 26} <= set(numbers)
    assert called
    assert "left out, for want of room" in source


def test_a_terminal_has_room_for_every_value() -> None:
    view = history_view.build(history(RUNS), RUNS, figures=False)
    assert all(trend.unshown == 0 and trend.panel is None for trend in trends_of(view))


def test_ranges_and_rules_are_one_path_each_whatever_the_number_of_runs(large: HistoryView) -> None:
    panel = next(trend.panel for trend in trends_of(large) if trend.panel is not None)
    assert len(panel.points) == 50
    few = replace(panel, points=panel.points[:2], firmware=panel.firmware[:2])
    assert draw_trend(panel, "t").count("<path") <= draw_trend(few, "t").count("<path") + 4


def test_each_drawing_is_a_png_with_its_title_and_its_mark(view: HistoryView) -> None:
    pngs = dict(trend_pngs(view))
    drawn = [trend for trend in trends_of(view) if trend.panel is not None]
    assert len(pngs) == len(drawn)
    for trend, (name, png) in zip(drawn, pngs.items(), strict=True):
        assert re.fullmatch(r"[a-z0-9-]+\.png", name)
        assert name.endswith(f"-{trend.figure_id}.png")
        assert png.startswith(b"\x89PNG\r\n")
        assert trend.panel is not None
        assert trend.panel.title.encode("latin-1", "replace") in png


def test_a_number_keeps_its_place_in_the_page_when_others_come(view: HistoryView) -> None:
    found = history(RUNS)
    part = replace(found, series=found.series[1::2])
    ids = {trend.figure_id for trend in trends_of(view)}
    assert len(ids) == len(found.series)
    fewer = [t.figure_id for t in trends_of(history_view.build(part, RUNS, figures=False))]
    assert len(fewer) == len(part.series)
    assert set(fewer) <= ids


def test_markdown_has_the_verdict_the_changes_and_both_ends_of_every_number(
    view: HistoryView,
) -> None:
    text = history_markdown.of_history(view)
    assert text.startswith(f"**{view.verdict}**\n")
    assert text.count("**WORSE**") == sum(
        change.called == "WORSE" for pair in view.changes for change in pair.rows
    )
    for trend in trends_of(view):
        for row in (trend.values[0], trend.values[-1]):
            assert f"run {row.number}: {row.value}" in text
    assert len(text.encode()) <= markdown.BYTES_MAX


def test_hostile_names_are_text_in_markdown() -> None:
    runs = hostile()
    found = history(runs, LeftOut(run_id=HOSTILE, reason=HOSTILE))
    text = history_markdown.of_history(history_view.build(found, runs, figures=False))
    assert "<script" not in text
    assert not set("\x00\x1b\u202e") & set(text)
