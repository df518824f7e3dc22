"""The guard on real block devices: loop devices over files of the test's own."""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvbench.errors import EnvironmentMissing, ExitCode, Refused
from kvbench.host import guard, probe
from tests.host.loops import (
    call,
    detach,
    fingerprint,
    loop_over,
    make_backing,
    mounted,
    needs_loops,
    partition_on,
)

pytestmark = [pytest.mark.blockdev, needs_loops]


@pytest.fixture
def backing(tmp_path: Path) -> Path:
    return make_backing(tmp_path / "backing")


@pytest.fixture
def loop(backing: Path) -> Iterator[str]:
    with loop_over(backing) as device:
        yield device


def refusal(path: str, device: str = "") -> str:
    """Return why writing is refused; not a byte of the device changes meanwhile."""
    before = fingerprint(device or path)
    identity = guard.check_readable(path)
    with pytest.raises(Refused) as caught:
        guard.check_writable(identity, path, own_file=False)
    assert caught.value.exit_code == ExitCode.REFUSED
    assert fingerprint(device or path) == before
    return caught.value.message


def test_a_loop_device_without_any_mark_may_be_written(loop: str) -> None:
    before = fingerprint(loop)
    identity = guard.check_readable(loop)
    assert identity.kind == "block"
    assert identity.diskseq is not None
    guard.check_writable(identity, loop, own_file=False)
    assert fingerprint(loop) == before


def test_a_mounted_device_and_a_symlink_to_it_are_refused(loop: str, tmp_path: Path) -> None:
    with mounted(loop, tmp_path / "point") as point:
        assert f"is mounted at {point}" in refusal(loop)
        (tmp_path / "by-id").symlink_to(loop)
        assert f"is mounted at {point}" in refusal(str(tmp_path / "by-id"), loop)


def test_another_node_of_a_mounted_disk_is_refused(loop: str, tmp_path: Path) -> None:
    node, over = tmp_path / "node", tmp_path / "over"
    os.mknod(node, 0o600 | stat.S_IFBLK, Path(loop).stat().st_rdev)
    over.touch()
    call("mount", "--bind", loop, over)
    try:
        with partition_on(loop) as partition, mounted(partition, tmp_path / "point") as point:
            for name in (node, over):
                assert f"is mounted at {point}" in refusal(str(name))
    finally:
        call("umount", over)


def test_the_disk_of_a_mounted_partition_and_the_partition_are_refused(
    loop: str, tmp_path: Path
) -> None:
    with partition_on(loop) as partition, mounted(partition, tmp_path / "point") as point:
        name = Path(partition).name
        assert f"its partition {name} is mounted at {point}" in refusal(loop)
        assert f"is mounted at {point}" in refusal(partition)


def test_a_mount_that_only_another_namespace_sees_is_found(loop: str, tmp_path: Path) -> None:
    call("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,nodiscard", loop)
    point = tmp_path / "point"
    point.mkdir()
    script = f"mount -o ro {loop} {point} && echo ready && read line"
    with subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        try:
            assert other.stdout is not None
            if other.stdout.readline().strip() != "ready":
                pytest.skip("mount namespaces do not work here")
            assert str(point) not in Path("/proc/self/mountinfo").read_text()
            assert f"is mounted at {point}" in refusal(loop)
        finally:
            other.communicate("\n", timeout=10)


def test_a_mount_that_was_detached_but_is_still_in_use_is_refused(
    loop: str, tmp_path: Path
) -> None:
    call("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,nodiscard", loop)
    point = tmp_path / "point"
    point.mkdir()
    call("mount", "-o", "ro", loop, point)
    sleeper = subprocess.Popen(["sleep", "60"], cwd=point)
    try:
        call("umount", "--lazy", point)
        identity = guard.check_readable(loop)
        assert probe.MACHINE.is_claimed(identity.real_path)
        refusal(loop)
    finally:
        sleeper.kill()
        sleeper.wait()


def test_swap_is_refused(loop: str) -> None:
    if shutil.which("swapon") is None:
        pytest.skip("swapon is not installed")
    call("mkswap", loop)
    assert "holds a swap area" in refusal(loop)
    call("swapon", loop)
    try:
        assert "is swap in use" in refusal(loop)
    finally:
        call("swapoff", loop)


