"""Copies of the example archive that comes with kvbench, changed for a test."""

import json
import os
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from kvbench.store import layout

EXAMPLE = Path(__file__).parents[1] / "results" / "examples" / "virtio-disk"
Change = Callable[[dict[str, Any]], None]


def copy_of_example(
    folder: Path, change: Change = lambda _: None, *, workloads: Collection[str] = ()
) -> Path:
    """Write the example as the run ``folder`` (its name is the run's id), and return it.

    ``change`` may alter run.json.  Files of cells are hard links: a test replaces, never edits.
    With ``workloads`` it is as if no other had been planned, which is measured in a tenth of the
    time.
    """
    record = json.loads((EXAMPLE / layout.RUN_FILE).read_text())
    record["run_id"] = folder.name
    end = json.loads((EXAMPLE / layout.END_FILE).read_text())
    left_out = set()
    if workloads:
        plan = record["plan"]
        plan["workloads"] = [w for w in plan["workloads"] if w["name"] in workloads]
        left_out = {c["cell_id"] for c in plan["cells"] if c["workload"] not in workloads}
        plan["cells"] = [c for c in plan["cells"] if c["cell_id"] not in left_out]
        end["cells_done"] = len(plan["cells"])
    left_out |= {layout.REPORT_FILE, layout.TABLE_FILE}
    shutil.copytree(
        EXAMPLE,
        folder,
        copy_function=os.link,
        ignore=lambda _, names: left_out & set(names),
    )
    change(record)
    replace_text(folder / layout.RUN_FILE, json.dumps(record))
    replace_text(folder / layout.END_FILE, json.dumps(end))
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
