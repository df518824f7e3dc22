"""The section on the device's health, and the run over time, as data and as a page."""

from dataclasses import dataclass
from functools import cache
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from kvbench.host.health_model import (
    CellHealth,
    DriveHealth,
    HealthSample,
    KernelLine,
    RunHealth,
    SessionHealth,
)
from kvbench.host.model import DeviceCounters
from kvbench.host.ocp import LatencyMonitor, SmartExtended
from kvbench.host.smart_json import SmartLog, parse_smart_log
from kvbench.measure.model import Finding, MeasuredRun
from kvbench.measure.timeline import CellTimeline, StreamTimeline, Timeline, Window
from kvbench.measure.wear import write_amplification
from kvbench.plan import Cell
from kvbench.report import html, text, view
from kvbench.report.health import health_view, with_timeline
from kvbench.report.model import Figure, HealthView
from kvbench.report.points import Index
from kvbench.report.timeline import WINDOWS_DRAWN_MAX, timeline_figure
from kvbench.report.timeline_model import TimelinePanel
from kvbench.report.timeline_table import WINDOW_ROWS_MAX
from kvbench.units import GIB
from tests.host.drives import CASE
from tests.report import example

NOT_A_DRIVE = "loop0 is not an NVMe, SATA or SAS drive, and tells nothing of its health"
EXTENDED = SmartExtended(
    media_written_bytes=100 * GIB,
    media_read_bytes=0,
    bad_user_blocks=0,
    uncorrectable_reads=0,
    soft_ecc_errors=7,
    throttling_events=0,
    throttling_now=0,
    pcie_correctable_errors=0,
    link_retrainings=None,
    unaligned_ios=0,
    free_blocks_percent=95,
)


def smart(**changes: object) -> SmartLog:
    return replace(parse_smart_log((CASE / "smart-log-kelvin.json").read_text()), **changes)


def told(**changes: object) -> DriveHealth:
    fields: dict[str, object] = {"at": "2026-07-01T12:00:00Z", "smart": smart()}
    return DriveHealth(**(fields | changes))  # type: ignore[arg-type]


def nothing(reason: str = NOT_A_DRIVE) -> DriveHealth:
    unknown = dict.fromkeys(("smart", "extended", "latency_monitor"), reason)
    return DriveHealth(at="2026-07-01T12:00:00Z", unknown=unknown)


def session(before: DriveHealth, after: DriveHealth | None, **changes: object) -> SessionHealth:
    fields: dict[str, object] = {"drive": "nvme0n1", "devices": ("nvme0n1",)}
    fields |= {"before": before, "after": after}
    return SessionHealth(**(fields | changes))  # type: ignore[arg-type]


def health(*sessions: SessionHealth) -> RunHealth:
    return RunHealth(format=1, sessions=sessions)


def a_run(*sessions: SessionHealth, **changes: object) -> MeasuredRun:
    return replace(example.make_run(), health=health(*sessions), **changes)


def shown(run: MeasuredRun) -> HealthView:
    found = health_view(run, Index(run))
    assert found is not None
    return found


def test_an_older_archive_has_no_section() -> None:
    run = example.make_run()
    assert run.health is None
    assert health_view(run, Index(run)) is None
    assert 'id="health"' not in html.render(view.build(run, {}))


def test_a_device_without_health_is_one_sentence_and_no_table() -> None:
    loop = session(nothing(), nothing(), drive=None, devices=("loop0",))
    unwatched = dict.fromkeys(("temperature_c", "state", "link_speed"), NOT_A_DRIVE)
    found = shown(a_run(loop, unwatched=unwatched))
    assert found.words[0] == "The kernel log tells of no trouble with loop0 in any cell."
    assert found.words[1] == (
        "Not measured: temperature, controller state, PCIe link, SMART, the OCP page C0h, the OCP "
        f"page C3h. The reason: {NOT_A_DRIVE}."
    )
    assert not any(table.caption == "The drive's own counters" for table in found.tables)
    assert not any("amplification" in words for words in found.words)


