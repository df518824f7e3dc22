"""Runs of healthy drives: what they are known by, what they are compared by, what is kept."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kvbench.errors import ExitCode
from kvbench.store.read import RunArchive, find_run, read_run
from tests.nvme_vm.conftest import FIRMWARE, NEXT_FIRMWARE
from tests.nvme_vm.guest import Seen

pytestmark = [pytest.mark.vm, pytest.mark.slow]

POLICY = """format = 1
summary = "wide margins: the guest shares this machine with others"
confidence = 95
metrics = ["primary"]
missing = "fail"
failed = "ignore"
unclear = "unclear"
may_differ = ["firmware", "label"]
must_not_differ = ["model", "serial", "namespace", "capacity", "lba_format", "plan", "kernel"]

[margins]
"*" = "25 %"
"""


def on_host(*argv: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kvbench", *argv], capture_output=True, text=True, check=False
    )


def run_of(seen: Seen, label: str) -> RunArchive:
    return read_run(find_run(seen.results, label))


def gate(tmp_path: Path, baseline: RunArchive, candidate: RunArchive) -> tuple[int, str]:
    """Return the exit code and the answer of the gate, which is asked on the host."""
    policy = tmp_path / "wide.toml"
    policy.write_text(POLICY)
    done = on_host("gate", baseline.folder, candidate.folder, "--policy", policy)
    return done.returncode, done.stdout


def namespace_of(seen: Seen, device: str) -> str:
    """Return what the kernel's driver answers, which kvbench does not ask."""
    return seen[f"namespace of /dev/{device}"].stdout


def facts_of(seen: Seen, name: str) -> dict[str, str | None]:
    return {fact["name"]: fact["value"] for fact in json.loads(seen[name].stdout)["facts"]}


@pytest.mark.parametrize(
    ("device", "serial", "block"),
    [
        ("nvme0n1", "FAST0001", "512"),
        ("nvme2n1", "BLK40001", "4096"),
        ("nvme3n1", "TWONS0001", "512"),
        ("nvme3n2", "TWONS0001", "512"),
    ],
)
def test_doctor_tells_which_drive_it_is(runs: Seen, device: str, serial: str, block: str) -> None:
    facts = facts_of(runs, f"doctor /dev/{device}")
    nsid = namespace_of(runs, device)
    assert facts["device_model"] == "QEMU NVMe Ctrl"
    assert facts["device_serial"] == serial
    assert facts["device_firmware"] == FIRMWARE
    assert facts["device_nsid"] == nsid
    assert facts["logical_block_bytes"] == block
    assert (facts["device_wwid"] or "").startswith("nvme.1b36-")
    assert (facts["device_wwid"] or "").endswith(f"-0000000{nsid}")


def test_each_namespace_of_a_drive_has_its_own_id(runs: Seen) -> None:
    # which of them the kernel finds first, and calls n1, differs from boot to boot
    assert {namespace_of(runs, name) for name in ("nvme3n1", "nvme3n2")} == {"1", "2"}


def test_what_nvme_cli_would_add_is_unknown_without_it(runs: Seen) -> None:
    whole, less = facts_of(runs, "doctor /dev/nvme0n1"), facts_of(runs, "doctor, without tools")
    assert less["device_serial"] == "FAST0001"
    assert (whole["device_lba_format"], less["device_lba_format"]) == ("0", None)
    assert runs["doctor, without tools"].stderr == ""


def test_a_run_keeps_what_the_drive_is(runs: Seen) -> None:
    record = run_of(runs, "base").record
    assert record.identity.serial == "FAST0001"
    assert record.identity.wwid is not None
    assert record.identity.wwid.endswith("-00000001, nsid 1")
    facts = {fact.name: fact.value for fact in record.facts}
    assert facts["device_firmware"] == FIRMWARE
    assert facts["logical_block_bytes"] == "512"


def test_two_namespaces_of_one_drive_are_two_targets(runs: Seen, tmp_path: Path) -> None:
    first, second = run_of(runs, "first namespace"), run_of(runs, "second namespace")
    assert first.record.identity.serial == second.record.identity.serial == "TWONS0001"
    assert first.record.identity.wwid != second.record.identity.wwid
    code, said = gate(tmp_path, first, second)
    assert code == ExitCode.INCONCLUSIVE
    assert "namespace must not differ and does" in said


def test_reads_below_the_block_size_keep_their_place_and_the_run_goes_on(runs: Seen) -> None:
    answer = runs["reads below the block size"]
    assert answer.exit_code == ExitCode.OK, answer.stderr
    (row,) = (line for line in answer.stdout.splitlines() if "512 B random reads" in line)
    assert "not supported here" in row
    assert "are not a multiple of the device's" in answer.stdout
    sizes = [cell.record.cell.parameters["block_size"] for cell in run_of(runs, "small").cells[1:]]
    assert sizes == [4096]


