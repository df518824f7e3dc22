"""Cells that match recorded fio output, archived and measured as a run would have them."""

import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import structs

from kvbench.fio.model import FioDirection, FioJob, FioResult, LatencyStats
from kvbench.host.model import DeviceCounters, Written
from kvbench.measure.evidence import Evidence, gather
from kvbench.measure.model import Finding, MeasuredCell, Measurement
from kvbench.measure.run import measure_cell
from kvbench.plan import Cell, Placed
from kvbench.store import layout
from kvbench.store.read import ArchivedCell
from kvbench.store.records import CellRecord
from kvbench.units import MIB, SECTOR_BYTES
from kvbench.workload.schema import BlockShare, Stream, Timing
from tests import records

CASES = Path(__file__).resolve().parents[1] / "fixtures" / "cases"
PROVEN = Written(state="proven", reason="no hole and no unwritten extent")
UNPROVEN = Written(state="unproven", reason="no record of a fill of this device")

_STAMP = re.compile(r'"timestamp_ms"\s*:\s*(\d+)')


def recorded(name: str) -> str:
    """Return the text of a recorded case, e.g. ``16-failed-io-counted-as-iops/stdout.json``."""
    return (CASES / name).read_text()


def stream(name: str = "reads", block_bytes: int = 4096, **changes: object) -> Stream:
    """A random read stream of one block size."""
    mix = (BlockShare(size_bytes=block_bytes, percent=100),)
    return records.a_stream(**({"name": name, "block_mix": mix, "queue_depth": 1} | changes))


def cell(*streams: Stream, runtime_s: float = 1.0, **changes: object) -> Cell:
    """The cell of ``streams``, without ramp, as the plan would make it."""
    fields: dict[str, object] = {
        "cell_id": "0001",
        "point_id": "point",
        "repetition": 1,
        "purpose": "measure",
        "workload": "recorded",
        "workload_digest": "digest",
        "role": "memory",
        "parameters": {},
        "alone": None,
        "placed": tuple(Placed(stream=s, offset_bytes=0, size_bytes=64 * MIB) for s in streams),
        "timing": Timing(runtime_s=runtime_s, ramp_s=0.0),
        "engine": "io_uring",
        "direct": True,
        "seed": 1,
    }
    return Cell(**(fields | changes))  # type: ignore[arg-type]


def counters(
    read_bytes: int = 0, write_bytes: int = 0, requests: int = 1
) -> tuple[DeviceCounters, DeviceCounters]:
    """What a device counted before and after: the difference is what is given."""
    before = DeviceCounters(read_ios=7, read_sectors=70, write_ios=9, write_sectors=90)
    after = DeviceCounters(
        read_ios=7 + (requests if read_bytes else 0),
        read_sectors=70 + read_bytes // SECTOR_BYTES,
        write_ios=9 + (requests if write_bytes else 0),
        write_sectors=90 + write_bytes // SECTOR_BYTES,
    )
    return before, after


def launch(cell: Cell, text: str = "", **changes: object) -> CellRecord:
    """A launch of ``cell`` at the time that fio's output says."""
    stamp = _STAMP.search(text)
    ended_s = int(stamp[1]) / 1000 if stamp else 1_800_000_000.0
    wall_s = cell.timing.runtime_s + 0.1
    started = datetime.fromtimestamp(ended_s - wall_s, UTC).isoformat()
    return records.a_cell_record(cell, **({"started_at": started, "wall_s": wall_s} | changes))


def archive(folder: Path, record: CellRecord, text: str, stderr: str = "") -> ArchivedCell:
    """Store a cell's files under ``folder`` as the session does."""
    place = folder / record.cell.cell_id
    place.mkdir(parents=True)
    (place / layout.OUTPUT_FILE).write_text(text)
    (place / layout.STDERR_FILE).write_text(stderr)
    (place / layout.CELL_FILE).write_bytes(msgspec.json.encode(record))
    return ArchivedCell(record=record, folder=place)


def measure(
    folder: Path,
    cell: Cell,
    text: str,
    *,
    stderr: str = "",
    written: Written = PROVEN,
    **changes: object,
) -> MeasuredCell:
    """Archive ``text`` as the output of ``cell`` and return what is measured from it."""
    record = launch(cell, text, **changes)
    run = structs.replace(records.a_run_record(), written=written)
    return measure_cell(archive(folder, record, text, stderr), run)


def checks(measured: MeasuredCell, severity: str = "invalid") -> set[str]:
    """Return the names of the checks that found something of this severity."""
    return {f.check for f in measured.findings if f.severity == severity}


def finding(measured: MeasuredCell, check: str) -> Finding:
    """Return the first finding of a check."""
    return next(f for f in measured.findings if f.check == check)


def value(
    measured: MeasuredCell, metric: str, name: str | None = None, direction: str = "read"
) -> Measurement:
    """Return one measurement."""
    return next(
        m
        for m in measured.measurements
        if m.metric == metric and m.direction == direction and name in (None, m.stream)
    )


def latency(mean_us: float, count: int, max_us: float | None = None) -> LatencyStats:
    """A latency section without bins."""
    return LatencyStats(
        count=count,
        min_ns=mean_us * 500,
        max_ns=(max_us or mean_us * 2) * 1000,
        mean_ns=mean_us * 1000,
        stddev_ns=1.0,
    )


def direction(
    ios: int = 10_000,
    mean_us: float = 100.0,
    *,
    block_bytes: int = 4096,
    runtime_ms: float = 1000.0,
    **changes: object,
) -> FioDirection:
    """One consistent row: by default a job at depth 1 that did nothing else for a second."""
    fields: dict[str, object] = {
        "io_bytes": ios * block_bytes,
        "total_ios": ios,
        "runtime_ms": runtime_ms,
        "bandwidth_bytes_per_s": ios * block_bytes * 1000 / runtime_ms,
        "iops": ios * 1000 / runtime_ms,
        "clat": latency(mean_us * 0.9, ios, mean_us * 2),
        "lat": latency(mean_us, ios),
    }
    return FioDirection(**(fields | changes))  # type: ignore[arg-type]


def job(group_id: int = 0, index: int = 0, name: str = "reads", **changes: object) -> FioJob:
    """One row of fio's jobs, without I/O unless a direction is given."""
    fields: dict[str, object] = {
        "index": index,
        "name": name,
        "group_id": group_id,
        "error": 0,
        "total_err": 0,
        "first_error": 0,
        "job_runtime_ms": 1000.0,
        "user_cpu_percent": 10.0,
        "system_cpu_percent": 20.0,
        "depth_percent": {},
        "options": {},
    }
    return FioJob(**(fields | changes))  # type: ignore[arg-type]


def evidence(
    cell: Cell, *jobs: FioJob, written: Written = PROVEN, stamp_ms: int | None = None
) -> Evidence:
    """The evidence of a cell from rows made by hand."""
    record = launch(cell)
    ended = datetime.fromisoformat(record.started_at).timestamp() + record.wall_s
    result = FioResult(
        version="fio-3.33",
        timestamp_ms=int(ended * 1000) if stamp_ms is None else stamp_ms,
        jobs=jobs,
        disk_util=(),
        diagnostics=(),
    )
    return gather(record, result, written)
