"""``kvbench list``: what there is."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap

from kvbench.cli import output
from kvbench.errors import ExitCode, StoreError, UsageError
from kvbench.kv.geometry import HeadKv, bytes_per_token
from kvbench.kv.gpus import load_gpus
from kvbench.kv.models import Model, load_models
from kvbench.store.read import list_runs, read_run
from kvbench.workload import cards, catalog
from kvbench.workload.roles import Requirement
from kvbench.workload.schema import ROLE_MEANINGS

COLUMNS = 100
LAST_WIDTH_MIN = 20
_GAP = 2
KINDS = ("workloads", "suites", "roles", "models", "gpus", "runs")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument(
        "--results",
        type=output.named_path,
        default=Path("results"),
        metavar="DIR",
        help="the results store",
    )
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the list."""
    rows = _ROWS[arguments.kind](arguments.results)
    if arguments.json:
        output.print_json({arguments.kind: rows})
        return int(ExitCode.OK)
    if not rows:
        output.advise(f"no {arguments.kind} there")
        return int(ExitCode.OK)
    table = [
        [key.replace("_", " ") for key in rows[0]],
        *([_shown(v) for v in row.values()] for row in rows),
    ]
    print("\n".join(_aligned(table)))
    return int(ExitCode.OK)


def _shown(value: object) -> str:
    """A list is shown by its length; ``--json`` has it whole."""
    return output.printable(str(len(value) if isinstance(value, list) else value))


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


def _workloads(_: Path) -> list[dict[str, str]]:
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


def _suites(_: Path) -> list[dict[str, str | list[str]]]:
    return [
        {"name": s.name, "workloads": list(s.workloads), "summary": s.summary}
        for s in catalog.list_suites()
    ]


def _roles(_: Path) -> list[dict[str, str | list[dict[str, str]]]]:
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


def _models(_: Path) -> list[dict[str, str | int]]:
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


def _gpus(_: Path) -> list[dict[str, str]]:
    gpus = load_gpus(catalog.data_folder() / "gpus.toml").gpus
    return [
        {
            "name": gpu.name,
            "title": gpu.title,
            "prefill": f"{sum(bool(row.ttft_ms) for row in gpu.prefill)} estimated rows",
        }
        for gpu in gpus.values()
    ]


def _runs(results: Path) -> list[dict[str, str]]:
    rows = []
    for folder in list_runs(results):
        try:
            archive = read_run(folder)
        except StoreError as error:
            output.advise(str(error))
            continue
        rows.append(
            {
                "name": folder.name,
                "end": archive.end.end if archive.end else "killed or running",
                "cells": f"{len(archive.cells)}/{len(archive.record.plan.cells)}",
                "suite": archive.record.plan.suite or "-",
                "target": archive.record.plan.target.path,
            }
        )
    return rows


Row = Mapping[str, str | int | list[str] | list[dict[str, str]]]
_ROWS: dict[str, Callable[[Path], Sequence[Row]]] = {
    "workloads": _workloads,
    "suites": _suites,
    "roles": _roles,
    "models": _models,
    "gpus": _gpus,
    "runs": _runs,
}
