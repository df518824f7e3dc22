"""A prepared drive: its record holds until somebody else writes; and nobody else gets at it."""

import pytest

from kvbench.errors import ExitCode
from kvbench.store.preparation import SMART_STEP_BYTES, Condition
from kvbench.store.read import find_run, read_run
from kvbench.units import MIB
from tests.nvme_vm.guest import Seen
from tests.nvme_vm.inside.prepared import FOREIGN_MIB

pytestmark = [pytest.mark.vm, pytest.mark.slow]


def condition(seen: Seen, label: str) -> Condition:
    found = read_run(find_run(seen.results, label)).record.condition
    assert found is not None
    return found


@pytest.mark.parametrize("purge", ["format", "discard"])
def test_a_drive_is_purged_and_the_purge_is_proven(faults: Seen, purge: str) -> None:
    answer = faults[f"prepare by {purge}"]
    # whether five rounds of a second are steady is a matter of this machine's load
    assert answer.exit_code in (ExitCode.OK, ExitCode.INCONCLUSIVE), answer.stderr
    assert f"purged by {purge} (as asked)" in answer.stdout
    assert "none holds what was written before it" in answer.stdout
    assert "256 of 256 sampled blocks hold new data" in answer.stdout


@pytest.mark.parametrize("purge", ["format", "discard"])
def test_preparing_a_namespace_leaves_the_one_beside_it(faults: Seen, purge: str) -> None:
    facts = faults[f"prepare by {purge}"].facts
    assert facts["bytes before"] == facts["bytes after"]
    assert facts["writes before"] == facts["writes after"]


def test_a_later_run_takes_the_record_of_the_preparation(faults: Seen) -> None:
    assert faults["run of a prepared drive"].exit_code == ExitCode.OK
    found = condition(faults, "run of a prepared drive")
    assert (found.state, found.covered, found.written_since_bytes) == ("holds", True, 0)


def test_writes_of_somebody_else_break_the_preparation_and_are_counted(faults: Seen) -> None:
    found = condition(faults, "run after foreign writes")
    assert found.state == "broken"
    assert found.written_since_bytes is not None
    # the drive itself counts in steps of 512,000 bytes, and rounds up
    assert 0 <= found.written_since_bytes - FOREIGN_MIB * MIB <= SMART_STEP_BYTES


def test_the_record_of_another_drive_is_not_taken(faults: Seen) -> None:
    found = condition(faults, "run with the stamp of another drive")
    assert found.state == "none"
    assert found.text == "the stamp is of another device: it differs in serial, wwid"


def test_while_kvbench_writes_nobody_else_can_claim_the_drive(faults: Seen) -> None:
    assert faults["claim while kvbench writes"].stdout == "EBUSY"


@pytest.mark.parametrize("name", ["second kvbench on the drive", "second kvbench that only reads"])
def test_a_second_kvbench_on_a_drive_is_told_of_the_first(faults: Seen, name: str) -> None:
    answer = faults[name]
    assert answer.exit_code == ExitCode.USAGE
    assert "another kvbench (pid " in answer.stderr
    assert "is using this target" in answer.stderr


def test_the_first_kvbench_is_stopped_in_order(faults: Seen) -> None:
    assert faults["first kvbench"].exit_code in (ExitCode.INTERRUPTED, ExitCode.OK)
