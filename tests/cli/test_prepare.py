"""kvbench prepare on real loop devices, and what later runs make of its stamp."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kvbench.cli.prepare import _told_when_it_fails
from kvbench.errors import EnvironmentMissing, ExitCode, Interrupted, KvbenchError
from kvbench.host.identity import identify
from kvbench.store.preparation import binding_of
from kvbench.store.read import read_run
from kvbench.store.stamps import save_stamp
from kvbench.store.write import RunWriter
from tests.cli.program import SMALL, kvbench, needs_fio, started
from tests.host.loops import call, fingerprint, loop_over, make_backing, needs_loops
from tests.records import a_run_record
from tests.store.test_preparation import stamp

pytestmark = [pytest.mark.fio, pytest.mark.blockdev, needs_fio, needs_loops]
QUICK = ("--passes", "1", "--round", "100ms", "--rounds", "5", "--quiet")


def prepare(device: str, folder: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    return kvbench("prepare", device, "--destroy", device, "--yes", *QUICK, *more, cwd=folder)


def condition(device: str, folder: Path) -> dict[str, Any]:
    """Run a small workload and return what it says of the device's preparation."""
    done = kvbench("run", device, "--workload", SMALL, "--repetitions", "1", "--json", cwd=folder)
    assert done.returncode == ExitCode.OK, done.stderr
    record = json.loads((Path(folder / json.loads(done.stdout)["folder"]) / "run.json").read_text())
    found: dict[str, Any] = record["condition"]
    found["written"] = record["written"]["state"]
    return found


def doctor(device: str, folder: Path) -> str:
    """What doctor says of a device; its exit code depends on the machine."""
    done = kvbench("doctor", device, cwd=folder)
    assert done.returncode in (ExitCode.OK, ExitCode.ENVIRONMENT), done.stderr
    assert "run as root" not in done.stdout
    return done.stdout


def test_a_device_is_purged_filled_settled_and_a_later_run_knows(tmp_path: Path) -> None:
    with loop_over(make_backing(tmp_path / "back"), "--direct-io=on") as device:
        assert condition(device, tmp_path)["state"] == "none"
        bare = doctor(device, tmp_path)
        assert "preparation                 none: no record says that it was prepared" in bare
        assert f"kvbench prepare {device} --dry-run" in bare
        done = prepare(device, tmp_path, "--json")
        told = json.loads(done.stdout)
        made = told["preparation"]
        expected = ExitCode.OK if told["state"] == "steady" else ExitCode.INCONCLUSIVE
        # A busy host makes a short round invalid, which is neither.
        assert done.returncode in (expected, ExitCode.CELL_FAILED), done.stderr
        assert made["purge"]["method"] == "discard"
        assert made["purge"]["verified"]
        assert made["coverage"]["proven"]
        assert [one["pattern"] for one in made["fills"]] == ["sequential", "random"]
        assert all(len(metric["values"]) == 5 for metric in made["metrics"])
        assert (tmp_path / told["folder"] / "prepare.json").exists()
        assert "rounds" in Path(tmp_path / told["files"][0]).read_text()

        after = condition(device, tmp_path)
        assert (after["state"], after["written"], after["covered"]) == ("holds", "prepared", True)
        assert after["steady"] == told["state"]
        assert after["run_id"] == told["run_id"]
        assert f"preparation                 holds: {after['text']}" in doctor(device, tmp_path)

        call("dd", "if=/dev/urandom", f"of={device}", "bs=1M", "count=4", "conv=fsync")
        broken = condition(device, tmp_path)
        assert (broken["state"], broken["written"]) == ("broken", "prepared")
        assert "4 MiB were written since" in broken["text"]
        said = doctor(device, tmp_path)
        assert "preparation                 does not hold any more: it was prepared at" in said
        assert "until it is prepared again" in said

        call("blkdiscard", "--offset", "0", "--length", str(1 << 20), device)
        empty = condition(device, tmp_path)
        assert (empty["state"], empty["written"], empty["covered"]) == ("broken", "unproven", False)
        assert "1 MiB were deallocated since" in empty["text"]


def test_the_stamp_of_another_device_is_not_taken(tmp_path: Path) -> None:
    with loop_over(make_backing(tmp_path / "one")) as device:
        prepare(device, tmp_path)
        assert list((tmp_path / "results" / "stamps").iterdir())
    with loop_over(make_backing(tmp_path / "two")) as device:  # most likely the same name
        assert condition(device, tmp_path)["state"] == "none"


