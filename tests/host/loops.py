"""Loop devices for tests: each is made over a file of the test's own and always detached."""

import hashlib
import os
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kvbench.units import MIB

LOOP_BYTES = 16 * MIB
PARTITION_BYTES = 8 * MIB


def _why_no_loops() -> str:
    if os.geteuid() != 0:
        return "loop devices need root"
    if not Path("/dev/loop-control").exists():
        return "this kernel has no loop devices"
    return ""


needs_loops = pytest.mark.skipif(bool(_why_no_loops()), reason=_why_no_loops() or "they work")


def call(*argv: str | Path) -> str:
    """Run a tool that must succeed, and return what it printed."""
    done = subprocess.run(
        [str(word) for word in argv], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout.strip()


def make_backing(path: Path) -> Path:
    """Make a file of bytes that look like nothing."""
    path.write_bytes(random.Random(path.name).randbytes(MIB) * (LOOP_BYTES // MIB))  # noqa: S311
    return path


@contextmanager
def loop_over(backing: Path, *options: str) -> Iterator[str]:
    """Attach a loop device and yield its path."""
    device = call("losetup", *options, "--find", "--show", backing)
    try:
        yield device
    finally:
        detach(device, backing)


def detach(device: str, backing: Path) -> None:
    """Detach a loop device if it still shows our file, and see that it did."""
    shown = Path(f"/sys/block/{Path(device).name}/loop/backing_file")
    for _ in range(50):
        if not shown.exists() or shown.read_text().strip() != str(backing):
            return
        subprocess.run(["losetup", "--detach", device], capture_output=True, check=False)
        time.sleep(0.05)
    raise AssertionError(f"{device} could not be detached")


@contextmanager
def partition_on(device: str) -> Iterator[str]:
    """Tell the kernel of a partition of 8 MiB and yield its path."""
    call("addpart", device, "1", "2048", str(PARTITION_BYTES // 512))
    try:
        node = Path(f"{device}p1")
        for _ in range(100):
            if node.exists():
                break
            time.sleep(0.05)
        else:
            pytest.skip("this kernel makes no nodes for partitions of loop devices")
        yield str(node)
    finally:
        call("delpart", device, "1")


@contextmanager
def mounted(device: str, point: Path) -> Iterator[Path]:
    """Make a file system, mount it read-only (so that its bytes stand still), and unmount."""
    call("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,nodiscard", device)
    point.mkdir()
    call("mount", "-o", "ro", device, point)
    try:
        yield point
    finally:
        call("umount", point)


def fingerprint(path: str | Path) -> str:
    """Return a hash of all bytes, read from the device itself."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
