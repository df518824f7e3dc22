"""Write a run folder: every part under a temporary name, fsynced, then renamed, once."""

import os
import shutil
from pathlib import Path

import msgspec

from kvbench.errors import StoreError
from kvbench.store import layout
from kvbench.store.records import CellRecord, EndRecord, RunRecord

_TEMPORARY = ".partial-"
_SET_ASIDE = ".interrupted-"


class RunWriter:
    """The open run folder of one running session.  It alone writes there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def create(cls, results: Path, record: RunRecord) -> "RunWriter":
        """Make the folder of a new run with its ``run.json``."""
        folder = results / record.run_id
        try:
            results.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(results, error) from error
        try:
            folder.mkdir()
            (folder / layout.CELLS_FOLDER).mkdir()
            _write(folder / layout.RUN_FILE, _encode(record))
        except FileExistsError:
            raise StoreError(
                "this run exists already", where=str(folder), hint="give another --label"
            ) from None
        except OSError as error:
            raise _unwritable(folder, error) from error
        return cls(folder)

    @classmethod
    def reopen(cls, folder: Path, again: frozenset[str] = frozenset()) -> "RunWriter":
        """Open the folder of a run that ended early, to add the cells that are missing.

        The cells ``again`` were interrupted and are measured anew; what they hold is set aside
        under a hidden name and not read any more.
        """
        try:
            for cell_id in sorted(again):
                old = layout.cell_folder(folder, cell_id)
                place = len(list(old.parent.glob(f"{_SET_ASIDE}{cell_id}.*"))) + 1
                old.rename(old.with_name(f"{_SET_ASIDE}{cell_id}.{place}"))
            (folder / layout.END_FILE).unlink(missing_ok=True)
            for left_over in (folder / layout.CELLS_FOLDER).glob(f"{_TEMPORARY}*"):
                shutil.rmtree(left_over)
        except OSError as error:
            raise _unwritable(folder, error) from error
        return cls(folder)

    def begin_cell(self, cell_id: str, job_text: str) -> Path:
        """Make the temporary folder of a cell with its job file, and return it."""
        folder = self.folder / layout.CELLS_FOLDER / f"{_TEMPORARY}{cell_id}"
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            (folder / layout.JOB_FILE).write_text(job_text, encoding="utf-8")
        except OSError as error:
            raise _unwritable(folder, error) from error
        return folder

    def commit_cell(self, record: CellRecord) -> Path:
        """Add the record to the temporary folder, make it durable and give it its name."""
        cells = self.folder / layout.CELLS_FOLDER
        temporary = cells / f"{_TEMPORARY}{record.cell.cell_id}"
        final = layout.cell_folder(self.folder, record.cell.cell_id)
        try:
            _write(temporary / layout.CELL_FILE, _encode(record))
            for path in temporary.iterdir():
                _sync(path)
            _sync(temporary)
            temporary.rename(final)
            _sync(cells)
        except OSError as error:
            raise _unwritable(final, error) from error
        return final

    def finish(self, record: EndRecord) -> None:
        """Write how the run ended."""
        try:
            _write(self.folder / layout.END_FILE, _encode(record))
        except OSError as error:
            raise _unwritable(self.folder, error) from error


def write_derived(path: Path, text: str) -> None:
    """Write a file that can be rebuilt (report, table) under a temporary name, then rename it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, text.encode())
    except OSError as error:
        raise _unwritable(path, error) from error


def _encode(record: RunRecord | CellRecord | EndRecord) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f"{_TEMPORARY}{path.name}")
    temporary.write_bytes(data)
    _sync(temporary)
    temporary.rename(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"cannot be written: {error.strerror or error}",
        where=str(path),
        hint="free space or choose another folder with --results; finished cells are kept",
    )
