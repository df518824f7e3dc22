"""Where things lie in the results store.  Names only; no I/O."""

import re
from datetime import datetime
from pathlib import Path

from kvbench.fio import sections

RUN_FILE = "run.json"
END_FILE = "end.json"
HEALTH_FILE = "health.json"
CELLS_FOLDER = "cells"
CELL_FILE = "cell.json"
JOB_FILE = "job.fio"
OUTPUT_FILE = "fio.json"
STDERR_FILE = "stderr.txt"
LATENCY_LOG_PREFIX = sections.LATENCY_LOG_PREFIX
WINDOW_LOG_PREFIX = sections.WINDOW_LOG_PREFIX
HISTOGRAM_LOG_PREFIX = sections.HISTOGRAM_LOG_PREFIX
# what fio adds to the prefix of a kind of log
LOG_KINDS = {
    LATENCY_LOG_PREFIX: "lat",
    WINDOW_LOG_PREFIX: "lat",
    HISTOGRAM_LOG_PREFIX: "clat_hist",
}
REPORT_FILE = "report.html"
TABLE_FILE = "measurements.csv"
PREPARATION_FILE = "prepare.json"  # of a run that prepared its target
REWRITE_PREFIX = "rewrite-"  # in a run's folder, while what a cell trimmed is written again
STAMPS_FOLDER = "stamps"  # in the results folder

_LOGS = {
    prefix: re.compile(rf"{prefix}_{kind}\.[0-9]{{1,9}}\.log(\.gz)?", re.ASCII)
    for prefix, kind in LOG_KINDS.items()
}
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


def run_id(started: datetime, label: str) -> str:
    """Return the run's folder name: the time in UTC, sortable and without colons, and the label."""
    fit = fit_label(label)
    stamp = f"{started:%Y%m%dT%H%M%S}.{started.microsecond // 1000:03d}Z"
    return f"{stamp}-{fit}" if fit else stamp


def fit_label(label: str) -> str:
    """Return a label as a run's id has it."""
    return _UNFIT.sub("-", label).strip("-.")[:40]


def label_of(run_id: str) -> str:
    """Return the label in a run's id, "" when it has none."""
    return run_id.partition("Z-")[2]


def cell_folder(run_folder: Path, cell_id: str) -> Path:
    """Return the folder of a stored cell."""
    return run_folder / CELLS_FOLDER / cell_id


def is_log(name: str, prefix: str) -> bool:
    """Return whether this is the name of a log of this kind, ``latency_lat.3.log[.gz]``."""
    return _LOGS[prefix].fullmatch(name) is not None


def log_job_number(path: Path) -> int:
    """Return fio's job number (from 1, over all sections) of ``latency_lat.3.log[.gz]``.

    Raises:
        ValueError: the name is not that of a log.
    """
    return int(path.name.removesuffix(".gz").split(".")[-2])
