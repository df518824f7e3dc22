"""What the archive of a run says as an exit code."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from kvbench.cli.reporting import Reported, read_and_measure
from kvbench.errors import ExitCode
from kvbench.measure.model import Outcome
from kvbench.plan import Purpose

EXAMPLE = Path(__file__).resolve().parents[2] / "results" / "examples" / "virtio-disk"


@pytest.fixture(scope="module")
def example() -> Reported:
    return read_and_measure(EXAMPLE)


@pytest.mark.parametrize(
    ("purpose", "outcome", "code"),
    [
        ("measure", "doubtful", ExitCode.OK),
        ("measure", "invalid", ExitCode.CELL_FAILED),
        ("measure", "failed", ExitCode.CELL_FAILED),
        ("ceiling", "invalid", ExitCode.OK),  # a busy host, which is told; the device is not
        ("ceiling", "failed", ExitCode.CELL_FAILED),
    ],
)
def test_one_cell_decides(
    example: Reported, purpose: Purpose, outcome: Outcome, code: ExitCode
) -> None:
    place = next(n for n, c in enumerate(example.run.cells) if c.cell.purpose == purpose)
    cells = list(example.run.cells)
    cells[place] = replace(cells[place], outcome=outcome)
    assert replace(example, run=replace(example.run, cells=tuple(cells))).exit_code == code
