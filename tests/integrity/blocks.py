"""Blocks as fio writes them, made in Python, and regions and runs around them."""

import struct
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kvbench.integrity.crc32c import fio_crc32c
from kvbench.integrity.model import Layer, Region

BLOCK_BYTES = 4096
_HEADER = struct.Struct("<HHIQQIIHH")


def sum_of(data: bytes) -> int:
    """fio's checksum, bit by bit: slow, and nothing to be wrong about."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state


def block(
    offset: int, *, time_s: float = 100.0, number: int = 0, size: int = BLOCK_BYTES, fill: int = 1
) -> bytes:
    """One whole block for a place."""
    payload = np.random.default_rng(fill + offset).bytes(size - 44)
    seconds, fraction = divmod(time_s, 1)
    head = _HEADER.pack(
        0xACCA, 5, size, 4711, offset, int(seconds), round(fraction * 1e9), 1, number % 2**16
    )
    body = np.frombuffer(payload, dtype=np.uint8).reshape(1, -1)
    body_sum = int(fio_crc32c(body)[0])
    return head + struct.pack("<II", sum_of(head), body_sum) + payload


def rows(blocks: Iterable[bytes]) -> NDArray[np.uint8]:
    """Blocks as the judge takes them, shape (n, block size)."""
    return np.stack([np.frombuffer(one, dtype=np.uint8) for one in blocks])


def a_layer(
    begin_s: float = 90.0,
    end_s: float | None = 110.0,
    *,
    cell_id: str = "0001",
    durable: bool = False,
    queue_depth: int = 1,
) -> Layer:
    """A cell that wrote."""
    return Layer(
        cell_id=cell_id,
        workload="w",
        stream="s",
        boot_id="boot",
        begin_s=begin_s,
        end_s=end_s,
        queue_depth=queue_depth,
        durable=durable,
    )


def a_region(*layers: Layer, settled: bool = True, blocks: int = 4) -> Region:
    """A region from the start of the target."""
    return Region(
        start_bytes=0,
        end_bytes=blocks * BLOCK_BYTES,
        block_bytes=BLOCK_BYTES,
        layers=layers or (a_layer(),),
        settled=settled,
    )
