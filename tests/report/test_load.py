"""Latency against offered load, as data."""

from typing import cast

import pytest
from msgspec.structs import replace

from kvbench.report import text, view
from kvbench.report.load import load_figures
from kvbench.report.model import Figure, LinePanel
from kvbench.report.points import Index
from tests.report.example import LOAD, all_valid, job_texts, make_run


@pytest.fixture(scope="module")
def figure() -> Figure:
    (found,) = load_figures(Index(make_run([LOAD], judge=all_valid)), LOAD, "load-1")
    return found


def panel_of(figure: Figure) -> LinePanel:
    (panel,) = figure.panels
    return cast("LinePanel", panel)


def test_the_shares_are_points_at_the_rate_that_they_achieved(figure: Figure) -> None:
    panel = panel_of(figure)
    assert [one.label for one in panel.series] == ["p50", "p99", "p99.9"]
    assert len(panel.series[0].x) == 5, "neither the peak nor a search step is a point"
    assert list(panel.series[0].x) == sorted(panel.series[0].x)
    assert len(panel.series[0].dots) == 15
    assert panel.x_scale == "linear"


def test_an_overloaded_point_is_hollow(figure: Figure) -> None:
    assert {one.hollow for one in panel_of(figure).series} == {(4,), (len_p999(figure) - 1,)}
    assert [row[-1] for row in figure.table.rows[:6]] == ["no"] * 5 + ["yes"]


def len_p999(figure: Figure) -> int:
    return len(panel_of(figure).series[2].x)


def test_the_limit_the_peak_and_the_usable_rate_are_marked(figure: Figure) -> None:
    rules = {rule.short_label: rule for rule in panel_of(figure).rules}
    assert set(rules) == {"limit of p99.9", "peak", "usable"}
    assert rules["limit of p99.9"].value == pytest.approx(1e-3)
    usable = rules["usable"]
    assert usable.low is not None
    assert usable.high is not None
    assert usable.low <= usable.value <= usable.high
    assert any("Usable IOPS" in row[0] for row in figure.table.rows)


def test_without_a_usable_rate_the_curve_is_drawn_all_the_same() -> None:
    run = make_run([LOAD], judge=all_valid)
    kept = tuple(s for s in run.summaries if not s.metric.startswith("usable"))
    (figure,) = load_figures(Index(replace(run, summaries=kept)), LOAD, "load-1")
    assert {rule.short_label for rule in panel_of(figure).rules} == {"limit of p99.9", "peak"}


def test_a_run_without_numbers_has_no_figure() -> None:
    run = make_run([LOAD], end="interrupted", cells_done=0)
    assert load_figures(Index(run), LOAD, "load-1") == ()


def test_the_rows_say_where_on_the_curve_they_stand() -> None:
    run = make_run([LOAD], judge=all_valid)
    report = view.build(run, job_texts(run))
    (group,) = report.roles[0].tables[0].groups
    assert [row.setting for row in group.rows] == [
        "peak",
        *(f"{percent} % of the peak" for percent in (10, 30, 50, 70, 90)),
    ]
    assert "open loop, depth up to 512" in group.rows[1].parameters
    assert "open loop" not in group.rows[0].parameters
    assert "6 that searched for the usable rate" in report.verdict
    shown = text.render(report)
    assert "30 % of the peak: 4 KiB random" in shown
    assert "Usable IOPS 6" in shown


def test_a_number_of_the_whole_curve_is_not_missing_elsewhere() -> None:
    run = make_run([LOAD], judge=all_valid)
    (table,) = view.build(run, job_texts(run)).roles[0].tables
    place = [column.metric for column in table.columns].index("usable_iops")
    values = [row.values[place] for row in table.groups[0].rows]
    assert values[0] is not None
    assert values[0].known
    assert values[1:] == [None] * 5


def test_a_usable_rate_that_nobody_measured_is_missing_in_words() -> None:
    run = make_run([LOAD], judge=all_valid)
    kept = tuple(s for s in run.summaries if s.metric != "usable_iops")
    (table,) = view.build(replace(run, summaries=kept), {}).roles[0].tables
    place = [column.metric for column in table.columns].index("usable_iops")
    value = table.groups[0].rows[0].values[place]
    assert value is not None
    assert not value.known


def test_a_single_rate_makes_no_curve() -> None:
    run = make_run([LOAD], judge=all_valid)
    shares = ["10 %", "30 %", "50 %", "70 %", "90 %"]
    for count, figures in ((1, 0), (2, 1)):
        lost = shares[count:]
        kept = tuple(
            s
            for s in run.summaries
            if not (s.parameters.get("load") in lost and s.metric.startswith("latency"))
        )
        found = load_figures(Index(replace(run, summaries=kept)), LOAD, "load-1")
        assert len(found) == figures
