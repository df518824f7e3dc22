"""An archive that a stranger gave, or a crash left: told in a sentence, never hung on or lost."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from kvbench.errors import StoreError
from kvbench.plan import Cell
from kvbench.store import layout, read
from kvbench.store.read import find_run, list_runs, read_run
from kvbench.store.records import CellRecord, RunRecord
from kvbench.store.write import RunWriter, finish_unended, write_derived
from tests.records import a_cell_record, a_plan, a_run_record, an_end_record

JOB = "[global]\nioengine=io_uring\n"
OTHERS = ["0002", "0003", "0004"]


@pytest.fixture(autouse=True)
def _never_hangs() -> Iterator[None]:
    """A read that waits for the other end of a pipe fails after some seconds."""

    def hung(_number: int, _frame: object) -> None:
        raise TimeoutError("hung")

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def store(writer: RunWriter, cell: Cell, **changes: object) -> Path:
    folder = writer.begin_cell(cell.cell_id, JOB)
    (folder / layout.OUTPUT_FILE).write_text("{}")
    (folder / layout.STDERR_FILE).write_text("")
    (folder / "latency_lat.1.log.gz").write_bytes(b"")
    return writer.commit_cell(a_cell_record(cell, **changes))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run with its first four cells and its end."""
    writer = RunWriter.create(tmp_path / "results", a_run_record())
    for cell in a_plan().cells[:4]:
        store(writer, cell)
    writer.finish(an_end_record())
    return writer.folder


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """The folder of a run with all its cells, killed before it wrote its end."""
    writer = RunWriter.create(tmp_path / "results", a_run_record())
    for cell in a_plan().cells:
        store(writer, cell)
    return writer.folder


def ids(folder: Path) -> list[str]:
    return [cell.record.cell.cell_id for cell in read_run(folder).cells]


