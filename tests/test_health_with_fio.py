"""Health beside real runs: samples, counters, the kernel's words, and histograms per second."""

import os
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from kvbench.fio.histogram_log import COLUMNS, FIRST_BIN, bin_values_ns
from kvbench.host.health import HealthWatch
from kvbench.host.kernel_log import PATH
from kvbench.measure.logs import read_columns
from kvbench.measure.timeline import StreamTimeline, gather_timeline
from kvbench.store import layout
from kvbench.store.read import read_run
from kvbench.units import MIB
from tests import real_runs
from tests.host import drives
from tests.host.fakes import FakeMachine
from tests.host.loops import loop_over, needs_loops
from tests.real_runs import Run, one, plan_on, start, workload
from tests.records import a_stream

pytestmark = pytest.mark.fio


@pytest.fixture(scope="module")
def target() -> Iterator[Path]:
    """A written file of 64 MiB."""
    with real_runs.written_file(64 * MIB) as path:
        yield path


def assert_log_agrees(got: Run, stream: int = 0) -> None:
    """Every bin of the lines is within fio's own histogram, which has a rest more."""
    stored = got.cells[0]
    jobs = got.result().jobs
    logs = {layout.log_job_number(path): path for path in stored.histogram_logs()}
    values = bin_values_ns()
    for number, job in enumerate(jobs, start=1):
        if job.group_id != stream:
            continue
        lines = read_columns(logs[number], range(COLUMNS))
        assert lines.size
        for code, row in ((0, job.read), (1, job.write)):
            if row is None or row.clat is None:
                continue
            assert row.clat.bin_ns is not None
            assert row.clat.bin_counts is not None
            mine = lines[lines[:, 1] == code]
            counts = mine[:, FIRST_BIN:].sum(axis=0)
            told = Counter(dict(zip(row.clat.bin_ns, row.clat.bin_counts, strict=True)))
            for value, count in zip(values[counts > 0], counts[counts > 0], strict=True):
                assert count <= told[value], (number, code, value)
            # what completed after the last whole window is in no line
            rest = told.total() - counts.sum()
            share = 1 - mine[-1, 0] / row.runtime_ms
            assert 0 <= rest <= max(3, 4 * share * told.total() + 0.1 * told.total())


def test_the_lines_of_a_histogram_log_add_up_to_fios_own_histogram(
    target: Path, fio: str, tmp_path: Path
) -> None:
    mixed = a_stream(
        queue_depth=2, jobs=2, direction="mixed", read_percent=50, name="mixed", rate_iops=2000
    )
    got = real_runs.run(target, fio, tmp_path, workload(mixed, runtime_s=0.6, ramp_s=0.2))
    assert_log_agrees(got)


def only_timeline(got: Run) -> StreamTimeline:
    timeline = gather_timeline(read_run(got.folder))
    (cell,) = [c for c in timeline.cells if c.cell.purpose == "measure"]
    (stream,) = cell.streams
    for window in stream.windows:
        assert cell.begin_s <= window.begin_s < window.end_s <= cell.end_s + 0.1
    return stream


def test_a_short_cell_still_has_four_windows_that_agree_with_its_rate(
    target: Path, fio: str, tmp_path: Path
) -> None:
    got = real_runs.run(target, fio, tmp_path, workload(a_stream(queue_depth=1), runtime_s=0.6))
    assert_log_agrees(got)
    stream = only_timeline(got)
    assert len(stream.windows) == 4
    (iops,) = [m.value for m in got.measured().measurements if m.metric == "iops"]
    assert iops is not None
    seen = sum(window.count for window in stream.windows) / (
        stream.windows[-1].end_s - stream.windows[0].begin_s
    )
    assert seen == pytest.approx(iops, rel=0.15)
    for window in stream.windows:
        p50, p99, _ = window.percentiles_s
        assert p50 is None or p99 is None or 0 < p50 <= p99


def test_a_barrier_has_its_steps_over_time_from_the_log_that_it_keeps_anyway(
    target: Path, fio: str, tmp_path: Path
) -> None:
    barrier = a_stream(queue_depth=4, barrier=True)
    got = real_runs.run(target, fio, tmp_path, workload(barrier, runtime_s=0.6))
    assert got.cells[0].histogram_logs() == []
    stream = only_timeline(got)
    assert stream.what == "steps"
    assert len(stream.windows) >= 3
    (job,) = got.result().jobs
    assert job.read is not None
    steps = sum(window.count for window in stream.windows)
    assert 0.5 * job.read.total_ios / 4 < steps <= job.read.total_ios / 4


def test_a_search_for_the_peak_keeps_no_log_and_says_why(
    target: Path, fio: str, tmp_path: Path
) -> None:
    got = real_runs.run(target, fio, tmp_path, one(shape="throughput", queue_depth=4))
    assert got.cells[0].histogram_logs() == []
    assert "the peak" in only_timeline(got).reason


