"""results/<run_id>/ -> RunArchive.  Reads only; a damaged part is told, the rest is kept."""

from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from kvbench.errors import StoreError
from kvbench.store import layout
from kvbench.store.records import FORMAT, CellRecord, EndRecord, RunRecord

_Record = TypeVar("_Record", RunRecord, CellRecord, EndRecord)


class _Versioned(Struct):
    format: int


class ArchivedCell(Struct, frozen=True, kw_only=True):
    """One stored cell; the large texts are read when they are asked for."""

    record: CellRecord
    folder: Path

    def output_text(self) -> str:
        """Return fio's output, "" when fio left none."""
        return _text(self.folder / layout.OUTPUT_FILE)

    def stderr_text(self) -> str:
        """Return fio's standard error, "" when there was none."""
        return _text(self.folder / layout.STDERR_FILE)

    def job_text(self) -> str:
        """Return the job text that fio was given."""
        return _text(self.folder / layout.JOB_FILE)

    def latency_logs(self) -> list[Path]:
        """Return fio's latency logs in the order of its job numbers, none when not asked for."""
        found = self.folder.glob(f"{layout.LATENCY_LOG_PREFIX}_lat.*.log*")
        return sorted(found, key=layout.log_job_number)


class RunArchive(Struct, frozen=True, kw_only=True):
    """A stored run.  ``damage`` has one sentence for each part that could not be read."""

    folder: Path
    record: RunRecord
    end: EndRecord | None
    cells: tuple[ArchivedCell, ...]
    damage: tuple[str, ...]


def read_run(folder: Path) -> RunArchive:
    """Return the archive under ``folder``.

    Raises:
        StoreError: there is no run, or its ``run.json`` cannot be used.
    """
    record = _decode(folder / layout.RUN_FILE, RunRecord)
    damage: list[str] = []
    end = None
    if (folder / layout.END_FILE).exists():
        try:
            end = _decode(folder / layout.END_FILE, EndRecord)
        except StoreError as error:
            damage.append(str(error))
    cells = []
    for cell_folder in sorted((folder / layout.CELLS_FOLDER).glob("[0-9]*")):
        try:
            cell = _decode(cell_folder / layout.CELL_FILE, CellRecord)
        except StoreError as error:
            damage.append(str(error))
        else:
            cells.append(ArchivedCell(record=cell, folder=cell_folder))
    return RunArchive(
        folder=folder, record=record, end=end, cells=tuple(cells), damage=tuple(damage)
    )


def find_run(results: Path, name: str) -> Path:
    """Return the folder of run ``name``: a path, a run id, or ``latest``.

    Raises:
        StoreError: no such run; the message names those that there are.
    """
    path = Path(name)
    if (path / layout.RUN_FILE).is_file():
        return path
    runs = list_runs(results)
    if name == "latest" and runs:
        return runs[-1]
    for run in runs:
        if run.name == name:
            return run
    known = ", ".join(run.name for run in runs[-5:]) or "none"
    raise StoreError(f"no run {name!r} in {results}", hint=f"the newest runs there: {known}")


def list_runs(results: Path) -> list[Path]:
    """Return the folders of all runs under ``results``, oldest first."""
    return sorted(path.parent for path in results.glob(f"*/{layout.RUN_FILE}"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _decode(path: Path, kind: type[_Record]) -> _Record:
    """Return the record in ``path``, or say precisely what is wrong with it."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise StoreError("is missing, so this is not a complete run", where=str(path)) from None
    except OSError as error:
        raise StoreError(f"cannot be read: {error.strerror}", where=str(path)) from None
    try:
        version = msgspec.json.decode(raw, type=_Versioned).format
        if version > FORMAT:
            raise StoreError(
                f"has format {version}, this kvbench reads up to {FORMAT}",
                where=str(path),
                hint="use a newer kvbench",
            )
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreError(
            f"is damaged: {error}",
            where=str(path),
            hint="the cells beside it are untouched; restore this file from a copy",
        ) from None
