"""kvbench as a program of its own, and the small workloads that tests run through it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SMALL = Path(__file__).with_name("small.toml")
LONG = Path(__file__).with_name("long.toml")
WRITES = Path(__file__).with_name("writes.toml")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")


def command(*arguments: str | Path) -> list[str]:
    """Return the command line of kvbench with ``arguments``."""
    return [sys.executable, "-m", "kvbench", *map(str, arguments)]


def kvbench(
    *arguments: str | Path, cwd: Path, timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run kvbench to its end, without a terminal."""
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@contextmanager
def started(*arguments: str | Path, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """A kvbench in the background, killed and reaped at the end whatever happened."""
    with subprocess.Popen(
        command(*arguments),
        cwd=cwd,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate(timeout=30)
