"""Whether a test's file can be measured with O_DIRECT: not on tmpfs, for instance."""

import os
from pathlib import Path


def works(path: Path) -> bool:
    """Return whether a file can be opened with O_DIRECT."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    return True
