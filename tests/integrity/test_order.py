"""A block that another launch wrote falls out of the row of the cell's numbers."""

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from kvbench.integrity.judge import Tally, judge
from kvbench.integrity.model import RegionCheck
from kvbench.integrity.order import NUMBERS, out_of_order, why_not_ordered
from tests.integrity.blocks import BLOCK_BYTES, a_layer, a_region, block, rows

CELL = replace(a_layer(), cell_blocks=40)
WRAPS = replace(a_layer(90.0, 1000.0), cell_blocks=3 * NUMBERS)


def a_pass(blocks: int, step_s: float) -> tuple[NDArray[np.float64], NDArray[np.uint16]]:
    """Times and numbers of a cell's blocks, in the order of their times."""
    numbers = np.arange(blocks)
    return (100.0 + step_s * numbers).astype(np.float64), (numbers % NUMBERS).astype(np.uint16)


def strays(time_s: NDArray[np.float64], number: NDArray[np.uint16]) -> list[int]:
    """The places of those that another launch must have written."""
    layer = CELL if len(time_s) <= NUMBERS else WRAPS
    mixed = np.random.default_rng(3).permutation(len(time_s))  # as they lie on the target
    found = np.empty(len(time_s), dtype=np.bool_)
    found[mixed] = out_of_order(time_s[mixed], number[mixed], layer)
    return np.flatnonzero(found).tolist()


@pytest.mark.parametrize("blocks", [40, 3 * NUMBERS])
def test_a_cell_s_own_blocks_are_in_order_and_two_of_another_boot_are_not(blocks: int) -> None:
    time_s, number = a_pass(blocks, 0.001)
    assert strays(time_s, number) == []
    number[[7, 31]] = [30, 3]  # whole, in their place, at a time of this cell
    assert strays(time_s, number) == [7, 31]


def test_blocks_that_are_missing_are_no_sign_of_another_boot() -> None:
    time_s, number = a_pass(40, 0.001)
    kept = np.delete(np.arange(40), [0, 5, 6, 7, 20, 39])
    assert strays(time_s[kept], number[kept]) == []


def test_writes_in_flight_together_may_have_been_made_in_another_order() -> None:
    time_s, number = a_pass(40, 0.001)
    number[[10, 11]] = number[[11, 10]]
    assert strays(time_s, number) == []


def test_where_the_numbers_wrap_beyond_what_can_be_known_that_is_said() -> None:
    cut = replace(WRAPS, end_s=None)
    assert why_not_ordered(WRAPS, 3 * NUMBERS) == ""
    assert why_not_ordered(replace(cut, cell_blocks=NUMBERS), 1) == ""
    assert "cut off" in why_not_ordered(cut, 3 * NUMBERS)
    assert "not there" in why_not_ordered(WRAPS, NUMBERS)
    assert why_not_ordered(a_layer(), 9)


def checked(*numbers: int, settled: bool = True) -> RegionCheck:
    """A region whose blocks were made one after the other with these numbers."""
    region = a_region(CELL, settled=settled, blocks=len(numbers))
    made = [
        block(n * BLOCK_BYTES, time_s=100.0 + n, number=number) for n, number in enumerate(numbers)
    ]
    tally = Tally(region)
    tally.add(judge(rows(made[:3]), region, 0))
    tally.add(judge(rows(made[3:]), region, 3 * BLOCK_BYTES))
    return tally.result()


def test_a_block_of_another_boot_at_the_same_uptime_is_stale_and_told_where() -> None:
    assert checked(0, 1, 2, 3, 4, 5).counts == {"good": 6}
    found = checked(0, 1, 2, 3, 39, 38, 6, 7)
    assert found.counts == {"good": 6, "stale": 2}
    (span,) = found.spans
    assert (span.kind, span.start_bytes, span.end_bytes) == (
        "stale",
        4 * BLOCK_BYTES,
        6 * BLOCK_BYTES,
    )
    assert found.not_ordered == ""


def test_a_launch_that_was_cut_off_in_each_of_two_boots_is_no_fault_of_the_drive() -> None:
    """The second boot's blocks have times from 50 s on, the first one's from 500 s on."""
    first = replace(a_layer(500.0, None), cell_blocks=8)
    again = replace(first, begin_s=50.0, boot_id="later")
    whole = replace(a_layer(20.0, 40.0), cell_blocks=8)
    region = a_region(again, first, whole, blocks=8)
    times = [500.0, 501.0, 502.0, 503.0, 50.0, 51.0, 25.0, 26.0]
    numbers = [0, 1, 2, 3, 0, 1, 6, 7]
    made = [
        block(n * BLOCK_BYTES, time_s=time_s, number=number)
        for n, (time_s, number) in enumerate(zip(times, numbers, strict=True))
    ]
    tally = Tally(region)
    tally.add(judge(rows(made), region, 0))
    found = tally.result()
    assert (found.bad, set(found.counts)) == (0, {"good", "older"})
    assert "two boots" in found.not_ordered
    same_boot = replace(again, begin_s=700.0, boot_id=first.boot_id)
    assert why_not_ordered(same_boot, 8, [first]) == ""
    unknown = replace(same_boot, boot_id="")
    assert "two boots" in why_not_ordered(unknown, 8, [replace(first, boot_id="")])


def test_where_nothing_else_must_be_there_it_is_of_unknown_state() -> None:
    found = checked(0, 1, 2, 3, 39, 5, settled=False)
    assert found.counts == {"good": 5, "unwritten": 1}
    assert (found.bad, found.unknown_bytes) == (0, BLOCK_BYTES)


def test_the_number_of_another_boot_s_block_says_nothing_of_lost_writes() -> None:
    newest = replace(a_layer(150.0, None, durable=True), cell_blocks=60)
    region = a_region(newest, a_layer(), blocks=6)
    numbers = [0, 1, 2, 55, 4, 5]
    made = [
        block(n * BLOCK_BYTES, time_s=151.0 + n, number=number) for n, number in enumerate(numbers)
    ]
    tally = Tally(region)
    tally.add(judge(rows(made), region, 0))
    found = tally.result()
    assert (found.counts, found.lost_durable) == ({"good": 5, "stale": 1}, 0)
