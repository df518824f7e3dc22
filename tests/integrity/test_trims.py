"""What trimmed blocks return, on a file whose blocks a test changes itself."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvbench.integrity.trims import UNIT_BYTES, look_after, look_before
from kvbench.plan import Placed
from kvbench.units import MIB
from tests import real_runs
from tests.records import a_stream

UNITS = MIB // UNIT_BYTES


@pytest.fixture
def target() -> Iterator[Path]:
    with real_runs.written_file(2 * MIB) as path:
        yield path


def trimmed_part(verify: str | None = "deallocated") -> Placed:
    stream = a_stream(
        name="trim", direction="trim", pattern="sequential", queue_depth=1, verify=verify
    )
    return Placed(stream=stream, offset_bytes=MIB, size_bytes=MIB)


def put(path: Path, unit: int, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(descriptor, data, MIB + unit * UNIT_BYTES)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def test_zeroes_ones_old_data_and_other_data_are_told_apart(target: Path) -> None:
    put(target, 9, bytes(UNIT_BYTES))
    (before,) = look_before(str(target), [trimmed_part()])
    put(target, 0, bytes(UNIT_BYTES))
    put(target, 1, b"\xff" * UNIT_BYTES)
    put(target, 2, os.urandom(UNIT_BYTES))
    got = look_after(str(target), before, MIB)
    assert (got.units, got.reads) == (UNITS, 3)
    assert (got.zero, got.ones, got.other, got.old) == (2, 1, 1, UNITS - 4)
    assert (got.zero_before, got.changed) == (1, 0)


def test_only_what_was_trimmed_is_looked_at(target: Path) -> None:
    (before,) = look_before(str(target), [trimmed_part()])
    assert look_after(str(target), before, 5 * UNIT_BYTES + 100).units == 5
    nothing = look_after(str(target), before, 100)
    assert (nothing.units, nothing.reason) == (0, "not one whole block was trimmed")


def test_a_stream_that_does_not_ask_is_not_looked_at(target: Path) -> None:
    assert look_before(str(target), [trimmed_part(verify=None)]) == ()


def test_what_cannot_be_read_has_a_reason(tmp_path: Path) -> None:
    (before,) = look_before(str(tmp_path / "gone"), [trimmed_part()])
    assert "No such file" in look_after(str(tmp_path / "gone"), before, MIB).reason
