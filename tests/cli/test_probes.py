"""Probes on loop devices: what a device cannot do keeps its place, and what they say is told."""

import json
import os
from pathlib import Path

import pytest

from kvbench.errors import ExitCode
from kvbench.units import KIB, MIB
from tests.cli.program import kvbench, needs_fio
from tests.host.loops import loop_over, needs_loops

pytestmark = [pytest.mark.fio, pytest.mark.blockdev, needs_fio, needs_loops]

SIZES = """\
format = 1
summary = "reads around the logical block"
role = "memory"
source = "a test"
evidence = "probe"
primary = ["read.iops"]

[timing]
runtime = "200ms"
ramp = 0

[[stream]]
name = "read"
direction = "read"
pattern = "random"
block_size = "4KiB"

[sweep]
block_size = ["512B", "2KiB", "4KiB", "8KiB"]
"""


def backing(folder: Path) -> Path:
    path = folder / "backing"
    path.write_bytes(os.urandom(MIB) * 32)
    return path


def test_sizes_below_the_logical_block_keep_their_place_and_stop_nothing(tmp_path: Path) -> None:
    (tmp_path / "sizes.toml").write_text(SIZES)
    with loop_over(backing(tmp_path), "--sector-size", "4096") as device:
        done = kvbench(
            *("run", device, "--workload", "./sizes.toml", "--repetitions", "1", "--quiet"),
            cwd=tmp_path,
        )
    assert done.returncode == ExitCode.OK, done.stderr
    rows = [line for line in done.stdout.splitlines() if "random reads, depth 1" in line]
    assert [row.split(" random")[0].strip() for row in rows] == ["512 B", "2 KiB", "4 KiB", "8 KiB"]
    assert ["not supported here" in row for row in rows] == [True, True, False, False]
    answer = json.loads(kvbench("report", "latest", "--json", cwd=tmp_path).stdout)
    told = {one["parameters"]["block_size"]: one["reason"] for one in answer["unsupported"]}
    assert set(told) == {512, 2 * KIB}
    assert "not a multiple of the device's 4096 B logical block" in told[512]
    page = (tmp_path / answer["folder"] / "report.html").read_text()
    assert "not supported here" in page


def test_what_trimmed_blocks_of_a_device_return_is_told(tmp_path: Path) -> None:
    with loop_over(backing(tmp_path)) as device:
        done = kvbench(
            *("run", device, "--destroy", device, "--yes", "--quiet", "--json"),
            *("--workload", "deallocate-then-read", "--repetitions", "1", "--runtime", "0.5"),
            cwd=tmp_path,
        )
    assert done.returncode == ExitCode.OK, done.stderr
    (reading,) = json.loads(done.stdout)["readings"]
    assert reading["workload"] == "deallocate-then-read"
    assert reading["answer"] == "seen"
    assert "return zeroes" in reading["sentences"][0]  # a loop device punches holes
    assert reading["sentences"][1] == "Each returned the same in 3 reads."
    page = next((tmp_path / "results").glob("*/report.html")).read_text()
    assert "What do trimmed blocks return?" in page
    text = kvbench("report", "latest", "--text", cwd=tmp_path).stdout
    assert "WHAT THE PROBES SAY" in text