def test_what_is_not_watched_is_one_note_of_the_run() -> None:
    unwatched = dict.fromkeys(("temperature_c", "smart"), NOT_A_DRIVE)
    run = a_run(session(nothing(), nothing(), drive=None), unwatched=unwatched)
    notes = [d.text for d in view.build(run, {}).doubts if "not watched" in d.text]
    assert notes == [
        "not watched during cells: SMART, temperature, so throttling, a reset or an error of the "
        f"device may have gone unseen: {NOT_A_DRIVE}"
    ]
    seen = view.build(a_run(session(told(), told())), {})
    assert not any("not watched" in doubt.text for doubt in seen.doubts)


def test_a_kernel_log_that_may_not_be_read_is_not_taken_for_a_quiet_one() -> None:
    reason = "the kernel log cannot be read: Operation not permitted"
    found = shown(a_run(session(told(), told(), unknown={"kernel_log": reason})))
    assert not any("no trouble" in words for words in found.words)
    assert any("Not measured: the kernel log." in words for words in found.words)


def test_counters_are_shown_before_and_after_and_zeroes_in_a_sentence() -> None:
    monitor = LatencyMonitor(
        enabled=True,
        thresholds_ms=(5, 20, 40, 80),
        reads=(1, 0, 0, 0),
        writes=(0, 0, 0, 0),
        trims=(0, 0, 0, 0),
    )
    before = told(latency_monitor=monitor, extended=EXTENDED)
    after = told(
        smart=smart(temperature_c=61, media_errors=2),
        latency_monitor=replace(monitor, reads=(4, 0, 0, 0)),
        extended=EXTENDED,
    )
    found = shown(a_run(session(before, after)))
    table = next(one for one in found.tables if one.caption == "The drive's own counters")
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["temperature"] == ("45 C", "61 C", "+16 C")
    assert rows["media errors"] == ("0", "2", "+2")
    assert rows["power cycles"] == ("44", "44", "none")
    first, second = monitor.thresholds_ms[:2]
    assert rows[f"reads of {first} to {second} ms"] == ("1", "4", "+3")
    assert rows["soft ECC errors"] == ("7", "7", "none")
    assert "link retrainings" not in rows
    assert "throttling events" not in rows
    (zero,) = [words for words in found.words if words.startswith("Zero before and after")]
    assert "throttling events" in zero
    assert "media errors" not in zero


def test_what_was_not_watched_is_not_told_to_have_stayed() -> None:
    drive = session(told(), told())
    whole = shown(a_run(drive)).words[0]
    assert whole == (
        "nvme0n1 stayed as it was in every cell: no throttling, reset, new media error or change "
        "of its link was seen, and no trouble with it in the kernel log."
    )
    part = shown(a_run(drive, unwatched={"smart": "nvme-cli is not installed"})).words[0]
    assert part == (
        "nvme0n1 in every cell: no reset or change of its link was seen, and no trouble with it "
        "in the kernel log."
    )
    blind = dict.fromkeys(("smart", "state", "link_speed"), NOT_A_DRIVE)
    none = shown(a_run(drive, unwatched=blind)).words[0]
    assert none == "The kernel log tells of no trouble with nvme0n1 in any cell."


def test_a_drive_that_went_away_keeps_what_it_told_before() -> None:
    found = shown(a_run(session(told(), nothing("nvme ended with 1: No such device"))))
    table = next(one for one in found.tables if one.caption == "The drive's own counters")
    assert {row[0]: row[2] for row in table.rows}["temperature"] == "not told"
    assert any("No such device" in words for words in found.words)


def worn(host_bytes: int, media_bytes: int) -> tuple[DriveHealth, DriveHealth]:
    first = smart()
    assert first.written_bytes is not None
    last = replace(first, written_bytes=first.written_bytes + host_bytes)
    media = replace(EXTENDED, media_written_bytes=EXTENDED.media_written_bytes + media_bytes)
    return told(smart=first, extended=EXTENDED), told(smart=last, extended=media)


def test_write_amplification_is_the_mediums_bytes_over_the_hosts_over_all_sessions() -> None:
    twice = health(session(*worn(2 * GIB, 5 * GIB)), session(*worn(2 * GIB, 3 * GIB)))
    found = write_amplification(twice)
    assert found.value == 2.0
    assert (found.host_bytes, found.media_bytes) == (4 * GIB, 8 * GIB)
    words = shown(a_run(*twice.sessions)).words
    assert any(line.startswith("Write amplification 2.00: 8 GiB reached") for line in words)


