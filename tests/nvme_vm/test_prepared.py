"""A prepared drive: its record holds until somebody else writes; and nobody else gets at it."""

import pytest

from kvbench.errors import ExitCode
from kvbench.host.model import Written
from kvbench.store.read import find_run, read_run
from tests.nvme_vm.guest import Seen

pytestmark = [pytest.mark.vm, pytest.mark.slow]


def written(runs: Seen, label: str) -> Written:
    return read_run(find_run(runs.results, label)).record.written


@pytest.mark.parametrize("purge", ["format", "discard"])
def test_a_drive_is_purged_and_the_purge_is_proven(runs: Seen, purge: str) -> None:
    answer = runs[f"prepare by {purge}"]
    assert answer.exit_code == ExitCode.OK, answer.stderr
    assert "not purged" not in answer.stdout + answer.stderr


@pytest.mark.parametrize("purge", ["format", "discard"])
def test_preparing_a_namespace_leaves_the_one_beside_it(runs: Seen, purge: str) -> None:
    facts = runs[f"prepare by {purge}"].facts
    assert facts["bytes before"] == facts["bytes after"]
    assert facts["writes before"] == facts["writes after"]


def test_a_later_run_takes_the_record_of_the_preparation(runs: Seen) -> None:
    assert runs["run of a prepared drive"].exit_code == ExitCode.OK
    assert written(runs, "run of a prepared drive").state == "prepared"


def test_writes_of_somebody_else_end_the_preparation(runs: Seen) -> None:
    found = written(runs, "run after foreign writes")
    assert found.state == "unproven"
    assert "written" in found.reason


def test_the_record_of_another_drive_is_not_taken(runs: Seen) -> None:
    found = written(runs, "run with the stamp of another drive")
    assert found.state == "unproven"


def test_while_kvbench_writes_nobody_else_can_claim_the_drive(runs: Seen) -> None:
    assert runs["claim while kvbench writes"].stdout == "EBUSY"


@pytest.mark.parametrize("name", ["second kvbench on the drive", "second kvbench that only reads"])
def test_a_second_kvbench_on_a_drive_is_told_of_the_first(runs: Seen, name: str) -> None:
    answer = runs[name]
    assert answer.exit_code == ExitCode.USAGE
    assert "another kvbench (pid " in answer.stderr
    assert "is using this target" in answer.stderr


def test_the_first_kvbench_is_stopped_in_order(runs: Seen) -> None:
    assert runs["first kvbench"].exit_code in (ExitCode.INTERRUPTED, ExitCode.OK)
