"""``kvbench list runs``: what a results store holds, how each run ended, and what it was on.

No cell is measured for it: how many cells can be used is read from the table that lies beside a
run since it was last reported.
"""

import csv
import io
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Literal, get_args

from msgspec import Struct

from kvbench.cli import output
from kvbench.cli.stored import Stored, read_records
from kvbench.document import open_regular
from kvbench.errors import StoreError
from kvbench.gate.history_subject import is_named
from kvbench.host import lease
from kvbench.measure.model import Outcome
from kvbench.report.columns import as_ascii, cut, pad, width
from kvbench.store import layout
from kvbench.store.read import read_record
from kvbench.store.records import EndRecord, RunRecord
from kvbench.units import MIB

COLUMNS = 100
NAME_COLUMNS = 62  # the longest name that kvbench gives
SUITE_COLUMNS = 12
MODEL_COLUMNS = 48
FIRMWARE_COLUMNS = 24
TABLE_BYTES_MAX = 64 * MIB
HEAD = ("name", "end", "cells", "suite")
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
LOCKS_UNSEEN = ("btrfs", "bcachefs", "overlay")  # where /proc/locks has another device number

End = Literal["complete", "interrupted", "failed", "damaged", "running", "killed", "no end"]


class Asked(Struct, frozen=True, kw_only=True):
    """Which runs are wanted; None is all.  Upper and lower case are the same."""

    device: str | None  # a serial, a world-wide name, or a part of the model
    firmware: str | None
    label: str | None
    role: str | None


class RunLine(Struct, frozen=True, kw_only=True):
    """One run; what the drive did not tell is "-".

    ``end`` is "no end" where nothing tells whether the run was killed or still goes on.
    ``outcomes`` counts the cells that measure the target, as the table beside the run has them;
    None where there is no table.
    """

    name: str
    end: End
    reason: str
    cells: str  # "118/119": stored, planned
    outcomes: dict[Outcome, int] | None
    suite: str
    device: str
    firmware: str
    target: str
    label: str
    model: str
    serial: str
    wwid: str
    roles: tuple[str, ...]
    created_at: str


def list_runs(results: Path, asked: Asked) -> list[RunLine]:
    """Return the runs under ``results`` that fit, the oldest first; damaged ones are told.

    Raises:
        StoreError: the folder cannot be read.
    """
    known = read_records(results)
    newest = _newest_unended(known)
    lines = []
    for one in known:
        if not _fits(one, asked):
            continue
        record = one.record
        end, reason = _end(one, newest=one.folder in newest)
        lines.append(
            RunLine(
                name=one.folder.name,
                end=end,
                reason=reason,
                cells=f"{_cells(one.folder)}/{len(record.plan.cells)}",
                outcomes=_outcomes(one.folder),
                suite=record.plan.suite or "-",
                device=" ".join(part for part in (one.model, one.serial) if part) or "-",
                firmware=one.firmware or "-",
                target=record.plan.target.path,
                label=record.label,
                model=one.model or "-",
                serial=one.serial or "-",
                wwid=one.wwid or "-",
                roles=one.roles,
                created_at=record.created_at,
            )
        )
    return lines


def render(lines: Sequence[RunLine], *, ascii_only: bool = False) -> str:
    """Return the list: a line for each run, and below it the drive and what is wrong."""
    rows = [[_shown(text) for text in (one.name, one.end, one.cells, one.suite)] for one in lines]
    limits = (NAME_COLUMNS, COLUMNS, COLUMNS, SUITE_COLUMNS)
    cells = [
        [cut(text, limit) for text, limit in zip(row, limits, strict=True)]
        for row in (list(HEAD), *rows)
    ]
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    told = [_row(cells[0], widths)]
    for one, row in zip(lines, cells[1:], strict=True):
        told.append(_row(row, widths))
        told += wrap(_about(one), COLUMNS, initial_indent="    ", subsequent_indent="    ")
    text = "\n".join(cut(line, COLUMNS) for line in told)
    return as_ascii(text) if ascii_only else text


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(pad(cell, size) for cell, size in zip(cells, widths, strict=True)).rstrip()


