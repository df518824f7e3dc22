"""``--until-precise``: repetitions until the intervals are narrow, up to a cap."""

import json
import os
from pathlib import Path

import pytest

from kvbench.errors import ExitCode
from kvbench.store.read import list_runs, read_run
from kvbench.units import MIB
from tests.cli.program import SMALL, kvbench, needs_fio


def measure(folder: Path, *options: str) -> tuple[int, str]:
    target = folder / "drive"
    target.write_bytes(os.urandom(16 * MIB))
    done = kvbench(
        "run", target, "--workload", SMALL, "--runtime", "0.1", "--quiet", *options, cwd=folder
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.fio
@needs_fio
def test_a_wide_limit_is_reached_with_six_repetitions(tmp_path: Path) -> None:
    # 100 % is the widest limit: even a noisy machine reaches it long before the cap
    code, said = measure(tmp_path, "--until-precise", "100")
    assert code == ExitCode.OK, said
    (run,) = list_runs(tmp_path / "results")
    archive = read_run(run)
    assert archive.end is not None
    assert archive.end.end == "complete"
    done = archive.end.repetitions
    assert done is not None
    assert 6 <= done < 30
    assert archive.record.plan.repetitions == done
    assert len(archive.cells) == len(archive.record.plan.cells)
    assert "narrower than 100 % of its median" in " ".join(said.split())
    assert "read 95 % as about 90 %" in archive.end.reason
    again = kvbench("run", "--resume", run.name, cwd=tmp_path)
    assert again.returncode == ExitCode.USAGE
    assert "this run is complete" in again.stderr


@pytest.mark.fio
@needs_fio
def test_a_limit_that_is_not_reached_says_where(tmp_path: Path) -> None:
    code, said = measure(tmp_path, "--until-precise", "0.1", "--repetitions", "6")
    assert code == ExitCode.OK, said
    (run,) = list_runs(tmp_path / "results")
    end = read_run(run).end
    assert end is not None
    assert end.repetitions is None
    assert "are not within 0.1 % after 6 repetitions: small/reads." in end.reason
    assert "are not within 0.1 %" in " ".join(said.split())


@pytest.mark.parametrize("value", ["x", "0", "-3", "nan", "101", "1e9", "", "5 5"])
def test_no_percentage_is_one_sentence(tmp_path: Path, value: str) -> None:
    done = kvbench("plan", f"--until-precise={value}", cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert "--until-precise: must be a percentage" in done.stderr


def test_a_cap_below_six_is_refused(tmp_path: Path) -> None:
    done = kvbench("plan", "--until-precise", "5", "--repetitions", "5", cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert "an interval needs 6 repetitions" in done.stderr


def test_the_plan_says_what_ends_it_and_what_it_can_decide(tmp_path: Path) -> None:
    done = kvbench("plan", "--workload", SMALL, "--until-precise", "5", cwd=tmp_path)
    assert "up to 30 repetitions" in done.stdout
    assert "narrower than 5 % of its median" in done.stdout
    assert "a gate over its 4 primary numbers needs at least 5 repetitions a side" in done.stdout
    few = json.loads(
        kvbench("plan", "--workload", SMALL, "--repetitions", "2", "--json", cwd=tmp_path).stdout
    )
    assert few["decides"].endswith("needs at least 5 repetitions a side, this plan has 2")
