"""Regressions of a known size on a real block device: found, named, and nothing else."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvbench.errors import ExitCode
from kvbench.units import MIB
from tests.cli.program import needs_fio
from tests.gate.planted import BASE_IOPS, gate, measure, worse
from tests.host.loops import loop_over, needs_loops
from tests.throttle import needs_throttle, throttled

pytestmark = [
    pytest.mark.fio,
    pytest.mark.blockdev,
    pytest.mark.slow,
    needs_fio,
    needs_loops,
    needs_throttle,
]
SPEEDS = {"base": BASE_IOPS, "again": BASE_IOPS, "0.9": 1800, "0.8": 1600}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    folder = tmp_path_factory.mktemp("planted")
    backing = folder / "backing"
    backing.write_bytes(os.urandom(32 * MIB))
    with loop_over(backing) as device, throttled(device) as throttle:
        yield {
            name: measure(throttle, device, iops, folder, "--label", name)
            for name, iops in SPEEDS.items()
        }


def test_the_same_speed_again_is_no_regression(runs: dict[str, Path], tmp_path: Path) -> None:
    code, answer = gate(runs["base"], runs["again"], tmp_path)
    assert code != ExitCode.REGRESSION
    assert worse(answer) == set()


@pytest.mark.parametrize("name", ["0.9", "0.8"])
def test_a_slower_device_is_found_and_named(
    runs: dict[str, Path], name: str, tmp_path: Path
) -> None:
    code, answer = gate(runs["base"], runs[name], tmp_path)
    assert code == ExitCode.REGRESSION
    assert answer["outcome"] == "FAIL"
    assert worse(answer) == {(m, d) for m in ("iops", "latency_mean") for d in (1, 8)}
    ratios = [r["change"]["estimate"] for r in answer["rows"] if r["key"]["metric"] == "iops"]
    assert ratios == pytest.approx([float(name)] * 2, rel=0.03)


def test_the_slower_one_as_baseline_makes_a_faster_one_pass(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    code, answer = gate(runs["0.8"], runs["base"], tmp_path)
    assert code == ExitCode.OK
    assert all(row["improved"] for row in answer["rows"])
