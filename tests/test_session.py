"""The loop with effects: what it stores, when it goes on, when it stops."""

import gzip
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kvbench import session
from kvbench.errors import Refused, StoreError
from kvbench.fio.launch import LaunchResult, LiveCounters
from kvbench.fio.probe import FioTool
from kvbench.host import guard, probe
from kvbench.host.model import Identity
from kvbench.measure.curves import Curves
from kvbench.measure.load import with_rate
from kvbench.measure.run import measure_cell
from kvbench.plan import Cell, Plan
from kvbench.session import keep_logs
from kvbench.store import layout
from kvbench.store.read import read_run
from kvbench.store.records import CellRecord, EndRecord
from kvbench.store.write import RunWriter
from kvbench.workload.schema import Load
from tests.records import a_plan, a_run_record, a_workload
from tests.sessions import run_plan

TOOL = FioTool(path="/usr/bin/fio", version_text="fio-3.33", version=(3, 33))
STARTED = datetime(2026, 7, 1, 12, tzinfo=UTC)


class Watcher:
    """An observer that remembers, and may act when a cell starts."""

    def __init__(self, on_start: Callable[[Cell], None] = lambda _: None) -> None:
        self.on_start = on_start
        self.left: list[float] = []
        self.stored: list[str] = []

    def cell_started(self, cell: Cell, number: int, total: int, left_s: float) -> None:
        assert 1 <= number <= total
        self.left.append(left_s)
        self.on_start(cell)

    def cell_running(self, cell: Cell, counters: LiveCounters, samples: object) -> None:
        """Nothing to remember."""

    def cell_stored(self, cell: Cell, record: CellRecord) -> None:
        assert record.cell.as_planned == cell
        self.stored.append(cell.cell_id)


class Launcher:
    """Stands for fio, so that scheduling is tested without waiting."""

    def __init__(self, results: dict[int, LaunchResult] | None = None) -> None:
        self.results = results or {}
        self.calls = 0

    def __call__(self, argv: tuple[str, ...], **options: object) -> LaunchResult:
        self.calls += 1
        cwd = options["cwd"]
        assert isinstance(cwd, Path)
        assert (cwd / argv[-1]).exists(), "the job file stands in fio's working folder"
        (cwd / layout.OUTPUT_FILE).write_text("{}")
        return self.results.get(self.calls, _ended())


def _ended(**changes: object) -> LaunchResult:
    fields: dict[str, object] = {
        "end": "exited",
        "exit_code": 0,
        "wall_s": 0.5,
        "survivors": (),
        "escalation": (),
    }
    return LaunchResult(**(fields | changes))  # type: ignore[arg-type]


@pytest.fixture
def plan() -> Plan:
    return a_plan()


def _run(
    plan: Plan,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    launcher: Launcher,
    watcher: Watcher,
    *,
    stop: threading.Event | None = None,
    same_device: Callable[[Identity], None] = lambda _: None,
    done: frozenset[str] = frozenset(),
) -> tuple[RunWriter, EndRecord]:
    monkeypatch.setattr(session, "launch", launcher)
    monkeypatch.setattr(guard, "same_device", same_device)
    monkeypatch.setattr(probe, "device_under", lambda _: None)
    record = a_run_record(plan)
    folder = tmp_path / record.run_id
    writer = RunWriter(folder) if folder.exists() else RunWriter.create(tmp_path, record)
    end = run_plan(
        plan,
        tool=TOOL,
        identity=record.identity,
        writer=writer,
        observer=watcher,
        stop=stop or threading.Event(),
        done=done,
        now=lambda: STARTED,
    )
    return writer, end


