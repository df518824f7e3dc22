"""``kvbench list``: what there is."""

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap

from kvbench.cli import output
from kvbench.cli.stored import Stored, add_results_argument, read_records
from kvbench.errors import ExitCode, StoreError, UsageError
from kvbench.gate.history_subject import is_named
from kvbench.kv.geometry import HeadKv, bytes_per_token
from kvbench.kv.gpus import load_gpus
from kvbench.kv.models import Model, load_models
from kvbench.store import layout
from kvbench.store.read import read_record
from kvbench.store.records import EndRecord
from kvbench.workload import cards, catalog
from kvbench.workload.roles import Requirement
from kvbench.workload.schema import ROLE_MEANINGS, ROLES

COLUMNS = 100
LAST_WIDTH_MIN = 20
_GAP = 2
DRIVE_COLUMNS = 28  # of a drive's name
FILTERS = ("device", "firmware", "label", "role")
RUN_COLUMNS = ("name", "end", "cells", "suite", "device", "firmware", "target")  # of the table
KINDS = ("workloads", "suites", "roles", "models", "gpus", "runs")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    add_results_argument(parser)
    only = parser.add_argument_group("only some runs (upper and lower case are the same)")
    only.add_argument("--device", metavar="TEXT", help="a drive's serial, or a part of its model")
    only.add_argument("--firmware", metavar="TEXT", help="a part of the firmware revision")
    only.add_argument("--label", metavar="TEXT", help="a part of the label")
    only.add_argument("--role", choices=ROLES, help="with a workload of this role")
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the list."""
    given = [name for name in FILTERS if getattr(arguments, name) is not None]
    if given and arguments.kind != "runs":
        raise UsageError(f"--{given[0]} only goes with runs")
    rows = _runs(arguments) if arguments.kind == "runs" else _ROWS[arguments.kind]()
    if arguments.json:
        output.print_json({arguments.kind: rows})
        return int(ExitCode.OK)
    if not rows:
        output.advise(f"no {arguments.kind} there{' that fit' if given else ''}")
        return int(ExitCode.OK)
    shown = [name for name in rows[0] if arguments.kind != "runs" or name in RUN_COLUMNS]
    table = [
        [name.replace("_", " ") for name in shown],
        *([_cut(_shown(row[name]), name) for name in shown] for row in rows),
    ]
    print("\n".join(_aligned(table)))
    return int(ExitCode.OK)


def _shown(value: object) -> str:
    """A list is shown by its length; ``--json`` has it whole."""
    return output.printable(str(len(value) if isinstance(value, list) else value))


def _cut(text: str, column: str) -> str:
    """A drive's name may have any length; ``--json`` has it whole."""
    limit = DRIVE_COLUMNS if column in ("device", "firmware") else len(text)
    return text if len(text) <= limit else f"{text[: limit - 1]}~"


def _aligned(table: list[list[str]]) -> Iterator[str]:
    """Yield the table's lines; the last column is wrapped to what is left of 100 columns."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    indent = sum(widths[:-1]) + _GAP * (len(widths) - 1)
    for row in table:
        *first, last = row
        cells = [f"{text:<{width + _GAP}}" for text, width in zip(first, widths, strict=False)]
        lines = wrap(last, max(LAST_WIDTH_MIN, COLUMNS - indent), break_on_hyphens=False) or [""]
        yield f"{''.join(cells)}{lines[0]}".rstrip()
        yield from (f"{' ' * indent}{more}" for more in lines[1:])


def _workloads() -> list[dict[str, str]]:
    rows = []
    for name in catalog.workload_names():
        try:
            workload = catalog.find_workload(name)
        except UsageError as error:  # one broken file must not hide the others
            output.advise(str(error))
            continue
        rows.append(
            {
                "name": workload.name,
                "role": workload.role,
                "evidence": workload.evidence,
                "summary": workload.summary,
            }
        )
    return rows


def _suites() -> list[dict[str, str | list[str]]]:
    return [
        {"name": s.name, "workloads": list(s.workloads), "summary": s.summary}
        for s in catalog.list_suites()
    ]


def _roles() -> list[dict[str, str | list[dict[str, str]]]]:
    """Return the levels of each role's card; a role without a card keeps its meaning."""
    rows: list[dict[str, str | list[dict[str, str]]]] = []
    find = cards.finder()
    for role, meaning in ROLE_MEANINGS.items():
        try:
            card = cards.find_role_card(role, find)
        except UsageError as error:  # one broken file must not hide the others
            output.advise(str(error))
            rows.append({"name": role, "level": "-", "asks": [], "title": meaning})
            continue
        rows += [
            {
                "name": role,
                "level": level.name,
                "asks": [_asked(requirement) for requirement in level.requirements],
                "title": level.title,
            }
            for level in card.levels
        ]
    return rows


