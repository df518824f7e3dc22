"""Whether what is there is what a run wrote: by serial or inode, not by path."""

import pytest
from msgspec.structs import replace

from kvbench.errors import Refused
from kvbench.host.model import Identity
from kvbench.integrity.same import check_same
from kvbench.store.redact import redact
from tests.records import a_plan, a_run_record, a_target

DRIVE = Identity(
    path="/dev/nvme0n1",
    real_path="/dev/nvme0n1",
    kind="block",
    device_number="259:0",
    inode=300,
    size_bytes=2**40,
    serial="S64ANS0T500001",
    wwid="eui.0025385511234567, nsid 1",
    diskseq="9",
)
MOVED = replace(
    DRIVE,
    path="/dev/nvme3n1",
    real_path="/dev/nvme3n1",
    device_number="259:7",
    inode=411,
    diskseq="2",
)
FILE = Identity(
    path="/data/file",
    real_path="/data/file",
    kind="file",
    device_number="254:0",
    inode=12,
    size_bytes=2**30,
)
BARE = replace(DRIVE, serial=None, wwid=None)


def test_a_drive_with_its_serial_is_known_under_any_name_and_after_a_boot() -> None:
    for same_boot in (True, False):
        check_same(DRIVE, MOVED, same_boot=same_boot)


@pytest.mark.parametrize(
    "other",
    [
        {"serial": "S64ANS0T500002"},
        {"serial": None},
        {"wwid": "eui.0025385511234567, nsid 2"},
        {"size_bytes": 2**39},
        {"kind": "file"},
    ],
)
def test_another_drive_under_the_same_name_is_refused(other: dict[str, object]) -> None:
    with pytest.raises(Refused, match="is not known to be what the run wrote"):
        check_same(DRIVE, replace(DRIVE, **other), same_boot=True)


def test_a_partition_that_was_moved_is_another_one_and_an_old_archive_says_nothing_of_it() -> None:
    stored = replace(DRIVE, start_sector=2048)
    check_same(stored, replace(MOVED, start_sector=2048), same_boot=False)
    check_same(DRIVE, stored, same_boot=True)
    with pytest.raises(Refused, match="it began at sector 2048 of its disk, this begins at 4096"):
        check_same(stored, replace(stored, start_sector=4096), same_boot=True)


def test_a_disk_without_names_is_known_within_one_boot_only() -> None:
    check_same(BARE, BARE, same_boot=True)
    with pytest.raises(Refused, match="the machine was booted since"):
        check_same(BARE, BARE, same_boot=False)
    with pytest.raises(Refused, match="it was disk 9 of this boot, this is disk 10"):
        check_same(BARE, replace(BARE, diskseq="10"), same_boot=True)
    nameless = replace(BARE, diskseq=None)
    with pytest.raises(Refused, match="nor disk sequence"):
        check_same(nameless, nameless, same_boot=True)


def test_a_file_is_its_inode_and_its_file_system_may_get_another_number() -> None:
    check_same(FILE, replace(FILE, path="/mnt/file"), same_boot=True)
    check_same(FILE, replace(FILE, device_number="254:5"), same_boot=False)
    with pytest.raises(Refused, match="on file system 254:0"):
        check_same(FILE, replace(FILE, device_number="254:5"), same_boot=True)
    with pytest.raises(Refused, match="it was inode 12, this is inode 13"):
        check_same(FILE, replace(FILE, inode=13), same_boot=False)


def test_a_redacted_drive_is_known_by_the_hash_of_its_serial() -> None:
    plan = a_plan(target=a_target(path="/dev/nvme0n1"))
    stored = redact(replace(a_run_record(plan), identity=DRIVE), "host").identity
    assert stored.serial != DRIVE.serial
    check_same(stored, MOVED, same_boot=False)
    with pytest.raises(Refused, match="redacted"):
        check_same(stored, replace(MOVED, serial="S64ANS0T500002"), same_boot=False)