def test_every_cell_of_the_plan_is_stored_in_order(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher()
    writer, end = _run(plan, tmp_path, monkeypatch, Launcher(), watcher)
    assert (end.end, end.cells_done) == ("complete", len(plan.cells))
    assert watcher.stored == [cell.cell_id for cell in plan.cells]
    assert watcher.left == sorted(watcher.left, reverse=True)
    assert read_run(writer.folder).end == end


def test_a_cell_that_fails_does_not_stop_the_run(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = Launcher({2: _ended(exit_code=1), 3: _ended(end="timeout", exit_code=None)})
    writer, end = _run(plan, tmp_path, monkeypatch, launcher, Watcher())
    assert end.end == "complete"
    codes = [cell.record.exit_code for cell in read_run(writer.folder).cells]
    assert codes[:4] == [0, 1, None, 0]


def test_a_stop_is_kept_as_an_interrupted_cell_and_ends_the_run(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = Launcher({2: _ended(end="interrupted", exit_code=128, escalation=("INT",))})
    writer, end = _run(plan, tmp_path, monkeypatch, launcher, Watcher())
    assert (end.end, end.cells_done) == ("interrupted", 2)
    last = read_run(writer.folder).cells[-1].record
    assert (last.end, last.note) == ("interrupted", "ended by INT")


def test_a_stop_between_two_cells_starts_no_other(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = threading.Event()
    launcher = Launcher()
    watcher = Watcher()
    watcher.on_start = lambda cell: stop.set() if cell is plan.cells[1] else None
    _, end = _run(plan, tmp_path, monkeypatch, launcher, watcher, stop=stop)
    assert (end.end, end.cells_done, launcher.calls) == ("interrupted", 2, 2)


def test_a_target_that_changed_ends_the_run_before_the_next_launch(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = Launcher()

    def changed(_: Identity) -> None:
        if launcher.calls == 2:
            raise Refused("is another device now", where="/dev/loop0")

    writer, end = _run(plan, tmp_path, monkeypatch, launcher, Watcher(), same_device=changed)
    assert (end.end, launcher.calls) == ("failed", 2)
    assert "another device" in end.reason
    assert len(read_run(writer.folder).cells) == 2


def test_a_fio_that_cannot_be_ended_ends_the_run_and_is_named(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = Launcher({1: _ended(end="timeout", exit_code=None, survivors=(4711,))})
    _, end = _run(plan, tmp_path, monkeypatch, launcher, Watcher())
    assert end.end == "failed"
    assert "4711" in end.reason


def test_a_store_that_cannot_be_written_is_raised_and_keeps_what_it_has(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = RunWriter.commit_cell

    def full(self: RunWriter, record: CellRecord) -> Path:
        if record.cell.cell_id == "0003":
            raise StoreError("cannot be written: No space left on device")
        return commit(self, record)

    monkeypatch.setattr(RunWriter, "commit_cell", full)
    with pytest.raises(StoreError, match="No space left"):
        _run(plan, tmp_path, monkeypatch, Launcher(), Watcher())
    assert len(read_run(tmp_path / a_run_record(plan).run_id).cells) == 2


def test_cells_that_are_done_are_not_run_again(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = frozenset(cell.cell_id for cell in plan.cells[:3])
    watcher = Watcher()
    _, end = _run(plan, tmp_path, monkeypatch, Launcher(), watcher, done=done)
    assert watcher.stored == [cell.cell_id for cell in plan.cells[3:]]
    assert end.cells_done == len(plan.cells)


@pytest.mark.parametrize("prefix", ["latency", "windows"])
def test_of_fios_three_latency_logs_the_whole_one_is_kept_compressed(
    prefix: str, tmp_path: Path
) -> None:
    for part in ("lat", "clat", "slat"):
        (tmp_path / f"{prefix}_{part}.1.log").write_text("1, 2000, 0, 4096\n")
    keep_logs(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{prefix}_lat.1.log.gz"]
    with gzip.open(tmp_path / f"{prefix}_lat.1.log.gz", "rt") as log:
        assert log.read() == "1, 2000, 0, 4096\n"


def test_the_histograms_per_second_are_kept_compressed(tmp_path: Path) -> None:
    (tmp_path / "histogram_clat_hist.2.log").write_text("1000, 0, 4096, 0, 7\n")
    keep_logs(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["histogram_clat_hist.2.log.gz"]
    assert layout.is_log("histogram_clat_hist.2.log.gz", layout.HISTOGRAM_LOG_PREFIX)
    assert layout.log_job_number(tmp_path / "histogram_clat_hist.2.log.gz") == 2


CURVE = a_workload(
    sweep=(), load=Load(percents=(50,), queue_depth=256, limit_s=0.001, search_steps=1)
)


def test_a_share_of_a_peak_that_failed_is_stored_as_not_run_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = a_plan(CURVE, repetitions=1)
    launcher = Launcher()  # its output is no fio document, so the peak fails
    writer, end = _run(plan, tmp_path, monkeypatch, launcher, Watcher())
    assert (end.end, end.cells_done) == ("complete", len(plan.cells))
    cells = {c.record.cell.cell_id: c for c in read_run(writer.folder).cells}
    undecided = [cells[c.cell_id] for c in plan.cells if c.undecided]
    assert [c.record.end for c in undecided] == ["not-run", "not-run"]
    assert launcher.calls == len(plan.cells) - 2
    for archived in undecided:
        assert "peak" in archived.record.note
        assert archived.job_text().startswith("# not run: ")
        measured = measure_cell(archived, read_run(writer.folder).record)
        assert measured.outcome == "failed"
        assert "not run: the peak" in measured.findings[0].text


def test_the_cells_of_a_load_curve_are_stored_with_the_rate_that_was_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = a_plan(CURVE, repetitions=1)
    monkeypatch.setattr(Curves, "decided", lambda _, cell: (_at(cell, 500.0), ""))
    writer, end = _run(plan, tmp_path, monkeypatch, Launcher(), Watcher())
    archive = read_run(writer.folder)
    assert not archive.damage, "a decided rate is no damage"
    assert len(archive.cells) == end.cells_done == len(plan.cells)
    rates = [c.record.cell.placed[0].stream.rate_iops for c in archive.cells]
    assert rates.count(500.0) == 2
    assert "rate_iops=500" in archive.cells[-1].job_text()


def _at(cell: Cell, rate_iops: float) -> Cell:
    return with_rate(cell, rate_iops) if cell.undecided else cell
