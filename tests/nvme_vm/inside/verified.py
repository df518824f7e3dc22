"""After the second power cut: the drives under other names again, and with another firmware."""

import os
from pathlib import Path

from tests.nvme_vm.inside.driver import Driver
from tests.nvme_vm.inside.runs import BY_ID, STORE_POINT, measured, mount_store

WRITTEN, FAST, STORE, OTHER = "/dev/nvme0n1", "/dev/nvme1n1", "/dev/nvme2n1", "/dev/nvme3n1"
CORRUPT_AT_BYTES = 64 * 1024


def integrity_after_the_power_cut(driver: Driver) -> None:
    """What a run wrote before the power went is read back, though the drive has another name."""
    verify = ("verify", "--results", str(mount_store(STORE)), "--json", "cut-integrity")
    driver.kvbench("verify", *verify)
    driver.kvbench("verify another drive", *verify, OTHER)
    with Path(WRITTEN).open("r+b", buffering=0) as drive:
        drive.seek(CORRUPT_AT_BYTES)
        drive.write(b"\xff" * 512)
        os.fsync(drive.fileno())
    driver.kvbench("verify corrupt data", *verify, WRITTEN)


def next_firmware(driver: Driver) -> None:
    """The drive that was measured with the firmware before, and a run begun with it."""
    measured(driver, "new firmware", FAST)
    driver.kvbench(
        "resume with another firmware",
        *("run", "--resume", "cut-integrity", "--results", str(STORE_POINT / "results"), "--quiet"),
        *("--destroy", f"{BY_ID}INTG0001", "--yes"),
    )


SCENARIOS = (integrity_after_the_power_cut, next_firmware)
