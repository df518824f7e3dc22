"""The guard's decisions on machines made of files."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kvbench.errors import EnvironmentMissing, ExitCode, Refused, UsageError
from kvbench.host import guard, ownership
from kvbench.host.machine import LoopBacking
from kvbench.host.model import Identity
from tests.host.fakes import ROOT_MOUNT, FakeMachine


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path / "machine")


@pytest.fixture
def disk(machine: FakeMachine) -> str:
    return machine.add_disk("sda", "8:0")


def refusal(machine: FakeMachine, path: str, destroy: str | None = "same") -> Refused:
    """Return the refusal to write; exit code 7, and not a byte has changed."""
    identity = guard.check_readable(path, machine)
    before = machine.at(identity.real_path).read_bytes()
    with pytest.raises(Refused) as caught:
        guard.check_writable(
            identity, path if destroy == "same" else destroy, own_file=False, machine=machine
        )
    assert machine.at(identity.real_path).read_bytes() == before
    assert caught.value.exit_code == ExitCode.REFUSED
    return caught.value


def allowed(machine: FakeMachine, path: str) -> Identity:
    identity = guard.check_readable(path, machine)
    guard.check_writable(identity, path, own_file=False, machine=machine)
    return identity


def test_an_empty_unused_disk_that_is_named_twice_may_be_written(
    machine: FakeMachine, disk: str
) -> None:
    assert allowed(machine, disk).kind == "block"


def test_writing_without_destroy_is_refused(machine: FakeMachine, disk: str) -> None:
    assert "--destroy was not given" in refusal(machine, disk, None).message


def test_destroy_must_name_the_same_device(machine: FakeMachine, disk: str) -> None:
    other = machine.add_disk("sdb", "8:16")
    assert "names another target" in refusal(machine, disk, other).message
    assert "names no target" in refusal(machine, disk, "/dev/nothing").message


def test_destroy_may_name_the_same_device_through_a_symlink(
    machine: FakeMachine, disk: str
) -> None:
    machine.link("/dev/disk/by-id/x", disk)
    identity = guard.check_readable(disk, machine)
    guard.check_writable(identity, "/dev/disk/by-id/x", own_file=False, machine=machine)


def test_a_mounted_device_is_refused(machine: FakeMachine, disk: str) -> None:
    machine.mount_here([ROOT_MOUNT, "30 27 8:0 / /srv rw - ext4 /dev/sda rw"])
    assert "is mounted at /srv" in refusal(machine, disk).message


def test_a_mount_in_another_namespace_is_found(machine: FakeMachine, disk: str) -> None:
    machine.process(77, ["30 27 8:0 / /inside rw - xfs /dev/sda rw"])
    assert "is mounted at /inside" in refusal(machine, disk).message


def test_the_disk_of_a_mounted_partition_is_refused(machine: FakeMachine, disk: str) -> None:
    machine.add_partition("sda", "sda1", "8:1", 1)
    machine.mount_here([ROOT_MOUNT, "30 27 8:1 / /srv rw - ext4 /dev/sda1 rw"])
    assert "its partition sda1 is mounted" in refusal(machine, disk).message


def test_a_partition_of_a_mounted_disk_is_refused(machine: FakeMachine, disk: str) -> None:
    partition = machine.add_partition("sda", "sda1", "8:1", 1)
    machine.mount_here([ROOT_MOUNT, f"30 27 8:0 / /srv rw - iso9660 {disk} rw"])
    assert "its whole disk sda is mounted" in refusal(machine, partition).message


def test_an_unused_partition_beside_a_mounted_one_may_be_written(
    machine: FakeMachine, disk: str
) -> None:
    machine.add_partition("sda", "sda1", "8:1", 1)
    free = machine.add_partition("sda", "sda2", "8:2", 2)
    machine.mount_here([ROOT_MOUNT, f"30 27 8:1 / /srv rw - ext4 {disk}1 rw"])
    allowed(machine, free)


def test_a_btrfs_mount_is_found_by_its_source_and_by_its_members(
    machine: FakeMachine, disk: str
) -> None:
    second = machine.add_disk("sdb", "8:16")
    machine.mount_here([ROOT_MOUNT, "30 27 0:44 / /srv rw - btrfs /dev/sda rw"])
    machine.link("/sys/fs/btrfs/uuid/devices/sdb", "/sys/devices/pci/block/sdb")
    assert "is mounted at /srv" in refusal(machine, disk).message
    assert "sdb is a member of the btrfs uuid, which is mounted" in refusal(machine, second).message


def test_a_symlink_is_followed_to_the_mounted_device(machine: FakeMachine, disk: str) -> None:
    machine.link("/dev/disk/by-id/usb-0", disk)
    machine.mount_here([ROOT_MOUNT, "30 27 8:0 / /srv rw - ext4 /dev/sda rw"])
    assert "is mounted at /srv" in refusal(machine, "/dev/disk/by-id/usb-0").message


def test_swap_is_refused_on_the_device_its_disk_and_its_partition(
    machine: FakeMachine, disk: str
) -> None:
    machine.add_partition("sda", "sda1", "8:1", 1)
    machine.swap("/dev/sda1")
    assert "sda1 is swap in use" in refusal(machine, disk).message
    machine.swap("/dev/sda")
    assert "sda is swap in use" in refusal(machine, "/dev/sda1").message


def test_a_swap_that_cannot_be_found_stops_every_decision(machine: FakeMachine, disk: str) -> None:
    machine.swap("/gone/swapfile")
    assert "cannot decide" in refusal(machine, disk).message


@pytest.mark.parametrize(
    ("holder", "uuid", "words"),
    [
        ("dm-0", "LVM-abc", "is part of the LVM volume dm-0"),
        ("dm-0", "mpath-36001", "is part of multipath dm-0"),
        ("dm-0", "CRYPT-LUKS2", "is part of the encrypted volume dm-0"),
        ("md127", "", "is part of the RAID array md127"),
        ("bcache0", "", "is part of the bcache device bcache0"),
    ],
)
def test_a_device_that_something_stands_on_is_refused(
    machine: FakeMachine, disk: str, holder: str, uuid: str, words: str
) -> None:
    machine.add_disk(holder, "252:0")
    machine.sysfs(holder, "dm/uuid", uuid)
    machine.hold_by("sda", holder)
    assert words in refusal(machine, disk).message


def test_a_holder_of_a_partition_protects_the_disk(machine: FakeMachine, disk: str) -> None:
    machine.add_partition("sda", "sda1", "8:1", 1)
    machine.add_disk("md0", "9:0")
    machine.hold_by("sda1", "md0")
    assert "sda1 is part of the RAID array md0" in refusal(machine, disk).message


def test_a_volume_over_a_mounted_partition_is_refused(machine: FakeMachine, disk: str) -> None:
    volume = machine.add_disk("dm-0", "252:0")
    machine.hold_by("sda", "dm-0")
    machine.mount_here([ROOT_MOUNT, f"30 27 8:0 / /srv rw - ext4 {disk} rw"])
    assert "stands on a device that is mounted at /srv" in refusal(machine, volume).message


def test_an_unused_logical_volume_may_be_written(machine: FakeMachine, disk: str) -> None:
    volume = machine.add_disk("dm-0", "252:0")
    machine.hold_by("sda", "dm-0")
    assert disk
    allowed(machine, volume)


def test_a_second_path_to_the_same_drive_is_refused(machine: FakeMachine, disk: str) -> None:
    machine.add_disk("sdb", "8:16")
    machine.sysfs("sda", "device/wwid", "naa.5000c500\n")
    machine.sysfs("sdb", "device/wwid", "naa.5000c500\n")
    assert "is reached as /dev/sdb too" in refusal(machine, disk).message


def test_the_root_disk_and_its_unused_partitions_are_refused(machine: FakeMachine) -> None:
    spare = machine.add_partition("vda", "vda14", "254:14", 14)
    root = machine.add_partition("vda", "vda1", "254:1", 1)
    mount = f"27 1 254:1 / / rw - ext4 {root} rw"
    machine.mount_here([mount])
    machine.process(1, [mount])
    assert "is mounted at /" in refusal(machine, root).message
    assert "vda1 is mounted at /" in refusal(machine, "/dev/vda").message
    assert "the disk that this machine runs from" in refusal(machine, spare).message


def test_partitions_are_refused_where_the_root_disk_is_not_known(
    machine: FakeMachine, disk: str
) -> None:
    machine.process(1, ["27 1 0:30 / / rw - overlay overlay rw,upperdir=/elsewhere"])
    partition = machine.add_partition("sda", "sda1", "8:1", 1)
    assert "not known (/ is on overlay)" in refusal(machine, partition).message
    whole = machine.add_disk("sdb", "8:16")
    allowed(machine, whole)
    assert disk


def test_a_read_only_device_is_refused(machine: FakeMachine, disk: str) -> None:
    machine.sysfs("sda", "ro", "1\n")
    assert "is read-only" in refusal(machine, disk).message


def test_firmware_devices_are_refused(machine: FakeMachine) -> None:
    path = machine.add_disk("mmcblk0boot0", "179:8")
    assert "holds firmware" in refusal(machine, path).message


def test_a_device_with_partitions_is_refused(machine: FakeMachine, disk: str) -> None:
    machine.add_partition("sda", "sda1", "8:1", 1)
    caught = refusal(machine, disk)
    assert "has partitions (sda1)" in caught.message
    assert "wipefs -a /dev/sda" in caught.hint


def test_a_file_system_signature_is_refused_and_destroy_does_not_help(
    machine: FakeMachine, disk: str
) -> None:
    machine.put(disk, 0x438, b"\x53\xef")
    caught = refusal(machine, disk)
    assert "holds an ext2/3/4 file system" in caught.message
    assert "wipefs -a /dev/sda" in caught.hint


def test_what_only_blkid_knows_is_refused(machine: FakeMachine, disk: str) -> None:
    machine.tool_says("blkid", "TYPE=unheard_of", 0)
    assert "holds unheard_of" in refusal(machine, disk).message
    machine.tool_says("blkid", "", 8)
    assert "contradict" in refusal(machine, disk).message


def test_what_only_wipefs_lists_is_refused(machine: FakeMachine, disk: str) -> None:
    machine.tool_says("wipefs", "# offset,uuid,label,type\n0x1fe,,,rarefs", 0)
    assert "holds rarefs" in refusal(machine, disk).message


def test_without_blkid_or_with_a_broken_one_nothing_is_decided(
    machine: FakeMachine, disk: str
) -> None:
    machine.tool_says("blkid", "", 1)
    assert "cannot decide" in refusal(machine, disk).message
    machine.at("/usr/sbin/blkid").unlink()
    assert "blkid is not installed" in refusal(machine, disk).message


def test_a_partition_that_firmware_boots_from_is_refused(machine: FakeMachine, disk: str) -> None:
    partition = machine.add_partition("sda", "sda1", "8:1", 1)
    machine.tool_says("blkid", "PART_ENTRY_TYPE=21686148-6449-6E6F-744E-656564454649", 0)
    assert "BIOS boot partition" in refusal(machine, partition).message
    assert disk


def test_a_device_behind_a_loop_device_is_refused(machine: FakeMachine, disk: str) -> None:
    machine.add_disk("loop5", "7:5")
    machine.sysfs("loop5", "loop/backing_file", "/dev/sda\n")
    machine.backings["loop5"] = LoopBacking(file_key=("0:6", 9), number="8:0")
    assert "as the loop device /dev/loop5" in refusal(machine, disk).message
    assert "over another block device" in refusal(machine, "/dev/loop5").message


def test_a_device_that_a_program_has_open_is_refused_by_name(
    machine: FakeMachine, disk: str
) -> None:
    machine.process(88, [ROOT_MOUNT], comm="qemu-system-x86")
    machine.opens(88, disk)
    assert "is open in qemu-system-x86 (pid 88)" in refusal(machine, disk).message


def test_a_drive_that_a_program_reaches_by_its_character_node_is_refused(
    machine: FakeMachine,
) -> None:
    drive = machine.add_disk("nvme0n1", "259:0")
    part = machine.add_partition("nvme0n1", "nvme0n1p1", "259:1", 1)
    machine.write("/sys/devices/pci/block/ng0n1/dev", "240:0\n")
    machine.add_char("/dev/ng0n1", "240:0")
    allowed(machine, part)
    machine.process(88, [ROOT_MOUNT], comm="spdk")
    machine.opens(88, "/dev/ng0n1")
    assert "is open in spdk (pid 88)" in refusal(machine, part).message
    assert "has partitions" in refusal(machine, drive).message


def test_a_disk_that_a_program_reaches_by_its_scsi_node_is_refused(
    machine: FakeMachine, disk: str
) -> None:
    machine.sysfs("sda", "device/scsi_generic/sg3/dev", "21:3\n")
    machine.add_char("/dev/sg3", "21:3")
    machine.add_char("/dev/sg4", "21:4")
    machine.process(88, [ROOT_MOUNT], comm="sg_write")
    machine.opens(88, "/dev/sg4")
    allowed(machine, disk)
    machine.process(89, [ROOT_MOUNT], comm="sg_write")
    machine.opens(89, "/dev/sg3")
    assert "is open in sg_write (pid 89)" in refusal(machine, disk).message


def test_a_drive_that_is_served_to_other_machines_is_refused(
    machine: FakeMachine, disk: str
) -> None:
    part = machine.add_partition("sda", "sda1", "8:1", 1)
    other = machine.add_disk("sdb", "8:16")
    folder = "/sys/kernel/config/nvmet/subsystems/shared/namespaces/1"
    machine.write(f"{folder}/device_path", f"{disk}\n")
    machine.write(f"{folder}/enable", "0\n")
    allowed(machine, part)
    machine.write(f"{folder}/enable", "1\n")
    assert "is served to other machines as NVMe subsystem shared" in refusal(machine, part).message
    allowed(machine, other)
    machine.at(disk).unlink()  # what is served cannot be told from here any more
    assert "cannot decide" in refusal(machine, other).message


def test_open_files_that_only_root_sees_are_not_guessed_at(machine: FakeMachine, disk: str) -> None:
    machine.process(88, [ROOT_MOUNT], comm="qemu")
    machine.opens(88, disk)
    machine.hidden.add("/proc/88/fd/3")
    machine.root_user = False
    assert "which programs have it open is for root" in refusal(machine, disk).message
    machine.root_user = True  # in a container: the kernel's claim decides alone
    allowed(machine, disk)


def test_a_file_of_which_neither_kernel_nor_proc_tells_the_users_is_refused(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.write("/data/target", "x")
    machine.process(88, [ROOT_MOUNT], comm="qemu")
    machine.opens(88, "/data/target")
    monkeypatch.setattr(machine, "is_open_elsewhere", lambda path, _held: path and None)
    assert "is in use by qemu (pid 88)" in refusal(machine, "/data/target").message
    machine.hidden.add("/proc/88/fd/3")
    assert "cannot decide" in refusal(machine, "/data/target").message


def test_kvbench_own_file_may_be_written_where_the_kernel_does_not_tell_its_users(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = machine.write("/data/target.dat", "x")
    status = path.stat()
    record = {"device": status.st_dev, "inode": status.st_ino, "mark": "m"}
    os.setxattr(path, ownership.ATTRIBUTE, b"m")
    machine.write("/data/target.json", msgspec.json.encode(record).decode())
    machine.process(88, [ROOT_MOUNT])
    machine.opens(88, "/dev/vda")
    machine.hidden.add("/proc/88/fd/3")
    monkeypatch.setattr(machine, "is_open_elsewhere", lambda path, _held: path and None)
    identity = guard.check_readable("/data/target.dat", machine)
    guard.check_writable(identity, None, own_file=True, machine=machine)
    assert "cannot decide" in refusal(machine, "/data/target.dat").message


def test_a_device_that_the_kernel_has_claimed_is_refused(machine: FakeMachine, disk: str) -> None:
    machine.claimed.add(disk)
    assert "EBUSY" in refusal(machine, disk).message


@pytest.mark.parametrize(
    "path",
    [
        "/proc/swaps",
        "/proc/1/mountinfo",
        "/sys/devices/pci/block/sda/holders",
        "/sys/devices/pci/block/sda/ro",
    ],
)
def test_what_cannot_be_read_is_refused(machine: FakeMachine, disk: str, path: str) -> None:
    identity = guard.check_readable(disk, machine)
    place = machine.at(path)
    if place.is_dir():
        place.rmdir()
    else:
        place.unlink()
        if path.startswith("/proc"):
            place.mkdir()  # reading it fails with EISDIR, as root too
    with pytest.raises(Refused, match="cannot decide") as caught:
        guard.check_writable(identity, disk, own_file=False, machine=machine)
    assert caught.value.exit_code == 7


def test_hidden_processes_and_garbage_are_refused(machine: FakeMachine, disk: str) -> None:
    machine.write("/proc/swaps", "what is this\n")
    assert "cannot decide" in refusal(machine, disk).message
    machine.write("/proc/swaps", "Filename Type\n")
    machine.process(9, ["nonsense"])
    assert "cannot decide" in refusal(machine, disk).message
    machine.at("/proc/9/mountinfo").unlink()
    allowed(machine, disk)
    machine.at("/proc/1/mountinfo").unlink()
    machine.at("/proc/1/comm").unlink()
    machine.at("/proc/1").rmdir()
    assert "hidden" in refusal(machine, disk).message


def test_the_generic_node_of_a_mounted_namespace_is_refused_even_for_reading(
    machine: FakeMachine,
) -> None:
    machine.add_disk("nvme0n1", "259:0")
    machine.mount_here([ROOT_MOUNT, "30 27 259:0 / /srv rw - ext4 /dev/nvme0n1 rw"])
    machine.add_char("/dev/ng0n1", "240:0")
    with pytest.raises(Refused, match="generic character node") as caught:
        guard.check_readable("/dev/ng0n1", machine)
    assert "/dev/nvme0n1" in caught.value.hint
    machine.add_char("/dev/nvme0", "241:0")
    with pytest.raises(Refused, match="character device"):
        guard.check_readable("/dev/nvme0", machine)


def test_a_directory_a_pipe_and_a_device_without_end_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path), str(tmp_path / "pipe"), "/dev/zero"):
        with pytest.raises(Refused) as caught:
            guard.check_readable(path)
        assert caught.value.exit_code == 7


def test_a_missing_path_is_refused_and_not_created(tmp_path: Path) -> None:
    for name in ("absent", "absent/deeper", "dangling"):
        if name == "dangling":
            (tmp_path / name).symlink_to(tmp_path / "nowhere")
        with pytest.raises(Refused, match="no such target") as caught:
            guard.check_readable(str(tmp_path / name))
        assert caught.value.exit_code == 7
    assert [path.name for path in tmp_path.iterdir()] == ["dangling"]
    (tmp_path / "round").symlink_to(tmp_path / "round")
    with pytest.raises(Refused):
        guard.check_readable(str(tmp_path / "round"))


def test_a_path_with_a_colon_leads_to_that_file_and_creates_no_other(tmp_path: Path) -> None:
    target = tmp_path / "usb-0:0"
    target.write_bytes(b"x" * 4096)
    identity = guard.check_readable(str(target))
    assert identity.real_path == str(target.resolve())
    assert [path.name for path in tmp_path.iterdir()] == ["usb-0:0"]
    with pytest.raises(Refused):
        guard.check_readable(str(tmp_path / "usb-1:0"))
    assert [path.name for path in tmp_path.iterdir()] == ["usb-0:0"]


@pytest.mark.parametrize(
    "name",
    [
        "new\nline",
        "bell\a",
        "esc\x1b[2J",
        "turn\u202earound",
        os.fsdecode(b"no text \xff"),
        "$pagesize",
        "${HOME}",
        "a;b",
        "a#b",
        "blank ",
    ],
)
def test_a_name_that_fio_would_change_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"x" * 4096)
    with pytest.raises(Refused) as caught:
        guard.check_readable(str(tmp_path / name))
    assert str(caught.value).isprintable()
    (tmp_path / "fine").symlink_to(tmp_path / name)
    with pytest.raises(Refused):
        guard.check_readable(str(tmp_path / "fine"))


def test_a_nul_byte_and_no_name_at_all_are_told(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        guard.check_readable(f"{tmp_path}/a\0b")
    with pytest.raises(UsageError):
        guard.check_readable("")


def test_an_empty_file_and_an_empty_drive_have_nothing_to_read(
    tmp_path: Path, machine: FakeMachine
) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(UsageError, match="empty"):
        guard.check_readable(str(tmp_path / "empty"))
    path = machine.add_disk("loop1", "7:1", size_bytes=0)
    with pytest.raises(UsageError, match="no medium"):
        guard.check_readable(path, machine)


def test_windows_into_the_kernel_are_no_targets() -> None:
    for path in ("/proc/cpuinfo", "/proc/kcore", "/sys/kernel/mm/transparent_hugepage/enabled"):
        if Path(path).exists():
            with pytest.raises(Refused, match="window into the kernel"):
                guard.check_readable(path)


def test_a_target_that_may_not_be_read_is_a_matter_of_the_environment(
    machine: FakeMachine, disk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(machine, "check_opens", deny)
    with pytest.raises(EnvironmentMissing, match="no permission") as caught:
        guard.check_readable(disk, machine)
    assert caught.value.exit_code == 3


def drive_with(machine: FakeMachine, name: str, number: str, serial: str) -> str:
    path = machine.add_disk(name, number)
    machine.sysfs(name, "device/serial", f"{serial}\n")
    machine.sysfs(name, "wwid", f"nvme.{serial}\n")
    machine.sysfs(name, "nsid", "1\n")
    return path


def test_after_a_reboot_a_drive_is_found_again_by_serial_and_namespace(
    machine: FakeMachine,
) -> None:
    drive_with(machine, "nvme0n1", "259:0", "A")
    machine.link("/dev/disk/by-id/drive-a", "/dev/nvme0n1")
    stored = guard.check_readable("/dev/disk/by-id/drive-a", machine)
    drive_with(machine, "nvme1n1", "259:5", "A")
    machine.sysfs("nvme1n1", "diskseq", "9\n")
    machine.at("/dev/disk/by-id/drive-a").unlink()
    machine.link("/dev/disk/by-id/drive-a", "/dev/nvme1n1")
    now = guard.found_again(stored, machine, same_boot=False)
    assert (now.real_path, now.device_number, now.diskseq) == ("/dev/nvme1n1", "259:5", "9")
    with pytest.raises(Refused, match="diskseq"):
        guard.same_device(stored, machine)


def test_after_a_reboot_another_drive_under_the_name_is_refused(machine: FakeMachine) -> None:
    path = drive_with(machine, "nvme0n1", "259:0", "A")
    stored = guard.check_readable(path, machine)
    machine.sysfs("nvme0n1", "device/serial", "B\n")
    with pytest.raises(Refused, match="serial was A, is B"):
        guard.found_again(stored, machine, same_boot=False)
    machine.sysfs("nvme0n1", "device/serial", "A\n")
    machine.sysfs("nvme0n1", "nsid", "2\n")
    with pytest.raises(Refused, match="nsid 2"):
        guard.found_again(stored, machine, same_boot=False)
    machine.at(path).unlink()
    with pytest.raises(Refused, match="has gone"):
        guard.found_again(stored, machine, same_boot=False)


def test_a_disk_that_tells_no_name_is_known_within_one_boot_while_it_is_unchanged(
    machine: FakeMachine, disk: str
) -> None:
    stored = guard.check_readable(disk, machine)
    assert guard.found_again(stored, machine, same_boot=True) == stored
    with pytest.raises(Refused, match="nobody can tell whether it is the drive") as refused:
        guard.found_again(stored, machine, same_boot=False)
    assert refused.value.exit_code == ExitCode.REFUSED
    machine.sysfs("sda", "nsid", "1\n")
    numbered = guard.check_readable(disk, machine)
    with pytest.raises(Refused, match="nobody can tell whether it is the drive"):
        guard.found_again(numbered, machine, same_boot=False)
    machine.sysfs("sda", "diskseq", "4\n")
    with pytest.raises(Refused, match="diskseq was 3, is 4"):
        guard.found_again(numbered, machine, same_boot=True)


def test_after_a_reboot_a_disk_with_a_serial_alone_must_be_unchanged(
    machine: FakeMachine, disk: str
) -> None:
    machine.sysfs("sda", "device/serial", "A\n")
    stored = guard.check_readable(disk, machine)
    assert guard.found_again(stored, machine, same_boot=False) == stored
    machine.sysfs("sda", "diskseq", "4\n")
    with pytest.raises(Refused, match="diskseq was 3, is 4"):
        guard.found_again(stored, machine, same_boot=False)


def test_after_a_reboot_a_file_is_known_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "target"
    path.write_bytes(b"x" * 4096)
    stored = guard.check_readable(str(path))
    assert guard.found_again(stored, same_boot=False) == stored


def test_a_device_that_changed_identity_is_refused(machine: FakeMachine, disk: str) -> None:
    machine.sysfs("sda", "device/serial", "OLD\n")
    identity = guard.check_readable(disk, machine)
    guard.same_device(identity, machine)
    for file, text, words in (
        ("device/serial", "NEW\n", "serial was OLD, is NEW"),
        ("diskseq", "4\n", "diskseq was 3, is 4"),
        ("size", "16\n", "size bytes"),
        ("nsid", "2\n", "wwid"),
    ):
        folder = machine.resolve("/sys/class/block/sda")
        before = machine.text_if_there(f"{folder}/{file}")
        machine.sysfs("sda", file, text)
        with pytest.raises(Refused, match=words) as caught:
            guard.same_device(identity, machine)
        assert caught.value.exit_code == 7
        machine.sysfs("sda", file, before or "")
    guard.same_device(identity, machine)
    machine.devices[disk] = ("block", "254:0")
    with pytest.raises(Refused, match="device number was 8:0"):
        guard.same_device(identity, machine)
    machine.at(disk).unlink()
    with pytest.raises(Refused, match="has gone"):
        guard.same_device(identity, machine)


def test_a_partition_that_was_moved_is_refused_and_an_old_archive_says_nothing_of_it(
    machine: FakeMachine, disk: str
) -> None:
    part = machine.add_partition("sda", "sda1", "8:1", 1)
    old = guard.check_readable(part, machine)
    assert old.start_sector is None
    place = f"{machine.resolve('/sys/class/block/sda1')}/start"
    machine.write(place, "2048\n")
    stored = guard.check_readable(part, machine)
    assert stored.start_sector == 2048
    guard.same_device(old, machine)
    guard.same_device(stored, machine)
    machine.write(place, "4096\n")
    with pytest.raises(Refused, match="start sector was 2048, is 4096"):
        guard.same_device(stored, machine)
    assert disk != part


def test_a_file_that_was_replaced_or_grew_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "target"
    path.write_bytes(b"x" * 4096)
    identity = guard.check_readable(str(path))
    guard.same_device(identity)
    path.write_bytes(b"x" * 8192)
    with pytest.raises(Refused, match="size bytes was 4096"):
        guard.same_device(identity)
    (tmp_path / "other").write_bytes(b"x" * 4096)
    (tmp_path / "other").rename(path)
    with pytest.raises(Refused, match="inode"):
        guard.same_device(identity)


def file_refusal(path: Path, destroy: str | None = None) -> str:
    identity = guard.check_readable(str(path))
    before = path.read_bytes()
    with pytest.raises(Refused) as caught:
        guard.check_writable(identity, destroy or str(path), own_file=False)
    assert caught.value.exit_code == 7
    assert path.read_bytes() == before
    return caught.value.message


def test_a_file_that_is_named_twice_may_be_written(tmp_path: Path) -> None:
    path = tmp_path / "target"
    path.write_bytes(b"x" * 4096)
    guard.check_writable(guard.check_readable(str(path)), str(path), own_file=False)
    with pytest.raises(Refused):
        guard.check_writable(guard.check_readable(str(path)), None, own_file=False)


def test_a_file_with_two_names_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "target"
    path.write_bytes(b"x" * 4096)
    (tmp_path / "second").hardlink_to(path)
    assert "has 2 names" in file_refusal(path)


def test_a_file_that_someone_has_open_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "target"
    path.write_bytes(b"x" * 4096)
    with path.open("rb"):
        assert "is in use by" in file_refusal(path)


def test_a_file_of_the_system_is_refused(machine: FakeMachine) -> None:
    machine.write("/boot/vmlinuz", "kernel")
    assert "folder of the system" in refusal(machine, "/boot/vmlinuz").message


def test_a_swap_file_is_refused(machine: FakeMachine) -> None:
    machine.write("/data/swap", "pages")
    machine.swap("/data/swap")
    assert "is a swap file" in refusal(machine, "/data/swap").message


def test_only_the_file_that_kvbench_recorded_is_its_own(tmp_path: Path) -> None:
    path = tmp_path / "target.dat"
    path.write_bytes(b"x" * 4096)
    identity = guard.check_readable(str(path))
    with pytest.raises(Refused, match="not a file that kvbench made"):
        guard.check_writable(identity, None, own_file=True)
    status = path.stat()
    record = {"device": status.st_dev, "inode": status.st_ino, "mark": "m"}
    (tmp_path / "target.json").write_bytes(msgspec.json.encode(record))
    with pytest.raises(Refused, match="not a file that kvbench made"):  # an inode that was reused
        guard.check_writable(identity, None, own_file=True)
    os.setxattr(path, ownership.ATTRIBUTE, b"m")
    guard.check_writable(identity, None, own_file=True)
    (tmp_path / "target.json").write_bytes(b"\xff garbage")
    with pytest.raises(Refused, match="not a file that kvbench made"):
        guard.check_writable(identity, None, own_file=True)


def test_a_block_device_is_never_kvbench_own_file(machine: FakeMachine, disk: str) -> None:
    identity = guard.check_readable(disk, machine)
    with pytest.raises(Refused, match="not a file that kvbench made"):
        guard.check_writable(identity, None, own_file=True, machine=machine)


_opened: list[tuple[str, int]] | None = None


def _note_opens(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _opened is not None and isinstance(arguments[2], int):
        _opened.append((str(arguments[0]), arguments[2]))


sys.addaudithook(_note_opens)  # hooks stay for ever; this one sleeps between tests


@pytest.fixture
def opened() -> Iterator[list[tuple[str, int]]]:
    global _opened
    _opened = []
    yield _opened
    _opened = None


def test_the_guard_opens_nothing_for_writing_and_creates_nothing(
    machine: FakeMachine, disk: str, tmp_path: Path, opened: list[tuple[str, int]]
) -> None:
    path = tmp_path / "target"
    path.write_bytes(b"x" * 4096)
    before = sorted(tmp_path.rglob("*"))
    opened.clear()
    guard.check_writable(guard.check_readable(str(path)), str(path), own_file=False)
    allowed(machine, disk)
    with pytest.raises(Refused):
        guard.check_readable(str(tmp_path / "absent"))
    assert any(name.endswith("/dev/sda") for name, _ in opened)
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    assert [each for each in opened if each[1] & writing and each[0] != os.devnull] == []
    assert sorted(tmp_path.rglob("*")) == before
