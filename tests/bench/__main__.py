"""``make bench``: what kvbench costs beside plain fio, and what its report costs.

Sides are interleaved and their order alternates, so that a drifting disk favours neither.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from kvbench import target
from kvbench.fio.jobfile import render
from kvbench.fio.probe import FioTool, find_fio
from kvbench.host.identity import identify
from kvbench.measure.run import measure_run
from kvbench.plan import Plan, TargetSpec, make_plan
from kvbench.session import Observer
from kvbench.store import layout
from kvbench.store.read import read_run
from kvbench.units import GIB, MIB, format_count
from kvbench.workload.load import load_workload
from tests.bench import archives, fio_plot, on_terminal
from tests.bench.calibrate import calibrate
from tests.bench.devices import known_devices
from tests.bench.histograms import histogram_cost_ns
from tests.bench.same_device import same_device
from tests.bench.silent import run_silently

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ROUNDS = 9
PEAK_ROUNDS = 5
FIGURE_ROUNDS = 3


def one_cell_plan(workload: str, path: Path, *, direct: bool, seed: int) -> Plan:
    """Return a plan of one repetition without its ceiling cells."""
    spec = TargetSpec(path=str(path), kind="file", size_bytes=path.stat().st_size, own_file=True)
    plan = make_plan(
        [load_workload(HERE / workload)],
        spec,
        repetitions=1,
        seed=seed,
        direct=direct,
        may_write=False,
    )
    cells = tuple(cell for cell in plan.cells if cell.purpose == "measure")
    return msgspec.structs.replace(plan, cells=cells)


def through_kvbench(
    plan: Plan, tool: FioTool, folder: Path, observer: Observer | None = None
) -> tuple[float, float]:
    """Run the plan's cell and return its IOPS and the wall seconds beyond ramp and runtime."""
    started = time.monotonic()
    run_folder = run_silently(plan, tool, folder, observer)
    wall_s = time.monotonic() - started
    timing = plan.cells[0].timing
    run = measure_run(read_run(run_folder))
    iops = next(m.value for m in run.cells[0].measurements if m.metric == "iops")
    if iops is None:
        sys.exit(f"the cell failed: {run.cells[0].findings}")
    return iops, wall_s - timing.ramp_s - timing.runtime_s


