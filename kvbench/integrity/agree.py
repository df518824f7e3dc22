"""Do the parts of a stored run say the same of what it wrote?  Reads its folder only.

What must be on the target follows from the plan in run.json.  Were that file edited, honest data
would look damaged.  So before a drive is accused, the plan is held against what was stored beside
it when the cells ran: the note of each beginning, the job text that fio was given, and the cell's
own record.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kvbench.document import found, read_regular
from kvbench.errors import StoreError, UsageError
from kvbench.fio.sections import section
from kvbench.plan import Cell
from kvbench.store import journal, layout
from kvbench.store.read import RunArchive, read_record
from kvbench.store.records import CellRecord
from kvbench.units import MIB

JOB_BYTES_MAX = MIB
# what decides which bytes are written where; other lines may differ between versions of kvbench
_DECIDES = ("rw", "bs", "bssplit", "offset", "size", "randseed")


def check_agreement(archive: RunArchive, begun: Sequence[journal.Begun]) -> None:
    """Return when the plan of a run fits everything that was stored of its writing cells.

    Raises:
        UsageError: it does not; the message names the cell and the first difference.
    """
    problem = next(_problems(archive, begun), None)
    if problem is not None:
        raise UsageError(
            f"{problem}, so what must be on the target is not known",
            where=str(archive.folder / layout.RUN_FILE),
            hint="one of the two was edited; restore the run from a copy",
        )


def _problems(archive: RunArchive, begun: Sequence[journal.Begun]) -> Iterator[str]:
    cells = {cell.cell_id: cell for cell in archive.record.plan.cells}
    for entry in begun:
        cell = cells.get(entry.cell_id)
        if cell is None or not cell.writes:
            yield (
                f"{journal.FILE} says that cell {found(entry.cell_id)} began to write, and the "
                "plan has no such cell"
            )
            continue
        yield from _record_problems(archive.folder, cell)
        for path in _job_files(archive.folder, cell.cell_id):
            yield from _job_problems(path, cell)
    noted = {entry.cell_id for entry in begun}
    for one in archive.cells:
        record = one.record
        if record.cell.writes and record.end != "not-run" and record.cell.cell_id not in noted:
            yield (
                f"cell {record.cell.cell_id} is stored as one that wrote, and {journal.FILE} does "
                "not say that it began"
            )


def _record_problems(folder: Path, cell: Cell) -> Iterable[str]:
    path = layout.cell_folder(folder, cell.cell_id) / layout.CELL_FILE
    try:
        record = read_record(path, CellRecord)
    except StoreError:
        return  # not stored, or damaged: it counts as a cell that was cut off
    if record.cell.as_planned != cell:
        yield f"the plan and the record of cell {cell.cell_id} contradict each other"


def _job_files(folder: Path, cell_id: str) -> list[Path]:
    """Return the job texts of all launches of a cell, also of those that were cut off."""
    cells = folder / layout.CELLS_FOLDER
    patterns = (cell_id, f".partial-{cell_id}", f".interrupted-{cell_id}.*")
    return sorted(path for one in patterns for path in cells.glob(f"{one}/{layout.JOB_FILE}"))


def _job_problems(path: Path, cell: Cell) -> Iterable[str]:
    try:
        text = read_regular(path, JOB_BYTES_MAX).decode("utf-8", errors="replace")
    except OSError:
        return
    if text.startswith("# not run"):
        return
    stored = _sections(text)
    for placed in cell.placed:
        options = stored.get(placed.stream.name)
        if options is None:
            yield f"the plan and {path.name} of cell {cell.cell_id} name different streams"
            continue
        for option in section(placed, cell):
            said = options.get(option.name)
            if option.name in _DECIDES and said is not None and said != str(option.value):
                yield (
                    f"the plan and {path.name} of cell {cell.cell_id} contradict each other: "
                    f"{option.name} {option.value} and {found(said)}"
                )


def _sections(text: str) -> dict[str, dict[str, str]]:
    """Return the options of each section of a job text."""
    found_in: dict[str, dict[str, str]] = {}
    options: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("[") and line.endswith("]"):
            options = found_in.setdefault(line[1:-1], {})
        elif not line.startswith(("#", ";")):
            name, separator, value = line.partition("=")
            if separator:
                options[name.strip()] = value.strip()
    return found_in
