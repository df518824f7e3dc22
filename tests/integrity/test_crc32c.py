"""Sums of many rows at once against the definition, bit by bit."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from kvbench.integrity import crc32c
from kvbench.integrity.crc32c import fio_crc32c, in_numpy
from tests.integrity.blocks import sum_of


def test_the_known_value_of_the_standard() -> None:
    """CRC-32C of 32 zero bytes is 8a9136aa (RFC 3720, B.4); fio leaves out the last inversion."""
    zeros = np.zeros((1, 32), dtype=np.uint8)
    assert int(fio_crc32c(zeros)[0]) ^ 0xFFFFFFFF == 0x8A9136AA


@pytest.mark.parametrize("sums", [fio_crc32c, in_numpy])
@pytest.mark.parametrize("length", [4, 36, 508, 512, 516, 1024, 4096, 65536])
@pytest.mark.parametrize("skip", [0, 4, 44])
def test_rows_of_any_length_have_the_sum_of_their_bytes(
    length: int, skip: int, sums: Callable[[NDArray[np.uint8], int], NDArray[np.uint32]]
) -> None:
    skip = min(skip, length - 4)
    rows = np.random.default_rng(length).integers(0, 256, (3, length), dtype=np.uint8)
    kept = rows.copy()
    got = sums(rows, skip)
    assert [int(one) for one in got] == [sum_of(row.tobytes()[skip:]) for row in kept]
    assert (rows == kept).all(), "what is summed up must not change"


def test_the_quick_library_is_used_where_it_is() -> None:
    found = pytest.importorskip("google_crc32c", reason="google-crc32c is not installed")
    assert (crc32c._fast is not None) == (found.implementation == "c")