def plain_fio(tool: FioTool, *arguments: str, cwd: Path) -> float:
    """Run fio by hand and return its IOPS."""
    done = subprocess.run(
        [tool.path, "--output-format=json", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    document = json.loads(done.stdout[done.stdout.index("{\n") :])
    return float(sum(job["read"]["iops"] for job in document["jobs"]))


def bench_against_fio(tool: FioTool, folder: Path) -> None:
    """The same job file through kvbench and by hand."""
    path = target.default_path(folder)
    target.make(path, 512 * MIB)
    target.fill(identify(str(path)), 512 * MIB, tool=tool, direct=True, engine="io_uring")
    ratios, beyond = [], []
    for number in range(ROUNDS):
        plan = one_cell_plan("reads.toml", path, direct=True, seed=number + 1)
        job = folder / "by-hand.fio"
        job.write_text(render(plan.cells[0], str(path)))
        by_hand = 0.0
        if number % 2:
            by_hand = plain_fio(tool, job.name, cwd=folder)
        iops, wall_s = through_kvbench(plan, tool, folder)
        by_hand = by_hand or plain_fio(tool, job.name, cwd=folder)
        ratios.append(iops / by_hand)
        beyond.append(wall_s)
    say(
        "IOPS through kvbench / plain fio, same job",
        statistics.median(ratios),
        "at least 0.99",
        f"median of {ROUNDS}, {min(ratios):.3f} to {max(ratios):.3f}",
    )
    say(
        "wall seconds per cell beyond ramp + runtime",
        statistics.median(beyond),
        "at most 0.5",
        f"median of {ROUNDS}, max {max(beyond):.3f}",
    )


def bench_peak(tool: FioTool) -> None:
    """The throughput shape beside plain fio with the same depth, on tmpfs."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="kvbench-") as name:
        folder = Path(name)
        path = folder / "peak.dat"
        chunk = os.urandom(16 * MIB)
        with path.open("wb") as file:
            for _ in range(4 * GIB // len(chunk)):
                file.write(chunk)
        by_hand = (
            "--name=plain",
            f"--filename={path}",
            "--ioengine=io_uring",
            "--rw=randread",
            "--bs=512",
            "--iodepth=64",
            "--time_based",
            "--runtime=2",
            "--ramp_time=200ms",
            f"--size={4 * GIB}",
            "--allow_file_create=0",
        )
        ratios, rates = [], []
        for number in range(PEAK_ROUNDS):
            plan = one_cell_plan("peak.toml", path, direct=False, seed=number + 1)
            plain = plain_fio(tool, *by_hand, cwd=folder) if number % 2 else 0.0
            iops, _ = through_kvbench(plan, tool, folder)
            plain = plain or plain_fio(tool, *by_hand, cwd=folder)
            ratios.append(iops / plain)
            rates.append(iops)
        say(
            "IOPS of the throughput shape / plain fio, tmpfs",
            statistics.median(ratios),
            "at least 1.4",
            f"median of {PEAK_ROUNDS}, {min(ratios):.2f} to {max(ratios):.2f}, "
            f"{format_count(statistics.median(rates))} IOPS",
        )


def bench_histograms(tool: FioTool, folder: Path) -> None:
    """CPU time that the log of a histogram per second adds to an I/O."""
    without_ns, added_ns = histogram_cost_ns(tool, folder)
    say(
        "CPU ns per I/O of the histogram per second",
        added_ns,
        "at most 30",
        f"beside {without_ns:.0f} of the null engine",
    )


def bench_help() -> None:
    """CPU seconds of ``kvbench --help``."""
    spent = [child_usage([sys.executable, "-m", "kvbench", "--help"])[0] for _ in range(5)]
    say("CPU seconds of kvbench --help", statistics.median(spent), "at most 0.15", "median of 5")


def bench_report(folder: Path) -> None:
    """Time and memory of reports of many cells, made from a real one."""
    example = find_example()
    if example is None:
        print("reports of many cells: not measured, results/examples holds no run")
        return
    source = folder / "report-source"  # hard links need one file system
    shutil.copytree(example, source)
    for cells, seconds, megabytes in ((200, 5, 400), (1000, 15, 600)):
        run = archives.like(source, folder / f"report-{cells}", cells)
        _, wall_s, peak_bytes = child_usage(
            [sys.executable, "-m", "kvbench", "report", str(run), "--json"]
        )
        size = (run / layout.REPORT_FILE).stat().st_size
        what = f"wall seconds of the report of {cells} cells"
        say(what, wall_s, f"at most {seconds}", f"{size / 1e6:.1f} MB page")
        say("peak memory of it, MB", peak_bytes / 1e6, f"at most {megabytes}", "")


def bench_figures(tool: FioTool, folder: Path) -> None:
    """All figures of a report, and the report, beside three calls of fio-plot."""
    example = find_example()
    program = fio_plot.install(folder / "fio-plot")
    if example is None or program is None:
        print("figures beside fio-plot: not measured, there is no example or no fio-plot on PyPI")
        return
    outputs = folder / "fio-plot-outputs"
    fio_plot.write_outputs(tool, outputs)
    ratios, count = [], 0
    for _ in range(FIGURE_ROUNDS):
        ours_s, count = fio_plot.report_s(example, folder)
        ratios.append(ours_s / fio_plot.calls_s(program, outputs))
    say(
        f"a report with {count} drawings / {fio_plot.CALLS} calls of fio-plot",
        statistics.median(ratios),
        "below 1",
        f"wall time, median of {FIGURE_ROUNDS}",
    )


def bench_live(tool: FioTool, folder: Path) -> None:
    """The same cell with the live line on a terminal and without it."""
    path = target.default_path(folder)
    ratios = []
    for number in range(ROUNDS):
        plan = one_cell_plan("reads.toml", path, direct=True, seed=number + 1)

        def shown(plan: Plan = plan) -> float:
            with on_terminal.live_view() as view:
                return through_kvbench(plan, tool, folder, view)[0]

        live = shown() if number % 2 else 0.0
        silent, _ = through_kvbench(plan, tool, folder)
        ratios.append((live or shown()) / silent)
    say(
        "IOPS with the live line / without it",
        statistics.median(ratios),
        "at least 0.99",
        f"median of {ROUNDS}, {min(ratios):.3f} to {max(ratios):.3f}",
    )


def find_example() -> Path | None:
    """Return the stored example, None where there is none."""
    found = sorted((ROOT / "results" / "examples").glob(f"*/{layout.RUN_FILE}"))
    return found[0].parent if found else None


def bench_compare(folder: Path) -> None:
    """Time and memory of the comparison of eight runs of 500 cells, made from a real one."""
    example = find_example()
    if example is None:
        print("compare of 8 runs: not measured, results/examples holds no run")
        return
    source = folder / "source"  # hard links need one file system
    shutil.copytree(example, source)
    for cells, seconds in ((200, 12), (500, 10)):
        runs = [archives.like(source, folder / f"compare-{cells}-{n}", cells) for n in range(1, 9)]
        page = ("--html", str(folder / "compare.html")) if cells == 200 else ()
        _, wall_s, peak_bytes = child_usage(
            [sys.executable, "-m", "kvbench", "compare", *map(str, runs), *page]
        )
        what = f"wall seconds of compare of 8 runs x {cells} cells"
        say(what, wall_s, f"at most {seconds}", "with its page" if page else "")
        say("peak memory of its largest process, MB", peak_bytes / 1e6, "at most 500", "")


def child_usage(argv: list[str]) -> tuple[float, float, int]:
    """Run a command and return its CPU seconds, wall seconds and peak memory in bytes."""
    started = time.monotonic()
    child = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.monotonic() - started
    return usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss * 1024


def say(what: str, value: float, wanted: str, detail: str) -> None:
    """Print one line."""
    print(f"{what:<50}{value:>9.3f}   {wanted:<15}{detail}", flush=True)


def main() -> None:
    """Run every benchmark, or the one part that is named; in a folder beside the results."""
    if sys.argv[1:] == ["same-device"]:
        same_device()
        return
    tool = find_fio()
    (ROOT / "results").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "results", prefix=".bench-") as name:
        folder = Path(name)
        if sys.argv[1:] == ["requests"]:
            calibrate(tool, folder)
            return
        if sys.argv[1:] == ["devices"]:
            known_devices(folder)
            return
        bench_help()
        bench_report(folder)
        bench_compare(folder)
        bench_figures(tool, folder)
        bench_against_fio(tool, folder)
        bench_live(tool, folder)
        bench_histograms(tool, folder)
    bench_peak(tool)


if __name__ == "__main__":
    main()
