"""A disk that fills up while a cell runs: fio ends well, says nothing, and is not believed."""

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kvbench.errors import StoreError
from kvbench.fio.launch import LaunchResult
from kvbench.store import layout
from kvbench.store.read import read_run
from kvbench.store.write import ROOM_AFTER_BYTES, RunWriter, finish_unended, measured_anew
from tests.records import a_cell_record, a_plan, a_run_record
from tests.test_session import Launcher, Watcher, _run

LOG = "latency_lat.1.log"


class Filling(Launcher):
    """Stands for a fio whose log takes all room in the second cell, so its output is empty."""

    def __call__(self, argv: tuple[str, ...], **options: object) -> LaunchResult:
        ended = super().__call__(argv, **options)
        cwd = options["cwd"]
        assert isinstance(cwd, Path)
        if self.calls == 2:
            (cwd / layout.OUTPUT_FILE).write_text("")
            with suppress(OSError), (cwd / LOG).open("wb", buffering=0) as log:
                while True:
                    log.write(b"1, 2000, 0, 4096\n" * 241)
        return ended


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own with 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode != 0:
        pytest.skip("cannot mount a small tmpfs here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_cell_whose_log_filled_the_disk_is_not_stored_and_is_measured_when_there_is_room(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = a_plan()
    with pytest.raises(StoreError, match="cannot take cell 0002: No space left"):
        _run(plan, small_disk, monkeypatch, Filling(), Watcher())
    folder = small_disk / a_run_record(plan).run_id
    stored = frozenset(cell.record.cell.cell_id for cell in read_run(folder).cells)
    assert stored == {plan.cells[0].cell_id}
    writer = RunWriter.reopen(folder)
    _, end = _run(plan, small_disk, monkeypatch, Launcher(), Watcher(), done=stored)
    assert (end.end, end.cells_done) == ("complete", len(plan.cells))
    assert not list((writer.folder / layout.CELLS_FOLDER).glob(".*"))


def test_a_cell_does_not_begin_where_its_output_would_find_no_room(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with suppress(OSError), (small_disk / "other").open("wb", buffering=0) as file:
        file.write(bytes(1024**2 - 56 * 1024))
    launcher = Launcher()
    with pytest.raises(StoreError, match="No space left"):
        _run(a_plan(), small_disk, monkeypatch, launcher, Watcher())
    assert launcher.calls == 0


class Cutting(Launcher):
    """Stands for a fio whose log breaks off while its output found room."""

    def __call__(self, argv: tuple[str, ...], **options: object) -> LaunchResult:
        ended = super().__call__(argv, **options)
        cwd = options["cwd"]
        assert isinstance(cwd, Path)
        (cwd / LOG).write_text("1, 2000, 0, 4096\n2, 21" if self.calls == 2 else "1, 2000\n")
        return ended


def test_a_cell_whose_log_breaks_off_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = a_plan()
    with pytest.raises(StoreError, match="breaks off, so its cell is not stored"):
        _run(plan, tmp_path, monkeypatch, Cutting(), Watcher())
    stored = read_run(tmp_path / a_run_record(plan).run_id).cells
    assert [cell.record.cell.cell_id for cell in stored] == [plan.cells[0].cell_id]


def test_looking_for_room_leaves_nothing(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, a_run_record())
    writer.check_room("0001", ROOM_AFTER_BYTES)
    assert not list((writer.folder / layout.CELLS_FOLDER).iterdir())


def test_a_stored_cell_without_output_is_measured_anew_with_what_depended_on_it(
    tmp_path: Path,
) -> None:
    plan = a_plan()
    writer = RunWriter.create(tmp_path, a_run_record(plan))
    first, second = (c for c in plan.cells if c.purpose == "measure" and c.repetition == 1)
    for cell in plan.cells:
        folder = writer.begin_cell(cell.cell_id, "[a]\n")
        (folder / layout.OUTPUT_FILE).write_text("" if cell is first else "{}")
        changes = {"end": "not-run", "exit_code": None} if cell is second else {}
        writer.commit_cell(a_cell_record(cell, **changes))
    archive = read_run(writer.folder)
    assert measured_anew(archive) == {first.cell_id, second.cell_id}
    assert not finish_unended(archive), "it is not whole"


@pytest.mark.parametrize(
    "changes",
    [{"exit_code": 1}, {"end": "timeout", "exit_code": None}, {"end": "not-run"}],
)
def test_a_cell_that_failed_for_itself_is_not_measured_anew(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    plan = a_plan()
    writer = RunWriter.create(tmp_path, a_run_record(plan))
    folder = writer.begin_cell(plan.cells[0].cell_id, "[a]\n")
    (folder / layout.OUTPUT_FILE).write_text("")
    writer.commit_cell(a_cell_record(plan.cells[0], **changes))
    assert measured_anew(read_run(writer.folder)) == frozenset()
