"""What each block is taken for, and what follows for the region."""

import numpy as np
import pytest

from kvbench.integrity.judge import SPANS_MAX, Tally, judge, unreadable
from kvbench.integrity.model import KINDS, Kind, Region
from tests.integrity.blocks import BLOCK_BYTES, a_layer, a_region, block, rows


def kinds(region: Region, *blocks: bytes) -> list[Kind]:
    """What the first blocks of a region are taken for."""
    return [KINDS[code] for code in judge(rows(blocks), region, 0).kinds]


def with_byte(data: bytes, place: int) -> bytes:
    """A block with one bit turned."""
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


WHOLE = block(0)
CUT_OFF = a_layer(150.0, None, cell_id="0002")


@pytest.mark.parametrize("place", [0, 1, 5, 9, 17, 25, 33, 37, 41, 44, 2000, BLOCK_BYTES - 1])
def test_one_wrong_bit_anywhere_is_seen(place: int) -> None:
    assert kinds(a_region(), WHOLE) == ["good"]
    wrong = "lost" if place < 2 else "torn"  # the first two bytes are fio's mark
    assert kinds(a_region(), with_byte(WHOLE, place)) == [wrong]


def test_a_block_of_another_place_is_misplaced_and_tells_where_it_belongs() -> None:
    swapped = [block(BLOCK_BYTES), block(0), block(2 * BLOCK_BYTES)]
    judged = judge(rows(swapped), a_region(), 0)
    assert [KINDS[code] for code in judged.kinds] == ["misplaced", "misplaced", "good"]
    tally = Tally(a_region())
    tally.add(judged)
    (span,) = tally.result().spans
    assert (span.start_bytes, span.holds_offset_bytes) == (0, BLOCK_BYTES)


def test_an_old_block_is_stale_where_a_cell_wrote_every_block() -> None:
    assert kinds(a_region(), block(0, time_s=89.9), block(BLOCK_BYTES, time_s=110.1)) == [
        "stale",
        "stale",
    ]


def test_where_a_cell_was_cut_off_old_and_new_blocks_are_both_right() -> None:
    region = a_region(CUT_OFF, a_layer())
    got = kinds(region, block(0, time_s=151.0), block(BLOCK_BYTES, time_s=100.0))
    assert got == ["good", "older"]
    assert kinds(region, block(0, time_s=50.0)) == ["stale"], "older than both"
    assert kinds(region, bytes(BLOCK_BYTES)) == ["lost"]


def test_half_of_a_new_block_over_an_old_one_is_torn() -> None:
    old, new = block(0, time_s=100.0, fill=1), block(0, time_s=151.0, fill=2)
    region = a_region(CUT_OFF, a_layer())
    half = BLOCK_BYTES // 2
    assert kinds(region, new[:half] + old[half:]) == ["torn"]
    assert kinds(region, old[:half] + new[half:]) == ["torn"]


def test_nothing_is_said_of_what_the_first_cell_had_not_reached() -> None:
    region = a_region(CUT_OFF, settled=False)
    other_size = block(0, size=8192)[:BLOCK_BYTES]
    got = kinds(region, bytes(BLOCK_BYTES), b"\x5a" * BLOCK_BYTES, block(0, time_s=1.0), other_size)
    assert got == ["unwritten"] * 4
    assert kinds(region, block(0, time_s=151.0)) == ["good"]


def test_a_block_of_another_boot_is_no_block_of_this_cell() -> None:
    """The clock began anew: after a cell of ten minutes an older block has another time."""
    assert kinds(a_region(a_layer(10.0, 20.0)), block(0, time_s=5000.0)) == ["stale"]


def test_bad_blocks_side_by_side_are_one_place() -> None:
    region = a_region(blocks=8)
    tally = Tally(region)
    good = [block(n * BLOCK_BYTES) for n in range(8)]
    bad = bytes(BLOCK_BYTES)
    tally.add(judge(rows([good[0], bad, bad, bad]), region, 0))
    tally.add(judge(rows([bad, good[5], bad, good[7]]), region, 4 * BLOCK_BYTES))
    found = tally.result()
    places = [(s.start_bytes // BLOCK_BYTES, s.end_bytes // BLOCK_BYTES) for s in found.spans]
    assert places == [(1, 5), (6, 7)]
    assert found.counts == {"good": 3, "lost": 5}
    assert (found.blocks, found.bad) == (8, 5)


def test_many_bad_places_are_counted_beyond_the_first() -> None:
    region = a_region(blocks=100)
    tally = Tally(region)
    every_other = [bytes(BLOCK_BYTES) if n % 2 else block(n * BLOCK_BYTES) for n in range(100)]
    tally.add(judge(rows(every_other), region, 0))
    found = tally.result()
    assert (len(found.spans), found.more_spans) == (SPANS_MAX, 50 - SPANS_MAX)


def test_what_the_device_does_not_give_is_bad() -> None:
    tally = Tally(a_region())
    tally.add(unreadable(2))
    assert tally.result().bad == 2


@pytest.mark.parametrize(
    ("numbers", "lost"),
    [
        ([0, 1, 2, 3, 4, 5], 0),
        ([0, 1, 2, 5], 0),  # two are missing, and as many may still have been in flight
        ([0, 1, 5], 1),
        ([9], 6),
    ],
)
def test_durable_writes_that_returned_before_a_later_one_began_are_missed(
    numbers: list[int], lost: int
) -> None:
    layer = a_layer(150.0, None, durable=True, queue_depth=3)
    region = a_region(layer, a_layer(), blocks=len(numbers))
    made = [block(n * BLOCK_BYTES, time_s=151.0, number=number) for n, number in enumerate(numbers)]
    tally = Tally(region)
    tally.add(judge(rows(made), region, 0))
    assert tally.result().lost_durable == lost


def test_the_number_in_a_damaged_header_is_no_sign_of_lost_writes() -> None:
    layer = a_layer(150.0, None, durable=True, queue_depth=3)
    region = a_region(layer, a_layer(), blocks=6)
    made = [block(n * BLOCK_BYTES, time_s=151.0, number=n) for n in range(6)]
    torn = bytearray(block(2 * BLOCK_BYTES, time_s=151.0, number=60_000))
    torn[-1] ^= 0xFF
    made[2] = bytes(torn)
    damaged = bytearray(made[4])
    damaged[:512] = b"\xff" * 512
    made[4] = bytes(damaged)
    tally = Tally(region)
    tally.add(judge(rows(made), region, 0))
    found = tally.result()
    assert (found.counts["good"], found.bad, found.lost_durable) == (4, 2, 0)


def test_writes_that_need_not_be_durable_may_be_missing() -> None:
    region = a_region(a_layer(150.0, None), a_layer(), blocks=1)
    tally = Tally(region)
    tally.add(judge(rows([block(0, time_s=151.0, number=9)]), region, 0))
    assert tally.result().lost_durable == 0


def test_judging_does_not_change_the_blocks() -> None:
    blocks = rows([WHOLE])
    kept = blocks.copy()
    judge(blocks, a_region(), 0)
    assert np.array_equal(blocks, kept)
