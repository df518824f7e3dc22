"""Write a run folder: every part under a temporary name, fsynced, then renamed, once."""

import itertools
import os
import re
import secrets
import shutil
from pathlib import Path

import msgspec

from kvbench.document import found
from kvbench.errors import StoreError
from kvbench.host.health_model import RunHealth
from kvbench.plan import CELL_ID
from kvbench.store import layout
from kvbench.store.read import RunArchive
from kvbench.store.records import FORMAT, CellRecord, EndRecord, RunRecord
from kvbench.units import KIB

ROOM_BEFORE_BYTES = 64 * KIB  # a cell does not start with less: fio would end well, and say nothing
ROOM_AFTER_BYTES = 16 * KIB  # with less left, what fio wrote last may be cut off
_TEMPORARY = ".partial-"
_SET_ASIDE = ".interrupted-"
_CELL_ID = re.compile(CELL_ID, re.ASCII)


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
            sync(results)  # or a loss of power takes the run as a whole, cells and all
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

        Raises:
            StoreError: it cannot be written, or its cells lie elsewhere, where nothing is ours.
        """
        cells = folder / layout.CELLS_FOLDER
        if cells.is_symlink():
            raise StoreError(
                "is a symbolic link, and nothing is written where it leads",
                where=str(cells),
                hint="copy the run whole, or measure anew",
            )
        try:
            cells.mkdir(exist_ok=True)
            for cell_id in sorted(again):
                _set_aside(layout.cell_folder(folder, cell_id))
            (folder / layout.END_FILE).unlink(missing_ok=True)
            for place in (folder, folder / layout.CELLS_FOLDER):
                for left_over in place.glob(f"{_TEMPORARY}*"):
                    _drop(left_over)
            for left_over in folder.glob(f"{layout.REWRITE_PREFIX}*"):
                if _CELL_ID.fullmatch(left_over.name.removeprefix(layout.REWRITE_PREFIX)):
                    _drop(left_over)
        except OSError as error:
            raise _unwritable(folder, error) from error
        return cls(folder)

    def check_room(self, cell_id: str, size_bytes: int) -> None:
        """Return when so much of a cell can be stored, by trying: free blocks may be out of reach.

        Raises:
            StoreError: it cannot, or the folder cannot be written at all.
        """
        trial = self.folder / layout.CELLS_FOLDER / f"{_TEMPORARY}{secrets.token_hex(8)}"
        try:
            descriptor = os.open(trial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, size_bytes)
            finally:
                os.close(descriptor)
                trial.unlink()
        except OSError as error:
            raise StoreError(
                f"cannot take cell {cell_id}: {error.strerror or error}",
                where=str(self.folder),
                hint="free space, then go on with --resume; finished cells are kept",
            ) from error

    def begin_cell(self, cell_id: str, job_text: str) -> Path:
        """Make the temporary folder of a cell with its job file, and return it.

        Raises:
            StoreError: it cannot be written, or the id is not a cell's and names another place.
        """
        if not _CELL_ID.fullmatch(cell_id):
            raise StoreError(f"{found(cell_id)} is not the id of a cell", where=str(self.folder))
        folder = self.folder / layout.CELLS_FOLDER / f"{_TEMPORARY}{cell_id}"
        try:
            _drop(folder)
            folder.mkdir()
            (folder / layout.JOB_FILE).write_text(job_text, encoding="utf-8")
        except OSError as error:
            raise _unwritable(folder, error) from error
        return folder

    def commit_cell(self, record: CellRecord) -> Path:
        """Add the record to the temporary folder, make it durable and give it its name.

        What already has that name, a damaged cell that was measured anew, is set aside.
        """
        cells = self.folder / layout.CELLS_FOLDER
        temporary = cells / f"{_TEMPORARY}{record.cell.cell_id}"
        final = layout.cell_folder(self.folder, record.cell.cell_id)
        try:
            _write(temporary / layout.CELL_FILE, _encode(record))
            for path in temporary.iterdir():
                sync(path)
            sync(temporary)
            if os.path.lexists(final):
                _set_aside(final)
            temporary.rename(final)
            sync(cells)
        except OSError as error:
            raise _unwritable(final, error) from error
        return final

    def keep_health(self, record: RunHealth) -> None:
        """Write what the drive told so far, in the place of what was known before."""
        try:
            _write(self.folder / layout.HEALTH_FILE, _encode(record))
        except OSError as error:
            raise _unwritable(self.folder, error) from error

    def finish(self, record: EndRecord) -> None:
        """Write how the run ended."""
        try:
            _write(self.folder / layout.END_FILE, _encode(record))
        except OSError as error:
            raise _unwritable(self.folder, error) from error


def measured_anew(archive: RunArchive) -> frozenset[str]:
    """Return the ids of the stored cells that count as not done.

    Those that were interrupted; those of which a full disk left no output although fio ended well;
    and those of their workloads that were not run because of them.
    """
    spoiled = [cell.record.cell for cell in archive.cells if cell.output_was_lost()]
    again = {(cell.workload, cell.repetition) for cell in spoiled}
    return frozenset(
        record.cell.cell_id
        for record in (cell.record for cell in archive.cells)
        if record.end == "interrupted"
        or record.cell in spoiled
        or (record.end == "not-run" and (record.cell.workload, record.cell.repetition) in again)
    )


def finish_unended(archive: RunArchive) -> bool:
    """Write the end of a run that was killed after its last cell, and return whether it was one.

    Raises:
        StoreError: the run folder cannot be written.
    """
    records = {cell.record.cell.cell_id: cell.record for cell in archive.cells}
    missing = {cell.cell_id for cell in archive.record.plan.cells} - records.keys()
    if archive.end is not None or missing or not records or measured_anew(archive):
        return False
    last = max(records.values(), key=lambda record: record.started_at)
    RunWriter(archive.folder).finish(
        EndRecord(
            format=FORMAT,
            end="complete",
            ended_at=last.started_at,
            cells_done=len(records),
            reason="it was killed before it could write its end; the time is its last cell's start",
        )
    )
    return True


def write_derived(path: Path, content: str | bytes) -> None:
    """Write a file that can be rebuilt (report, table) under a temporary name, then rename it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        hint = "free space or name another place; what was measured is kept"
        raise _unwritable(path, error, hint) from error


def _set_aside(path: Path) -> None:
    """Give a cell's folder, or what stands in its place, a hidden name that nothing has yet."""
    places = (path.with_name(f"{_SET_ASIDE}{path.name}.{n}") for n in itertools.count(1))
    path.rename(next(place for place in places if not os.path.lexists(place)))


def _drop(path: Path) -> None:
    """Remove a temporary folder, or what stands in its place, when it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _encode(record: RunRecord | CellRecord | EndRecord | RunHealth) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"


def _write(path: Path, data: bytes) -> None:
    # A name that nobody has: what stands under another is not ours to replace or to remove.
    temporary = path.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
        sync(temporary)
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)  # on a full disk it would take what is left
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Return when a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(
    path: Path,
    error: OSError,
    hint: str = "free space or choose another folder with --results; finished cells are kept",
) -> StoreError:
    return StoreError(f"cannot be written: {error.strerror or error}", where=str(path), hint=hint)
