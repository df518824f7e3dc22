"""``--resume`` goes on with what a run folder says, so the folder may not say just anything."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvbench.errors import ExitCode
from kvbench.host import lease
from kvbench.store import journal, layout
from kvbench.store.read import list_runs, read_run
from tests import direct_io
from tests.cli.program import LONG, SMALL, kvbench, needs_fio, started

pytestmark = [pytest.mark.fio, needs_fio]


@pytest.fixture(scope="module")
def done_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small finished run."""
    folder = tmp_path_factory.mktemp("done")
    direct_io.skip_without(folder)
    done = kvbench(
        "run", "--workload", SMALL, "--span", "64MiB", "--repetitions", "1", "--runtime", "0.2",
        cwd=folder,
    )  # fmt: skip
    assert done.returncode == ExitCode.OK, done.stderr
    return list_runs(folder / "results")[0]


@pytest.fixture
def run(done_run: Path) -> Path:
    """A copy of the run beside it, which lacks its last cell and its end."""
    copy = done_run.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(done_run, copy, symlinks=True)
    (copy / layout.END_FILE).unlink()
    shutil.rmtree(read_run(copy).cells[-1].folder)
    return copy


def resume(run: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return kvbench("run", "--resume", str(run), *arguments, cwd=run.parent.parent)


def name_of_stream(cell: dict[str, Any], line: str) -> None:
    cell["placed"][0]["stream"]["name"] = f"x]\n{line}\n[y"


def engine(cell: dict[str, Any], line: str) -> None:
    cell["engine"] = f"io_uring\n{line}"


def parameter(cell: dict[str, Any], line: str) -> None:
    cell["parameters"] = {"a": "x" * 4095 + line}


@pytest.mark.parametrize(("fact", "words"), [("kernel", "kernel"), ("device_firmware", "firmware")])
def test_a_run_does_not_go_on_with_another_kernel_or_firmware(
    run: Path, fact: str, words: str
) -> None:
    path = run / layout.RUN_FILE
    record = json.loads(path.read_text())
    known = {one["name"]: one for one in record["facts"]}
    if known.get(fact, {}).get("value") is None:
        pytest.skip(f"this machine does not tell {fact}")
    known[fact]["value"] = "0.1"
    path.write_text(json.dumps(record))
    done = resume(run)
    assert done.returncode == ExitCode.USAGE
    assert f"the {words} was 0.1 when this run began" in done.stderr


@pytest.mark.parametrize("forge", [name_of_stream, engine, parameter])
def test_a_forged_plan_runs_no_program(
    run: Path, tmp_path: Path, forge: Callable[[dict[str, Any], str], None]
) -> None:
    path = run / layout.RUN_FILE
    record = json.loads(path.read_text())
    forge(record["plan"]["cells"][-1], f"exec_prerun=touch {tmp_path}/forged")
    path.write_text(json.dumps(record))
    done = resume(run)
    assert done.returncode in (ExitCode.REFUSED, ExitCode.STORE), done.stderr
    assert "run.json" in done.stderr
    assert not (tmp_path / "forged").exists()


def test_a_forged_ceiling_does_not_write(run: Path) -> None:
    path = run / layout.RUN_FILE
    record = json.loads(path.read_text())
    cell = record["plan"]["cells"][-1]
    cell["purpose"] = "ceiling"
    cell["placed"][0]["stream"]["direction"] = "write"
    path.write_text(json.dumps(record))
    done = resume(run)
    assert done.returncode == ExitCode.REFUSED, done.stderr


def test_a_plan_for_another_target_is_refused(run: Path, tmp_path: Path) -> None:
    path = run / layout.RUN_FILE
    record = json.loads(path.read_text())
    record["plan"]["target"]["path"] = str(tmp_path / "other")
    path.write_text(json.dumps(record))
    done = resume(run)
    assert done.returncode == ExitCode.REFUSED
    assert "it is for the file" in done.stderr


def test_a_damaged_cell_is_measured_anew_and_kept_aside(run: Path) -> None:
    first = read_run(run).cells[0].folder
    (first / layout.CELL_FILE).write_text("{")
    done = resume(run)
    assert done.returncode == ExitCode.OK, done.stderr
    archive = read_run(run)
    assert len(archive.cells) == len(archive.record.plan.cells)
    assert archive.damage == ()
    assert (first.with_name(f".interrupted-{first.name}.1") / layout.OUTPUT_FILE).exists()


def test_a_whole_run_without_an_end_is_ended_and_reported(run: Path, done_run: Path) -> None:
    shutil.rmtree(run)
    shutil.copytree(done_run, run)
    (run / layout.END_FILE).unlink()
    done = resume(run)
    assert done.returncode == ExitCode.OK, done.stderr
    assert "report.html" in done.stdout
    end = read_run(run).end
    assert end is not None
    assert end.end == "complete"
    again = resume(run)
    assert again.returncode == ExitCode.USAGE
    assert "complete" in again.stderr


def test_a_run_that_was_killed_while_it_trimmed_goes_on_with_its_file_written(
    tmp_path: Path,
) -> None:
    direct_io.skip_without(tmp_path)
    (tmp_path / "trims.toml").write_text(TRIMS, encoding="utf-8")
    arguments = ("run", "--workload", "trims.toml", "--span", "32MiB", "--repetitions", "1")
    with started(*arguments, cwd=tmp_path) as process:
        own = tmp_path / "results" / "target.dat"
        deadline = time.monotonic() + 90
        while not has_hole(own):
            assert process.poll() is None, process.stderr and process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.kill()
        process.wait(timeout=30)
    (run,) = list_runs(tmp_path / "results")
    (left,) = journal.left_trimmed(run)
    assert left == read_run(run).record.plan.cells[-1].cell_id
    done = resume(run)
    assert f"writing again what was left trimmed: cell {left}" in done.stderr
    assert done.returncode in (ExitCode.OK, ExitCode.CELL_FAILED), done.stderr
    end = read_run(run).end
    assert end is not None
    assert end.end == "complete"
    assert not has_hole(own)


def test_a_run_that_another_one_adds_to_is_left_alone(run: Path, done_run: Path) -> None:
    shutil.rmtree(run)
    shutil.copytree(done_run, run)
    (run / layout.END_FILE).unlink()
    files = sorted(run.rglob("*"))
    with lease.hold_run(run):
        done = resume(run)
    assert done.returncode == ExitCode.USAGE
    assert f"pid {os.getpid()}) is adding to this run" in done.stderr
    assert sorted(run.rglob("*")) == files, "the end is not written for a run that goes on"
    assert resume(run).returncode == ExitCode.OK


def test_a_run_is_held_from_its_first_cell_to_its_end(tmp_path: Path) -> None:
    direct_io.skip_without(tmp_path)
    with started("run", "--workload", LONG, "--span", "16MiB", cwd=tmp_path) as process:
        deadline = time.monotonic() + 90
        while not (cells := list(tmp_path.glob("results/2*/cells/.partial-*/job.fio"))):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        done = resume(cells[0].parents[2])
        assert done.returncode == ExitCode.USAGE
        assert f"another kvbench (pid {process.pid}) is adding to this run" in done.stderr
        process.terminate()
        assert process.wait(timeout=60) == ExitCode.INTERRUPTED


def test_a_run_whose_last_cell_trimmed_is_not_done_until_that_is_written_again(run: Path) -> None:
    last = read_run(run).record.plan.cells[-1]
    assert resume(run).returncode == ExitCode.OK
    journal.append(run, journal.Trimmed(cell_id=last.cell_id, written=False))
    done = resume(run)
    assert done.returncode == ExitCode.OK, done.stderr
    assert "writing again what was left trimmed" in done.stderr
    assert journal.left_trimmed(run) == ()
    assert "complete, nothing is missing" in resume(run).stderr


def has_hole(path: Path) -> bool:
    """Whether a part of a file that was once written is without data."""
    if not path.exists() or not list(path.parent.glob("2*/trims.jsonl")):
        return False
    with path.open("rb") as file:
        return os.lseek(file.fileno(), 0, os.SEEK_HOLE) < path.stat().st_size


@pytest.mark.parametrize("option", ["--workload", "--config"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path, option: str) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    verb = {"--workload": "plan", "--config": "size"}[option]
    done = kvbench(verb, option, tmp_path / "pipe.toml", cwd=tmp_path, timeout_s=20)
    assert done.returncode == ExitCode.USAGE
    assert "it is a pipe, not a file" in done.stderr


def test_a_load_curve_goes_on_in_its_middle(tmp_path: Path) -> None:
    direct_io.skip_without(tmp_path)
    (tmp_path / "curve.toml").write_text(CURVE, encoding="utf-8")
    done = kvbench(
        "run", "--workload", "curve.toml", "--span", "64MiB", "--repetitions", "1", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == ExitCode.OK, done.stderr
    run = list_runs(tmp_path / "results")[0]
    whole = read_run(run)
    assert [c.record.cell.load.kind for c in whole.cells[1:] if c.record.cell.load] == [
        *("peak", "share", "share", "search"),
    ]
    usable = [s for s in json.loads(done.stdout)["summaries"] if s["metric"] == "usable_iops"]
    assert len(usable) == 1
    assert (usable[0]["median"] is None) == bool(usable[0]["reason"])
    (run / layout.END_FILE).unlink()
    for cell in whole.cells[-2:]:
        shutil.rmtree(cell.folder)
    again = resume(run, "--json")
    assert again.returncode == ExitCode.OK, again.stderr
    resumed = read_run(run)
    assert not resumed.damage
    assert len(resumed.cells) == len(whole.cells)
    last = [c.record.cell.placed[0].stream.rate_iops for c in resumed.cells[-2:]]
    assert all(rate is not None and rate > 0 for rate in last)


CURVE = """\
format = 1
summary = "a curve of two shares and one step of the search"
role = "memory"
source = "a test of going on in the middle of a load curve"
evidence = "probe"
primary = ["read.usable_iops"]
[timing]
runtime = "300ms"
ramp = 0
[load]
percent = [20, 60]
queue_depth = 256
latency_limit = "10ms"
percentile = 99
search_steps = 1
[[stream]]
name = "read"
direction = "read"
pattern = "random"
block_size = "4KiB"
queue_depth = 8
"""
TRIMS = """\
format = 1
summary = "deletions in one half beside reads in the other"
role = "capacity"
source = "a test of a kill while something is trimmed"
evidence = "probe"
primary = ["read.iops"]
[timing]
runtime = "3s"
ramp = 0
[[stream]]
name = "read"
direction = "read"
pattern = "random"
block_size = "4KiB"
queue_depth = 1
span_start_percent = 0
span_percent = 50
[[stream]]
name = "delete"
direction = "trim"
pattern = "sequential"
block_size = "1MiB"
queue_depth = 1
rate_iops = 4
span_start_percent = 50
span_percent = 50
"""
