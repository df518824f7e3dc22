"""The figure that asks whether the host was the limit."""

import xml.etree.ElementTree as ET

import pytest
from msgspec.structs import replace

from kvbench.measure.ceiling import HOST_BOUND_PERCENT
from kvbench.measure.model import MeasuredRun, Summary
from kvbench.report.dot_figure import draw_dots
from kvbench.report.host_ceiling import ROWS_MAX, ceiling_figure
from kvbench.report.html import render
from kvbench.report.model import DotPanel, DotRow, Figure
from kvbench.report.png import draw_png
from kvbench.report.points import Index
from kvbench.report.view import build
from tests.report.example import BLOCKS, SPARSE, ladder, make_run
from tests.report.page import Page

CEILING = 480_000.0  # of every shape in the example
ONE = ladder(sizes=(4096,), jobs=(1,))


def figure_of(run: MeasuredRun) -> Figure | None:
    return ceiling_figure(Index(run))


def rows_of(figure: Figure | None) -> tuple[DotRow, ...]:
    assert figure is not None
    (panel,) = figure.panels
    assert isinstance(panel, DotPanel)
    return panel.rows


def with_shares(run: MeasuredRun, share: float | None) -> MeasuredRun:
    def changed(one: Summary) -> Summary:
        ours = one.metric == "host_ceiling_share"
        return replace(one, median=share) if ours else one

    return replace(run, summaries=tuple(changed(one) for one in run.summaries))


def test_each_workload_has_the_point_that_came_nearest_to_its_ceiling() -> None:
    run = make_run((ONE, BLOCKS, SPARSE))
    shares = {
        w: max(s.median or 0 for s in run.summaries if _is_share(s) and s.workload == w)
        for w in ("iops-ladder", "block-reload", "sparse-fetch")
    }

    rows = rows_of(figure_of(run))

    assert [row.label.partition(":")[0] for row in rows] == list(shares)
    for row, share in zip(rows, shares.values(), strict=True):
        assert row.end == pytest.approx(CEILING)
        assert row.value == pytest.approx(CEILING * share / 100)
        assert row.limit == pytest.approx(CEILING * HOST_BOUND_PERCENT / 100)


def _is_share(summary: Summary) -> bool:
    return summary.metric == "host_ceiling_share"


def test_one_workload_alone_shows_each_of_its_points() -> None:
    rows = rows_of(figure_of(make_run((ONE,))))

    assert [row.label for row in rows] == [
        f"iops-ladder: 4 KiB, depth {depth}, 1 job" for depth in (1, 4, 16, 64)
    ]


def test_more_points_than_have_room_are_told() -> None:
    run = make_run((ladder(sizes=(512, 1024, 2048, 4096), jobs=(1, 2)),))
    figure = figure_of(run)

    assert len(rows_of(figure)) == ROWS_MAX
    assert figure is not None
    assert f"The {ROWS_MAX} nearest of 32." in figure.how_to_read


def test_one_point_alone_or_no_ceiling_makes_no_figure() -> None:
    run = make_run((SPARSE,))
    assert figure_of(run) is None

    many = make_run((ONE, BLOCKS))
    bare = replace(many, cells=tuple(c for c in many.cells if c.cell.purpose != "ceiling"))
    assert figure_of(many) is not None
    assert figure_of(bare) is None
    assert figure_of(with_shares(many, None)) is None


def test_a_rate_of_zero_stands_at_the_edge_of_the_log_axis_by_its_name() -> None:
    figure = figure_of(with_shares(make_run((ONE, BLOCKS)), 0.0))
    assert figure is not None
    (panel,) = figure.panels
    assert isinstance(panel, DotPanel)

    svg = ET.fromstring(draw_dots(panel, "x"))  # noqa: S314 - our own drawing

    assert [e.text for e in svg.iter("text")].count("0") == 2
    said = [e.text or "" for e in svg.iter("title")][1:]
    assert len(said) == 2
    assert all("0 %" in text for text in said)


def test_the_page_shows_it_with_its_numbers_and_a_png_can_be_made() -> None:
    view = build(make_run((ONE, BLOCKS)), {})
    assert view.ceilings is not None
    page = Page(render(view))

    assert page.problems == []
    assert "host-ceiling" in [f.get("id") for f in page.named("figure")]
    assert "Was it the host?" in page.text("figcaption")
    assert "480k IOPS" in page.text("table")
    assert draw_png(view.ceilings.panels[0], "").startswith(b"\x89PNG")


def test_a_share_that_is_doubted_says_so_in_the_table() -> None:
    figure = figure_of(with_shares(make_run((ONE, BLOCKS)), HOST_BOUND_PERCENT))
    assert figure is not None
    assert {row[3] for row in figure.table.rows} == {"70 % (doubted)"}
    free = figure_of(with_shares(make_run((ONE, BLOCKS)), 0.01))
    assert free is not None
    assert {row[3] for row in free.table.rows} == {"under 0.1 %"}
