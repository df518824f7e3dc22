"""Which runs a results store holds, by their records alone: no cell is read."""

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from kvbench.cli import output
from kvbench.errors import StoreError
from kvbench.store import layout
from kvbench.store.read import list_runs, read_record
from kvbench.store.records import RunRecord
from kvbench.store.redact import PREFIX, hidden

NO_SERIAL = "a drive that tells no serial"


class Stored(Struct, frozen=True, kw_only=True):
    """One stored run; ``serial`` and the others are "" where the drive did not tell."""

    folder: Path
    record: RunRecord
    prepares: bool  # it is a run of kvbench prepare

    @property
    def serial(self) -> str:
        """The serial of the drive, or the form that stands for it where it is redacted."""
        return self.record.identity.serial or self._fact("device_serial")

    @property
    def is_redacted(self) -> bool:
        """Whether the serial was stored hidden."""
        return self.serial.startswith(PREFIX)

    @property
    def model(self) -> str:
        """The model of the drive."""
        return self._fact("device_model")

    @property
    def firmware(self) -> str:
        """The firmware revision of the drive."""
        return self._fact("device_firmware")

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of the workloads that were planned."""
        return tuple(dict.fromkeys(w.role for w in self.record.plan.workloads))

    def _fact(self, name: str) -> str:
        return next((f.value for f in self.record.facts if f.name == name and f.value), "")


def read_records(results: Path) -> list[Stored]:
    """Return the runs under ``results``, oldest first; a damaged one is told and left out.

    Raises:
        StoreError: the folder cannot be read.
    """
    found = []
    for folder in list_runs(results):
        try:
            record = read_record(folder / layout.RUN_FILE, RunRecord)
        except StoreError as error:
            output.advise(str(error))
            continue
        prepares = os.path.lexists(folder / layout.PREPARATION_FILE)
        found.append(Stored(folder=folder, record=record, prepares=prepares))
    return found


def targets_of(results: Path, folders: Sequence[Path] = ()) -> list[Path]:
    """Return what must not be replaced by an answer: the default target, and what runs measured.

    A run that cannot be read has no say here; who reads it says what is wrong with it.
    """
    from kvbench.target import default_path

    found = [default_path(results)]
    for folder in folders:
        try:
            record = read_record(folder / layout.RUN_FILE, RunRecord)
        except StoreError:
            continue
        found += measured_by(record)
    return found


def measured_by(record: RunRecord) -> list[Path]:
    """Return the target of a run, by its name and by what that led to."""
    names = dict.fromkeys((record.plan.target.path, record.identity.real_path))
    return [Path(name) for name in names if name and "\0" not in name]


def of_serial(runs: Sequence[Stored], serial: str) -> list[Stored]:
    """Return the runs of the drive with this serial.

    It does not matter whether a run was stored redacted, or whether the serial is given so.
    """
    return [one for one in runs if _same(one.serial, serial.strip())]


def _same(stored: str, given: str) -> bool:
    if not stored or not given:
        return False
    if stored == given:
        return True
    if stored.startswith(PREFIX):
        return stored == hidden(given)
    return given.startswith(PREFIX) and given == hidden(stored)