def _about(one: RunLine) -> str:
    """Return drive, firmware and target, then how many cells are what, then why it ended."""
    model = "" if one.model == "-" else cut(_shown(one.model), MODEL_COLUMNS)
    serial = "" if one.serial == "-" else cut(_shown(one.serial), MODEL_COLUMNS)
    drive = " ".join(part for part in (model, serial) if part)
    parts = [drive] if drive else []
    if one.firmware != "-":
        parts.append(f"firmware {cut(_shown(one.firmware), FIRMWARE_COLUMNS)}")
    parts.append(cut(_shown(one.target), COLUMNS))
    texts = [", ".join(parts)]
    if one.outcomes:
        texts.append(", ".join(f"{count} {name}" for name, count in one.outcomes.items() if count))
    if one.reason:
        texts.append(cut(_shown(one.reason), 2 * COLUMNS))
    return "; ".join(texts)


def _shown(text: str) -> str:
    return output.printable(text)


def _fits(one: Stored, asked: Asked) -> bool:
    device = asked.device
    is_device = device is None or (
        is_named(one.record, device.strip()) or _part(device, one.model, one.serial)
    )
    return (
        is_device
        and (asked.firmware is None or _part(asked.firmware, one.firmware))
        and (asked.label is None or _part(asked.label, one.record.label))
        and (asked.role is None or asked.role in one.roles)
    )


def _part(given: str, *texts: str) -> bool:
    return any(given.casefold() in text.casefold() for text in texts)


def _newest_unended(known: Sequence[Stored]) -> set[Path]:
    """Return, of each target, the newest run without an end: only that one can be going on."""
    newest: dict[tuple[str, int], tuple[str, Path]] = {}
    for one in known:
        if not _has_end(one.folder):
            identity = one.record.identity
            key = (identity.device_number, identity.inode)
            newest[key] = max(
                newest.get(key, ("", one.folder)), (one.record.created_at, one.folder)
            )
    return {folder for _, folder in newest.values()}


def _has_end(folder: Path) -> bool:
    return os.path.lexists(folder / layout.END_FILE)


def _end(one: Stored, *, newest: bool) -> tuple[End, str]:
    """Return how a run ended and why, by its record; of one without, whether it goes on."""
    if _has_end(one.folder):
        try:
            end = read_record(one.folder / layout.END_FILE, EndRecord)
        except StoreError as error:
            output.advise(str(error))
            return "damaged", ""
        return end.end, "" if end.end == "complete" else end.reason
    holder = None if _locks_are_unseen(one.record) else lease.holder_of(one.record.identity)
    if holder is None:
        return "no end", "killed, or still running"
    if newest and holder.startswith(lease.KVBENCH):
        return "running", f"{holder} holds its target"
    if holder and newest:
        return "no end", f"killed, or still running: {holder} holds its target"
    return "killed", "it has no end, and no kvbench holds its target for it"


def _locks_are_unseen(record: RunRecord) -> bool:
    found = next((fact.value for fact in record.facts if fact.name == "file_system"), None)
    return record.identity.kind == "file" and (found or "") in LOCKS_UNSEEN


def _cells(folder: Path) -> int:
    """Return how many cells are stored; whether each can be used, its report says."""
    try:
        return sum(1 for one in (folder / layout.CELLS_FOLDER).iterdir() if one.name[0] != ".")
    except OSError:
        return 0


def _outcomes(folder: Path) -> dict[Outcome, int] | None:
    """Return how many cells are valid, doubtful, invalid, failed by the table beside the run.

    As in the report, those of the host's ceiling and of a search are not among them.
    None where there is no such table, or it is no table of measurements.
    """
    try:
        found = dict(_outcome_rows(folder / layout.TABLE_FILE))
    except (OSError, ValueError, KeyError, csv.Error, StoreError):
        return None
    counts: Mapping[str, int] = Counter(found.values())
    if not counts or not set(counts) <= set(OUTCOMES):
        return None
    return {outcome: counts.get(outcome, 0) for outcome in OUTCOMES}


def _outcome_rows(path: Path) -> Iterator[tuple[str, str]]:
    with io.TextIOWrapper(open_regular(path, TABLE_BYTES_MAX), "utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["purpose"] == "measure":
                yield row["cell_id"], row["outcome"]
