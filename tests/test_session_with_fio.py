"""Streams of every kind through the session with the real fio, on a written file on a disk."""

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvbench.host import probe
from kvbench.host.probe import identify
from kvbench.units import KIB, MIB
from kvbench.workload.schema import BlockShare
from tests import real_runs
from tests.real_runs import Run, fixed, one

pytestmark = pytest.mark.fio


@pytest.fixture(scope="module")
def target() -> Iterator[Path]:
    """A written file of 64 MiB."""
    with real_runs.written_file(64 * MIB) as path:
        yield path


def assert_sound(got: Run) -> None:
    """No check found the numbers to be wrong."""
    measured = got.measured()
    assert measured.outcome in ("valid", "doubtful"), measured.findings


def log_lines(got: Run) -> list[str]:
    """The latency logs of the first cell."""
    logs = sorted(got.cells[0].folder.glob("latency_lat.*.log.gz"))
    return [line for log in logs for line in gzip.open(log, "rt").read().splitlines()]


def test_bursts_are_followed_by_the_pause(target: Path, fio: str, tmp_path: Path) -> None:
    got = real_runs.run(target, fio, tmp_path, one(burst_ios=8, pause_s=0.05))
    assert_sound(got)
    (job,) = got.result().jobs
    assert job.read is not None
    # a burst of 8 each 50 ms at the most, and the last one may be under way
    assert 8 <= job.read.total_ios <= 8 * (job.read.runtime_ms / 50 + 1)


def test_a_barrier_of_depth_one_logs_every_io(target: Path, fio: str, tmp_path: Path) -> None:
    got = real_runs.run(target, fio, tmp_path, one(barrier=True, request_steps=4))
    assert_sound(got)
    (job,) = got.result().jobs
    assert job.read is not None
    assert len(log_lines(got)) == job.read.total_ios > 0


def test_a_buffered_stream_runs_cold_with_blocking_calls(fio: str, tmp_path: Path) -> None:
    with real_runs.written_file(64 * MIB) as path:
        # each job reads 2 MiB every 50 ms: in 0.3 s less than its half of the file
        paced = one(buffered=True, jobs=2, burst_ios=8, pause_s=0.05, block_mix=fixed(256 * KIB))
        got = real_runs.run(path, fio, tmp_path, paced)
        assert_sound(got)
        assert {job.options.get("ioengine") for job in got.result().jobs} <= {"psync", None}
        if probe.device_under(got.record.identity) is None:
            pytest.skip("no counters of the device under /var/tmp")
        assert "page-cache" not in {f.check for f in got.measured().findings}


def test_contiguous_buffers_reach_the_device_as_one_request(
    target: Path, fio: str, tmp_path: Path
) -> None:
    pages = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not pages.exists() or "[never]" in pages.read_text():
        pytest.skip("transparent huge pages are switched off")
    compact = Path("/proc/sys/vm/compact_memory")
    if os.access(compact, os.W_OK):  # a machine that ran for long has no huge page at hand
        compact.write_text("1")
    got = real_runs.run(target, fio, tmp_path, one(buffers="contiguous", block_mix=fixed(2 * MIB)))
    assert_sound(got)
    (each,) = (m for m in got.measured().measurements if m.metric == "device_requests_per_io")
    if each.value is None:
        pytest.skip(each.reason)
    sizes = {f.name: f.value for f in probe.target_facts(got.record.identity)}
    if int(sizes.get("max_sectors_kib") or 0) < 2048:
        pytest.skip("this device takes no 2 MiB at once")
    assert each.value <= 1.1


@pytest.mark.parametrize(
    "changes",
    [
        {"pattern": "sequential", "stride_bytes": 64 * KIB},
        {
            "block_mix": (
                BlockShare(size_bytes=512, percent=1),
                BlockShare(size_bytes=1024, percent=74),
                BlockShare(size_bytes=1536, percent=25),
            ),
            "align_bytes": 512,
        },
    ],
)
def test_strides_and_fine_alignment_work_on_a_real_file(
    changes: dict[str, object], target: Path, fio: str, tmp_path: Path
) -> None:
    identity = identify(str(target))
    if probe.logical_block_bytes(identity) > 512:
        pytest.skip("the device has logical blocks of more than 512 B")
    assert_sound(real_runs.run(target, fio, tmp_path, one(**changes)))
