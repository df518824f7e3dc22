"""Measure healthy drives: what they are, how fast, and what is kept when the power goes."""

import fcntl
import os
from pathlib import Path

from tests.nvme_vm.inside.driver import WRITES, Answer, Driver, busy, run, wait_until

FAST, SLOW, BLOCKS_4K = "/dev/nvme0n1", "/dev/nvme1n1", "/dev/nvme2n1"
FIRST, SECOND = "/dev/nvme3n1", "/dev/nvme3n2"  # namespaces of one drive, in either order
STORE = "/dev/nvme4n1"  # has a file system for results
CLIFF = "/dev/nvme5n1"  # its first writes are faster
BY_ID = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_"
FAST_THROTTLE, FAST_IOPS = "/objects/nvme0-n1-tg", 600
STORE_POINT = Path("/run/store")
CUT_AFTER_CELLS = 3
NVME_IOCTL_ID = 0x4E40  # linux/nvme_ioctl.h: returns the namespace's id


def measured(
    driver: Driver, name: str, target: str, *, repetitions: int = 6, draws: bool = False
) -> None:
    """Read 4 KiB with 8 in flight: the throttle of the drive decides how fast that is.

    Four repetitions a side decide about the one number that is gated; two may be spoiled.
    """
    driver.kvbench(
        name,
        *("run", target, "--workload", gated(driver), "--repetitions", str(repetitions)),
        *("--results", str(driver.results), "--label", name, "--quiet"),
        draws=draws,
    )


def gated(driver: Driver) -> str:
    return driver.workload("read", queue_depth="8")


def identities(driver: Driver) -> None:
    """What kvbench takes each drive for, beside what the kernel's driver answers."""
    for device in (FAST, BLOCKS_4K, FIRST, SECOND):
        driver.kvbench(f"doctor {device}", "doctor", device, "--json")
        nsid = str(namespace_id(device))
        driver.write_down(Answer(name=f"namespace of {device}", stdout=nsid))
    tools = [Path("/usr/sbin") / name for name in ("nvme", "smartctl")]
    for tool in (tool for tool in tools if tool.exists()):
        tool.rename(tool.with_suffix(".away"))
    driver.kvbench("doctor, without tools", "doctor", FAST, "--json")
    for tool in tools:
        if tool.with_suffix(".away").exists():
            tool.with_suffix(".away").rename(tool)


def namespace_id(device: str) -> int:
    """Ask the driver; the number in a name is the order in which the kernel found namespaces."""
    node = os.open(device, os.O_RDONLY)
    try:
        return fcntl.ioctl(node, NVME_IOCTL_ID)
    finally:
        os.close(node)


def throttled(driver: Driver) -> None:
    """One drive twice, then slower; and a drive that is slower by itself."""
    measured(driver, "base", FAST)
    measured(driver, "again", FAST)
    measured(driver, "slow", SLOW)
    throttle(driver, FAST_IOPS // 2)
    measured(driver, "halved", FAST)
    throttle(driver, FAST_IOPS)


def throttle(driver: Driver, iops: int) -> None:
    """Change what the drive can do, while it is in use."""
    limits = {"iops-read": iops}
    driver.qmp("qom-set", path=FAST_THROTTLE, property="limits", value=limits)


def small_reads(driver: Driver) -> None:
    """Reads of 512 B and 4 KiB of a drive that has blocks of 4 KiB."""
    path = Path(driver.workload("read", block_size="4KiB"))
    sizes = path.with_name("sizes.toml")
    sizes.write_text(path.read_text() + '\n[sweep]\nblock_size = ["512B", "4KiB"]\n')
    driver.kvbench(
        "reads below the block size",
        *("run", BLOCKS_4K, "--repetitions", "1", "--quiet", "--label", "small"),
        *("--workload", str(sizes), "--results", str(driver.results)),
    )


def namespaces(driver: Driver) -> None:
    """The same workload on both namespaces of one drive."""
    measured(driver, "first namespace", FIRST, repetitions=1, draws=True)
    measured(driver, "second namespace", SECOND, repetitions=1)


def cache(driver: Driver) -> None:
    """Writes in order to a drive that takes the first of them faster."""
    driver.kvbench(
        "cliff",
        *("run", CLIFF, "--destroy", CLIFF, "--yes", "--workload", "sustained-write"),
        *("--runtime", "12", "--repetitions", "1", "--quiet", "--label", "cliff"),
        *("--results", str(driver.results)),
    )


def power_cut(driver: Driver) -> None:
    """The power goes while a cell is being stored on a file system of this machine."""
    run("mkfs.ext4", "-q", "-F", STORE)
    results = mount_store(STORE)
    argv = ("--workload", gated(driver), "--repetitions", "6", "--label", "cut")
    cells = f"*-cut/cells/.partial-{CUT_AFTER_CELLS + 1:04d}/fio.json"
    cut_when(driver, results, cells, "run", f"{BY_ID}FAST0001", *argv)


def mount_store(device: str) -> Path:
    """Mount the file system with results, and return their folder."""
    STORE_POINT.mkdir()
    run("mount", "-t", "ext4", device, str(STORE_POINT))
    return STORE_POINT / "results"


def cut_when(driver: Driver, results: Path, pattern: str, *argv: str, writing: str = "") -> None:
    """Run kvbench until a file has something in it, then take the power away.

    Args:
        driver: the scenarios' hands.
        results: the store of the run.
        pattern: of the file, below ``results``.
        argv: what follows the program's name.
        writing: wait besides until writes to this drive are under way.
    """
    driver.keep_results()
    driver.qmp("query-status")  # the port is open from now on

    def cut() -> None:
        wait_until(lambda: any(p.stat().st_size for p in results.glob(pattern)), limit_s=120)
        if writing:
            busy(writing, field=WRITES)
        driver.qmp("quit")
        wait_until(lambda: False)

    driver.kvbench("power cut", *argv, "--results", str(results), "--quiet", meanwhile=cut)


SCENARIOS = (identities, small_reads, throttled, namespaces, cache, power_cut)
