"""``kvbench show``: a job text that says how a derived size came about, and that fio accepts."""

import json
import subprocess
from pathlib import Path

import pytest

from kvbench.cli.main import main
from kvbench.errors import ExitCode
from kvbench.workload.catalog import workload_names
from tests.workload.files import READS, TOP, write

BLOCKS = READS.replace('"4KiB"', '"kv"')


def show(folder: Path, model: str) -> int:
    text = f'{TOP}[kv]\nmodel = "{model}"\nunit = "block"\n{BLOCKS}'
    return main(["show", str(write(folder, text)), "--results", str(folder)])


@pytest.mark.fio
def test_the_derivation_is_a_comment_above_a_job_that_fio_accepts(
    fio: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show(tmp_path, "deepseek-v3") == ExitCode.OK
    job = capsys.readouterr().out
    assert job.startswith("# one block of deepseek-v3 in bf16: 16 tokens x 61 layers x ")
    assert "bs=1124352\n" in job
    (tmp_path / "job.fio").write_text(job)
    done = subprocess.run(
        [fio, "--parse-only", "job.fio"], cwd=tmp_path, capture_output=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_model_that_nobody_knows_is_exit_2_and_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show(tmp_path, "deepsek-v3") == ExitCode.USAGE
    said = capsys.readouterr().err.strip()
    assert "unknown model 'deepsek-v3'" in said
    assert "did you mean 'deepseek-v3'?" in said
    assert len(said.splitlines()) <= 2


@pytest.mark.parametrize("name", workload_names())
def test_every_point_of_every_workload_has_a_job(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", name, "--results", str(tmp_path), "--json"]) == ExitCode.OK
    points = json.loads(capsys.readouterr().out)["points"]
    assert points
    assert all("\nioengine=" in point["job"] for point in points)


def test_a_point_whose_rate_follows_from_the_peak_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["show", "load-curve", "--results", str(tmp_path)]
    assert main(argv) == ExitCode.OK
    first = capsys.readouterr().out
    assert "decides the rate" not in first
    assert "rate_iops" not in first
    assert main([*argv, "--point", "3"]) == ExitCode.OK
    later = capsys.readouterr().out
    assert later.startswith("# A run decides the rate of this point")
    assert "rate_iops=1" in later
