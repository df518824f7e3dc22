"""results/<run_id>/ -> RunArchive.  Reads only; a damaged part is told, the rest is kept.

An archive may come from a stranger: only regular files of a bounded size are read, and a cell
counts only where it lies in the folder of its own id and is the one that the plan has there.
"""

import os
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kvbench.document import found, open_regular, printable, read_regular
from kvbench.errors import StoreError
from kvbench.host.health_model import RunHealth
from kvbench.host.model import Written
from kvbench.plan import Cell
from kvbench.store import layout
from kvbench.store.preparation import Preparation
from kvbench.store.records import FORMAT, CellRecord, EndRecord, RunRecord
from kvbench.units import GIB, MIB

RECORD_BYTES_MAX = 64 * MIB
REASON_CHARS_MAX = 300
OUTPUT_BYTES_MAX = 256 * MIB
LOG_BYTES_MAX = 16 * GIB  # a day of barriers fills some GiB, and they are not read as one text
WINDOW_LOG_BYTES_MAX = 256 * MIB  # a day of windows fills 70 MiB

_Record = TypeVar("_Record", RunRecord, CellRecord, EndRecord, RunHealth, Preparation)


class _Versioned(Struct):
    format: int


class ArchivedCell(Struct, frozen=True, kw_only=True):
    """One stored cell; the large texts are read when they are asked for."""

    record: CellRecord
    folder: Path

    def output_text(self) -> str:
        """Return fio's output, "" when fio left none; OSError when it cannot be read."""
        return _text(self.folder / layout.OUTPUT_FILE)

    def output_was_lost(self) -> bool:
        """Return whether fio ended well and its output is empty: there was no room for it."""
        if (self.record.end, self.record.exit_code) != ("exited", 0):
            return False
        try:
            return (self.folder / layout.OUTPUT_FILE).stat().st_size == 0
        except OSError:
            return False

    def stderr_text(self) -> str:
        """Return fio's standard error, "" when there was none."""
        return _text(self.folder / layout.STDERR_FILE)

    def job_text(self) -> str:
        """Return the job text that fio was given."""
        return _text(self.folder / layout.JOB_FILE)

    def latency_logs(self) -> list[Path]:
        """Return fio's latency logs in the order of its job numbers, none when not asked for."""
        return self._logs(layout.LATENCY_LOG_PREFIX)

    def window_logs(self) -> list[Path]:
        """Return fio's logs of time windows, likewise."""
        return self._logs(layout.WINDOW_LOG_PREFIX)

    def histogram_logs(self) -> list[Path]:
        """Return fio's logs of histograms per time window, likewise."""
        return self._logs(layout.HISTOGRAM_LOG_PREFIX)

    def _logs(self, prefix: str) -> list[Path]:
        logs = [path for path in self.folder.iterdir() if layout.is_log(path.name, prefix)]
        return sorted(logs, key=layout.log_job_number)


class RunArchive(Struct, frozen=True, kw_only=True):
    """A stored run.  ``damage`` has one sentence for each part that could not be read."""

    folder: Path
    record: RunRecord
    end: EndRecord | None
    cells: tuple[ArchivedCell, ...]
    damage: tuple[str, ...]
    health: RunHealth | None = None  # None: no drive was looked at
    preparation: Preparation | None = None  # of a run that prepared its target


def read_run(folder: Path) -> RunArchive:
    """Return the archive under ``folder``.

    Raises:
        StoreError: there is no run, or its ``run.json`` cannot be used.
    """
    record = read_record(folder / layout.RUN_FILE, RunRecord)
    damage: list[str] = []
    end = None
    if os.path.lexists(folder / layout.END_FILE):
        try:
            end = read_record(folder / layout.END_FILE, EndRecord)
        except StoreError as error:
            damage.append(str(error))
    health = None
    try:
        health = read_health(folder)
    except StoreError as error:
        damage.append(str(error))
    preparation = None
    try:
        if os.path.lexists(folder / layout.PREPARATION_FILE):
            preparation = read_record(folder / layout.PREPARATION_FILE, Preparation)
    except StoreError as error:
        damage.append(str(error))
    planned = {cell.cell_id: cell for cell in record.plan.cells}
    cells = []
    try:
        folders = sorted((folder / layout.CELLS_FOLDER).iterdir())
    except OSError as error:
        folders = []
        damage.append(str(_unreadable(folder / layout.CELLS_FOLDER, error)))
    for cell_folder in folders:
        if cell_folder.name.startswith("."):
            continue  # half written, or set aside
        try:
            cells.append(_read_cell(cell_folder, planned))
        except StoreError as error:
            damage.append(str(error))
    damage += _contradictions(record, end)
    return RunArchive(
        folder=folder,
        record=_as_prepared(_as_ended(record, end), preparation),
        end=end,
        cells=tuple(cells),
        damage=tuple(damage),
        health=health,
        preparation=preparation,
    )


def read_health(folder: Path) -> RunHealth | None:
    """Return what the drive of a run told, None when it was not looked at.

    Raises:
        StoreError: what is there cannot be used.
    """
    path = folder / layout.HEALTH_FILE
    return read_record(path, RunHealth) if os.path.lexists(path) else None


def find_run(results: Path, name: str) -> Path:
    """Return the folder of run ``name``: a path, a run id, the label of one run, or ``latest``.

    A folder that holds no run, or a damaged one, is returned too: who reads it says what is wrong
    with it.

    Raises:
        StoreError: no such run; the message names those that there are.
    """
    path = Path(name)
    if name and _is_there(path / layout.RUN_FILE):
        return path
    runs = list_runs(results)
    if name == "latest" and runs:
        return runs[-1]
    if name and name != "latest":
        for folder in (results / name, path):
            if _is_there(folder):
                return folder
        label = layout.fit_label(name)
        labelled = [run for run in runs if label and layout.label_of(run.name) == label]
        if len(labelled) == 1:
            return labelled[0]
        if labelled:
            ids = ", ".join(printable(run.name) for run in labelled[-5:])
            raise StoreError(
                f"{len(labelled)} runs are labelled {found(name)}", hint=f"name one: {ids}"
            )
    known = ", ".join(printable(run.name) for run in runs[-5:]) or "none"
    raise StoreError(f"no run {found(name)} in {results}", hint=f"the newest runs there: {known}")


