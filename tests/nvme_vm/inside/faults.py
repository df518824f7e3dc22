"""What can go wrong with a drive while kvbench measures it."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

from tests.nvme_vm.inside.driver import Answer, Driver, busy, run, wait_until

GOOD, BAD, GONE = "/dev/nvme0n1", "/dev/nvme1n1", "/dev/nvme2n1"
DEAD, BETWEEN, RESET = "/dev/nvme3n1", "/dev/nvme4n1", "/dev/nvme5n1"
WRITTEN, FAST, STORE = (
    "/dev/nvme6n1",
    "/dev/nvme7n1",
    "/dev/nvme8n1",
)  # with the data of boots before
CORRUPT_AT_BYTES = 64 * 1024
PCI_COMMAND_AT = 4


def measured(
    driver: Driver,
    name: str,
    target: str,
    *loads: str,
    repetitions: int = 2,
    meanwhile: Callable[[], None] | None = None,
) -> Answer:
    """Run some workloads on a drive, and report what was stored."""
    answer = driver.kvbench(
        name,
        *("run", target, "--repetitions", str(repetitions), "--quiet", "--label", name),
        *(word for load in loads for word in ("--workload", load)),
        *("--results", str(driver.results)),
        meanwhile=meanwhile,
    )
    driver.kvbench(
        f"{name}, report", "report", "latest", "--results", str(driver.results), "--json"
    )
    return answer


def gone(device: str) -> bool:
    """Return whether the kernel has given a drive up."""
    return not Path("/sys/class/block", Path(device).name).exists()


def injected_read_errors(driver: Driver) -> None:
    """Some blocks of the drive cannot be read; another part of it can."""
    bad = driver.workload("read")
    good = driver.workload("read", block_size="8KiB", span_percent="25")
    measured(driver, "read errors", BAD, bad, good)


def surprise_removal(driver: Driver) -> None:
    """The drive is pulled while a cell reads it; more cells are planned."""

    def pull() -> None:
        busy(GONE)
        driver.qmp("device_del", id="nvme2")

    load = driver.workload("read", runtime="8s")
    measured(driver, "removal", GONE, load, meanwhile=pull)


def dead_controller(driver: Driver) -> None:
    """The controller stops to answer, until the kernel resets it."""

    def kill() -> None:
        busy(DEAD)
        controller = Path(f"/sys/class/block/{Path(DEAD).name}/device/device").resolve()
        with (controller / "config").open("r+b", buffering=0) as config:
            config.seek(PCI_COMMAND_AT)
            config.write(bytes(2))

    load = driver.workload("read", runtime="3s")
    measured(driver, "dead controller", DEAD, load, repetitions=1, meanwhile=kill)


def controller_reset(driver: Driver) -> None:
    """The controller is reset in the middle of a cell; every read is answered in the end."""

    def reset() -> None:
        busy(RESET)
        Path(f"/sys/class/nvme/{Path(RESET).name[:5]}/reset_controller").write_text("1")

    load = driver.workload("read", runtime="3s")
    measured(driver, "reset", RESET, load, repetitions=1, meanwhile=reset)


def gone_between_two_cells(driver: Driver) -> None:
    """The drive goes while kvbench, stopped for a moment, reads nothing from it."""

    def pull() -> None:
        def null_cell_runs() -> bool:  # it measures this host, and touches no drive
            return any(driver.results.glob("*between*/cells/.partial-0001/job.fio"))

        wait_until(null_cell_runs, limit_s=120)
        kvbench = children()
        for pid in kvbench:
            os.kill(pid, signal.SIGSTOP)
        driver.qmp("device_del", id="nvme4")
        wait_until(lambda: gone(BETWEEN))
        for pid in kvbench:
            os.kill(pid, signal.SIGCONT)

    load = driver.workload("read", runtime="400ms")
    measured(driver, "gone between", BETWEEN, load, repetitions=4, meanwhile=pull)


def children() -> list[int]:
    """Return the pids of this process's children."""
    me = os.getpid()
    return [int(pid) for pid in Path(f"/proc/{me}/task/{me}/children").read_text().split()]


def the_next_drive_is_fine(driver: Driver) -> None:
    """After all of this another drive is measured as ever."""
    measured(driver, "good", GOOD, driver.workload("read", runtime="3s"), repetitions=1)
    driver.kvbench("messages", "--version")
    driver.write_down(Answer(name="kernel log", stdout=run("dmesg")))


SCENARIOS = (
    injected_read_errors,
    controller_reset,
    surprise_removal,
    gone_between_two_cells,
    dead_controller,
    the_next_drive_is_fine,
)
