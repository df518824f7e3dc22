"""A run whose live line is really drawn, on a pseudo terminal that somebody reads."""

import os
import pty
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

from kvbench.cli.live import LiveView


@contextmanager
def live_view() -> Iterator[LiveView]:
    """Yield the view of ``kvbench run`` on a terminal of its own; it must have shown something."""
    ours, theirs = pty.openpty()
    seen = bytearray()

    def read() -> None:
        while True:
            try:
                got = os.read(ours, 65536)
            except OSError:  # EIO: the other side is closed
                return
            if not got:
                return
            seen.extend(got)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    with (
        open(theirs, "w", encoding="utf-8") as screen,  # noqa: PTH123 - a descriptor
        redirect_stderr(screen),
        LiveView(quiet=False, repetitions=1) as view,
    ):
        yield view
    reader.join(timeout=5)
    os.close(ours)
    if b"IOPS" not in seen:
        sys.exit("the live line was not drawn, so this measures nothing")