def only_damage(folder: Path) -> str:
    (damage,) = read_run(folder).damage
    assert damage.isprintable()
    return damage


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_loop(path: Path) -> None:
    path.symlink_to(path)


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def too_much(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(read.LOG_BYTES_MAX + 1)


WRONG = pytest.mark.parametrize("put", [a_pipe, a_folder, a_loop, a_device, too_much])
Put = Callable[[Path], None]


@WRONG
def test_a_run_file_that_is_no_file_is_one_sentence(run: Path, put: Put) -> None:
    (run / layout.RUN_FILE).unlink()
    put(run / layout.RUN_FILE)
    for folder in (run, find_run(run.parent, run.name), find_run(run.parent, str(run))):
        with pytest.raises(StoreError, match=r"run\.json: cannot be read"):
            read_run(folder)


@WRONG
def test_an_end_that_is_no_file_is_damage(run: Path, put: Put) -> None:
    (run / layout.END_FILE).unlink()
    put(run / layout.END_FILE)
    assert "end.json: cannot be read" in only_damage(run)
    assert read_run(run).end is None


@WRONG
@pytest.mark.parametrize(
    "name",
    [
        layout.CELL_FILE,
        layout.OUTPUT_FILE,
        layout.STDERR_FILE,
        layout.JOB_FILE,
        "latency_lat.1.log.gz",
        "latency_lat.2.log",
        "windows_lat.1.log.gz",
    ],
)
def test_a_part_of_a_cell_that_is_no_file_is_damage_and_the_other_cells_are_kept(
    run: Path, name: str, put: Put
) -> None:
    path = layout.cell_folder(run, "0001") / name
    path.unlink(missing_ok=True)
    put(path)
    assert f"0001/{name}: cannot be read" in only_damage(run)
    assert ids(run) == OTHERS


def test_a_file_in_the_place_of_a_cell_is_damage(run: Path) -> None:
    shutil.rmtree(layout.cell_folder(run, "0001"))
    layout.cell_folder(run, "0001").write_text("no folder")
    assert "0001" in only_damage(run)
    assert ids(run) == OTHERS


def test_cells_that_cannot_be_listed_are_damage(run: Path) -> None:
    shutil.rmtree(run / layout.CELLS_FOLDER)
    assert "No such file" in only_damage(run)
    (run / layout.CELLS_FOLDER).write_text("no folder")
    assert "Not a directory" in only_damage(run)


def test_a_log_whose_name_has_no_number_is_no_log(run: Path) -> None:
    folder = layout.cell_folder(run, "0001")
    for name in (
        "latency_lat.x.log",
        "latency_lat.log",
        "latency_lat.\u00b2.log",
        "latency_lat..log",
    ):
        (folder / name).write_text("1, 2, 0, 4096\n")
    (folder / "latency_lat.10.log").write_text("")
    archive = read_run(run)
    assert archive.damage == ()
    names = [path.name for path in archive.cells[0].latency_logs()]
    assert names == ["latency_lat.1.log.gz", "latency_lat.10.log"]


def test_the_logs_of_windows_are_no_latency_logs(run: Path) -> None:
    folder = layout.cell_folder(run, "0001")
    (folder / "windows_lat.3.log.gz").write_bytes(b"")
    cell = read_run(run).cells[0]
    assert [path.name for path in cell.window_logs()] == ["windows_lat.3.log.gz"]
    assert [path.name for path in cell.latency_logs()] == ["latency_lat.1.log.gz"]


def test_a_copied_cell_is_told_and_left_out(run: Path) -> None:
    shutil.copytree(layout.cell_folder(run, "0001"), layout.cell_folder(run, "0009"))
    assert "0009/cell.json: is the record of cell '0001'" in only_damage(run)
    assert ids(run) == ["0001", *OTHERS]


def test_two_swapped_cells_are_told_and_left_out(run: Path) -> None:
    one, two, aside = (layout.cell_folder(run, name) for name in ("0001", "0002", "x"))
    one.rename(aside)
    two.rename(one)
    aside.rename(two)
    assert len(read_run(run).damage) == 2
    assert ids(run) == ["0003", "0004"]


def test_a_cell_of_another_plan_is_told_and_left_out(run: Path) -> None:
    path = layout.cell_folder(run, "0001") / layout.CELL_FILE
    record = msgspec.json.decode(path.read_bytes(), type=CellRecord)
    other = msgspec.structs.replace(record.cell, seed=record.cell.seed + 1)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(record, cell=other)))
    assert "is not the cell that the run's plan has" in only_damage(run)
    assert ids(run) == OTHERS


@pytest.mark.parametrize("version", [0, -1, -(10**30)])
def test_a_format_below_the_first_is_damage(run: Path, version: int) -> None:
    for path in (run / layout.END_FILE, layout.cell_folder(run, "0001") / layout.CELL_FILE):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"format": version}))
    assert [("is damaged" in text) for text in read_run(run).damage] == [True, True]
    path = run / layout.RUN_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": version}))
    with pytest.raises(StoreError, match=r"run\.json: is damaged"):
        read_run(run)


@pytest.mark.parametrize(
    "raw", [b'{"format":1,"x":' + b"[" * 10**5, b'{"format":1,"\x1b[2J":', b'{"format": 1e999}']
)
def test_hostile_json_is_damage_in_printable_words(run: Path, raw: bytes) -> None:
    (layout.cell_folder(run, "0001") / layout.CELL_FILE).write_bytes(raw)
    assert "is damaged" in only_damage(run)


def test_a_forged_engine_makes_the_run_file_damaged(run: Path) -> None:
    path = run / layout.RUN_FILE
    text = path.read_text().replace('"io_uring"', '"io_uring\\nexec_prerun=id"')
    path.write_text(text)
    with pytest.raises(StoreError, match=r"run\.json: is damaged"):
        read_run(run)


def cut_record(folder: Path) -> None:
    (folder / layout.CELL_FILE).write_text("{")


def no_record(folder: Path) -> None:
    (folder / layout.CELL_FILE).unlink()