def test_the_block_layer_splits_the_latency_of_a_real_device(fio: str, tmp_path: Path) -> None:
    with real_runs.written_file(64 * MIB) as path:
        got = real_runs.run(path, fio, tmp_path, workload(a_stream(queue_depth=1), runtime_s=1.2))
    record = got.cells[0].record
    if record.device is None:
        pytest.skip("no counters of the device under /var/tmp")
    assert record.health is not None
    times = [sample.at_s for sample in record.health.samples]
    assert times[0] == 0.0
    assert times == sorted(times)
    assert len(times) >= 3
    reads = [s.counters.read_ios for s in record.health.samples if s.counters is not None]
    assert reads == sorted(reads)
    assert reads[-1] > reads[0]
    told = {m.metric: m for m in got.measured().measurements}
    below, above = told["device_latency_mean"], told["host_latency_mean"]
    if below.value is None:  # another program used the disk meanwhile
        assert below.reason
        assert above.reason
        return
    assert above.value is not None
    assert told["latency_mean"].value == pytest.approx(below.value + above.value)
    assert below.value > 0
    assert above.value >= 0


def test_a_file_has_no_health_and_says_so_once(target: Path, fio: str, tmp_path: Path) -> None:
    got = real_runs.run(target, fio, tmp_path, one())
    archive = read_run(got.folder)
    assert archive.damage == ()
    assert archive.health is not None
    (session,) = archive.health.sessions
    assert session.after is not None
    for told in (session.before, session.after):
        assert told.smart is not None or told.unknown["smart"]


def fake_drive(tmp_path: Path) -> tuple[FakeMachine, HealthWatch, Path]:
    """A drive that is well, its watch, and where its tool notes each call."""
    machine = FakeMachine(tmp_path / "machine")
    path = drives.nvme(machine)
    answer = drives.prints(drives.CASE / "smart-log-kelvin.json")
    asked = drives.tool(machine, {"smart-log": answer})
    watch = HealthWatch(
        drives.identity_of(path), "nvme0n1", machine=machine, now=lambda: datetime.now(UTC)
    )
    return machine, watch, asked


def test_an_alarm_that_rises_in_mid_cell_makes_the_cell_invalid(
    target: Path, fio: str, tmp_path: Path
) -> None:
    machine, watch, asked = fake_drive(tmp_path)
    record = start(plan_on(target, workload(a_stream(), runtime_s=1.3)), tmp_path)
    hot: list[float] = []

    def grow_hot() -> None:
        measuring = asked.read_text().count("smart-log") > 1  # before the run, before the cell
        if measuring and not hot:
            hot.append(84.85)
            drives.heat(machine, 84_850, alarm=True)

    got = real_runs.go_on(record, fio, tmp_path, while_running=grow_hot, watch=watch)
    assert hot
    assert got.end.end == "complete"
    measured = got.measured()
    assert measured.outcome == "invalid"
    (finding,) = [f for f in measured.findings if f.check == "throttled"]
    assert "85 C" in finding.text
    health = got.cells[0].record.health
    assert health is not None
    assert health.samples[0].temperature_alarm is False
    assert health.smart_before is not None
    assert health.smart_after is not None


def test_the_same_drive_without_an_alarm_is_fine(target: Path, fio: str, tmp_path: Path) -> None:
    _, watch, _ = fake_drive(tmp_path)
    record = start(plan_on(target, one()), tmp_path)
    got = real_runs.go_on(record, fio, tmp_path, watch=watch)
    assert got.measured().outcome in ("valid", "doubtful"), got.measured().findings


@pytest.mark.blockdev
@needs_loops
@pytest.mark.skipif(not os.access(PATH, os.R_OK), reason=f"{PATH} cannot be read here")
def test_an_error_that_the_kernel_tells_of_the_device_makes_the_cell_invalid_or_failed(
    fio: str, tmp_path: Path
) -> None:
    backing = tmp_path / "backing"
    backing.write_bytes(os.urandom(MIB) * 32)
    with loop_over(backing, "--direct-io=on") as device:
        record = start(plan_on(device, workload(a_stream(), runtime_s=1.0)), tmp_path)
        got = real_runs.go_on(
            record, fio, tmp_path, while_running=lambda: os.truncate(backing, 16 * MIB)
        )
    health = got.cells[0].record.health
    assert health is not None
    if "kernel_log" in health.unknown:
        pytest.skip(health.unknown["kernel_log"])
    assert health.kernel
    name = Path(device).name
    assert all(name in line.text for line in health.kernel)
    measured = got.measured()
    assert measured.outcome in ("invalid", "failed")
    assert "kernel-log" in {finding.check for finding in measured.findings}


def test_bins_stand_for_what_fio_says_they_do() -> None:
    values = bin_values_ns()
    assert values.shape == (1856,)
    assert (np.diff(values) > 0).all()
    assert values[:3].tolist() == [0, 1, 2]
    assert values[127:130].tolist() == [127, 129, 131]
    assert values[-1] == 2**33 + 63 * 2**27 + 2**26
