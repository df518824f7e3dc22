"""The machine after the power cut: the same drives, in another order."""

from pathlib import Path

from tests.nvme_vm.inside.driver import Driver
from tests.nvme_vm.inside.runs import BY_ID, STORE_POINT, cut_when, measured, mount_store

VERIFIED = str(Path(__file__).parents[2] / "cli" / "verified.toml")
# The name of FAST was nvme0n1, and is now another's.
STORE, FAST, INTEGRITY = "/dev/nvme1n1", "/dev/nvme2n1", "/dev/nvme3n1"


def resumed(driver: Driver) -> None:
    """Read what is left of the run, and go on with it."""
    results = mount_store(STORE)
    report = ("report", "cut", *_of(results), "--json")
    driver.kvbench("report after the power cut", *report, draws=True)
    driver.kvbench("resumed", "run", "--resume", "cut", *_of(results), "--quiet")
    driver.kvbench("report after resume", *report)


def other_names(driver: Driver) -> None:
    """The drive that was measured before, under the name that it has now."""
    measured(driver, "renamed", FAST)
    measured(driver, "by id", f"{BY_ID}FAST0001", repetitions=1)


def integrity_cut(driver: Driver) -> None:
    """The power goes while blocks are written over that are to be verified after it."""
    results = STORE_POINT / "results"
    target = f"{BY_ID}INTG0001"
    argv = ("--workload", VERIFIED, "--repetitions", "2", "--label", "cut-integrity")
    destroy = ("--destroy", target, "--yes")
    job = "*cut-integrity/cells/.partial-0004/job.fio"
    cut_when(driver, results, job, "run", target, *argv, *destroy, writing=INTEGRITY)


def _of(results: Path) -> tuple[str, str]:
    return "--results", str(results)


SCENARIOS = (resumed, other_names, integrity_cut)
