"""``kvbench list``: what there is."""

import argparse
from pathlib import Path

from kvbench.cli import output
from kvbench.errors import ExitCode, StoreError
from kvbench.store.read import list_runs, read_run
from kvbench.workload import catalog
from kvbench.workload.schema import ROLE_MEANINGS

KINDS = ("workloads", "suites", "roles", "runs")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("kind", choices=KINDS, help="what to list")
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="the results store"
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
    widths = [max(len(str(row[key])) for row in rows) for key in rows[0]] if rows else []
    for row in rows:
        cells = [f"{value!s:<{width}}" for value, width in zip(row.values(), widths, strict=True)]
        print("  ".join(cells).rstrip())
    return int(ExitCode.OK)


def _workloads(_: Path) -> list[dict[str, str]]:
    return [
        {"name": w.name, "role": w.role, "evidence": w.evidence, "summary": w.summary}
        for w in catalog.list_workloads()
    ]


def _suites(_: Path) -> list[dict[str, str]]:
    return [
        {"name": s.name, "workloads": ", ".join(s.workloads), "summary": s.summary}
        for s in catalog.list_suites()
    ]


def _roles(_: Path) -> list[dict[str, str]]:
    return [{"name": name, "meaning": meaning} for name, meaning in ROLE_MEANINGS.items()]


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


_ROWS = {"workloads": _workloads, "suites": _suites, "roles": _roles, "runs": _runs}
