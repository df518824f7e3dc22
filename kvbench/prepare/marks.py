"""Blocks of known content at sampled places: written before a purge, looked for after it."""

import mmap
import os
import random
from collections.abc import Iterator, Sequence

from msgspec import Struct

from kvbench.errors import EnvironmentMissing
from kvbench.host import guard, lease
from kvbench.host.model import Identity
from kvbench.host.samples import SAMPLE_BYTES, is_empty, read_blocks


class Found(Struct, frozen=True, kw_only=True):
    """What sampled blocks hold: the mark, one byte throughout, or anything else."""

    sampled: int
    marked: int
    empty: int


def write_marks(identity: Identity, offsets: Sequence[int], seed: int) -> None:
    """Write a mark into the block at each offset, past the page cache, and flush.

    Raises:
        Refused: the target is no longer the same thing.
        EnvironmentMissing: it cannot be written.
    """
    guard.same_device(identity)
    try:
        descriptor = lease.open_to_write(identity, os.O_DIRECT)
        try:
            with mmap.mmap(-1, SAMPLE_BYTES) as page:  # page-aligned, as O_DIRECT wants it
                for offset, mark in zip(offsets, _marks(len(offsets), seed), strict=True):
                    page[:] = mark
                    os.pwritev(descriptor, [page], offset)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise EnvironmentMissing(
            f"blocks cannot be written past the page cache: {error.strerror}",
            where=identity.path,
        ) from error


def look(identity: Identity, offsets: Sequence[int], seed: int) -> Found:
    """Read the block at each offset and tell what it holds.

    Raises:
        Refused: the target is no longer the same thing.
        EnvironmentMissing: a block cannot be read.
    """
    guard.same_device(identity)
    marked = empty = 0
    try:
        blocks = read_blocks(identity.real_path, offsets)
        for block, mark in zip(blocks, _marks(len(offsets), seed), strict=True):
            marked += block == mark
            empty += is_empty(block)
    except OSError as error:
        raise EnvironmentMissing(
            f"sampled blocks cannot be read: {error.strerror or error}", where=identity.path
        ) from error
    return Found(sampled=len(offsets), marked=marked, empty=empty)


def _marks(count: int, seed: int) -> Iterator[bytes]:
    rng = random.Random(f"marks {seed}")  # noqa: S311 - content to know again, not a secret
    for _ in range(count):
        yield rng.randbytes(SAMPLE_BYTES)
