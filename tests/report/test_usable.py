"""The usable rate beside the peak, as data."""

from typing import cast

from msgspec.structs import replace

from kvbench.report.model import BarPanel
from kvbench.report.points import Index
from kvbench.report.usable import usable_figure
from kvbench.units import KIB
from kvbench.workload.schema import SweepAxis, Workload
from tests.report.example import LOAD, all_valid, make_run

SIZES = SweepAxis(stream="read", field="block_size", values=(512, 4 * KIB))
TWO = replace(LOAD, sweep=(SIZES,))


def index_of(*workloads: Workload) -> Index:
    return Index(make_run(workloads, judge=all_valid))


def test_each_curve_has_its_peak_and_its_usable_rate() -> None:
    index = index_of(TWO)
    figure = usable_figure(index, "memory")
    assert figure is not None
    (panel,) = figure.panels
    groups = cast("BarPanel", panel).groups
    assert [group.label for group in groups] == ["512 B", "4 KiB"]
    for group in groups:
        peak, usable = group.bars
        assert (peak.label, usable.label) == ("peak", "usable")
        assert peak.median is not None
        assert usable.median is not None
        assert 0 < usable.median < peak.median
        assert len(usable.dots) == 3
    assert "p99.9 within 1.00 ms" in figure.question
    assert [row[0] for row in figure.table.rows] == ["512 B", "4 KiB"]


def test_one_curve_marks_both_rates_itself_and_needs_no_figure() -> None:
    assert usable_figure(index_of(LOAD), "memory") is None


def test_a_role_without_load_curves_has_no_figure() -> None:
    assert usable_figure(index_of(TWO), "capacity") is None


def test_a_curve_without_a_usable_rate_stays_in_the_table_and_is_not_drawn_as_zero() -> None:
    index = index_of(TWO)
    run = index.run
    (first, *_) = [s for s in run.summaries if s.metric == "usable_iops"]
    gone = tuple(s for s in run.summaries if s is not first)
    assert usable_figure(Index(replace(run, summaries=gone)), "memory") is None
