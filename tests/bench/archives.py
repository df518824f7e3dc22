"""Large archives made from a small real one, for measuring how long kvbench takes with them."""

import os
import shutil
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kvbench.plan import Cell
from kvbench.store import layout
from kvbench.store.records import CellRecord, RunRecord


def like(example: Path, folder: Path, cells_wanted: int) -> Path:
    """Write a run of ``cells_wanted`` cells as ``folder``, and return it.

    The measured cells of ``example`` come again, by turns as further repetitions of their point
    and as the same repetition of another point.  fio's output is shared by hard links.
    """
    record = msgspec.json.decode((example / layout.RUN_FILE).read_bytes(), type=RunRecord)
    stored = [c for c in record.plan.cells if layout.cell_folder(example, c.cell_id).exists()]
    again = [cell for cell in stored if cell.purpose == "measure"]
    repetitions = max(cell.repetition for cell in again)
    (folder / layout.CELLS_FOLDER).mkdir(parents=True)
    if (example / layout.END_FILE).exists():
        shutil.copyfile(example / layout.END_FILE, folder / layout.END_FILE)
    cells: list[Cell] = []
    for number in range(cells_wanted):
        source = stored[number] if number < len(stored) else again[number % len(again)]
        turn = 0 if number < len(stored) else 1 + (number - len(stored)) // len(again)
        cell = _copy(source, f"{number + 1:04d}", turn, repetitions)
        _write(layout.cell_folder(example, source.cell_id), folder, cell)
        cells.append(cell)
    plan = replace(
        record.plan, cells=tuple(cells), repetitions=max(cell.repetition for cell in cells)
    )
    made = replace(record, run_id=folder.name, label=folder.name, plan=plan)
    (folder / layout.RUN_FILE).write_bytes(msgspec.json.encode(made))
    return folder


def _copy(source: Cell, cell_id: str, turn: int, repetitions: int) -> Cell:
    """Return a cell like ``source``: turns 1, 3, ... repeat its point, 2 and 3 are another."""
    other = turn // 2
    cell = replace(source, cell_id=cell_id, repetition=source.repetition + (turn % 2) * repetitions)
    if not other:
        return cell
    return replace(
        cell,
        point_id=f"{source.point_id}-{other}",
        parameters={**source.parameters, "again": other},
    )


def _write(source: Path, folder: Path, cell: Cell) -> None:
    where = layout.cell_folder(folder, cell.cell_id)
    shutil.copytree(source, where, copy_function=os.link)
    record = msgspec.json.decode((source / layout.CELL_FILE).read_bytes(), type=CellRecord)
    (where / layout.CELL_FILE).unlink()
    new = replace(record, cell=cell)
    (where / layout.CELL_FILE).write_bytes(msgspec.json.encode(new))
