"""Which runs a results store holds, by their records alone: no cell is read."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from kvbench.cli import output
from kvbench.errors import StoreError
from kvbench.store import layout
from kvbench.store.read import list_runs, read_record
from kvbench.store.records import RunRecord
from kvbench.store.redact import PREFIX, is_redacted

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
        """Whether the drive was stored hidden."""
        return self.serial.startswith(PREFIX) or is_redacted(self.record.identity)

    @property
    def wwid(self) -> str:
        """The world-wide name of the target, with its namespace and partition."""
        return self.record.identity.wwid or ""

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


def add_results_argument(
    parser: argparse._ActionsContainer, told: str = "the results store"
) -> None:
    """Declare ``--results``."""
    parser.add_argument(
        "--results", type=output.named_path, default=Path("results"), metavar="DIR", help=told
    )


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
        found.append(_stored(folder, record))
    return found


def read_stored(folder: Path) -> Stored:
    """Return one run.

    Raises:
        StoreError: its record cannot be used.
    """
    return _stored(folder, read_record(folder / layout.RUN_FILE, RunRecord))


def _stored(folder: Path, record: RunRecord) -> Stored:
    prepares = os.path.lexists(folder / layout.PREPARATION_FILE)
    return Stored(folder=folder, record=record, prepares=prepares)


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
