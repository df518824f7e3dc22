"""Everything that must keep kvbench from writing to a drive, made with the system's own tools.

Each scenario makes one thing, names the drive twice as if nothing stood on it, and takes the
thing apart again.
"""

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.nvme_vm.inside.driver import Driver, run, undone, wait_until

SAFE, PAIR = "/dev/nvme0n1", "/dev/nvme1n1"
FIRST, SECOND = "/dev/nvme2n1", "/dev/nvme2n2"  # two namespaces of one drive
PORT_A, PORT_B = "/dev/nvme3n1", "/dev/nvme4n1"  # two ports of one drive
BOOT_POINT = "/boot"
LVM = ("--config", "activation { udev_sync = 0 udev_rules = 0 }")
EXT4 = ("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0")
MDADM = ("mdadm", "--quiet")


def asked(
    driver: Driver, name: str, target: str, *, destroy: str | None = "", disk: str = SAFE
) -> None:
    """Name ``target`` twice, or ``destroy`` the second time; None: do not name it again."""
    twice = () if destroy is None else ("--destroy", destroy or target, "--yes")
    kind = "read" if destroy is not None else "write"
    driver.kvbench(
        name,
        *("run", target, "--workload", driver.workload(kind), "--repetitions", "1", "--quiet"),
        *("--results", str(driver.results), *twice),
        watched=disk,
    )


def wiped(*disks: str) -> None:
    """Make disks as good as new."""
    for disk in disks:
        run("wipefs", "-aq", disk)
        run("blkdiscard", "-f", disk)
        run("blockdev", "--rereadpt", disk)


def unclaimed(disk: str) -> bool:
    """Return whether nothing in the kernel claims a disk: what is stopped lets go a bit later."""
    try:
        os.close(os.open(disk, os.O_RDONLY | os.O_EXCL))
    except OSError:
        return False
    return True


def partitioned(disk: str) -> tuple[str, str]:
    """Make two partitions, and return their names."""
    lines = "label: gpt\nsize=16M\nsize=16M\n"
    run("sfdisk", "-q", "--no-tell-kernel", disk, text=lines)
    run("blockdev", "--rereadpt", disk)
    names = (f"{disk}p1", f"{disk}p2")
    wait_until(lambda: all(Path(name).exists() for name in names))
    return names


@contextmanager
def mounted(device: str, kind: str = "ext4") -> Iterator[None]:
    """Mount a file system under a name of its own."""
    point = Path("/run/point") / Path(device).name
    point.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", kind, "-o", "noatime", device, str(point))
    with undone("umount", str(point)):
        yield


@contextmanager
def mapped(name: str, device: str) -> Iterator[str]:
    """Put a linear device-mapper device over one."""
    sectors = run("blockdev", "--getsz", device).strip()
    run("dmsetup", "create", "--noudevsync", name, "--table", f"0 {sectors} linear {device} 0")
    with undone("dmsetup", "remove", "--noudevsync", name):
        run("dmsetup", "mknodes", name)
        yield f"/dev/mapper/{name}"


@contextmanager
def sleeper(*argv: str) -> Iterator[None]:
    """Keep a program running."""
    program = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        program.kill()
        program.wait()


def partitions(driver: Driver) -> None:
    """A partition table; then a file system on the first of two partitions."""
    first, second = partitioned(SAFE)
    asked(driver, "disk with partitions", SAFE)
    run(*EXT4, first)
    asked(driver, "partition with ext4", first)
    with mounted(first):
        asked(driver, "disk of a mounted partition", SAFE)
        asked(driver, "mounted partition", first)
        asked(driver, "blank partition beside a mounted one", second)
    with sleeper(
        "unshare",
        "-m",
        "--propagation",
        "private",
        "sh",
        "-c",
        f"mount -o noatime {first} /mnt; touch /run/mounted; exec sleep 600",
    ):
        wait_until(Path("/run/mounted").exists)
        asked(driver, "partition mounted in another namespace", first)
        asked(driver, "disk with a partition mounted in another namespace", SAFE)
    wiped(SAFE)


def disk_mounted_whole(driver: Driver) -> None:
    """A file system on the whole disk, and a partition that the kernel still believes in."""
    run(*EXT4, SAFE)
    asked(driver, "disk with ext4", SAFE)
    run("addpart", SAFE, "1", "2048", "32768")
    with mounted(SAFE):
        asked(driver, "mounted disk", SAFE)
        asked(driver, "partition of a mounted disk", f"{SAFE}p1")
        link = driver.results / "scratch"
        link.symlink_to(SAFE)
        asked(driver, "symbolic link to a mounted disk", str(link))
    run("delpart", SAFE, "1")
    wiped(SAFE)