@pytest.mark.parametrize(
    ("sessions", "reason"),
    [
        ((), "was not looked at"),
        ((session(nothing(), nothing()),), "tells nothing of its health"),
        ((session(told(), told(unknown={"extended": "no such page"})),), "does not tell"),
        ((session(*worn(GIB // 2, GIB)),), "only 512 MiB were written"),
        ((session(*worn(2 * GIB, 2 * GIB)[::-1]),), "went back"),
        ((session(worn(2 * GIB, GIB)[0], None),), "no end"),
    ],
)
def test_write_amplification_is_not_measured_with_a_reason(
    sessions: tuple[SessionHealth, ...], reason: str
) -> None:
    found = write_amplification(health(*sessions))
    assert found.value is None
    assert reason in found.reason


def test_spoiled_cells_are_counted_by_cause() -> None:
    run = a_run(session(told(), told()))
    finding = Finding(check="throttled", severity="invalid", text="the drive was hot")
    first = replace(run.cells[0], findings=(finding,))
    found = shown(replace(run, cells=(first, *run.cells[1:])))
    assert found.words[0].startswith("Cells were spoiled by the state of nvme0n1")
    assert "throttled (1)" in found.words[0]
    assert "HEALTH OF THE DEVICE" in text.render(view.build(run, {}))


def window(begin_s: float, rate: float = 1000.0, p50: float | None = 1e-4) -> Window:
    high = None if p50 is None else 10 * p50
    return Window(
        begin_s=begin_s,
        end_s=begin_s + 1,
        rate=rate,
        count=int(rate),
        percentiles_s=(p50, high, None),
    )


def counted(at_s: float, reads: int, heat: float | None = 45.0) -> HealthSample:
    counters = DeviceCounters(read_ios=reads, read_sectors=8 * reads, write_ios=0, write_sectors=0)
    return HealthSample(at_s=at_s, temperature_c=heat, counters=counters)


@dataclass(frozen=True)
class Made:
    """A timeline of one cell, and what is seen of it."""

    figure: Figure

    @property
    def panel(self) -> TimelinePanel:
        (panel,) = self.figure.panels
        assert isinstance(panel, TimelinePanel)
        return panel


@cache
def a_cell() -> Cell:
    return next(c for c in example.make_run().record.plan.cells if c.purpose == "measure")


def timeline(*windows: Window, seen: CellHealth | None = None, reason: str = "") -> Timeline:
    end_s = windows[-1].end_s if windows else 3.0
    stream = StreamTimeline(
        stream="reads", direction="read", what="I/Os", windows=windows, reason=reason
    )
    return Timeline(
        cells=(
            CellTimeline(
                cell=a_cell(), begin_s=0.0, end_s=end_s + 0.5, streams=(stream,), health=seen
            ),
        )
    )


def made(given: Timeline, *, bad: bool = False) -> Made:
    names = frozenset({a_cell().cell_id} if bad else ())
    figure = timeline_figure(given, names)
    assert figure is not None
    return Made(figure)


SEEN = CellHealth(
    samples=(counted(0.0, 100), counted(1.0, 1100, 50.0), counted(2.0, 3100, 84.0)),
    kernel=(
        KernelLine(at_s=1.0, priority=4, text="nvme nvme0: timeout"),
        KernelLine(at_s=1.0, priority=4, text="nvme nvme0: again"),
        KernelLine(at_s=2.0, priority=4, text="nvme nvme0: reset"),
    ),
)


def test_latency_rate_device_and_temperature_share_the_time() -> None:
    panel = made(timeline(window(0.0), window(1.0, 2000.0), seen=SEEN)).panel
    axes = {axis.label: axis for axis in panel.axes}
    assert list(axes) == ["Latency", "Per second", "Device", "Temperature"]
    p50, p99 = axes["Latency"].lines
    assert (p50.label, p99.label) == ("p50", "p99")
    assert p50.pieces == (((0.5, 1.5), (1e-4, 1e-4)),)
    by_fio, by_device = axes["Per second"].lines
    assert by_fio.pieces == (((0.0, 1.0, 2.0), (1000.0, 2000.0)),)
    assert by_device.pieces == (((0.0, 1.0, 2.0), (1000.0, 2000.0)),)
    assert axes["Device"].lines[0].pieces[0][1] == (8 * 512 * 1000.0, 8 * 512 * 2000.0)
    assert axes["Temperature"].lines[0].pieces == (((0.0, 1.0, 2.0), (45.0, 50.0, 84.0)),)


def test_a_moment_of_trouble_is_one_mark_and_a_spoiled_cell_a_band() -> None:
    panel = made(timeline(window(0.0), seen=SEEN), bad=True).panel
    assert [(mark.at_s, mark.label) for mark in panel.marks] == [
        (1.0, "nvme nvme0: timeout"),
        (2.0, "nvme nvme0: reset"),
    ]
    assert [band.level for band in panel.bands] == ["bad"]
    assert "2 moments of trouble" in panel.description


def test_a_window_with_too_few_ios_is_a_gap_and_says_so() -> None:
    got = made(timeline(window(0.0), window(1.0, p50=None), window(2.0)))
    pieces = got.panel.axes[0].lines[0].pieces
    assert [len(at) for at, _ in pieces] == [1, 1]
    assert [row[5] for row in got.figure.table.rows] == ["100 µs", "too few", "100 µs"]


def test_the_table_has_every_window_with_what_the_device_did_meanwhile() -> None:
    table = made(timeline(window(0.0), window(1.0, 2000.0), seen=SEEN)).figure.table
    assert table.head[3:] == (
        *("Time", "Rate", "p50", "p99", "p99.9", "Device requests", "Temperature"),
    )
    first, second = table.rows
    assert first[3:] == (
        *("0.0\N{EN DASH}1.0 s", "1.00k/s", "100 µs", "1.00 ms", "too few"),
        *("1.00k/s", "45 C\N{EN DASH}50 C"),
    )
    assert second[8] == "2.00k/s"


def test_many_windows_are_a_row_per_cell_and_keep_their_worst() -> None:
    count = WINDOWS_DRAWN_MAX + 1
    windows = [window(float(at)) for at in range(count)]
    windows[1] = window(1.0, p50=0.5)
    got = made(timeline(*windows))
    assert count > WINDOW_ROWS_MAX
    (row,) = got.figure.table.rows
    assert row[5] == "100 µs\N{EN DASH}500 ms"
    drawn = got.panel.axes[0].lines[0].pieces[0][1]
    assert len(drawn) <= WINDOWS_DRAWN_MAX
    assert max(drawn) == 0.5
    assert "drawn as one" in got.figure.how_to_read


def test_a_cell_without_windows_keeps_its_row_with_the_reason() -> None:
    got = made(timeline(seen=SEEN, reason="it looks for the peak"))
    (row,) = got.figure.table.rows
    assert "it looks for the peak" in row[4]
    assert [axis.label for axis in got.panel.axes] == ["Per second", "Device", "Temperature"]


def test_nothing_over_time_is_no_figure() -> None:
    assert timeline_figure(timeline(), frozenset()) is None
    assert timeline_figure(Timeline(cells=(), reason="no cell was run"), frozenset()) is None


def test_the_page_holds_the_drawing_its_words_and_its_numbers() -> None:
    run = a_run(session(told(), told()))
    shown_view = view.build(run, {})
    assert shown_view.health is not None
    hostile = replace(
        SEEN, kernel=(KernelLine(at_s=1.0, priority=3, text="nvme0n1: <script>alert(1)</script>"),)
    )
    drawn = with_timeline(shown_view.health, run, timeline(window(0.0), window(1.0), seen=hostile))
    page = html.render(replace(shown_view, health=drawn))
    assert 'id="timeline"' in page
    assert "The numbers behind this figure" in page
    assert "<script>alert" not in page
    (said,) = [table for table in drawn.tables if table.caption == "Trouble in the kernel log"]
    assert said.rows == ((a_cell().cell_id, "1 s", "nvme0n1: <script>alert(1)</script>"),)
    start = page.index("<svg", page.index('id="timeline"'))
    svg = ET.fromstring(page[start : page.index("</svg>", start) + 6])  # noqa: S314 - our own
    assert svg.find("title") is not None
    assert "p50 100" in (svg.findtext("desc") or "")
