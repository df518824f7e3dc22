"""Copies of the example archive that comes with kvbench, changed for a test."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kvbench.store import layout

EXAMPLE = Path(__file__).parents[1] / "results" / "examples" / "virtio-disk"
Change = Callable[[dict[str, Any]], None]


def copy_of_example(folder: Path, change: Change = lambda _: None) -> Path:
    """Write the example as the run ``folder`` (its name is the run's id), and return it.

    ``change`` may alter run.json.  Files of cells are hard links: a test replaces, never edits.
    """
    shutil.copytree(EXAMPLE, folder, copy_function=os.link)
    for name in (layout.REPORT_FILE, layout.TABLE_FILE):
        (folder / name).unlink(missing_ok=True)
    record = json.loads((EXAMPLE / layout.RUN_FILE).read_text())
    record["run_id"] = folder.name
    change(record)
    replace_text(folder / layout.RUN_FILE, json.dumps(record))
    return folder


def replace_text(path: Path, text: str) -> None:
    """Give ``path`` another text, whoever else has the old one."""
    path.unlink()
    path.write_text(text)


def fact(record: dict[str, Any], name: str, value: str | None) -> None:
    """Change one fact of a run.json."""
    for entry in record["facts"]:
        if entry["name"] == name:
            entry["value"] = value
            return
    record["facts"].append({"name": name, "value": value, "reason": ""})