def boot_disk(driver: Driver) -> None:
    """A blank partition beside the one that the machine starts from."""
    first, second = partitioned(SAFE)
    run(*EXT4, first)
    busybox = ("chroot", "/proc/1/root", "/bin/busybox")
    run(*busybox, "mkdir", "-p", BOOT_POINT)
    run(*busybox, "mount", "-t", "ext4", first, BOOT_POINT)
    with undone(*busybox, "umount", BOOT_POINT):
        asked(driver, "blank partition of the boot disk", second)
    wiped(SAFE)


def lvm(driver: Driver) -> None:
    """A physical volume by itself, in use, and its logical volume with a file system."""
    run("pvcreate", "-qq", *LVM, SAFE)
    asked(driver, "LVM physical volume", SAFE)
    run("vgcreate", "-qq", *LVM, "vg", SAFE)
    run("lvcreate", "-qq", *LVM, "-Zn", "-Wn", "-n", "lv", "-L", "16M", "vg")
    volume = "/dev/mapper/vg-lv"
    run("dmsetup", "mknodes")
    with undone("vgremove", "-qq", "-ff", "-y", *LVM, "vg"):
        asked(driver, "LVM physical volume in use", SAFE)
        run(*EXT4, volume)
        with mounted(volume):
            asked(driver, "disk under a mounted logical volume", SAFE)
            asked(driver, "mounted logical volume", volume)
    wiped(SAFE)
    first, _ = partitioned(SAFE)
    run("pvcreate", "-qq", *LVM, first)
    asked(driver, "LVM physical volume on a partition", first)
    wiped(SAFE)


def md(driver: Driver) -> None:
    """A member of an array that runs, and of one that is stopped."""
    make = ("--create", "/dev/md0", "--run", "--assume-clean", "--level=1", "--raid-devices=2")
    run(*MDADM, *make, "--metadata=1.2", SAFE, PAIR)
    with undone(*MDADM, "--stop", "/dev/md0"):
        asked(driver, "md member", SAFE)
        run(*EXT4, "/dev/md0")
        with mounted("/dev/md0"):
            run("sync")
            # A moment after the last write to an array its members are marked clean.
            wait_until(lambda: Path("/sys/block/md0/md/array_state").read_text() == "clean\n")
            asked(driver, "disk under a mounted array", SAFE)
    asked(driver, "md member, stopped", SAFE)
    wiped(SAFE, PAIR)
    run(*MDADM, *make, "--metadata=1.0", SAFE, PAIR)  # its mark is at the end of the disk
    run(*MDADM, "--stop", "/dev/md0")
    asked(driver, "md member, stopped, marked at its end", SAFE)
    wiped(SAFE, PAIR)


def device_mapper(driver: Driver) -> None:
    """A device-mapper device over the drive, and over one of its partitions."""
    with mapped("over", SAFE):
        asked(driver, "under device mapper", SAFE)
    first, _ = partitioned(SAFE)
    with mapped("over", first):
        asked(driver, "disk whose partition is under device mapper", SAFE)
        asked(driver, "partition under device mapper", first)
    wiped(SAFE)


def luks(driver: Driver) -> None:
    """An encrypted volume, closed and open."""
    key = ("--key-file", "-", "--batch-mode", "--pbkdf", "pbkdf2", "--pbkdf-force-iterations")
    run("cryptsetup", "luksFormat", *key, "1000", SAFE, text="secret")
    asked(driver, "LUKS", SAFE)
    os.environ["DM_DISABLE_UDEV"] = "1"
    run("cryptsetup", "open", "--key-file", "-", SAFE, "secret", text="secret")
    with undone("cryptsetup", "close", "secret"):
        asked(driver, "LUKS, open", SAFE)
    wiped(SAFE)


def btrfs(driver: Driver) -> None:
    """Two drives of one file system; the mount names only one of them."""
    run("mkfs.btrfs", "-q", "-f", "--mixed", "-d", "single", "-m", "single", SAFE, PAIR)
    asked(driver, "btrfs member", PAIR, disk=PAIR)
    run("btrfs", "device", "scan", SAFE, PAIR)
    with mounted(SAFE, "btrfs"):
        asked(driver, "mounted btrfs", SAFE)
        asked(driver, "second drive of a mounted btrfs", PAIR, disk=PAIR)
    run("btrfs", "device", "scan", "--forget")
    wiped(SAFE, PAIR)


def zfs(driver: Driver) -> None:
    """The mark of a ZFS member, as its tools leave it: there is no ZFS in this kernel."""
    with Path(SAFE).open("r+b") as disk:
        for number in range(8):  # uberblocks of the first label, 1 KiB each
            disk.seek(128 * 1024 + number * 1024)
            disk.write((0x00BAB10C).to_bytes(8, "little") + (5000).to_bytes(8, "little"))
    asked(driver, "ZFS member", SAFE)
    wiped(SAFE)


