"""Latency over time as a heat map: strips behind the percentiles, drawn as one picture."""

from xml.etree import ElementTree as ET

from kvbench.measure.timeline import CellTimeline, StreamTimeline, Timeline, Window, band_edge_s
from kvbench.plan import Cell
from kvbench.report.timeline import SHARE_DRAWN_MIN, timeline_figure
from kvbench.report.timeline_figure import draw_timeline
from kvbench.report.timeline_model import TimelinePanel
from tests.report.example import make_run

CELL: Cell = next(c for c in make_run().record.plan.cells if c.purpose == "measure")
BAND = 40


def panel(*windows: Window) -> TimelinePanel:
    """The timeline of one cell with these windows."""
    stream = StreamTimeline(stream="reads", direction="read", what="I/Os", windows=windows)
    cell = CellTimeline(cell=CELL, begin_s=0.0, end_s=9.0, streams=(stream,), health=None)
    figure = timeline_figure(Timeline(cells=(cell,)), frozenset())
    assert figure is not None
    (found,) = figure.panels
    assert isinstance(found, TimelinePanel)
    return found


def window(begin_s: float, *spread: tuple[int, float], count: int = 1000) -> Window:
    return Window(
        begin_s=begin_s,
        end_s=begin_s + 1,
        rate=1000.0,
        count=count,
        percentiles_s=(band_edge_s(BAND), None, None),
        spread=spread,
    )


def test_each_band_of_a_window_is_a_strip_of_its_time_and_latency() -> None:
    heat = panel(window(2.0, (BAND, 0.75), (BAND + 3, 0.25))).axes[0].heat
    assert [(s.begin_s, s.end_s, s.share) for s in heat] == [(2.0, 3.0, 0.75), (2.0, 3.0, 0.25)]
    assert (heat[0].low, heat[0].high) == (band_edge_s(BAND), band_edge_s(BAND + 1))


def test_what_could_not_be_seen_is_not_drawn() -> None:
    faint = SHARE_DRAWN_MIN / 2
    heat = panel(window(0.0, (10, faint), (BAND, 1 - faint))).axes[0].heat
    assert [strip.low for strip in heat] == [band_edge_s(BAND)]


def test_many_windows_are_joined_by_their_counts() -> None:
    many = [window(float(n), (BAND + n % 2, 1.0), count=1000 + 2000 * (n % 2)) for n in range(3002)]
    heat = panel(*many).axes[0].heat
    assert {round(strip.share, 6) for strip in heat} == {0.25, 0.75}
    assert len(heat) == 3002  # two strips for each pair of windows


def test_it_is_one_picture_inside_the_page() -> None:
    svg = ET.fromstring(draw_timeline(panel(window(0.0, (BAND, 1.0))), "t"))  # noqa: S314
    (image,) = [element for element in svg.iter() if element.tag.endswith("image")]
    assert image.get("href", "").startswith("data:image/png;base64,iVBOR")
    assert " " not in image.get("href", "")
    plain = ET.fromstring(draw_timeline(panel(window(0.0)), "t"))  # noqa: S314
    assert not [element for element in plain.iter() if element.tag.endswith("image")]
