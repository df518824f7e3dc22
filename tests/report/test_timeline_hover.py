"""What a pointer finds on the timeline."""

import xml.etree.ElementTree as ET

from msgspec.structs import replace

from kvbench.host.health_model import CellHealth, HealthSample
from kvbench.host.model import DeviceCounters
from kvbench.measure.timeline import CellTimeline, StreamTimeline, Timeline, Window
from kvbench.plan import Cell
from kvbench.report.timeline import timeline_figure
from kvbench.report.timeline_figure import draw_timeline
from kvbench.report.timeline_hover import STRIPS_MAX, strips_of
from kvbench.report.timeline_model import TimelinePanel
from kvbench.report.timeline_table import Drawn
from kvbench.report.words import DASH
from tests.report.example import TENANTS, ladder, make_run
from tests.report.test_health import a_cell, made, timeline, window

BYTES_MAX = 200_000


def cell_of(
    *streams: StreamTimeline, begin_s: float = 0.0, health: CellHealth | None = None
) -> Drawn:
    end_s = max((s.windows[-1].end_s for s in streams if s.windows), default=begin_s + 3)
    cell = CellTimeline(cell=a_cell(), begin_s=begin_s, end_s=end_s, streams=streams, health=health)
    return Drawn(cell, bad=False)


def stream(*windows: Window, name: str = "reads", reason: str = "") -> StreamTimeline:
    return StreamTimeline(
        stream=name, direction="read", what="I/Os", windows=windows, reason=reason
    )


def sample(at_s: float, reads: int, heat: float | None) -> HealthSample:
    counters = DeviceCounters(read_ios=reads, read_sectors=0, write_ios=0, write_sectors=0)
    return HealthSample(at_s=at_s, temperature_c=heat, counters=counters)


HEALTH = CellHealth(samples=(sample(0.0, 0, 40.0), sample(1.0, 1500, 50.0)), kernel=())


def test_each_second_says_its_time_percentiles_rate_device_and_temperature() -> None:
    first, second = strips_of([cell_of(stream(window(0.0), window(1.0, 2000.0)), health=HEALTH)])

    assert (first.begin_s, first.end_s, second.begin_s) == (0.0, 1.0, 1.0)
    time, numbers, device, heat = first.text.split("\n")
    assert time.startswith(f"0.0{DASH}1.0 s: cell {a_cell().cell_id}, ")
    assert numbers == "reads, I/Os: p50 100 µs, p99 1.00 ms, p99.9 too few; 1.00k/s"
    assert device == "device: 1.50k requests/s"
    assert heat == f"temperature: 40 C{DASH}50 C"
    assert "2.00k/s" in second.text


def test_streams_of_one_second_stand_below_each_other() -> None:
    (one,) = strips_of([cell_of(stream(window(0.0)), stream(window(0.0, 50.0), name="writer"))])
    assert [line.partition(",")[0] for line in one.text.split("\n")[1:]] == ["reads", "writer"]


def test_a_cell_without_windows_says_why_in_one_strip() -> None:
    (one,) = strips_of([cell_of(stream(reason="it looks for the peak"), begin_s=4.0)])
    assert (one.begin_s, one.end_s) == (4.0, 7.0)
    assert "not kept: it looks for the peak" in one.text


def test_more_seconds_than_pixels_are_joined_with_their_ranges() -> None:
    many = [window(float(n), 1000.0, 1e-4 * (1 + n % 2)) for n in range(4 * STRIPS_MAX)]
    strips = strips_of([cell_of(stream(*many))])

    assert len(strips) == STRIPS_MAX
    assert (strips[0].begin_s, strips[0].end_s) == (0.0, 4.0)
    assert f"p50 100 µs{DASH}200 µs" in strips[0].text


def test_many_cells_are_joined_by_their_number() -> None:
    cells = [cell_of(stream(window(3.0 * n)), begin_s=3.0 * n) for n in range(2 * STRIPS_MAX)]
    strips = strips_of(cells)
    assert len(strips) == STRIPS_MAX
    assert "2 cells, " in strips[0].text
    assert "all streams: p50 100 µs" in strips[0].text


def test_the_drawing_grows_by_little_however_long_the_run_is() -> None:
    many = [window(float(n), 1000.0 + n) for n in range(3000)]
    panel = made(timeline(*many)).panel
    bare = len(draw_timeline(_without(panel), "t"))

    grown = len(draw_timeline(panel, "t")) - bare

    assert 0 < grown < BYTES_MAX


def _without(panel: TimelinePanel) -> TimelinePanel:
    return replace(panel, strips=())


def test_strips_lie_over_all_axes_and_escape_what_they_say() -> None:
    run = make_run((ladder(sizes=(512,), jobs=(1,)), TENANTS))
    cell: Cell = next(c for c in run.record.plan.cells if c.purpose == "measure")
    one = CellTimeline(
        cell=cell,
        begin_s=0.0,
        end_s=2.0,
        streams=(stream(window(0.0), window(1.0), name="</title><b>&"),),
        health=None,
    )
    figure = timeline_figure(Timeline(cells=(one,)), frozenset())
    assert figure is not None
    (panel,) = figure.panels
    assert isinstance(panel, TimelinePanel)

    svg = ET.fromstring(draw_timeline(panel, "t"))  # noqa: S314 - our own drawing

    (group,) = [g for g in svg.iter("g") if g.get("class") == "strips"]
    assert len(group) == 2
    assert "</title><b>&" in (group[0][0].text or "")
    assert group.get("fill") == "none"


def test_without_latency_over_time_nothing_is_said_of_percentiles() -> None:
    with_latency = made(timeline(window(0.0), seen=HEALTH)).figure
    assert "Percentiles of each second" in with_latency.how_to_read
    without = made(timeline(seen=HEALTH, reason="not kept")).figure
    assert "Percentiles" not in without.how_to_read