def bcache(driver: Driver) -> None:
    """A backing device of bcache, idle and registered."""
    run("make-bcache", "-B", SAFE)
    asked(driver, "bcache member", SAFE)
    Path("/sys/fs/bcache/register").write_text(SAFE)
    disk = Path("/sys/class/block") / Path(SAFE).name
    wait_until((disk / "bcache").exists)
    try:
        asked(driver, "bcache member, registered", SAFE)
    finally:
        (disk / "bcache" / "stop").write_text("1")
        wait_until(lambda: not (disk / "bcache").exists() and unclaimed(SAFE))
    wiped(SAFE)


def swap(driver: Driver) -> None:
    """Swap space, unused and in use, on the disk and on a partition."""
    run("mkswap", "-q", SAFE)
    asked(driver, "swap space", SAFE)
    run("swapon", SAFE)
    with undone("swapoff", SAFE):
        asked(driver, "swap in use", SAFE)
    wiped(SAFE)
    first, _ = partitioned(SAFE)
    run("mkswap", "-q", first)
    run("swapon", first)
    with undone("swapoff", first):
        asked(driver, "disk with swap in use on a partition", SAFE)
    wiped(SAFE)


def nodes(driver: Driver) -> None:
    """What is no block device, and names that lead elsewhere."""
    asked(driver, "generic character node", "/dev/ng0n1")
    asked(driver, "controller", "/dev/nvme0")
    asked(driver, "not named again", SAFE, destroy=None)
    asked(driver, "another disk named", SAFE, destroy=PAIR)
    asked(driver, "another namespace named", FIRST, destroy=SECOND, disk=FIRST)
    link = driver.results / "link"
    link.symlink_to(PAIR)
    asked(driver, "a link to another disk named", SAFE, destroy=str(link))
    asked(driver, "the character node named", SAFE, destroy="/dev/ng0n1")
    asked(driver, "a drive that is not there", "/dev/nvme9n1", disk="")
    run("blockdev", "--setro", SAFE)
    with undone("blockdev", "--setrw", SAFE):
        asked(driver, "read-only drive", SAFE)


def loops(driver: Driver) -> None:
    """A loop device over the drive."""
    loop = run("losetup", "--find", "--show", SAFE).strip()
    with undone("losetup", "-d", loop):
        asked(driver, "shown as a loop device", SAFE)
        asked(driver, "loop device over a drive", loop)


def served(driver: Driver) -> None:
    """The kernel's NVMe target shows the drive to other machines."""
    subsystem = Path("/sys/kernel/config/nvmet/subsystems/shared")
    namespace = subsystem / "namespaces" / "1"
    subsystem.mkdir()
    namespace.mkdir()
    (namespace / "device_path").write_text(SAFE)
    (namespace / "enable").write_text("1")
    try:
        asked(driver, "served to other machines", SAFE)
    finally:
        (namespace / "enable").write_text("0")
        namespace.rmdir()
        subsystem.rmdir()


def other_programs(driver: Driver) -> None:
    """A program that has it open, on the block node and the character node; one that claims it."""
    with ExitStack() as held:
        held.callback(os.close, os.open(SAFE, os.O_RDWR))
        with sleeper("sleep", "600"):  # it inherits nothing; this process has it open
            asked(driver, "open in another program", SAFE)
    with ExitStack() as held:
        held.callback(os.close, os.open(SAFE, os.O_RDONLY | os.O_EXCL))
        asked(driver, "claimed by another program", SAFE)
    with ExitStack() as held:
        lock = os.open(SAFE, os.O_RDONLY)
        held.callback(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        asked(driver, "locked by another program", SAFE)
    with ExitStack() as held:
        held.callback(os.close, os.open("/dev/ng0n1", os.O_RDWR))
        asked(driver, "open in another program by its character node", SAFE)


def twins(driver: Driver) -> None:
    """One drive with two ports, seen as two drives because multipath is off."""
    asked(driver, "seen through two ports", PORT_A, disk=PORT_A)
    run(*EXT4, PORT_B)
    with mounted(PORT_B):
        asked(driver, "mounted through the other port", PORT_A, disk=PORT_A)
    wiped(PORT_B)


def allowed(driver: Driver) -> None:
    """Nothing speaks against it: the guard does let a blank drive, and a blank partition, pass."""
    writing = driver.workload("write")
    rest = ("--repetitions", "1", "--quiet", "--yes", "--results", str(driver.results))
    by_id = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_SAFE0001"
    argv = ("run", SAFE, "--destroy", by_id, "--workload", writing)
    driver.kvbench("blank drive, by two names", *argv, *rest, watched=SAFE)
    argv = ("run", SECOND, "--destroy", SECOND, "--workload", writing)
    driver.kvbench("blank namespace beside another", *argv, *rest, watched=FIRST)
    wiped(SAFE, SECOND)


SCENARIOS = (
    nodes,
    partitions,
    disk_mounted_whole,
    boot_disk,
    lvm,
    md,
    device_mapper,
    luks,
    btrfs,
    zfs,
    bcache,
    swap,
    loops,
    served,
    other_programs,
    twins,
    allowed,
)
