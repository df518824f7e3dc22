"""The real fio on a small file: what it reports passes every check, and the identities hold."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from msgspec import structs

from kvbench.fio.jobfile import render
from kvbench.measure.model import MeasuredCell
from kvbench.measure.run import measure_cell
from kvbench.plan import Cell
from kvbench.store import layout
from kvbench.units import MIB
from kvbench.workload.schema import Timing
from tests import direct_io, records
from tests.measure.builders import PROVEN, archive, cell, stream, value

pytestmark = [
    pytest.mark.fio,
    pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed"),
]


@pytest.fixture(scope="module")
def target() -> Iterator[Path]:
    """A written file of 64 MiB on a file system with O_DIRECT."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        path = Path(folder) / "target"
        path.write_bytes(os.urandom(64 * MIB))
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        if not direct_io.works(path):
            pytest.skip("no O_DIRECT in /var/tmp")
        yield path


def run(asked: Cell, target: Path, folder: Path) -> MeasuredCell:
    """Run one cell with plain fio and measure it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / layout.JOB_FILE).write_text(render(asked, str(target)))
    started = datetime.now(UTC)
    done = subprocess.run(
        ["fio", "--output-format=json+", f"--output={layout.OUTPUT_FILE}", layout.JOB_FILE],
        cwd=folder,
        timeout=30,
        capture_output=True,
        text=True,
        check=False,
    )
    record = records.a_cell_record(
        asked,
        started_at=started.isoformat(),
        wall_s=(datetime.now(UTC) - started).total_seconds(),
        exit_code=done.returncode,
    )
    stored = archive(folder / "stored", record, (folder / layout.OUTPUT_FILE).read_text())
    for log in folder.glob("*.log"):
        shutil.copy(log, stored.folder)
    return measure_cell(stored, structs.replace(records.a_run_record(), written=PROVEN))


def test_streams_side_by_side_are_told_apart_and_agree_with_themselves(
    target: Path, tmp_path: Path
) -> None:
    asked = structs.replace(
        cell(
            stream("small", 4096, queue_depth=4, jobs=2),
            stream("large", 2**20, queue_depth=2),
            stream("paced", 4096, queue_depth=64, rate_iops=200.0),
        ),
        timing=Timing(runtime_s=1.0, ramp_s=0.2),
    )
    found = run(asked, target, tmp_path)
    assert found.outcome in ("valid", "doubtful"), found.findings
    for name, block_bytes in (("small", 4096), ("large", 2**20), ("paced", 4096)):
        iops = value(found, "iops", name).value
        bandwidth = value(found, "bandwidth", name).value
        assert iops is not None
        assert bandwidth == pytest.approx(iops * block_bytes, rel=0.02)
    assert value(found, "iops", "paced").value == pytest.approx(200, rel=0.4)
    small, large = value(found, "depth_mean", "small"), value(found, "depth_mean", "large")
    assert small.value == pytest.approx(8, rel=0.15)
    assert large.value == pytest.approx(2, rel=0.15)
    names = [h.stream for h in found.histograms]
    assert names == ["small", "large", "paced"]
    for histogram in found.histograms:
        counted = value(found, "iops", histogram.stream).io_count
        assert histogram.counts.sum() == counted


def test_a_barrier_makes_requests_that_fill_the_time(target: Path, tmp_path: Path) -> None:
    rows = stream("rows", 4096, queue_depth=8, jobs=2, barrier=True)
    found = run(cell(stream("other", 4096), rows, runtime_s=0.5), target, tmp_path)
    assert found.outcome in ("valid", "doubtful"), found.findings
    rate = value(found, "request_rate", "rows").value
    iops = value(found, "iops", "rows").value
    assert rate is not None
    assert iops == pytest.approx(8 * rate, rel=1e-3)
    # The latency of one I/O behind a barrier is its batch's: only the request has a name.
    assert not [m for m in found.measurements if m.stream == "rows" and "latency_p" in m.metric]
    # Two submitters, each with one request at a time: their mean time is 2 / rate.
    (times,) = [h for h in found.histograms if h.what == "request"]
    mean_s = float((times.latency_s * times.counts).sum() / times.counts.sum())
    assert 0.7 < mean_s * rate / 2 < 1.03


def test_serial_steps_behind_a_barrier_fill_the_time_of_their_job(
    target: Path, tmp_path: Path
) -> None:
    blocks = stream("blocks", 16384, queue_depth=1, barrier=True, request_steps=16)
    found = run(cell(blocks, runtime_s=1.0), target, tmp_path)
    assert found.outcome in ("valid", "doubtful"), found.findings
    rate = value(found, "request_rate").value
    assert rate is not None
    assert value(found, "iops").value == pytest.approx(16 * rate, rel=1e-3)
    by_what = {h.what: h for h in found.histograms}
    assert set(by_what) == {"request", "step"}
    requests, steps = by_what["request"], by_what["step"]
    assert steps.counts.sum() == 16 * requests.counts.sum()
    busy_s = float((requests.latency_s * requests.counts).sum())
    assert busy_s == pytest.approx(float((steps.latency_s * steps.counts).sum()))
    assert 0.8 < busy_s / 1.0 < 1.02


def test_the_page_cache_and_a_sync_engine_are_seen(target: Path, tmp_path: Path) -> None:
    asked = cell(stream("reads", queue_depth=32), runtime_s=0.5, engine="psync", direct=False)
    found = run(asked, target, tmp_path)
    assert found.outcome == "invalid"
    assert {f.check for f in found.findings} >= {"depth", "page-cache"}