def test_nothing_is_written_without_destroy_named_and_confirmed(tmp_path: Path) -> None:
    with loop_over(make_backing(tmp_path / "back")) as device:
        before = fingerprint(device)
        for arguments in (
            (device,),
            (device, "--destroy", device),
            (device, "--destroy", "/dev/null", "--yes"),
            (device, "--destroy", str(tmp_path / "back"), "--yes"),
        ):
            done = kvbench("prepare", *arguments, cwd=tmp_path)
            assert done.returncode == ExitCode.REFUSED, done.stderr
            assert len(done.stderr.strip().splitlines()) <= 2
        dry = kvbench("prepare", device, "--dry-run", cwd=tmp_path)
        assert dry.returncode == ExitCode.OK
        assert "64 MiB are written in 4 passes" in dry.stdout
        assert fingerprint(device) == before
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--passes", "0"), "--passes"),
        (("--rounds", "4"), "--rounds"),
        (("--round", "1ns"), "--round"),
        (("--workload", "iops-ladder"), "does not write"),
        (("--workload", "map-span"), "does not write"),
        (("--workload", "neighbour-matrix"), "several points"),
        (("--workload", "nonesuch"), "nonesuch"),
        (("--indirection-unit", "1000"), "--indirection-unit"),
        (("--indirection-unit", "1GiB"), "--indirection-unit"),
        (("--purge", "sanitize"), "whole NVMe drive"),
        (("--purge", "format"), "whole NVMe namespace"),
        (("--label", "a\nb"), "--label"),
    ],
)
def test_wrong_arguments_are_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    with loop_over(make_backing(tmp_path / "back")) as device:
        before = fingerprint(device)
        done = kvbench("prepare", device, "--destroy", device, "--yes", *arguments, cwd=tmp_path)
        assert done.returncode == ExitCode.USAGE
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        assert fingerprint(device) == before


def test_a_damaged_stamp_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    with loop_over(make_backing(tmp_path / "back")) as device:
        prepare(device, tmp_path)
        (stamp,) = (tmp_path / "results" / "stamps").iterdir()
        stamp.write_text("{")
        done = kvbench("run", device, "--workload", SMALL, "--repetitions", "1", cwd=tmp_path)
    assert done.returncode == ExitCode.OK, done.stdout
    assert "is damaged" in done.stderr


def test_a_preparation_is_not_gone_on_with_from_its_middle(tmp_path: Path) -> None:
    with loop_over(make_backing(tmp_path / "back")) as device:
        prepare(device, tmp_path, "--label", "mine")
        before = fingerprint(device)
        arguments = ("run", "--resume", "mine", "--destroy", device, "--yes")
        done = kvbench(*arguments, cwd=tmp_path)
        assert done.returncode == ExitCode.USAGE
        assert "prepare again" in done.stderr
        assert fingerprint(device) == before


@pytest.mark.parametrize("workload", ["integrity-small", "bucket-churn"])
def test_a_load_that_trims_or_checks_is_no_round(tmp_path: Path, workload: str) -> None:
    with loop_over(make_backing(tmp_path / "back")) as device:
        before = fingerprint(device)
        done = prepare(device, tmp_path, "--workload", workload)
        assert done.returncode == ExitCode.USAGE, done.stderr
        assert fingerprint(device) == before


@pytest.mark.parametrize("place", ["a file", "beneath a file", "a dangling stamps folder"])
def test_a_store_that_cannot_be_written_shows_before_anything_is_destroyed(
    tmp_path: Path, place: str
) -> None:
    results = tmp_path / "results"
    if place == "a dangling stamps folder":
        results.mkdir()
        (results / "stamps").symlink_to(tmp_path / "nowhere")
    else:
        results.write_text("mine")
        results = results / "x" if place == "beneath a file" else results
    with loop_over(make_backing(tmp_path / "back")) as device:
        before = fingerprint(device)
        done = prepare(device, tmp_path, "--results", str(results))
        assert done.returncode == ExitCode.STORE, done.stderr
        assert fingerprint(device) == before


def test_any_seed_serves_and_an_early_end_is_no_damage(tmp_path: Path) -> None:
    with loop_over(make_backing(tmp_path / "back")) as device:
        done = prepare(device, tmp_path, "--purge", "none", "--seed", "9" * 26, "--label", "odd")
        assert done.returncode != ExitCode.ENVIRONMENT, done.stderr  # fio takes no such seed
        assert "state" in done.stdout
        report = kvbench("report", "odd", "--text", cwd=tmp_path)
        assert "damaged" not in report.stdout


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (Interrupted("interrupted while the target was filled"), "interrupted"),
        (EnvironmentMissing("the target could not be filled: EIO"), "failed"),
    ],
)
def test_a_preparation_that_does_not_come_to_a_round_leaves_a_run_with_its_end(
    tmp_path: Path, error: KvbenchError, end: str
) -> None:
    writer = RunWriter.create(tmp_path, a_run_record())
    with pytest.raises(type(error)), _told_when_it_fails(writer):
        raise error
    stored = read_run(writer.folder).end
    assert stored is not None
    assert (stored.end, stored.reason, stored.cells_done) == (end, error.message, 0)


def test_a_preparation_that_is_killed_leaves_no_stamp_of_before(tmp_path: Path) -> None:
    stamps = tmp_path / "results" / "stamps"
    path = tmp_path / "back"
    path.write_bytes(os.urandom(1 << 20) * 256)
    with loop_over(path) as device:
        binding = binding_of(identify(device), 512)
        save_stamp(tmp_path / "results", replace(stamp(), binding=binding))
        assert condition(device, tmp_path)["run_id"] == "r1"
        with started("prepare", device, "--destroy", device, "--yes", *QUICK, cwd=tmp_path) as one:
            for _ in range(6000):
                if not list(stamps.iterdir()) or one.poll() is not None:
                    break
                time.sleep(0.01)
            assert one.poll() is None
            one.kill()
            one.communicate(timeout=60)
        assert list(stamps.iterdir()) == []
        assert condition(device, tmp_path)["state"] == "none"