def file_in_place(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("x")


def dangling_link(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.symlink_to("nowhere")


@pytest.mark.parametrize("damage", [cut_record, no_record, file_in_place, dangling_link])
def test_a_damaged_cell_is_measured_anew_and_set_aside(run: Path, damage: Put) -> None:
    first = a_plan().cells[0]
    for again in (1, 2):
        folder = layout.cell_folder(run, "0001")
        damage(folder)
        writer = RunWriter.reopen(run)
        store(writer, first)
        assert ids(run) == ["0001", *OTHERS]
        aside = folder.with_name(f".interrupted-0001.{again}")
        assert os.path.lexists(aside)
        if aside.is_dir():
            assert (aside / layout.OUTPUT_FILE).exists()


def test_what_is_set_aside_never_replaces_what_was_set_aside_before(run: Path) -> None:
    cells = run / layout.CELLS_FOLDER
    (cells / ".interrupted-0001.2").mkdir()
    (cells / ".interrupted-0001.2" / "kept").write_text("")
    RunWriter.reopen(run, frozenset({"0001"}))
    store(RunWriter.reopen(run), a_plan().cells[0])
    RunWriter.reopen(run, frozenset({"0001"}))
    names = sorted(path.name for path in cells.glob(".interrupted-*"))
    assert names == [".interrupted-0001.1", ".interrupted-0001.2", ".interrupted-0001.3"]
    assert (cells / ".interrupted-0001.2" / "kept").exists()


@pytest.mark.parametrize("put", [a_pipe, a_folder, a_loop, too_much])
def test_whatever_stands_in_the_place_of_a_half_cell_is_dropped(run: Path, put: Put) -> None:
    half = run / layout.CELLS_FOLDER / ".partial-0001"
    put(half)
    writer = RunWriter.reopen(run, frozenset({"0001"}))
    put(half)
    store(writer, a_plan().cells[0])
    assert ids(run) == ["0001", *OTHERS]


def test_a_half_cell_that_is_a_link_does_not_lead_to_what_is_deleted(
    run: Path, tmp_path: Path
) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "data").write_text("")
    (run / layout.CELLS_FOLDER / ".partial-0001").symlink_to(tmp_path / "precious")
    RunWriter.reopen(run)
    assert (tmp_path / "precious" / "data").exists()


def test_a_link_in_the_place_of_a_half_file_is_not_written_through(
    whole: Path, tmp_path: Path
) -> None:
    (tmp_path / "precious").write_text("mine")
    (whole / f".partial-{layout.END_FILE}").symlink_to(tmp_path / "precious")
    os.mkfifo(whole / f".partial-{layout.REPORT_FILE}")
    assert finish_unended(read_run(whole))
    write_derived(whole / layout.REPORT_FILE, "report")
    assert (tmp_path / "precious").read_text() == "mine"
    assert not (whole / layout.END_FILE).is_symlink()
    assert (whole / layout.REPORT_FILE).read_text() == "report"


@pytest.mark.parametrize("cell_id", ["", "..", "../0001", "1", "0001/x", "00\n01", "x" * 4])
def test_a_cell_id_that_names_another_place_is_refused(run: Path, cell_id: str) -> None:
    with pytest.raises(StoreError, match="is not the id of a cell"):
        RunWriter(run).begin_cell(cell_id, JOB)


def test_a_run_killed_after_its_last_cell_is_ended_and_complete(whole: Path) -> None:
    assert finish_unended(read_run(whole))
    end = read_run(whole).end
    assert end is not None
    assert (end.end, end.cells_done) == ("complete", len(a_plan().cells))
    assert not finish_unended(read_run(whole))


def test_a_damaged_end_of_a_whole_run_is_written_anew(whole: Path) -> None:
    (whole / layout.END_FILE).write_text("{")
    assert finish_unended(read_run(whole))
    assert read_run(whole).damage == ()


def test_a_run_that_lacks_a_cell_is_not_ended(whole: Path) -> None:
    (layout.cell_folder(whole, "0002") / layout.CELL_FILE).write_text("{")
    assert not finish_unended(read_run(whole))
    store(RunWriter.reopen(whole), a_plan().cells[1], end="interrupted")
    assert not finish_unended(read_run(whole))
    assert not (whole / layout.END_FILE).exists()


def test_a_broken_run_folder_is_spoken_of_by_its_own_name(run: Path) -> None:
    (run / layout.RUN_FILE).unlink()
    for name in (str(run), run.name):
        with pytest.raises(StoreError, match=rf"{run.name}/run\.json: is missing"):
            read_run(find_run(run.parent, name))


def test_a_name_that_cannot_be_looked_up_is_one_sentence(run: Path) -> None:
    for name in ("x" * 300, "a/" * 3000, "a\0b", "", "\ud800", "a\nb"):
        with pytest.raises(StoreError) as caught:
            find_run(run.parent, name)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 1000


def test_results_that_are_no_folder_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file: cannot be read: Not a directory"):
        list_runs(tmp_path / "file")
    with pytest.raises(StoreError, match="Not a directory"):
        find_run(tmp_path / "file", "latest")
    a_loop(tmp_path / "loop")
    with pytest.raises(StoreError, match="symbolic links"):
        list_runs(tmp_path / "loop")
    assert list_runs(tmp_path / "missing") == []


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the right to open every folder."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_may_not_be_read_is_one_sentence(run: Path) -> None:
    (run / layout.CELLS_FOLDER).chmod(0)
    results = run.parent
    try:
        run.parent.parent.chmod(0)
        with as_nobody():
            for call in (
                lambda: list_runs(results),
                lambda: find_run(results, "latest"),
                lambda: find_run(results, str(run)),
                lambda: read_run(run),
            ):
                with pytest.raises(StoreError, match="Permission denied"):
                    call()
    finally:
        run.parent.parent.chmod(0o700)
        (run / layout.CELLS_FOLDER).chmod(0o700)


def test_a_record_survives_the_round_through_its_file(run: Path) -> None:
    raw = (run / layout.RUN_FILE).read_bytes()
    assert msgspec.json.decode(raw, type=RunRecord) == a_run_record()


def test_a_pipe_in_the_place_of_a_histogram_log_is_told_and_not_waited_for(run: Path) -> None:
    cells = sorted(path for path in (run / layout.CELLS_FOLDER).iterdir() if path.is_dir())
    os.mkfifo(cells[0] / "histogram_clat_hist.1.log.gz")
    assert "histogram_clat_hist" in only_damage(run)


def test_a_run_whose_cells_lie_elsewhere_is_not_written_through(run: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (run / layout.CELLS_FOLDER).rename(elsewhere)
    mine = elsewhere / ".partial-mine"
    mine.mkdir()
    (mine / "data").write_text("precious")
    (run / layout.CELLS_FOLDER).symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    with pytest.raises(StoreError, match="symbolic link"):
        RunWriter.reopen(run, frozenset(ids(run)))
    assert sorted(elsewhere.rglob("*")) == before


def test_links_in_the_place_of_what_is_written_are_replaced_and_not_followed(
    run: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("precious")
    cells = run / layout.CELLS_FOLDER
    cell = next(one for one in read_run(run).record.plan.cells if one.cell_id not in ids(run))
    for place in (run / layout.END_FILE, run / layout.HEALTH_FILE, run / layout.REPORT_FILE):
        place.unlink(missing_ok=True)
        place.symlink_to(precious / "file")
    for name in (cell.cell_id, f".partial-{cell.cell_id}", ".partial-x"):
        (cells / name).symlink_to(precious)
    writer = RunWriter.reopen(run)
    store(writer, cell)
    writer.finish(an_end_record())
    write_derived(run / layout.REPORT_FILE, "a report")
    assert [path.name for path in precious.iterdir()] == ["file"]
    assert (precious / "file").read_text() == "precious"
    assert not (run / layout.END_FILE).is_symlink()
    assert (cells / cell.cell_id).is_dir()
    assert not (cells / cell.cell_id).is_symlink()
