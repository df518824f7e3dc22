"""The machine after the power cut: the same drives, in another order."""

from pathlib import Path

from tests.nvme_vm.inside.driver import Driver, run
from tests.nvme_vm.inside.runs import BY_ID, STORE_POINT, measured

STORE, FAST = "/dev/nvme1n1", "/dev/nvme2n1"  # the name of FAST was nvme0n1, and is now another's


def resumed(driver: Driver) -> None:
    """Read what is left of the run, and go on with it."""
    STORE_POINT.mkdir()
    run("mount", "-t", "ext4", STORE, str(STORE_POINT))
    results = STORE_POINT / "results"
    driver.kvbench("report after the power cut", "report", "latest", *_of(results), "--json")
    run("cp", "-r", f"{results}/.", str(driver.share / "cut"))
    driver.kvbench("resumed", "run", "--resume", "latest", *_of(results), "--quiet")
    driver.kvbench("report after resume", "report", "latest", *_of(results), "--json")
    run("umount", str(STORE_POINT))


def other_names(driver: Driver) -> None:
    """The drive that was measured before, under the name that it has now."""
    measured(driver, "renamed", FAST)
    measured(driver, "by id", f"{BY_ID}FAST0001", repetitions=1)


def _of(results: Path) -> tuple[str, str]:
    return "--results", str(results)


SCENARIOS = (resumed, other_names)
