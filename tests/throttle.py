"""A loop device that the kernel holds to a rate: an SSD whose IOPS are known and can be changed.

The block layer counts the I/Os of a control group (blkio of cgroup v1, io.max of v2), so whoever
reads through the group sees a device of that speed.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

V1 = Path("/sys/fs/cgroup/blkio")
V2 = Path("/sys/fs/cgroup")


def why_no_throttle() -> str:
    """Return why no device can be throttled here, "" when one can."""
    if os.geteuid() != 0:
        return "throttling a device needs root"
    if (V1 / "blkio.throttle.read_iops_device").exists():
        return "" if os.access(V1, os.W_OK) else "the blkio control group cannot be written here"
    subtree = V2 / "cgroup.subtree_control"
    if subtree.exists() and "io" in subtree.read_text().split():
        return "" if os.access(V2, os.W_OK) else "the control groups cannot be written here"
    return "this machine has no control group that throttles I/O"


needs_throttle = pytest.mark.skipif(bool(why_no_throttle()), reason=why_no_throttle() or "it works")


class Throttle:
    """A control group with a limit of read I/Os per second on one device."""

    def __init__(self, group: Path, device: str) -> None:
        self.group = group
        number = Path(device).stat().st_rdev
        self._number = f"{os.major(number)}:{os.minor(number)}"

    def read_iops(self, limit: int) -> None:
        """Set the limit; 0 is none."""
        if (self.group / "blkio.throttle.read_iops_device").exists():
            (self.group / "blkio.throttle.read_iops_device").write_text(f"{self._number} {limit}")
        else:
            (self.group / "io.max").write_text(f"{self._number} riops={limit or 'max'}")

    def inside(self, argv: list[str]) -> list[str]:
        """Return a command that runs ``argv`` in the group."""
        shell = shutil.which("sh") or "/bin/sh"
        return [shell, "-c", f'echo $$ > "{self.group}/cgroup.procs" && exec "$@"', "sh", *argv]


@contextmanager
def throttled(device: str) -> Iterator[Throttle]:
    """Make a control group for ``device``, and remove it again."""
    base = V1 if (V1 / "blkio.throttle.read_iops_device").exists() else V2
    group = base / f"kvbench-test-{os.getpid()}"
    group.mkdir()
    try:
        yield Throttle(group, device)
    finally:
        group.rmdir()
