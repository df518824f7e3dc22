"""``--destroy`` on real NVMe drives that something stands on: refused, and not a byte changed.

The scenarios are in ``inside/refusals.py``; a name here is the name of an answer there.
"""

import pytest

from kvbench.errors import ExitCode
from tests.nvme_vm.guest import Seen

pytestmark = [pytest.mark.vm, pytest.mark.slow]

# name of the answer -> what the one sentence must say
REFUSED = {
    "generic character node": "is the generic character node of an NVMe namespace",
    "controller": "that is the controller",
    "another disk named": "--destroy names another target: /dev/nvme1n1",
    "another namespace named": "--destroy names another target: /dev/nvme2n2",
    "a link to another disk named": "--destroy names another target",
    "the character node named": "--destroy names no target",
    "a drive that is not there": "no such target",
    "read-only drive": "is read-only",
    "disk with partitions": "has partitions (nvme0n1p1)",
    "partition with ext4": "holds an ext2/3/4 file system",
    "disk of a mounted partition": "its partition nvme0n1p1 is mounted at /run/point/nvme0n1p1",
    "mounted partition": "is mounted at /run/point/nvme0n1p1",
    "partition mounted in another namespace": "is mounted at /mnt",
    "disk with a partition mounted in another namespace": "its partition nvme0n1p1 is mounted at",
    "disk with ext4": "holds an ext2/3/4 file system",
    "mounted disk": "is mounted at /run/point/nvme0n1",
    "partition of a mounted disk": "its whole disk nvme0n1 is mounted at /run/point/nvme0n1",
    "symbolic link to a mounted disk": "(/dev/nvme0n1): is mounted at",
    "blank partition of the boot disk": "is on the disk that this machine runs from (/boot)",
    "LVM physical volume": "holds an LVM",
    "LVM physical volume in use": "is part of the LVM volume dm-0",
    "disk under a mounted logical volume": "is under the file system mounted at /run/point/vg-lv",
    "mounted logical volume": "is mounted at",
    "LVM physical volume on a partition": "holds an LVM",
    "md member": "is part of the RAID array md0",
    "disk under a mounted array": "is under the file system mounted at /run/point/md0",
    "md member, stopped": "holds an md RAID member",
    "md member, stopped, marked at its end": "holds an md RAID member",
    "under device mapper": "is part of the device-mapper device dm-0",
    "disk whose partition is under device mapper": "nvme0n1p1 is part of the device-mapper",
    "partition under device mapper": "nvme0n1p1 is part of the device-mapper device dm-0",
    "LUKS": "holds a LUKS volume",
    "LUKS, open": "is part of the encrypted volume dm-0",
    "btrfs member": "holds a btrfs file system",
    "mounted btrfs": "is mounted at /run/point/nvme0n1",
    "second drive of a mounted btrfs": "is a member of the btrfs ",
    "ZFS member": "holds a ZFS pool member",
    "bcache member": "holds a bcache device",
    "bcache member, registered": "is part of the bcache device bcache0",
    "swap space": "holds a swap area",
    "swap in use": "nvme0n1 is swap in use",
    "disk with swap in use on a partition": "nvme0n1p1 is swap in use",
    "shown as a loop device": "is shown as the loop device /dev/loop0 too",
    "loop device over a drive": "is a loop device over another block device",
    "served to other machines": "is served to other machines as NVMe subsystem shared",
    "open in another program": "is open in python",
    "claimed by another program": "is open in python",
    "open in another program by its character node": "is open in python",
    "seen through two ports": "is reached as /dev/nvme4n1 too (same world-wide name",
    "mounted through the other port": "is reached as /dev/nvme4n1 too (same world-wide name",
}
NO_TARGET = {  # wrong before anything is guarded: a usage error
    "not named again": "this target is only read (give --destroy to allow writing)",
    "locked by another program": "is using this target",
}
ALLOWED = (
    "blank drive, by two names",
    "blank namespace beside another",
    "blank partition beside a mounted one",
)


def the_one_sentence(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.startswith("kvbench: error: ")]
    assert len(lines) == 1, stderr
    assert "Traceback" not in stderr
    return lines[0]


@pytest.mark.parametrize(("name", "words"), (REFUSED | NO_TARGET).items())
def test_nothing_is_written_to_a_drive_that_is_in_use(
    refusals: Seen, name: str, words: str
) -> None:
    answer = refusals[name]
    sentence = the_one_sentence(answer.stderr)
    assert words in sentence
    assert answer.exit_code == (ExitCode.USAGE if name in NO_TARGET else ExitCode.REFUSED)
    assert answer.stdout == ""


@pytest.mark.parametrize("name", [*REFUSED, *NO_TARGET])
def test_a_refusal_leaves_every_byte_and_the_kernels_count_of_writes(
    refusals: Seen, name: str
) -> None:
    facts = refusals[name].facts
    if name == "a drive that is not there":
        assert facts == {}
        return
    assert facts["bytes before"] == facts["bytes after"]
    assert facts["writes before"] == facts["writes after"]


@pytest.mark.parametrize("name", ALLOWED)
def test_a_blank_drive_or_partition_may_be_written(refusals: Seen, name: str) -> None:
    answer = refusals[name]
    assert answer.exit_code == ExitCode.OK, answer.stderr
    assert "kvbench: writing destroys the data on" in answer.stderr


def test_writing_changes_the_drive_that_was_named(refusals: Seen) -> None:
    facts = refusals["blank drive, by two names"].facts
    assert facts["bytes before"] != facts["bytes after"]
    assert int(facts["writes before"]) < int(facts["writes after"])


def test_writing_to_a_namespace_leaves_the_other_one(refusals: Seen) -> None:
    facts = refusals["blank namespace beside another"].facts
    assert facts["bytes before"] == facts["bytes after"]
    assert facts["writes before"] == facts["writes after"]


def test_every_refusal_that_was_tried_is_judged_here(refusals: Seen) -> None:
    assert set(refusals) == {*REFUSED, *NO_TARGET, *ALLOWED}
