"""Measure healthy drives: what they are, how fast, and what is kept when the power goes."""

from pathlib import Path

from tests.nvme_vm.inside.driver import Driver, run, wait_until

FAST, SLOW, BLOCKS_4K = "/dev/nvme0n1", "/dev/nvme1n1", "/dev/nvme2n1"
FIRST, SECOND = "/dev/nvme3n1", "/dev/nvme3n2"  # two namespaces of one drive
STORE = "/dev/nvme4n1"  # has a file system for results
BY_ID = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_"
FAST_THROTTLE, FAST_IOPS = "/objects/nvme0-n1-tg", 600
STORE_POINT = Path("/run/store")
CUT_AFTER_CELLS = 3


def measured(driver: Driver, name: str, target: str, *, repetitions: int = 8) -> None:
    """Read 4 KiB with 8 in flight: the throttle of the drive decides how fast that is."""
    driver.kvbench(
        name,
        *("run", target, "--workload", gated(driver), "--repetitions", str(repetitions)),
        *("--results", str(driver.results), "--label", name, "--quiet"),
    )


def gated(driver: Driver) -> str:
    return driver.workload("read", runtime="500ms", queue_depth="8")


def identities(driver: Driver) -> None:
    """What kvbench takes each drive for."""
    for device in (FAST, BLOCKS_4K, FIRST, SECOND):
        driver.kvbench(f"doctor {device}", "doctor", device, "--json")
    driver.kvbench("doctor, no nvme-cli", "doctor", FAST, "--json", path="/nowhere")


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
    loads = [driver.workload("read", block_size=size) for size in ("512B", "4KiB")]
    driver.kvbench(
        "reads below the block size",
        *("run", BLOCKS_4K, "--repetitions", "1", "--quiet", "--label", "small"),
        *(word for load in loads for word in ("--workload", load)),
        *("--results", str(driver.results)),
    )


def namespaces(driver: Driver) -> None:
    """The same workload on both namespaces of one drive."""
    measured(driver, "first namespace", FIRST, repetitions=6)
    measured(driver, "second namespace", SECOND, repetitions=6)


def power_cut(driver: Driver) -> None:
    """The power goes while a cell is being stored on a file system of this machine."""
    driver.keep_results()
    run("mkfs.ext4", "-q", "-F", STORE)
    STORE_POINT.mkdir()
    run("mount", "-t", "ext4", STORE, str(STORE_POINT))
    results = STORE_POINT / "results"
    driver.qmp("query-status")  # the port is open from now on

    def cut() -> None:
        cells = f"*/cells/.partial-{CUT_AFTER_CELLS + 1:04d}/fio.json"
        wait_until(lambda: any(p.stat().st_size for p in results.glob(cells)), limit_s=120)
        driver.qmp("quit")
        wait_until(lambda: False)

    driver.kvbench(
        "power cut",
        *("run", f"{BY_ID}FAST0001", "--workload", gated(driver), "--repetitions", "6"),
        *("--results", str(results), "--label", "cut", "--quiet"),
        meanwhile=cut,
    )


SCENARIOS = (identities, small_reads, throttled, namespaces, power_cut)
