"""Run a job text through the real fio, and read back what it did."""

import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from kvbench.fio.jobfile import render
from kvbench.measure.load import with_rate
from kvbench.plan import Cell, TargetSpec, make_plan
from kvbench.units import GIB
from kvbench.workload.schema import Workload

Io = tuple[str, int, int]  # direction, offset, length
DECIDED_IOPS = 4000.0  # of load curves, whose rates a session decides


def cells(
    *workloads: Workload,
    size_bytes: int = 2 * GIB,
    path: str = "/data/target",
    runtime_s: float | None = None,
) -> list[Cell]:
    """One repetition of ``workloads``, ceilings included."""
    target = TargetSpec(path=path, kind="file", size_bytes=size_bytes, own_file=True)
    plan = make_plan(workloads, target, repetitions=1, seed=7, may_write=True, runtime_s=runtime_s)
    return [with_rate(cell, DECIDED_IOPS) if cell.undecided else cell for cell in plan.cells]


def measured(
    *workloads: Workload, size_bytes: int = 2 * GIB, runtime_s: float | None = None
) -> list[Cell]:
    """The cells that measure."""
    every = cells(*workloads, size_bytes=size_bytes, runtime_s=runtime_s)
    return [cell for cell in every if cell.purpose == "measure"]


def on_null(cell: Cell, **changes: object) -> Cell:
    """The same cell on fio's null engine, which touches no file; with changes to its streams.

    Its buffers are scattered, so that it runs where no huge pages are reserved.
    """
    changes = {"buffers": "scattered", **changes}
    placed = tuple(
        msgspec.structs.replace(p, stream=msgspec.structs.replace(p.stream, **changes))
        for p in cell.placed
    )
    return msgspec.structs.replace(
        cell, purpose="ceiling", engine="null", direct=False, placed=placed
    )


def options(text: str) -> dict[str, dict[str, str]]:
    """The options of a job text by section."""
    sections: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("["):
            current = sections.setdefault(line[1:-1], {})
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            current[name] = value
    return sections


def run(fio: str, text: str, folder: Path) -> dict[str, Any]:
    """Run a job text in ``folder`` and return fio's document."""
    (folder / "job.fio").write_text(text, encoding="utf-8")
    said = call(fio, folder, "--output-format=json+", "job.fio")
    document = json.loads(said[said.index("{\n") :])
    assert isinstance(document, dict)
    return document


def call(fio: str, folder: Path, *arguments: str) -> str:
    """Call fio in ``folder`` and return what it says; a failure is an AssertionError."""
    done = subprocess.run(
        [fio, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def did(fio: str, cell: Cell, folder: Path, *, ios: int = 2000) -> dict[str, list[Io]]:
    """Run ``cell`` on the null engine and return each stream's first I/Os in order of issue.

    One job, so that one log has one writer; depth 1 unless a barrier needs it, because the null
    engine sends I/Os back as busy above that, and fio logs them each time.  As fast as it goes:
    when an I/O is issued decides nothing of where it goes.
    """
    depth = {} if any(p.stream.barrier for p in cell.placed) else {"queue_depth": 1}
    at_once = {"burst_ios": None, "pause_s": None}
    load = {"load": None} if cell.load else {}
    cell = msgspec.structs.replace(on_null(cell, jobs=1, **depth, **at_once), **load)
    text = render(cell, "/data/target")
    text = re.sub(r"^rate_(iops|process)=.*\n", "", text, flags=re.MULTILINE)
    text = text.replace("time_based=1\n", "time_based=0\n")  # or number_ios starts over for ever
    for placed in cell.placed:
        name = placed.stream.name
        log = f"write_iolog={name}.iolog\nnumber_ios={ios}\n"
        text = text.replace(f"[{name}]\n", f"[{name}]\n{log}")
        (folder / f"{name}.iolog").unlink(missing_ok=True)  # fio appends
    run(fio, text, folder)
    return {p.stream.name: list(iolog(folder / f"{p.stream.name}.iolog")) for p in cell.placed}


def iolog(path: Path) -> Iterable[Io]:
    """The reads, writes and trims of fio's I/O log, in order of issue."""
    for line in path.read_text().splitlines():
        match = re.search(r" (read|write|trim) (\d+) (\d+)$", line)
        if match:
            yield match[1], int(match[2]), int(match[3])
