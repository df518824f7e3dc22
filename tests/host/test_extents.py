"""What the extent map proves: on synthetic maps, and on the real file system."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvbench.host.extents import (
    DELAYED,
    ENCODED,
    INLINE,
    LAST,
    UNKNOWN,
    UNWRITTEN,
    Extent,
    judge,
    prove_written,
)
from kvbench.host.model import Written
from kvbench.units import KIB, MIB
from tests.host.loops import loop_over, make_backing, needs_loops

SIZE = 8 * MIB


def fill(path: Path, size_bytes: int = SIZE) -> Path:
    path.write_bytes(os.urandom(size_bytes))
    return path


def prove(path: Path) -> Written:
    proof = prove_written(str(path), 0, path.stat().st_size)
    if proof.hole_bytes is None:
        pytest.skip(f"no extent map on the file system of {path.parent}: {proof.reason}")
    return proof


def test_a_written_file_is_proven(tmp_path: Path) -> None:
    proof = prove(fill(tmp_path / "wr"))
    assert proof.state == "proven"
    assert (proof.hole_bytes, proof.unwritten_bytes) == (0, 0)


def test_a_sparse_file_is_all_holes(tmp_path: Path) -> None:
    path = tmp_path / "sp"
    with path.open("wb") as file:
        file.truncate(SIZE)
    proof = prove(path)
    assert proof.state == "unproven"
    assert (proof.hole_bytes, proof.unwritten_bytes) == (SIZE, 0)
    assert "8 MiB are holes" in proof.reason


def test_a_reserved_file_is_all_unwritten(tmp_path: Path) -> None:
    path = tmp_path / "un"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, SIZE)
    proof = prove(path)
    if proof.state == "proven":
        pytest.skip("this file system writes zeros instead of reserving")
    assert (proof.hole_bytes, proof.unwritten_bytes) == (0, SIZE)
    assert "8 MiB are reserved and not written" in proof.reason


def test_a_partly_written_file_tells_how_much_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "partly"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, SIZE)
        for block in range(0, SIZE, 512 * KIB):
            os.pwrite(file.fileno(), os.urandom(4 * KIB), block)
    proof = prove(path)
    if proof.state == "proven":
        pytest.skip("this file system writes zeros instead of reserving")
    assert proof.unwritten_bytes is not None
    assert 0 < proof.unwritten_bytes <= SIZE - 16 * 4 * KIB


def test_more_extents_than_one_page_of_the_map_are_all_seen(tmp_path: Path) -> None:
    path = tmp_path / "striped"
    blocks = 1500
    with path.open("wb") as file:
        file.truncate(blocks * 8 * KIB)
        for block in range(blocks):
            os.pwrite(file.fileno(), b"x" * 4 * KIB, block * 8 * KIB)
    proof = prove(path)
    assert proof.hole_bytes == blocks * 4 * KIB
    assert prove_written(str(path), 0, 4 * KIB).state == "proven"
    assert prove_written(str(path), 0, 4 * KIB + 1).state == "unproven"


def test_only_the_span_under_test_counts(tmp_path: Path) -> None:
    path = fill(tmp_path / "half", MIB)
    with path.open("r+b") as file:
        file.truncate(2 * MIB)
    assert prove(path).hole_bytes == MIB
    assert prove_written(str(path), 0, MIB).state == "proven"
    assert prove_written(str(path), MIB, MIB).hole_bytes == MIB


def test_a_span_beyond_the_end_is_unproven(tmp_path: Path) -> None:
    path = fill(tmp_path / "short", MIB)
    assert "ends at" in prove_written(str(path), 0, MIB + 1).reason
    assert prove_written(str(path), 0, 0).state == "unproven"
    assert prove_written(str(tmp_path / "absent"), 0, 1).state == "unproven"


def test_a_file_system_without_a_map_proves_nothing() -> None:
    proof = prove_written("/proc/self/maps", 0, 0)
    assert proof.state == "unproven"
    folder = Path("/dev/shm")  # noqa: S108 - a tmpfs, which has no extent map
    if not os.access(folder, os.W_OK):
        pytest.skip("no /dev/shm to write to")
    path = fill(folder / f"kvbench-test-{os.getpid()}", MIB)
    try:
        proof = prove_written(str(path), 0, MIB)
    finally:
        path.unlink()
    assert proof.state == "unproven"
    assert "no extent map" in proof.reason
    assert proof.hole_bytes is None


@pytest.mark.blockdev
@needs_loops
def test_a_block_device_is_unproven(tmp_path: Path) -> None:
    with loop_over(make_backing(tmp_path / "backing")) as loop:
        proof = prove_written(loop, 0, MIB)
    assert proof.state == "unproven"
    assert "block device" in proof.reason


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (ENCODED, "compressed"),
        (INLINE, "file system's own blocks"),
        (UNKNOWN, "no place"),
        (DELAYED | UNKNOWN, "no place"),
    ],
)
def test_data_that_is_not_plainly_on_the_device_is_no_proof(flags: int, words: str) -> None:
    proof = judge([Extent(0, 100, flags | LAST)], 0, 100)
    assert proof.state == "unproven"
    assert words in proof.reason
    assert proof.hole_bytes == proof.unwritten_bytes == 0


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10), st.booleans()), max_size=12),
    st.integers(0, 30),
    st.integers(1, 30),
)
def test_what_is_counted_is_what_a_map_byte_by_byte_shows(
    runs: list[tuple[int, int, bool]], start: int, length: int
) -> None:
    extents: list[Extent] = []
    at = 0
    expected: dict[int, bool] = {}
    for gap, size, unwritten in runs:
        at += gap % 5
        extents.append(Extent(at, size, UNWRITTEN if unwritten else 0))
        expected.update(dict.fromkeys(range(at, at + size), unwritten))
        at += size
    span = range(start, start + length)
    proof = judge(extents, start, length)
    assert proof.hole_bytes == sum(byte not in expected for byte in span)
    assert proof.unwritten_bytes == sum(expected.get(byte, False) for byte in span)
    assert (proof.state == "proven") == (not proof.hole_bytes and not proof.unwritten_bytes)
