"""What counts and samples say of a fill; and a fill in random order on a real loop device."""

import threading
from pathlib import Path

import pytest

from kvbench.fio.jobfile import render_random_fill
from kvbench.fio.probe import find_fio
from kvbench.host.probe import identify
from kvbench.host.samples import sample_offsets
from kvbench.prepare.fill import coverage, fill_pass, judge_coverage, passes
from kvbench.prepare.marks import Found, write_marks
from kvbench.store.preparation import FillPass
from kvbench.units import MIB, TIB
from tests.host.loops import LOOP_BYTES, loop_over, make_backing, needs_loops

FULL = Found(sampled=256, marked=0, empty=0)


def done(written: int = MIB, counted: int | None = MIB) -> FillPass:
    return FillPass(
        pattern="sequential",
        block_bytes=MIB,
        written_bytes=written,
        device_written_bytes=counted,
        wall_s=1.0,
    )


def test_every_count_and_every_sample_must_agree() -> None:
    assert judge_coverage(MIB, [done()], FULL).proven
    assert judge_coverage(MIB, [done(counted=None)], FULL).proven
    assert not judge_coverage(MIB, [], FULL).proven
    assert not judge_coverage(MIB, [done(written=MIB - 512)], FULL).proven
    assert not judge_coverage(MIB, [done(counted=MIB // 2)], FULL).proven
    assert not judge_coverage(MIB, [done()], Found(sampled=256, marked=1, empty=0)).proven
    assert not judge_coverage(MIB, [done()], Found(sampled=256, marked=0, empty=1)).proven


def test_what_is_missing_is_told_with_numbers() -> None:
    assert "3 of 256" in judge_coverage(MIB, [done()], Found(sampled=256, marked=1, empty=2)).text
    assert "counted 512 KiB" in judge_coverage(MIB, [done(counted=MIB // 2)], FULL).text


def test_random_passes_are_of_whole_units_and_the_sequential_ones_write_the_rest() -> None:
    one, two = passes(3 * MIB + 4096, 16384, 1, 1)
    assert (one.pattern, one.size_bytes) == ("sequential", 3 * MIB + 4096)
    assert (two.pattern, two.size_bytes, two.block_bytes) == ("random", 3 * MIB, 16384)


def test_more_blocks_than_32_bits_can_tell_apart_need_the_64_bit_generator() -> None:
    small = render_random_fill("/d", TIB, block_bytes=4096, seed=1, engine="io_uring")
    large = render_random_fill("/d", 32 * TIB, block_bytes=4096, seed=1, engine="io_uring")
    assert "random_generator=tausworthe\n" in small
    assert "random_generator=tausworthe64\n" in large
    assert "norandommap=0\n" in large


@needs_loops
@pytest.mark.fio
@pytest.mark.blockdev
@pytest.mark.usefixtures("fio")
def test_a_random_pass_writes_every_block_once(tmp_path: Path) -> None:
    with loop_over(make_backing(tmp_path / "back")) as device:
        identity = identify(device)
        write_marks(identity, sample_offsets(identity.size_bytes, 4), 4)
        (one,) = passes(identity.size_bytes, 4096, 0, 1)
        filled = fill_pass(
            identity,
            one,
            tool=find_fio(),
            engine="io_uring",
            seed=9,
            folder=tmp_path / "scratch",
            stop=threading.Event(),
        )
        assert filled.written_bytes == LOOP_BYTES
        assert filled.device_written_bytes == LOOP_BYTES
        assert coverage(identity, [filled], 4).proven
    blocks = (tmp_path / "back").read_bytes()
    seen = {blocks[offset : offset + 4096] for offset in range(0, LOOP_BYTES, 4096)}
    assert len(seen) == LOOP_BYTES // 4096  # none of the old ones, which repeat every MiB
