"""Read a target's regions back, past the page cache, and judge them.  Reads only."""

import errno
import mmap
import os
import threading
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from kvbench.errors import EnvironmentMissing, Interrupted
from kvbench.integrity.judge import Tally, judge, unreadable
from kvbench.integrity.model import Region, RegionCheck
from kvbench.units import MIB

STEP_BYTES = 16 * MIB
FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW


def check_regions(
    path: str,
    regions: Sequence[Region],
    *,
    stop: threading.Event,
    tell: Callable[[int], None] = lambda _: None,
) -> tuple[RegionCheck, ...]:
    """Return what every region holds.

    Args:
        path: the target, without symbolic links.
        regions: what it must hold.
        stop: ends the reading, once set.
        tell: is told the bytes that were read, step by step.

    Raises:
        EnvironmentMissing: it cannot be opened, or cannot be read past the page cache.
        Interrupted: ``stop`` was set.
    """
    descriptor = open_direct(path)
    try:
        return tuple(_check(descriptor, path, region, stop, tell) for region in regions)
    finally:
        os.close(descriptor)


def open_direct(path: str) -> int:
    """Return a descriptor whose reads come from the device.

    Raises:
        EnvironmentMissing: it cannot be opened, or its file system has no O_DIRECT.
    """
    try:
        return os.open(path, FLAGS | os.O_DIRECT)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise EnvironmentMissing(
                "O_DIRECT does not work here, and the page cache would answer for the device",
                where=path,
            ) from error
        raise EnvironmentMissing(f"cannot be opened: {error.strerror}", where=path) from error


class Buffer:
    """Memory that O_DIRECT reads into, as blocks."""

    def __init__(self, size_bytes: int) -> None:
        self._map = mmap.mmap(-1, size_bytes)  # whole pages
        self._view = memoryview(self._map)

    def read(self, descriptor: int, start_bytes: int, size_bytes: int) -> NDArray[np.uint8] | None:
        """Return the bytes there, None when the device does not give all of them."""
        done = 0
        while done < size_bytes:
            try:
                got = os.preadv(descriptor, [self._view[done:size_bytes]], start_bytes + done)
            except OSError as error:
                if error.errno in (errno.EIO, errno.ENODATA, errno.EINVAL, errno.EILSEQ):
                    return None
                raise
            if got == 0:
                return None  # the target ends before
            done += got
        return np.frombuffer(self._view[:size_bytes], dtype=np.uint8)


def _check(
    descriptor: int,
    path: str,
    region: Region,
    stop: threading.Event,
    tell: Callable[[int], None],
) -> RegionCheck:
    size = region.block_bytes
    step = max(1, STEP_BYTES // size) * size
    buffer = Buffer(step)
    tally = Tally(region)
    for start, length in _steps(region, step):
        if stop.is_set():
            raise Interrupted("interrupted, not all was read", where=path)
        read = buffer.read(descriptor, start, length)
        if read is not None:
            tally.add(judge(read.reshape(-1, size), region, start))
        else:  # find out which blocks it is
            for place in range(start, start + length, size):
                one = buffer.read(descriptor, place, size)
                blocks = None if one is None else one.reshape(1, size)
                tally.add(unreadable(1) if blocks is None else judge(blocks, region, place))
        tell(length)
    return tally.result()


def _steps(region: Region, step: int) -> Iterator[tuple[int, int]]:
    for start in range(region.start_bytes, region.end_bytes, step):
        yield start, min(step, region.end_bytes - start)