def test_the_gate_passes_a_drive_against_itself(runs: Seen, tmp_path: Path) -> None:
    code, said = gate(tmp_path, run_of(runs, "base"), run_of(runs, "again"))
    assert (code, said.split(":")[0]) == (ExitCode.OK, "PASS")


def test_the_gate_fails_a_drive_that_became_half_as_fast(runs: Seen, tmp_path: Path) -> None:
    code, said = gate(tmp_path, run_of(runs, "base"), run_of(runs, "halved"))
    assert (code, said.split(":")[0]) == (ExitCode.REGRESSION, "FAIL")
    assert "io.iops" in said


def test_compare_tells_the_slower_of_two_drives_but_no_best_one_where_nothing_was_written(
    runs: Seen,
) -> None:
    done = on_host("compare", run_of(runs, "base").folder, run_of(runs, "slow").folder)
    assert done.returncode == ExitCode.OK, done.stderr
    why = "cannot say: on A, B the reads were of blocks never proven written"
    assert done.stdout.startswith(f"memory: {why}")
    assert "WORSE" in done.stdout
    assert "serial: FAST0001 (A), SLOW0001 (B)" in done.stdout


def test_the_end_of_a_write_cache_is_found(runs: Seen, tmp_path: Path) -> None:
    assert runs["cliff"].exit_code == ExitCode.OK, runs["cliff"].stderr
    derived = ("--html", tmp_path / "page", "--csv", tmp_path / "table")
    done = on_host("report", run_of(runs, "cliff").folder, "--json", *derived)
    readings = json.loads(done.stdout)["readings"]
    (found,) = (one for one in readings if one["workload"] == "sustained-write")
    assert found["answer"] == "seen"
    assert found["sentences"][0] == "A cliff in 1 of 1 repetitions."


def test_a_power_cut_while_a_cell_is_stored_loses_at_most_that_cell(after: Seen) -> None:
    answer = after["report after the power cut"]
    report = json.loads(answer.stdout)
    assert report["end"] is None
    assert report["damage"] == []
    assert [cell["cell_id"] for cell in report["cells"]][:3] == ["0001", "0002", "0003"]
    assert len(report["cells"]) in (3, 4)
    assert "Traceback" not in answer.stderr


def test_a_run_that_lost_its_power_is_finished_though_its_drive_has_another_name(
    runs: Seen, after: Seen
) -> None:
    # a busy machine may make a cell invalid, which changes nothing here
    assert after["resumed"].exit_code in (ExitCode.OK, ExitCode.CELL_FAILED)
    report = json.loads(after["report after resume"].stdout)
    assert report["end"]["end"] == "complete"
    assert len(report["cells"]) == 7  # six repetitions and the host's ceiling
    assert run_of(runs, "base").record.identity.real_path == "/dev/nvme0n1"
    assert run_of(after, "by id").record.identity.real_path == "/dev/nvme2n1"


def test_the_gate_knows_a_drive_by_its_serial_when_its_name_has_changed(
    runs: Seen, after: Seen, tmp_path: Path
) -> None:
    renamed = run_of(after, "renamed")
    assert renamed.record.identity.path == "/dev/nvme2n1"
    code, said = gate(tmp_path, run_of(runs, "base"), renamed)
    assert (code, said.split(":")[0]) == (ExitCode.OK, "PASS")


def test_another_firmware_is_told_and_is_no_reason_to_fail(
    runs: Seen, verified: Seen, tmp_path: Path
) -> None:
    code, said = gate(tmp_path, run_of(runs, "base"), run_of(verified, "new firmware"))
    assert (code, said.split(":")[0]) == (ExitCode.OK, "PASS")
    assert f"firmware: {FIRMWARE}, {NEXT_FIRMWARE}" in said


def test_a_run_does_not_go_on_with_another_firmware(verified: Seen) -> None:
    answer = verified["resume with another firmware"]
    assert answer.exit_code == ExitCode.USAGE
    assert f"the firmware was {FIRMWARE} when this run began, and is {NEXT_FIRMWARE}" in (
        answer.stderr
    )


def test_what_was_written_before_a_power_cut_is_verified_under_the_drives_new_name(
    verified: Seen,
) -> None:
    answer = verified["verify"]
    report = json.loads(answer.stdout)
    assert answer.exit_code == ExitCode.OK, report
    assert report["target"] == "/dev/nvme0n1"
    assert report["bad_blocks"] == 0
    assert report["checked_bytes"] > 0


def test_verify_does_not_take_another_drive(verified: Seen) -> None:
    answer = verified["verify another drive"]
    assert answer.exit_code == ExitCode.REFUSED
    assert "it had serial INTG0001" in answer.stderr


def test_verify_finds_what_was_corrupted(verified: Seen) -> None:
    answer = verified["verify corrupt data"]
    assert answer.exit_code == ExitCode.CELL_FAILED
    assert json.loads(answer.stdout)["bad_blocks"] == 1