def test_a_file_system_that_is_not_mounted_is_refused_until_it_is_wiped(loop: str) -> None:
    call("mkfs.ext4", "-q", "-E", "nodiscard", loop)
    assert "holds an ext2/3/4 file system" in refusal(loop)
    call("wipefs", "-a", loop)
    guard.check_writable(guard.check_readable(loop), loop, own_file=False)


def test_a_partition_table_is_refused(loop: str) -> None:
    subprocess.run(
        ["sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", loop],
        input="label: gpt\n,10M\n",
        text=True,
        capture_output=True,
        check=True,
        timeout=30,
    )
    assert "partition table" in refusal(loop)


def test_partitions_that_only_the_kernel_knows_are_refused(loop: str) -> None:
    with partition_on(loop) as partition:
        assert f"has partitions ({Path(partition).name})" in refusal(loop)
        guard.check_writable(guard.check_readable(partition), partition, own_file=False)


def test_an_md_member_is_refused_by_its_mark(loop: str) -> None:
    if shutil.which("mdadm") is None:
        pytest.skip("mdadm is not installed")
    with Path(loop).open("r+b", buffering=0) as device:
        device.seek(4096)
        device.write(bytes.fromhex("fc4e2ba9") + bytes(508))
    assert "md RAID member" in refusal(loop)


def test_a_device_mapper_holder_is_refused(loop: str) -> None:
    """The real one, where the kernel has device-mapper; a fake is in test_guard."""
    if shutil.which("dmsetup") is None or " device-mapper" not in Path("/proc/misc").read_text():
        pytest.skip("no device-mapper in this kernel")
    name = f"kvbench-test-{Path(loop).name}"
    call("dmsetup", "create", name, "--table", f"0 2048 linear {loop} 0")
    try:
        assert "is part of the device-mapper device dm-" in refusal(loop)
    finally:
        call("dmsetup", "remove", name)


def test_a_loop_device_over_the_target_is_refused(loop: str) -> None:
    with loop_over(Path(loop)) as above:
        assert f"is shown as the loop device {above}" in refusal(loop)
        assert "over another block device" in refusal(above)


def test_two_loop_devices_over_one_file_are_refused(loop: str, backing: Path) -> None:
    with loop_over(backing) as second:
        assert f"its file is shown as {second} too" in refusal(loop)


def test_the_file_behind_a_loop_device_is_refused(loop: str, backing: Path) -> None:
    assert f"is shown as the block device {loop}" in refusal(str(backing))


def test_a_read_only_loop_device_is_refused(backing: Path) -> None:
    with loop_over(backing, "--read-only") as device:
        assert "is read-only" in refusal(device)


def test_a_device_that_another_program_has_open_is_refused(loop: str) -> None:
    with Path(loop).open("rb") as held, subprocess.Popen(["sleep", "60"], stdin=held) as other:
        try:
            held.close()
            assert f"is open in sleep (pid {other.pid})" in refusal(loop)
        finally:
            other.kill()


def test_a_device_that_was_exchanged_under_its_name_is_refused(
    loop: str, backing: Path, tmp_path: Path
) -> None:
    identity = guard.check_readable(loop)
    other = make_backing(tmp_path / "other")
    guard.same_device(identity)
    detach(loop, backing)
    with pytest.raises(Refused):
        guard.same_device(identity)
    call("losetup", loop, other)
    try:
        before = fingerprint(loop)
        with pytest.raises(Refused, match="something else") as caught:
            guard.same_device(identity)
        assert caught.value.exit_code == ExitCode.REFUSED
        with pytest.raises(Refused, match="something else"):
            guard.check_writable(identity, loop, own_file=False)
        assert fingerprint(loop) == before
    finally:
        detach(loop, other)


def test_the_root_disk_is_refused_without_being_opened_for_writing() -> None:
    """Only decisions are asked for; nothing is ever written here."""
    mount = next(each for each in probe.mounts() if each.point == "/")
    if mount.number.startswith("0:"):
        pytest.skip(f"/ is on {mount.file_system}, not on a block device seen from here")
    name = Path(probe.MACHINE.resolve(f"/sys/dev/block/{mount.number}")).name
    path = f"/dev/{name}"
    if not Path(path).is_block_device():
        pytest.skip(f"there is no node {path} here")
    identity = probe.identify(path)
    with pytest.raises((Refused, EnvironmentMissing)) as caught:
        guard.check_writable(identity, path, own_file=False)
    if isinstance(caught.value, Refused):
        assert "mounted at" in caught.value.message
