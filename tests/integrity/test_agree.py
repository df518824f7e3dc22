"""A plan that was edited after its run contradicts what was stored beside it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from kvbench.errors import UsageError
from kvbench.fio.jobfile import render
from kvbench.integrity.agree import check_agreement
from kvbench.plan import Cell, Plan
from kvbench.store import journal, layout
from kvbench.store.journal import Begun
from kvbench.store.read import RunArchive, read_run
from kvbench.store.records import CellRecord
from kvbench.store.write import RunWriter
from tests import records
from tests.integrity.test_expected import a_plan, begun, measuring, writer

PLAN = a_plan(writer("first"), writer("second"))


def stored(folder: Path, plan: Plan = PLAN, *, job_of: Plan = PLAN) -> RunArchive:
    """A run of two cells, of which the second was cut off, with the jobs of another plan."""
    run = RunWriter.create(folder, records.a_run_record(plan))
    first, second = measuring(job_of)
    run.begin_cell(first.cell_id, render(first, "/data/file"))
    run.commit_cell(records.a_cell_record(measuring(plan)[0]))
    run.begin_cell(second.cell_id, render(second, "/data/file"))
    return read_run(run.folder)


def with_cells(change: dict[str, object], number: int) -> Plan:
    """The plan with one of its two writing cells changed."""
    chosen = measuring(PLAN)[number].cell_id
    cells = tuple(
        replace(
            cell,
            placed=tuple(replace(one, **change) for one in cell.placed),
        )
        if cell.cell_id == chosen
        else cell
        for cell in PLAN.cells
    )
    return replace(PLAN, cells=cells)


def problem(archive: RunArchive, entries: list[Begun] | None = None) -> str:
    with pytest.raises(UsageError, match="what must be on the target is not known") as raised:
        check_agreement(archive, begun(measuring(PLAN)) if entries is None else entries)
    assert str(raised.value).count("\n") == 0
    return raised.value.message


def test_a_run_as_it_was_stored_agrees_with_itself(tmp_path: Path) -> None:
    check_agreement(stored(tmp_path), begun(measuring(PLAN)))


@pytest.mark.parametrize("number", [0, 1], ids=["a cell that ended", "one that was cut off"])
def test_a_place_that_is_not_the_jobs_is_told_with_both(tmp_path: Path, number: int) -> None:
    edited = with_cells({"offset_bytes": 512}, number)
    assert "job.fio of cell" in (said := problem(stored(tmp_path, edited)))
    assert "offset 512 and '0'" in said


def test_a_job_of_an_interrupted_launch_that_was_set_aside_counts_as_well(tmp_path: Path) -> None:
    archive = stored(tmp_path)
    cell = measuring(PLAN)[1]
    aside = archive.folder / layout.CELLS_FOLDER / f".interrupted-{cell.cell_id}.1"
    aside.mkdir()
    text = render(cell, "/data/file").replace("bs=4096", "bs=8192")
    (aside / layout.JOB_FILE).write_text(text)
    assert "bs 4096 and '8192'" in problem(archive)


def test_a_record_of_another_cell_than_the_plan_s_is_told(tmp_path: Path) -> None:
    archive = stored(tmp_path)
    edited = replace(
        archive, record=replace(archive.record, plan=with_cells({"size_bytes": 4096}, 0))
    )
    assert "the record of cell" in problem(edited)


def test_a_beginning_of_a_cell_that_the_plan_does_not_have_is_told(tmp_path: Path) -> None:
    strange = [*begun(measuring(PLAN)), Begun(cell_id="9999", boot_id="boot", begin_s=9.0)]
    assert f"{journal.FILE} says that cell '9999' began" in problem(stored(tmp_path), strange)


def test_a_stored_cell_whose_beginning_was_taken_out_is_told(tmp_path: Path) -> None:
    assert "does not say that it began" in problem(stored(tmp_path), begun(measuring(PLAN))[1:])


def test_a_job_of_another_version_with_other_lines_agrees(tmp_path: Path) -> None:
    archive = stored(tmp_path)
    (path,) = archive.folder.glob(f"cells/[0-9]*/{layout.JOB_FILE}")
    kept = [line for line in path.read_text().splitlines() if not line.startswith("randseed=")]
    path.write_text("\n".join([*kept, "new_option=1"]))
    check_agreement(archive, begun(measuring(PLAN)))


def test_a_damaged_record_is_a_cell_that_was_cut_off_and_no_contradiction(tmp_path: Path) -> None:
    archive = stored(tmp_path)
    cell: Cell = measuring(PLAN)[0]
    (layout.cell_folder(archive.folder, cell.cell_id) / layout.CELL_FILE).write_text("{")
    again = read_run(archive.folder)
    kept: list[CellRecord] = [one.record for one in again.cells]
    assert kept == []
    check_agreement(again, begun(measuring(PLAN)))