def _asked(requirement: Requirement) -> dict[str, str]:
    subject = requirement.subject
    at = ", ".join(f"{key} = {value}" for key, value in subject.at.items())
    return {
        "metric": subject.metric,
        "workload": subject.workload,
        "stream": subject.stream,
        "at": at,
        "of": requirement.of,
        requirement.bound: requirement.limit_text,
        "evidence": requirement.evidence,
        "why": requirement.why,
        "source": requirement.source,
    }


def _models() -> list[dict[str, str | int]]:
    models = load_models(catalog.data_folder() / "models.toml")
    return [
        {
            "name": model.name,
            "kv": _kv(model),
            "bytes_per_token": bytes_per_token(model.geometry, model.dtype),
            "dtype": model.dtype,
            "source": model.source,
        }
        for model in models.values()
    ]


def _kv(model: Model) -> str:
    shape = model.geometry
    if isinstance(shape.kv, HeadKv):
        kv = f"{shape.layers} layers, {shape.kv.kv_heads} x {shape.kv.head_dim}"
    else:
        kv = f"{shape.layers} layers, MLA {shape.kv.kv_lora_rank}+{shape.kv.rope_head_dim}"
    if shape.sliding_layers:
        kv += f", {shape.sliding_layers} sliding over {shape.window_tokens}"
    return kv


def _gpus() -> list[dict[str, str]]:
    gpus = load_gpus(catalog.data_folder() / "gpus.toml").gpus
    return [
        {
            "name": gpu.name,
            "title": gpu.title,
            "prefill": f"{sum(bool(row.ttft_ms) for row in gpu.prefill)} estimated rows",
        }
        for gpu in gpus.values()
    ]


def _runs(arguments: argparse.Namespace) -> "list[dict[str, str | list[str]]]":
    """Return the runs that fit, oldest first; what the drive did not tell is "-"."""
    rows: list[dict[str, str | list[str]]] = []
    for one in read_records(arguments.results):
        if not _fits(one, arguments):
            continue
        record = one.record
        drive = " ".join(part for part in (one.model, one.serial) if part)
        rows.append(
            {
                "name": one.folder.name,
                "end": _end(one.folder),
                "cells": f"{_cells(one.folder)}/{len(record.plan.cells)}",
                "suite": record.plan.suite or "-",
                "device": drive or "-",
                "firmware": one.firmware or "-",
                "target": record.plan.target.path,
                "label": record.label,
                "model": one.model or "-",
                "serial": one.serial or "-",
                "roles": list(one.roles),
                "created_at": record.created_at,
            }
        )
    return rows


def _fits(one: Stored, arguments: argparse.Namespace) -> bool:
    device, role = arguments.device, arguments.role
    return (
        (
            device is None
            or is_named(one.record, device.strip())
            or _part(device, one.model, one.serial)
        )
        and (arguments.firmware is None or _part(arguments.firmware, one.firmware))
        and (arguments.label is None or _part(arguments.label, one.record.label))
        and (role is None or role in one.roles)
    )


def _part(given: str, *texts: str) -> bool:
    return any(given.casefold() in text.casefold() for text in texts)


def _end(folder: Path) -> str:
    """Return how a run ended, by its record alone."""
    if not os.path.lexists(folder / layout.END_FILE):
        return "killed or running"
    try:
        return read_record(folder / layout.END_FILE, EndRecord).end
    except StoreError as error:
        output.advise(str(error))
        return "damaged"


def _cells(folder: Path) -> int:
    """Return how many cells are stored; whether each can be used, its report says."""
    try:
        return sum(1 for one in (folder / layout.CELLS_FOLDER).iterdir() if one.name[0] != ".")
    except OSError:
        return 0


Row = Mapping[str, str | int | list[str] | list[dict[str, str]]]
_ROWS: dict[str, Callable[[], Sequence[Row]]] = {
    "workloads": _workloads,
    "suites": _suites,
    "roles": _roles,
    "models": _models,
    "gpus": _gpus,
}
