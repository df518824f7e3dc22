"""What the histogram per second costs: fio's null engine with and without it, interleaved.

The null engine does nothing but count, so the difference is the log's alone; a device's own noise
would hide it.
"""

import json
import statistics
import subprocess
from pathlib import Path

from kvbench.fio.probe import FioTool
from kvbench.units import MS_PER_S, NS_PER_S

ROUNDS = 12
JOB = """[global]
ioengine=null
thread=1
size=256m
bs=4096
rw=randread
norandommap=1
iodepth=16
iodepth_batch_submit=16
iodepth_batch_complete_min=0
time_based=1
runtime=500ms
ramp_time=100ms
lat_percentiles=1
{log}
[reads]
"""
LOG = "write_hist_log=cost\nlog_hist_msec=118\nlog_hist_coarseness=0\nper_job_logs=1\n"


def histogram_cost_ns(tool: FioTool, folder: Path) -> tuple[float, float]:
    """Return the CPU time per I/O without the log, and what the log adds: medians, in ns."""
    spent: dict[str, list[float]] = {"": [], LOG: []}
    for number in range(ROUNDS):
        for log in ("", LOG) if number % 2 else (LOG, ""):
            spent[log].append(_cpu_ns(tool, folder, log))
    without = statistics.median(spent[""])
    return without, statistics.median(spent[LOG]) - without


def _cpu_ns(tool: FioTool, folder: Path, log: str) -> float:
    job = folder / "histogram-cost.fio"
    job.write_text(JOB.format(log=log))
    done = subprocess.run(
        [tool.path, "--output-format=json", job.name],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    (row,) = json.loads(done.stdout[done.stdout.index("{\n") :])["jobs"]
    share = (row["usr_cpu"] + row["sys_cpu"]) / 100
    return float(share * row["job_runtime"] / MS_PER_S / row["read"]["total_ios"] * NS_PER_S)
