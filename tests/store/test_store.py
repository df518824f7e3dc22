"""The run folder: written once, atomic per cell, damage told, never lost."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest

from kvbench.errors import ExitCode, StoreError
from kvbench.host.health_model import (
    CellHealth,
    DriveHealth,
    HealthSample,
    KernelLine,
    RunHealth,
    SessionHealth,
)
from kvbench.store import layout
from kvbench.store.read import find_run, list_runs, read_run
from kvbench.store.records import FORMAT
from kvbench.store.write import RunWriter, write_derived
from tests.records import a_cell_record, a_plan, a_run_record, an_end_record

JOB = "[global]\nioengine=io_uring\n"


def a_stored_run(results: Path, run_id: str = "20260701T120000Z", cells: int = 2) -> Path:
    plan = a_plan()
    writer = RunWriter.create(results, a_run_record(plan, run_id))
    for cell in plan.cells[:cells]:
        folder = writer.begin_cell(cell.cell_id, JOB)
        (folder / layout.OUTPUT_FILE).write_text('{"fio version": "fio-3.33"}')
        writer.commit_cell(a_cell_record(cell))
    writer.finish(an_end_record())
    return writer.folder


def test_what_was_written_is_read_back_equal(tmp_path: Path) -> None:
    plan = a_plan()
    folder = a_stored_run(tmp_path)
    archive = read_run(folder)
    assert archive.record == a_run_record(plan)
    assert [cell.record.cell for cell in archive.cells] == list(plan.cells[:2])
    assert archive.cells[0].job_text() == JOB
    assert archive.cells[0].output_text().startswith("{")
    assert archive.cells[0].stderr_text() == ""
    assert archive.end == an_end_record()
    assert archive.damage == ()


def a_session(temperature_c: int | None = 45) -> SessionHealth:
    told = DriveHealth(at="2026-07-01T12:00:00Z", unknown={"smart": f"{temperature_c} C"})
    return SessionHealth(drive="nvme0n1", devices=("nvme0n1", "nvme0"), before=told, after=told)


def test_health_is_kept_beside_the_run_and_a_later_session_is_added(tmp_path: Path) -> None:
    folder = a_stored_run(tmp_path)
    assert read_run(folder).health is None
    writer = RunWriter.reopen(folder)
    first = RunHealth(format=FORMAT, sessions=(a_session(),))
    writer.keep_health(first)
    assert read_run(folder).health == first
    both = RunHealth(format=FORMAT, sessions=(*first.sessions, a_session(50)))
    writer.keep_health(both)
    assert read_run(folder).health == both


def test_health_that_cannot_be_read_is_damage_and_the_run_stays(tmp_path: Path) -> None:
    folder = a_stored_run(tmp_path)
    (folder / layout.HEALTH_FILE).write_text('{"format": 1, "sessions": 7}')
    archive = read_run(folder)
    assert archive.health is None
    assert len(archive.cells) == 2
    (damage,) = archive.damage
    assert layout.HEALTH_FILE in damage


def test_a_cell_keeps_what_was_seen_of_its_drive(tmp_path: Path) -> None:
    plan = a_plan()
    writer = RunWriter.create(tmp_path, a_run_record(plan))
    seen = CellHealth(
        samples=(HealthSample(at_s=0.0, temperature_c=45.0, state="live"),),
        kernel=(KernelLine(at_s=0.5, priority=3, text="I/O error, dev nvme0n1"),),
        unknown={"smart": "there is no nvme-cli"},
    )
    writer.begin_cell(plan.cells[0].cell_id, JOB)
    writer.commit_cell(a_cell_record(plan.cells[0], health=seen))
    (cell,) = read_run(writer.folder).cells
    assert cell.record.health == seen


def test_a_cell_of_a_version_that_did_not_look_is_read_without_health(tmp_path: Path) -> None:
    folder = a_stored_run(tmp_path, cells=1)
    path = next((folder / layout.CELLS_FOLDER).glob(f"*/{layout.CELL_FILE}"))
    older = msgspec.json.decode(path.read_bytes())
    del older["health"]
    path.write_bytes(msgspec.json.encode(older))
    archive = read_run(folder)
    assert archive.damage == ()
    assert archive.cells[0].record.health is None


def test_a_cell_that_was_not_committed_is_not_in_the_archive(tmp_path: Path) -> None:
    plan = a_plan()
    writer = RunWriter.create(tmp_path, a_run_record(plan))
    writer.begin_cell(plan.cells[0].cell_id, JOB)
    archive = read_run(writer.folder)
    assert archive.cells == ()
    assert archive.end is None


def test_a_killed_writer_loses_at_most_the_running_cell(tmp_path: Path) -> None:
    program = textwrap.dedent(
        f"""
        import os, signal
        from pathlib import Path
        from kvbench.store.write import RunWriter
        from tests.records import a_cell_record, a_plan, a_run_record
        plan = a_plan()
        writer = RunWriter.create(Path({str(tmp_path)!r}), a_run_record(plan))
        for cell in plan.cells[:3]:
            writer.begin_cell(cell.cell_id, "job")
            if cell is plan.cells[2]:
                os.kill(os.getpid(), signal.SIGKILL)
            writer.commit_cell(a_cell_record(cell))
        """
    )
    root = Path(__file__).resolve().parents[2]
    died = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        check=False,
    )
    assert died.returncode == -signal.SIGKILL
    archive = read_run(list_runs(tmp_path)[0])
    assert [cell.record.cell.cell_id for cell in archive.cells] == ["0001", "0002"]
    assert archive.damage == ()


def test_reopening_drops_the_half_cell_and_keeps_the_rest(tmp_path: Path) -> None:
    plan = a_plan()
    folder = a_stored_run(tmp_path, cells=2)
    writer = RunWriter.reopen(folder)
    writer.begin_cell("0003", JOB)
    writer = RunWriter.reopen(folder)
    assert [path.name for path in sorted((folder / layout.CELLS_FOLDER).iterdir())] == [
        "0001",
        "0002",
    ]
    writer.begin_cell("0003", JOB)
    writer.commit_cell(a_cell_record(plan.cells[2]))
    archive = read_run(folder)
    assert archive.end is None
    assert len(archive.cells) == 3


def test_a_new_run_is_on_disk_with_every_folder_that_leads_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(
        os, "fsync", lambda number: synced.append(Path(f"/proc/self/fd/{number}").readlink())
    )
    results = tmp_path / "results"
    writer = RunWriter.create(results, a_run_record())
    assert synced[0].name.startswith(".partial-"), "run.json, before it has its name"
    assert synced[1:] == [writer.folder, results]


def test_reopening_drops_what_a_killed_rewriting_left_and_nothing_else(tmp_path: Path) -> None:
    folder = RunWriter.create(tmp_path, a_run_record()).folder
    left = folder / "rewrite-0003"
    left.mkdir()
    (left / "out.json").write_text("half of a docu")
    (folder / "rewrite-notes").write_text("of the user")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("kept")
    (folder / "rewrite-0004").symlink_to(elsewhere)
    RunWriter.reopen(folder)
    assert [path.name for path in folder.glob("rewrite-*")] == ["rewrite-notes"]
    assert (elsewhere / "file").exists()


def test_a_run_is_never_overwritten(tmp_path: Path) -> None:
    a_stored_run(tmp_path)
    with pytest.raises(StoreError, match="exists already"):
        a_stored_run(tmp_path)


@pytest.mark.parametrize(
    "damage", [b"", b"{", b'{"format": 1}', b"\xff\xfe\x00", b"[]", b'{"format": "one"}', b"null"]
)
def test_a_damaged_run_file_is_one_sentence_and_exit_5(tmp_path: Path, damage: bytes) -> None:
    folder = a_stored_run(tmp_path)
    (folder / layout.RUN_FILE).write_bytes(damage)
    with pytest.raises(StoreError, match=r"run\.json: is damaged") as caught:
        read_run(folder)
    assert caught.value.exit_code == ExitCode.STORE


def test_a_newer_format_is_refused_and_not_guessed_at(tmp_path: Path) -> None:
    folder = a_stored_run(tmp_path)
    newer = msgspec.json.decode((folder / layout.RUN_FILE).read_bytes()) | {"format": FORMAT + 1}
    (folder / layout.RUN_FILE).write_bytes(msgspec.json.encode(newer))
    with pytest.raises(StoreError, match="format 2, this kvbench reads up to 1"):
        read_run(folder)


def test_a_damaged_cell_is_told_and_the_others_are_kept(tmp_path: Path) -> None:
    folder = a_stored_run(tmp_path)
    (layout.cell_folder(folder, "0001") / layout.CELL_FILE).write_text("{ cut")
    archive = read_run(folder)
    assert [cell.record.cell.cell_id for cell in archive.cells] == ["0002"]
    assert len(archive.damage) == 1
    assert "0001" in archive.damage[0]


def test_a_folder_that_cannot_be_written_is_exit_5_with_advice(tmp_path: Path) -> None:
    not_a_folder = tmp_path / "results"
    not_a_folder.write_text("a file stands here")
    with pytest.raises(StoreError, match="cannot be written") as caught:
        RunWriter.create(not_a_folder, a_run_record())
    assert "--results" in str(caught.value)


def test_a_full_disk_keeps_the_cells_that_were_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = a_plan()
    writer = RunWriter.create(tmp_path, a_run_record(plan))
    writer.begin_cell("0001", JOB)
    writer.commit_cell(a_cell_record(plan.cells[0]))
    writer.begin_cell("0002", JOB)

    def full(_path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kvbench.store.write.sync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        writer.commit_cell(a_cell_record(plan.cells[1]))
    monkeypatch.undo()
    assert [cell.record.cell.cell_id for cell in read_run(writer.folder).cells] == ["0001"]


def test_a_run_is_found_by_its_label_when_one_run_has_it(tmp_path: Path) -> None:
    for name in ("20260701T120000.000Z-FW-1", "20260701T120001.000Z-FW-2", "20260701T120002.000Z"):
        RunWriter.create(tmp_path, a_run_record(run_id=name))
    assert find_run(tmp_path, "FW 1").name == "20260701T120000.000Z-FW-1"
    with pytest.raises(StoreError, match="no run '-'"):
        find_run(tmp_path, "-")
    RunWriter.create(tmp_path, a_run_record(run_id="20260701T120003.000Z-FW-1"))
    with pytest.raises(StoreError, match="2 runs are labelled 'FW 1'"):
        find_run(tmp_path, "FW 1")


def test_runs_are_found_by_id_by_folder_and_as_latest(tmp_path: Path) -> None:
    first = a_stored_run(tmp_path, "20260701T120000Z")
    second = a_stored_run(tmp_path, "20260702T120000Z-after")
    assert find_run(tmp_path, "latest") == second
    assert find_run(tmp_path, first.name) == first
    assert find_run(tmp_path / "elsewhere", str(first)) == first
    with pytest.raises(StoreError, match="20260702T120000Z-after"):
        find_run(tmp_path, "20250101T000000Z")


def test_a_derived_file_replaces_the_old_one_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.html"
    write_derived(path, "one")
    write_derived(path, "two")
    assert path.read_text() == "two"
    assert [found.name for found in path.parent.iterdir()] == ["report.html"]


def test_a_run_id_has_nothing_that_fio_or_a_shell_would_split() -> None:
    from datetime import UTC, datetime

    moment = datetime(2026, 7, 1, 12, 0, 5, tzinfo=UTC)
    assert layout.run_id(moment, "") == "20260701T120005.000Z"
    assert layout.run_id(moment, "new fw: 1.2/../x\n") == "20260701T120005.000Z-new-fw-1.2-..-x"


def test_writing_a_file_removes_nothing_that_is_not_its_own(tmp_path: Path) -> None:
    mine = tmp_path / ".partial-x.html"
    mine.mkdir()
    (mine / "precious").write_text("data")
    write_derived(tmp_path / "x.html", "new")
    assert (mine / "precious").read_text() == "data"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".partial-x.html", "x.html"]


def test_a_file_that_cannot_be_written_leaves_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "x.html").mkdir()
    (tmp_path / "x.html" / "full").write_text("")
    with pytest.raises(StoreError):
        write_derived(tmp_path / "x.html", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["x.html"]
