"""Workload files written for one test."""

from pathlib import Path

from kvbench.workload.load import load_workload
from kvbench.workload.schema import Workload

TOP = """\
format = 1
summary = "a test"
role = "memory"
source = "a test"
evidence = "probe"
primary = ["reads.iops"]
"""
READS = """\
[[stream]]
name = "reads"
direction = "read"
pattern = "random"
block_size = "4KiB"
"""


def write(folder: Path, text: str, name: str = "sample.toml") -> Path:
    """Write a file as it is and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def load(folder: Path, *, top: str = "", stream: str = "", more: str = "") -> Workload:
    """Load the smallest workload with further lines at the top, in its stream, and after it."""
    return load_workload(write(folder, f"{TOP}{top}\n{READS}{stream}\n{more}\n"))
