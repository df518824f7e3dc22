"""What a line of fio's histogram log holds, and what its bins stand for.  Pure.

A line is ``time_ms, direction, block_bytes, count of bin 0, count of bin 1, ...``: the I/Os that
completed since the line before it of the same job and direction.  A window ends at the first I/O
after its time is over; after a stall the windows that were missed follow, with an I/O each.  What
completed after the last whole window is in no line.

Seen with fio 3.33: the sums over the lines equal the json+ bins of ``clat`` but for that rest; the
times count from the end of the ramp; one file per job with ``per_job_logs=1``.  The latency is
``clat``, from the end of the submission on.
"""

import numpy as np
from numpy.typing import NDArray

BINS = 29 * 64  # FIO_IO_U_PLAT_GROUP_NR x FIO_IO_U_PLAT_VAL in fio's stat.h
FIRST_BIN = 3  # the columns before it: time, direction, block size
COLUMNS = FIRST_BIN + BINS
_LINEAR = 128  # bins of one nanosecond each
_BITS = 6  # then 64 bins per doubling


def bin_values_ns() -> NDArray[np.float64]:
    """Return the latency that each bin stands for, its middle, shape (BINS,)."""
    index = np.arange(BINS)
    shift = np.maximum(index >> _BITS, 1) - 1
    base = np.left_shift(1, shift + _BITS)
    middle = ((index % (1 << _BITS) + 0.5) * np.left_shift(1, shift)).astype(np.int64)
    return np.where(index < _LINEAR, index, base + middle).astype(np.float64)