def list_runs(results: Path) -> list[Path]:
    """Return the folders of all runs under ``results``, oldest first; none where nothing is.

    Raises:
        StoreError: it is no folder, or may not be read.
    """
    try:
        folders = sorted(results.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unreadable(results, error) from None
    return [folder for folder in folders if os.path.lexists(folder / layout.RUN_FILE)]


def _read_cell(folder: Path, planned: dict[str, Cell]) -> ArchivedCell:
    """Return the cell in ``folder``.

    Raises:
        StoreError: it cannot be used, or is not the one that the plan has there.
    """
    record = read_record(folder / layout.CELL_FILE, CellRecord)
    if record.cell.cell_id != folder.name:
        raise StoreError(
            f"is the record of cell {found(record.cell.cell_id)}, not of this folder's",
            where=printable(str(folder / layout.CELL_FILE)),
        )
    if record.cell.as_planned != planned.get(folder.name):
        raise StoreError(
            "is not the cell that the run's plan has under this number",
            where=printable(str(folder / layout.CELL_FILE)),
        )
    cell = ArchivedCell(record=record, folder=folder)
    texts = (layout.OUTPUT_FILE, layout.STDERR_FILE, layout.JOB_FILE)
    limits = {folder / name: OUTPUT_BYTES_MAX for name in texts}
    try:
        limits |= dict.fromkeys(cell.latency_logs(), LOG_BYTES_MAX)
        limits |= dict.fromkeys(cell.window_logs(), WINDOW_LOG_BYTES_MAX)
        limits |= dict.fromkeys(cell.histogram_logs(), WINDOW_LOG_BYTES_MAX)
    except OSError as error:
        raise _unreadable(folder, error) from None
    for path, limit_bytes in limits.items():
        try:
            open_regular(path, limit_bytes).close()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _unreadable(path, error) from None
    return cell


def _as_ended(record: RunRecord, end: EndRecord | None) -> RunRecord:
    """Return the record without the repetitions that a precise run did not need."""
    if end is None or end.repetitions is None or _impossible_end(record, end):
        return record
    cells = tuple(c for c in record.plan.cells if c.repetition <= end.repetitions)
    plan = replace(record.plan, cells=cells, repetitions=end.repetitions)
    return replace(record, plan=plan)


def _as_prepared(record: RunRecord, preparation: Preparation | None) -> RunRecord:
    """Return the record of a preparation with what became of its fill, which came later."""
    if preparation is None:
        return record
    proven = preparation.coverage.proven
    written = Written(state="prepared" if proven else "unproven", reason=preparation.coverage.text)
    return replace(record, written=written)


def _impossible_end(record: RunRecord, end: EndRecord) -> bool:
    """Whether a run cannot have ended early as its end says."""
    if end.repetitions is None:
        return False
    within = 1 <= end.repetitions <= record.plan.repetitions
    may_be_early = record.plan.until_precise is not None or record.command[1:2] == ("prepare",)
    return not (may_be_early and within)


def _contradictions(record: RunRecord, end: EndRecord | None) -> list[str]:
    """Return in what the plan and the end of a run contradict themselves."""
    found = []
    plan = record.plan
    points = [(c.point_id, c.repetition) for c in plan.cells if c.purpose != "ceiling"]
    if len(set(points)) < len(points):
        found.append("the plan has a point twice in one repetition, so its count is not true")
    last = max((repetition for _, repetition in points), default=plan.repetitions)
    if last != plan.repetitions:
        found.append(f"the plan says {plan.repetitions} repetitions, its cells go up to {last}")
    if end is not None and _impossible_end(record, end):
        found.append(f"its end says that it ended early, after {end.repetitions} repetitions")
    return found


def _is_there(path: Path) -> bool:
    """Return whether something has this name.

    Raises:
        StoreError: the name cannot be looked up: too long, or no permission.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL in the name
        return False
    except OSError as error:
        raise _unreadable(path, error) from None
    return True


def _text(path: Path) -> str:
    try:
        return read_regular(path, OUTPUT_BYTES_MAX).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _unreadable(path: Path, error: OSError) -> StoreError:
    shown = printable(str(path))
    where = shown if len(shown) <= 300 else f"{shown[:300]}..."
    return StoreError(f"cannot be read: {error.strerror or error}", where=where)


def read_record(path: Path, kind: type[_Record]) -> _Record:
    """Return the record in ``path``.

    Raises:
        StoreError: it is not there or cannot be used; the message says precisely why.
    """
    shown = printable(str(path))
    try:
        raw = read_regular(path, RECORD_BYTES_MAX)
    except FileNotFoundError:
        raise StoreError("is missing, so this is not a complete run", where=shown) from None
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        version = msgspec.json.decode(raw, type=_Versioned).format
        if version > FORMAT:
            raise StoreError(
                f"has format {version}, this kvbench reads up to {FORMAT}",
                where=shown,
                hint="use a newer kvbench",
            )
        if version < 1:
            raise StoreError(f"is damaged: there is no format {version}", where=shown)
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StoreError(
            f"is damaged: {printable(str(error)[:REASON_CHARS_MAX])}",
            where=shown,
            hint="the cells beside it are untouched; restore this file from a copy",
        ) from None
