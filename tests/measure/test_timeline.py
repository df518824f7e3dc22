"""fio's logs over time -> windows: stalls, several jobs, steps, and logs that cannot be used."""

from pathlib import Path

import pytest
from msgspec import structs

from kvbench.fio.histogram_log import BINS, bin_values_ns
from kvbench.fio.sections import histogram_window_ms
from kvbench.measure.timeline import StreamTimeline, band_edge_s, gather_timeline
from kvbench.plan import Cell
from kvbench.store.read import RunArchive
from kvbench.workload.schema import Stream
from tests import records
from tests.measure.builders import archive, cell, launch, stream

RUNTIME_S = 4.1
WINDOW_MS = histogram_window_ms(RUNTIME_S)  # about a second


def line(time_ms: int, counts: dict[int, int], direction: int = 0) -> str:
    """One line of a histogram log: counts by bin."""
    row = [counts.get(place, 0) for place in range(BINS)]
    return ", ".join(map(str, (time_ms, direction, 4096, *row)))


def gathered(folder: Path, made: Cell, logs: dict[str, list[str]]) -> RunArchive:
    stored = archive(folder, launch(made, wall_s=RUNTIME_S + 0.5), "{}")
    for name, lines in logs.items():
        (stored.folder / name).write_text("\n".join(lines) + "\n")
    return RunArchive(
        folder=folder, record=records.a_run_record(), end=None, cells=(stored,), damage=()
    )


def of_one(folder: Path, one: Stream, logs: dict[str, list[str]]) -> StreamTimeline:
    timeline = gather_timeline(gathered(folder, cell(one, runtime_s=RUNTIME_S), logs))
    (only,) = timeline.cells
    return only.streams[0]


def hist(job: int) -> str:
    return f"histogram_clat_hist.{job}.log"


def test_a_window_is_about_a_second_and_a_short_cell_has_four() -> None:
    assert 980 <= histogram_window_ms(60.0) <= 1000
    assert 4 * histogram_window_ms(0.3) < 300
    assert 4 * histogram_window_ms(1.5) < 1500
    assert histogram_window_ms(0.004) == 1


def test_windows_have_rate_and_percentiles_of_the_bins(tmp_path: Path) -> None:
    lines = [line(k * WINDOW_MS + 3, {1000: 2000, 1200: 30}) for k in range(1, 5)]
    got = of_one(tmp_path, stream(), {hist(1): lines})
    assert [window.count for window in got.windows] == [2030] * 4
    values = bin_values_ns() / 1e9
    for window in got.windows:
        assert window.percentiles_s == (values[1000], values[1200], None)
    assert got.windows[0].begin_s == pytest.approx(0.5, abs=0.01)  # fio starts first
    assert got.windows[0].rate == pytest.approx(2030 / (WINDOW_MS + 3) * 1000)
    assert got.windows[1].begin_s == got.windows[0].end_s
    for window in got.windows:
        assert [share for _, share in window.spread] == [2000 / 2030, 30 / 2030]
        for (band, _), value in zip(window.spread, (values[1000], values[1200]), strict=True):
            assert band_edge_s(band) <= value < band_edge_s(band + 1)


def test_a_stall_is_one_long_window_with_its_catching_up(tmp_path: Path) -> None:
    lines = [
        line(WINDOW_MS, {900: 500}),
        line(3 * WINDOW_MS + 100, {1600: 1}),  # the I/O that took so long
        line(3 * WINDOW_MS + 101, {900: 1}),  # windows that were missed follow with an I/O each
        line(3 * WINDOW_MS + 101, {900: 1}),
        line(4 * WINDOW_MS + 1, {900: 400}),
    ]
    got = of_one(tmp_path, stream(), {hist(1): lines})
    counts = [window.count for window in got.windows]
    assert counts == [500, 3, 400]
    stalled = got.windows[1]
    assert stalled.end_s - stalled.begin_s == pytest.approx((2 * WINDOW_MS + 101) / 1000)
    assert stalled.rate < 2


