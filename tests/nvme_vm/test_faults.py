"""Drives that fail in the middle of a run: the cell does not count, and everything is kept."""

import json
from typing import Any

import pytest

from kvbench.errors import ExitCode
from tests.nvme_vm.guest import Seen

pytestmark = [pytest.mark.vm, pytest.mark.slow]

FAULTS = ("read errors", "removal", "gone between", "dead controller", "reset")


def report_of(seen: Seen, name: str) -> dict[str, Any]:
    answer = seen[f"{name}, report"]
    assert answer.exit_code == ExitCode.OK, answer.stderr
    report: dict[str, Any] = json.loads(answer.stdout)
    assert report["damage"] == []
    return report


def outcomes(report: dict[str, Any]) -> list[str]:
    """The outcomes of all cells but the host's ceiling, which needs no drive."""
    return [cell["outcome"] for cell in report["cells"][1:]]


def why(report: dict[str, Any]) -> str:
    """Everything that speaks against the cells that do not count."""
    bad = [cell for cell in report["cells"] if cell["outcome"] in ("failed", "invalid")]
    findings = [finding for cell in bad for finding in cell["findings"]]
    return "\n".join(f["text"] for f in findings if f["severity"] == "invalid")


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_in_exit_4_without_a_traceback_and_without_hanging(
    faults: Seen, name: str
) -> None:
    answer = faults[name]  # what hangs is killed, and its exit code is -9
    assert answer.exit_code == ExitCode.CELL_FAILED, answer.stderr
    assert "Traceback" not in answer.stderr
    assert "bug in kvbench" not in answer.stderr


def test_read_errors_fail_their_cells_and_no_others(faults: Seen) -> None:
    report = report_of(faults, "read errors")
    assert report["end"]["end"] == "complete"
    by_point: dict[str, set[str]] = {}
    for cell in report["cells"][1:]:
        by_point.setdefault(cell["point_id"], set()).add(cell["outcome"])
    assert sorted(by_point.values(), key=sorted) == [{"doubtful"}, {"failed"}]
    assert "errno 61" in why(report)
    assert "the kernel log has" in why(report)


def test_a_drive_that_is_pulled_spoils_its_cell_and_ends_the_run(faults: Seen) -> None:
    report = report_of(faults, "removal")
    assert outcomes(report)[0] in ("failed", "invalid")
    assert "the device went away while the cell ran" in why(report)
    assert len(report["cells"]) == 2
    assert report["end"]["end"] == "failed"
    assert "the target has gone" in report["end"]["reason"]
    assert "failed: /dev/nvme2n1: the target has gone" in faults["removal"].stderr


def test_a_drive_that_goes_between_two_cells_ends_the_run_with_one_sentence(faults: Seen) -> None:
    report = report_of(faults, "gone between")
    assert outcomes(report) == []
    assert report["end"]["end"] == "failed"
    assert "the target has gone" in report["end"]["reason"]


def test_a_dead_controller_makes_its_cell_invalid_though_fio_saw_no_error(faults: Seen) -> None:
    report = report_of(faults, "dead controller")
    assert outcomes(report) == ["invalid"]
    assert "ran" in why(report)
    assert "the kernel log has" in why(report)


def test_a_reset_makes_its_cell_invalid_though_every_read_was_answered(faults: Seen) -> None:
    report = report_of(faults, "reset")
    assert outcomes(report) == ["invalid"]
    assert "nvme5" in why(report)


def test_a_good_drive_is_measured_after_all_of_this(faults: Seen) -> None:
    assert faults["good"].exit_code == ExitCode.OK, faults["good"].stderr
    assert outcomes(report_of(faults, "good")) == ["doubtful"]
