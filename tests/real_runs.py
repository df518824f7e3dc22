"""Small runs of the session with the real fio on a written file or loop device of a test's own."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from msgspec import Struct
from msgspec.structs import replace

from kvbench.fio.launch import LiveCounters
from kvbench.fio.model import FioResult
from kvbench.fio.output import parse
from kvbench.fio.probe import find_fio
from kvbench.host.health import HealthWatch
from kvbench.host.probe import identify
from kvbench.measure.model import MeasuredCell
from kvbench.measure.run import measure_cell
from kvbench.plan import Cell, Plan, TargetSpec, make_plan
from kvbench.store.read import ArchivedCell, read_run
from kvbench.store.records import CellRecord, EndRecord, RunRecord
from kvbench.store.write import RunWriter
from kvbench.units import MIB
from kvbench.workload.schema import BlockShare, Stream, Timing, Workload
from tests import direct_io
from tests.measure.builders import PROVEN
from tests.records import a_run_record, a_stream, a_workload
from tests.sessions import run_plan

SIZE_BYTES = 32 * MIB


class Watcher:
    """An observer that may act while a cell runs."""

    def __init__(self, while_running: Callable[[], None] = lambda: None) -> None:
        self.while_running = while_running

    def cell_started(self, cell: Cell, number: int, total: int, left_s: float) -> None:
        """Nothing to do."""

    def cell_running(self, _cell: Cell, _counters: LiveCounters, _samples: object) -> None:
        """Act."""
        self.while_running()

    def cell_stored(self, cell: Cell, record: CellRecord) -> None:
        """Nothing to do."""


class Run(Struct, frozen=True, kw_only=True):
    """What a run left, and its record."""

    record: RunRecord
    end: EndRecord
    folder: Path

    @property
    def cells(self) -> tuple[ArchivedCell, ...]:
        """The stored cells that measured, in order."""
        every = read_run(self.folder).cells
        return tuple(cell for cell in every if cell.record.cell.purpose == "measure")

    def result(self, number: int = 0) -> FioResult:
        """What fio said in one of them."""
        stored = self.cells[number]
        return parse(stored.output_text(), stderr=stored.stderr_text())

    def measured(self, number: int = 0) -> MeasuredCell:
        """What is made of one of them."""
        return measure_cell(self.cells[number], self.record)


@contextmanager
def written_file(size_bytes: int = SIZE_BYTES) -> Iterator[Path]:
    """Yield a file on a disk, all of it on the disk and nothing of it in the page cache."""
    with TemporaryDirectory(dir="/var/tmp", prefix="kvbench-test-") as folder:
        path = Path(folder) / "target"
        write_all(path, size_bytes)
        if not direct_io.works(path):
            pytest.skip("no O_DIRECT in /var/tmp")
        yield path


def write_all(path: Path, size_bytes: int = SIZE_BYTES) -> None:
    """Write a file of bytes of which no block is zeroes."""
    path.write_bytes(os.urandom(MIB) * (size_bytes // MIB))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def fixed(size_bytes: int) -> tuple[BlockShare, ...]:
    """A mix of one size."""
    return (BlockShare(size_bytes=size_bytes, percent=100),)


def workload(*streams: Stream, runtime_s: float = 0.3, ramp_s: float = 0.0) -> Workload:
    """A workload of these streams and nothing else."""
    return a_workload(
        streams=streams,
        sweep=(),
        timing=Timing(runtime_s=runtime_s, ramp_s=ramp_s),
        primary=(f"{streams[0].name}.iops",),
    )


def one(**stream: object) -> Workload:
    """A workload of one stream, at depth 1 unless it says otherwise."""
    return workload(a_stream(**({"queue_depth": 1} | stream)))


def plan_on(target: str | Path, *workloads: Workload, repetitions: int = 1) -> Plan:
    """The plan of workloads that may write to all of a target."""
    identity = identify(str(target))
    spec = TargetSpec(
        path=identity.real_path,
        kind=identity.kind,
        size_bytes=identity.size_bytes,
        own_file=False,
    )
    return make_plan(workloads, spec, repetitions=repetitions, seed=7, may_write=True)


def start(plan: Plan, folder: Path) -> RunRecord:
    """Make the run's folder inside ``folder``."""
    record = a_run_record(plan)
    record = replace(record, identity=identify(plan.target.path), written=PROVEN)
    RunWriter.create(folder, record)
    return record


def go_on(
    record: RunRecord,
    fio: str,
    folder: Path,
    *,
    while_running: Callable[[], None] = lambda: None,
    stop: threading.Event | None = None,
    watch: HealthWatch | None = None,
) -> Run:
    """Run what the folder has not stored yet."""
    place = folder / record.run_id
    done = frozenset(cell.record.cell.cell_id for cell in read_run(place).cells)
    end = run_plan(
        record.plan,
        tool=find_fio(fio),
        identity=record.identity,
        writer=RunWriter(place),
        observer=Watcher(while_running),
        stop=stop or threading.Event(),
        done=done,
        watch=watch,
    )
    return Run(record=record, end=end, folder=place)


def run(target: str | Path, fio: str, folder: Path, *workloads: Workload) -> Run:
    """Run workloads on a target, once, to the end."""
    got = go_on(start(plan_on(target, *workloads), folder), fio, folder)
    assert got.end.end == "complete", got.end.reason
    return got
