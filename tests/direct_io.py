"""Whether a test's file can be measured with O_DIRECT: not on tmpfs, for instance."""

import os
from pathlib import Path

import pytest


def works(path: Path) -> bool:
    """Return whether a file can be opened with O_DIRECT."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    return True


def skip_without(folder: Path) -> None:
    """Skip the test, and say why, where files of ``folder`` cannot be opened with O_DIRECT."""
    probe = folder / "probe"
    probe.write_bytes(b"\1" * 4096)
    if not works(probe):
        pytest.skip(f"{folder} does not support O_DIRECT")
