"""Whole runs on a real block device: a loop device over a file of the test's own."""

import os
from pathlib import Path

import pytest

from kvbench.errors import ExitCode
from kvbench.store import layout
from kvbench.store.read import list_runs
from kvbench.units import MIB
from tests.cli.program import SMALL, kvbench, needs_fio
from tests.host.loops import loop_over, needs_loops

pytestmark = [pytest.mark.fio, pytest.mark.blockdev, needs_fio, needs_loops]


def backing(folder: Path, written: int = 64 * MIB) -> Path:
    """A file of 64 MiB of which the first part is written, and the rest a hole."""
    path = folder / "backing"
    path.write_bytes(os.urandom(MIB) * (written // MIB))
    os.truncate(path, 64 * MIB)
    return path


def test_a_device_that_nobody_filled_is_doubted(tmp_path: Path) -> None:
    with loop_over(backing(tmp_path, written=0)) as device:
        done = kvbench("run", device, "--workload", SMALL, "--repetitions", "1", cwd=tmp_path)
    assert done.returncode == ExitCode.OK, done.stderr
    assert "nothing proves that the 64 MiB under test were ever written" in " ".join(
        done.stdout.split()
    )
    (run,) = list_runs(tmp_path / "results")
    assert "never written" in (run / layout.REPORT_FILE).read_text()


@pytest.mark.parametrize("good_mib", [32, 63])
def test_a_device_with_errors_gives_no_number(tmp_path: Path, good_mib: int) -> None:
    path = backing(tmp_path)
    with loop_over(path) as device:
        os.truncate(path, good_mib * MIB)
        done = kvbench("run", device, "--workload", SMALL, "--repetitions", "1", cwd=tmp_path)
    # The first few reads of the probe may all lie in the good part; those of a cell do not.
    assert done.returncode in {ExitCode.ENVIRONMENT, ExitCode.CELL_FAILED}, done.stderr
    if done.returncode == ExitCode.CELL_FAILED:
        (run,) = list_runs(tmp_path / "results")
        assert "Input/output error" in (run / layout.REPORT_FILE).read_text()
        rows = (run / layout.TABLE_FILE).read_text().splitlines()
        assert not [row for row in rows if ",measure," in row and ",valid," in row]
    else:
        assert "I/O errors" in done.stderr
