"""Columns of a log of fio, plain or compressed."""

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def read_columns(path: Path, columns: Sequence[int]) -> NDArray[np.int64]:
    """Return columns of a log, shape (lines, columns asked for); it may be compressed (``.gz``).

    Most of the time is spent on unpacking it; reading it as one text was tried and takes longer.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not such a log, or its compression is damaged.
    """
    if path.stat().st_size == 0:
        return np.empty((0, len(columns)), dtype=np.int64)
    try:
        return np.loadtxt(path, delimiter=",", usecols=columns, dtype=np.int64, ndmin=2)
    except (EOFError, zlib.error) as error:
        raise ValueError(f"the compressed log is damaged: {error}") from None
