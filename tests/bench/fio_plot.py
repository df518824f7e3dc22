"""Figures beside those of ``fio-plot`` from PyPI, which reads fio's output too."""

import subprocess
import sys
import time
import venv
from pathlib import Path

from kvbench.fio.probe import FioTool

DEPTHS = (1, 2, 4, 8, 16)
CALLS = 3


def install(folder: Path) -> Path | None:
    """Return the program in a virtual environment of its own, None where it cannot be had."""
    venv.create(folder, with_pip=True)
    done = subprocess.run(
        [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "fio-plot"],
        capture_output=True,
        timeout=300,
        check=False,
    )
    program = folder / "bin" / "fio-plot"
    return program if done.returncode == 0 and program.exists() else None


def write_outputs(tool: FioTool, folder: Path) -> None:
    """Write fio's output at several depths under the names that fio-plot looks for."""
    folder.mkdir()
    for depth in DEPTHS:
        arguments = (
            *(
                "--name=randread",
                "--ioengine=null",
                "--rw=randread",
                "--bs=4096",
                "--size=1073741824",
            ),
            *("--time_based=1", "--runtime=300ms", "--thread=1", "--numjobs=1"),
            *(f"--iodepth={depth}", "--output-format=json"),
        )
        with (folder / f"randread-{depth}-1.json").open("wb") as out:
            subprocess.run([tool.path, *arguments], cwd=folder, stdout=out, timeout=30, check=True)


def calls_s(program: Path, folder: Path) -> float:
    """Return the wall seconds of three calls of its depth figure."""
    depths = [str(depth) for depth in DEPTHS]
    argv = [
        str(program),
        "-i",
        str(folder),
        "-T",
        "depth",
        "-l",
        "-r",
        "randread",
        "-n",
        "1",
        "-d",
        *depths,
    ]
    begin = time.monotonic()
    for number in range(CALLS):
        subprocess.run(
            [*argv, "-o", str(folder / f"{number}.png")],
            capture_output=True,
            timeout=120,
            check=True,
        )
    return time.monotonic() - begin


def report_s(run: Path, folder: Path) -> tuple[float, int]:
    """Return the wall seconds of a whole report and how many drawings are in it."""
    page = folder / "report.html"
    files = ("--html", str(page), "--csv", str(folder / "table.csv"))
    argv = [sys.executable, "-m", "kvbench", "report", str(run), *files]
    begin = time.monotonic()
    subprocess.run(argv, capture_output=True, timeout=120, check=True)
    return time.monotonic() - begin, page.read_text().count("<svg")
