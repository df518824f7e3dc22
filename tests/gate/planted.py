"""Runs on a throttled loop device, and what the gate says of them."""

import json
import subprocess
from pathlib import Path
from typing import Any

from kvbench.errors import ExitCode
from kvbench.store.read import list_runs
from tests.cli.program import ENVIRONMENT, command, kvbench
from tests.throttle import Throttle

STEADY = Path(__file__).with_name("steady.toml")
BASE_IOPS = 2000


def measure(throttle: Throttle, device: str, iops: int, folder: Path, *options: str) -> Path:
    """Run ``steady`` at a speed with the default number of repetitions; return the run's folder."""
    throttle.read_iops(iops)
    before = set(list_runs(folder / "results"))
    argv = command("run", device, "--workload", STEADY, "--quiet", *options)
    done = subprocess.run(
        throttle.inside(argv),
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    # A cell may be invalid on a busy machine: its repetition does not count, and the gate says so.
    assert done.returncode in {ExitCode.OK, ExitCode.CELL_FAILED}, done.stdout + done.stderr
    (run,) = set(list_runs(folder / "results")) - before
    return run


def gate(baseline: Path, candidate: Path, folder: Path) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the answer of ``kvbench gate`` with the default policy."""
    done = kvbench("gate", baseline, candidate, "--json", cwd=folder)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["gate"]


def worse(answer: dict[str, Any]) -> set[tuple[str, int]]:
    """Return the metrics that are worse, with their depth."""
    return {
        (row["key"]["metric"], row["key"]["parameters"]["queue_depth"])
        for row in answer["rows"]
        if row["verdict"] == "WORSE"
    }
