"""Read blocks at random places of a target, past the page cache.  Reads only."""

import mmap
import os
import random
from collections.abc import Iterator, Sequence

from kvbench.host.machine import READ_FLAGS

SAMPLE_BYTES = 4096
SAMPLES = 256


def sample_offsets(size_bytes: int, seed: int, count: int = SAMPLES) -> tuple[int, ...]:
    """Return distinct, ascending offsets of whole blocks: the first, the last, and random ones."""
    blocks = size_bytes // SAMPLE_BYTES
    if blocks <= count:
        return tuple(block * SAMPLE_BYTES for block in range(blocks))
    drawn = {0, blocks - 1}
    rng = random.Random(seed)  # noqa: S311 - places to look at, not a secret
    while len(drawn) < count:
        drawn.add(rng.randrange(blocks))
    return tuple(block * SAMPLE_BYTES for block in sorted(drawn))


def read_blocks(real_path: str, offsets: Sequence[int]) -> Iterator[bytes]:
    """Yield the block at each offset, read with O_DIRECT.

    Raises:
        OSError: the target cannot be opened with O_DIRECT, or a block cannot be read.
    """
    descriptor = os.open(real_path, READ_FLAGS | os.O_DIRECT)
    try:
        with mmap.mmap(-1, SAMPLE_BYTES) as page:  # page-aligned, as O_DIRECT wants it
            for offset in offsets:
                got = os.preadv(descriptor, [page], offset)
                if got != SAMPLE_BYTES:
                    raise OSError(f"{got} of {SAMPLE_BYTES} bytes were read at byte {offset}")
                yield bytes(page)
    finally:
        os.close(descriptor)


def is_empty(block: bytes) -> bool:
    """Return whether a block has no data: every byte is the same, as after a deallocation."""
    return block.count(block[:1]) == len(block)