def test_the_windows_of_several_jobs_and_directions_are_told_apart_and_added(
    tmp_path: Path,
) -> None:
    mixed = stream(direction="mixed", read_percent=50, jobs=2)
    logs = {
        hist(1): [line(WINDOW_MS, {900: 10}), line(WINDOW_MS + 1, {900: 7}, direction=1)],
        hist(2): [line(WINDOW_MS + 40, {900: 20})],
    }
    made = cell(mixed, runtime_s=RUNTIME_S)
    reads, writes = gather_timeline(gathered(tmp_path, made, logs)).cells[0].streams
    assert (reads.direction, [w.count for w in reads.windows]) == ("read", [30])
    assert reads.windows[0].rate == pytest.approx(10e3 / WINDOW_MS + 20e3 / (WINDOW_MS + 40))
    assert (writes.direction, [w.count for w in writes.windows]) == ("write", [7])


def test_each_stream_has_the_logs_of_its_own_jobs(tmp_path: Path) -> None:
    made = cell(stream("first", jobs=2), stream("second"), runtime_s=RUNTIME_S)
    logs = {hist(3): [line(WINDOW_MS, {900: 5})]}
    first, second = gather_timeline(gathered(tmp_path, made, logs)).cells[0].streams
    assert first.windows == ()
    assert "kept no log" in first.reason
    assert [window.count for window in second.windows] == [5]


def test_the_steps_of_a_barrier_are_the_slowest_of_each_group(tmp_path: Path) -> None:
    barrier = stream(queue_depth=2, barrier=True)
    entries = [(100, 5_000), (100, 9_000), (200, 7_000), (201, 6_000), (WINDOW_MS + 1, 1_000)]
    entries += [(WINDOW_MS + 1, 2_000), (WINDOW_MS + 2, 1)]  # the last group is not whole
    lines = [f"{time_ms}, {value}, 0, 4096" for time_ms, value in entries]
    got = of_one(tmp_path, barrier, {"latency_lat.1.log": lines})
    assert got.what == "steps"
    assert [window.count for window in got.windows] == [2, 1]
    assert got.windows[0].rate == pytest.approx(2 * 1000 / WINDOW_MS)


@pytest.mark.parametrize(
    "lines",
    [
        ["no log at all"],
        [line(2000, {900: 1}), line(1000, {900: 1})],
        ["1000, 0, 4096, 1, 2, 3"],
        [line(1000, {900: -4})],
    ],
)
def test_a_log_that_cannot_be_used_is_a_reason(tmp_path: Path, lines: list[str]) -> None:
    got = of_one(tmp_path, stream(), {hist(1): lines})
    assert got.windows == ()
    assert "cannot be used" in got.reason


def test_a_depth_that_no_plan_has_is_a_reason_too(tmp_path: Path) -> None:
    strange = stream(queue_depth=0, barrier=True)
    got = of_one(tmp_path, strange, {"latency_lat.1.log": ["1, 2, 0, 4096"]})
    assert "cannot be used" in got.reason


def test_cells_are_in_the_order_of_time_and_those_not_run_are_left_out(tmp_path: Path) -> None:
    made = cell(stream(), runtime_s=RUNTIME_S)
    kept = gathered(tmp_path, made, {})
    (first,) = kept.cells
    moments = {"0001": "12:00:10", "0002": "12:00:00", "0003": "12:00:05", "0004": "soon"}
    cells = tuple(
        structs.replace(
            first,
            record=structs.replace(
                first.record,
                cell=structs.replace(made, cell_id=cell_id),
                started_at=f"2026-07-01T{moment}+00:00",
                end="not-run" if cell_id == "0003" else "exited",
            ),
        )
        for cell_id, moment in moments.items()
    )
    got = gather_timeline(structs.replace(kept, cells=cells)).cells
    assert [(one.cell.cell_id, one.begin_s) for one in got] == [("0002", 0.0), ("0001", 10.0)]
    assert gather_timeline(structs.replace(kept, cells=())).reason == "no cell was run"
