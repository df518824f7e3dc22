"""One boot for each group of scenarios; all tests of a group read the answers of that boot."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.nvme_vm import boot, drives, guest
from tests.nvme_vm.guest import Seen
from tests.nvme_vm.known import DEPTH_1_SHORT, ONE_MS

FIRMWARE, NEXT_FIRMWARE = "FW1.0", "FW2.0"
DUAL_PORT_BYTES = 32 << 20
TIMEOUT_S = 780  # of one boot, against hanging; on an idle machine of two cores it takes a third
Started = dict[str, "Future[Seen]"]
NEEDED = ("nvme", "lvm", "mdadm", "cryptsetup", "mkfs.btrfs", "mkfs.ext4", "make-bcache", "sfdisk")


@pytest.fixture(scope="session")
def guests(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Started]:
    """Start the guests that the chosen tests need, two at a time, and return what will be seen.

    Skips with the reason where this machine has no guest.
    """
    if os.geteuid():
        pytest.skip("the drives of a guest are for root to make")
    lacking = guest.lacking(*NEEDED)
    if lacking:
        pytest.skip(lacking)
    try:
        boot.build()
    except boot.CannotBoot as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("guests")
    needed = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    with ThreadPoolExecutor(max_workers=2) as pool:
        started: Started = {}
        # In this order no worker waits for a guest that has not been started.
        for name in ("runs", "refusals", "faults", "after", "known", "verified"):
            if name in needed:
                started[name] = pool.submit(GUESTS[name], folder, started)
        yield started


def _start(
    folder: Path,
    modules: str,
    specs: Sequence[str],
    options: Sequence[str] = (),
    *,
    firmware: str = FIRMWARE,
    power_cut: bool = False,
) -> Seen:
    share = folder / modules.replace(",", "-")  # QEMU takes no comma in a path
    share.mkdir()
    asked = [word for name in drives.MODULES for word in ("--modprobe", name)]
    return guest.run_inside(
        modules,
        share,
        specs,
        options=(*options, *asked, "--firmware", firmware),
        power_cut=power_cut,
        timeout_s=TIMEOUT_S,
    )


def _refusals(folder: Path, _: Started) -> Seen:
    dual = folder / "dual.img"
    dual.touch()
    os.truncate(dual, DUAL_PORT_BYTES)
    options = ("--append", "nvme_core.multipath=N", "--qemu", drives.DUAL_PORT.format(file=dual))
    return _start(folder, "refusals", drives.REFUSALS, options)


def _runs(folder: Path, _: Started) -> Seen:
    return _start(folder, "runs", drives.runs(folder), power_cut=True)


def _after(folder: Path, started: Started) -> Seen:
    started["runs"].result()
    return _start(folder, "after", drives.after(folder), power_cut=True)


def _verified(folder: Path, started: Started) -> Seen:
    started["after"].result()
    return _start(folder, "verified", drives.verified(folder), firmware=NEXT_FIRMWARE)


def _faults(folder: Path, _: Started) -> Seen:
    return _start(folder, "prepared,faults", drives.FAULTS)


def _known(folder: Path, _: Started) -> Seen:
    share = folder / "known"
    share.mkdir()
    boot.measure_in_guest([(ONE_MS, (DEPTH_1_SHORT,))], share, timeout_s=TIMEOUT_S)
    return Seen(share, 0.0)


GUESTS = {
    "refusals": _refusals,
    "runs": _runs,
    "after": _after,
    "verified": _verified,
    "faults": _faults,
    "known": _known,
}


def _seen(guests: Started, name: str) -> Seen:
    try:
        return guests[name].result()
    except boot.CannotBoot as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def refusals(guests: Started) -> Seen:
    """What was said of drives that something stands on."""
    return _seen(guests, "refusals")


@pytest.fixture(scope="session")
def runs(guests: Started) -> Seen:
    """Runs of healthy drives; the last one lost its power."""
    return _seen(guests, "runs")


@pytest.fixture(scope="session")
def after(guests: Started, runs: Seen) -> Seen:
    """What is left after the power cut, with the drives in another order."""
    assert len(runs)
    return _seen(guests, "after")


@pytest.fixture(scope="session")
def verified(guests: Started, after: Seen) -> Seen:
    """What a second power cut left, with another firmware."""
    assert len(after)
    return _seen(guests, "verified")


@pytest.fixture(scope="session")
def faults(guests: Started) -> Seen:
    """Drives that are prepared; then drives that fail, go away, hang or are reset."""
    return _seen(guests, "faults")


@pytest.fixture(scope="session")
def known(guests: Started) -> Seen:
    """The run of a device of known latency, in virtual time."""
    return _seen(guests, "known")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what was not tested: a green run without a guest proves nothing of drives."""
    reasons = {
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
        if "nvme_vm" in report.nodeid and isinstance(report.longrepr, tuple)
    }
    for reason in sorted(reasons):
        terminalreporter.write_line(f"EMULATED NVME DRIVES WERE NOT TESTED: {reason}", red=True)
