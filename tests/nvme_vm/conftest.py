"""One boot for each group of scenarios; all tests of a group read the answers of that boot."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.nvme_vm import boot, drives, guest
from tests.nvme_vm.guest import Seen

FIRMWARE, NEXT_FIRMWARE = "FW1.0", "FW2.0"
DUAL_PORT_BYTES = 32 << 20
TIMEOUT_S = 780  # of one boot, against hanging; on an idle machine of two cores it takes a third
NEEDED = ("nvme", "lvm", "mdadm", "cryptsetup", "mkfs.btrfs", "mkfs.ext4", "make-bcache", "sfdisk")

Boot = Callable[..., Seen]


@pytest.fixture(scope="session")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Boot:
    """Boot a guest, or skip with the reason why this machine has none."""
    if os.geteuid():
        pytest.skip("the drives of a guest are for root to make")
    lacking = guest.lacking(*NEEDED)
    if lacking:
        pytest.skip(lacking)
    try:
        boot.build()
    except boot.CannotBoot as error:
        pytest.skip(str(error))

    def start(
        module: str,
        *specs: str,
        firmware: str = FIRMWARE,
        options: tuple[str, ...] = (),
        power_cut: bool = False,
    ) -> Seen:
        modules = tuple(word for name in drives.MODULES for word in ("--modprobe", name))
        try:
            return guest.run_inside(
                module,
                tmp_path_factory.mktemp(module),
                specs,
                options=(*options, *modules, "--firmware", firmware),
                power_cut=power_cut,
                timeout_s=TIMEOUT_S,
            )
        except boot.CannotBoot as error:
            pytest.skip(str(error))

    return start


@pytest.fixture(scope="session")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the drives that keep their data from boot to boot."""
    return tmp_path_factory.mktemp("disks")


@pytest.fixture(scope="session")
def refusals(inside: Boot, disks: Path) -> Seen:
    """What was said of drives that something stands on."""
    dual = disks / "dual.img"
    dual.touch()
    os.truncate(dual, DUAL_PORT_BYTES)
    options = ("--append", "nvme_core.multipath=N", "--qemu", drives.DUAL_PORT.format(file=dual))
    return inside("refusals", *drives.REFUSALS, options=options)


@pytest.fixture(scope="session")
def runs(inside: Boot, disks: Path) -> Seen:
    """Runs of healthy drives; the last one lost its power."""
    return inside("runs", *drives.runs(disks), power_cut=True)


@pytest.fixture(scope="session")
def after(inside: Boot, disks: Path, runs: Seen) -> Seen:
    """What is left after the power cut, with the drives in another order."""
    assert len(runs)
    return inside("after", *drives.after(disks), power_cut=True)


@pytest.fixture(scope="session")
def faults(inside: Boot, disks: Path, after: Seen) -> Seen:
    """Runs of drives that fail, go away, hang or are reset; and what a second power cut left."""
    assert len(after)
    return inside("faults", *drives.faults(disks), firmware=NEXT_FIRMWARE)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what was not tested: a green run without a guest proves nothing of drives."""
    reasons = {
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
        if "nvme_vm" in report.nodeid and isinstance(report.longrepr, tuple)
    }
    for reason in sorted(reasons):
        terminalreporter.write_line(f"EMULATED NVME DRIVES WERE NOT TESTED: {reason}", red=True)
