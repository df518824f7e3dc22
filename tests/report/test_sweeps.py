"""Numbers against submitters and against the span, as data."""

from typing import cast

from msgspec.structs import replace

from kvbench.measure.model import MeasuredRun
from kvbench.report.model import Figure, LinePanel
from kvbench.report.points import Index
from kvbench.report.sweeps import sweep_figures
from kvbench.units import GIB, MIB
from kvbench.workload.schema import Workload
from tests.report.example import FANOUT, SPAN, all_valid, ladder, make_run


def figures_of(workload: Workload, run: MeasuredRun | None = None) -> tuple[Figure, ...]:
    return sweep_figures(Index(run or make_run([workload], judge=all_valid)), workload, "sweep-1")


def panel_of(figure: Figure) -> LinePanel:
    (panel,) = figure.panels
    return cast("LinePanel", panel)


def test_fan_out_is_one_rate_against_submitters() -> None:
    (figure,) = figures_of(FANOUT)
    panel = panel_of(figure)
    assert [one.label for one in panel.series] == ["512 B", "4 KiB"]
    assert panel.series[0].x == (1.0, 2.0, 4.0, 8.0, 16.0)
    assert panel.from_zero
    assert "submitters" in panel.x_label
    assert "IOPS over fewer jobs" in figure.table.head


def test_two_counts_of_submitters_are_no_question_of_their_own() -> None:
    assert ["queue depth" in figure.title for figure in figures_of(ladder())] == [True]


def test_the_span_is_drawn_once_per_size_and_depth_with_its_knee() -> None:
    (figure,) = figures_of(SPAN)
    panel = panel_of(figure)
    assert [one.label for one in panel.series] == [
        "512 B, depth 1",
        "512 B, depth 128",
        "4 KiB, depth 1",
        "4 KiB, depth 128",
    ]
    assert panel.series[0].x == tuple(map(float, (64 * MIB, 256 * MIB, GIB, 2 * GIB, 4 * GIB)))
    (knee,) = panel.rules
    assert (knee.axis, knee.value, knee.short_label) == ("x", float(GIB), "knee of 2 lines")
    assert "knee of 512 B, depth 1: 1 GiB" in knee.label
    assert {"p50 over smallest span", "Span of the knee"} <= set(figure.table.head)


def test_without_a_knee_nothing_is_marked() -> None:
    run = make_run([SPAN], judge=all_valid)
    flat = tuple(
        replace(s, median=None, values=(), reason="the median latency does not rise")
        if s.metric == "span_knee"
        else s
        for s in run.summaries
    )
    (figure,) = figures_of(SPAN, replace(run, summaries=flat))
    assert panel_of(figure).rules == ()
