"""fio's verify header at the start of each block: read it, and check it against the block.  Pure.

Source: fio, verify.h (``struct verify_header`` and ``struct vhdr_crc32c``), the same in every
version from 3.0 to 3.42.  The header's own sum is over the 36 bytes before it; the block's sum is
over all that follows the header.  ``time`` is when the I/O was made: with
``clocksource=clock_gettime``, which kvbench asks for, on the kernel's monotonic clock.
``numberio`` counts the job's I/Os and wraps at 2^16.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kvbench.integrity.crc32c import fio_crc32c
from kvbench.units import NS_PER_S

MAGIC = 0xACCA
HEADER_BYTES = 44
_SUMMED_BYTES = 36
_LAYOUT = np.dtype(
    [
        ("magic", "<u2"),
        ("type", "<u2"),
        ("length", "<u4"),
        ("seed", "<u8"),
        ("offset", "<u8"),
        ("seconds", "<u4"),
        ("nanoseconds", "<u4"),
        ("thread", "<u2"),
        ("number", "<u2"),
        ("header_sum", "<u4"),
        ("block_sum", "<u4"),
    ]
)


class Headers(Struct, frozen=True, kw_only=True, eq=False):
    """What the headers of n blocks say; every array has shape (n,).

    ``offset_bytes``, ``time_s`` and ``number`` mean something where ``sound`` only.
    """

    present: NDArray[np.bool_]  # there is fio's mark
    sound: NDArray[np.bool_]  # and the header is as it was written, for a block of this size
    whole: NDArray[np.bool_]  # and so is the rest of the block
    offset_bytes: NDArray[np.uint64]  # for which place of the target it was written
    time_s: NDArray[np.float64]
    number: NDArray[np.uint16]


def read_headers(blocks: NDArray[np.uint8]) -> Headers:
    """Return what stands at the start of each block, and whether the block fits it.

    Args:
        blocks: shape (n, block size).
    """
    raw = np.ascontiguousarray(blocks[:, :HEADER_BYTES]).view(_LAYOUT).reshape(-1)
    present = raw["magic"] == MAGIC
    header_sums = fio_crc32c(np.ascontiguousarray(blocks[:, :_SUMMED_BYTES]))
    of_this_size = raw["length"] == blocks.shape[1]
    sound = present & (header_sums == raw["header_sum"]) & of_this_size
    whole = np.zeros_like(sound)
    if sound.any():
        chosen = blocks if sound.all() else blocks[sound]
        whole[sound] = fio_crc32c(chosen, HEADER_BYTES) == raw["block_sum"][sound]
    return Headers(
        present=present,
        sound=sound,
        whole=whole,
        offset_bytes=raw["offset"],
        time_s=raw["seconds"] + raw["nanoseconds"] / NS_PER_S,
        number=raw["number"],
    )
