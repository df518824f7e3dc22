"""Which blocks do not fit into the order in which their cell wrote?  Pure.

The clock in a header begins anew with every boot, so a block that another boot wrote at the same
uptime has a time that could be this cell's.  Its number could not: a job numbers its writes one by
one as it makes them, so in the order of their times the numbers of one cell rise, and a block of
another launch falls out of the row.  fio 3.33 puts nothing else into the header that differs
between two launches of the same job: the seeds of its random data follow from the job's.
"""

from bisect import bisect_right
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kvbench.integrity.model import Layer

NUMBERS = 2**16  # the number in a header wraps there
MISSING_MAX = NUMBERS // 4  # with more, nobody can tell how often the numbers wrapped
ORDER_BLOCKS_MAX = 2**23  # of a region: they take some 400 MB of memory


def why_not_ordered(layer: Layer, blocks: int, others: Iterable[Layer] = ()) -> str:
    """Return why the order of a cell's blocks cannot be told, "" when it can.

    Args:
        layer: the cell.
        blocks: how many of its blocks were found whole and in their place.
        others: the other cells whose blocks may be there.
    """
    if any(_mixes(layer, other) for other in others):
        return "cells of two boots wrote here at the same uptime, and blocks of both may be there"
    if layer.cell_blocks is None:
        return "the run does not tell how many blocks its cell wrote"
    if layer.cell_blocks <= NUMBERS:
        return ""
    if layer.end_s is None:
        return "the cell was cut off, and the numbers in its headers wrap"
    if layer.cell_blocks - blocks > MISSING_MAX:
        return "too many of the cell's blocks are not there, and the numbers in its headers wrap"
    return ""


def _mixes(one: Layer, other: Layer) -> bool:
    """Return whether blocks of two cells cannot be told apart by their times."""
    if one.boot_id and one.boot_id == other.boot_id:
        return False  # the later one begins where the earlier one ends
    ends = [np.inf if layer.end_s is None else layer.end_s for layer in (one, other)]
    return bool(one.begin_s <= ends[1] and other.begin_s <= ends[0])


def out_of_order(
    time_s: NDArray[np.float64], number: NDArray[np.uint16], layer: Layer
) -> NDArray[np.bool_]:
    """Return which blocks of one cell another launch must have written.

    Args:
        time_s: shape (n,), when each block was made.
        number: shape (n,), its number as the header has it.
        layer: the cell, whose order can be told.
    """
    order = np.argsort(time_s, kind="stable")
    numbers = number[order].astype(np.int64)
    if layer.cell_blocks is not None and layer.cell_blocks > NUMBERS:
        numbers = _unwrapped(numbers)
    strays = np.zeros(len(order), dtype=np.bool_)
    if (np.diff(numbers) >= 0).all():
        return strays
    row = _longest_rise(numbers)
    places = np.arange(len(numbers))
    after = np.searchsorted(row, places)  # the first of the row that is not earlier
    low = numbers[row[np.maximum(after - 1, 0)]]
    high = numbers[row[np.minimum(after, len(row) - 1)]]
    # those in flight beside a write may have been made in another order
    spare = layer.queue_depth
    wrong = (numbers < low - spare) & (after > 0) | (numbers > high + spare) & (after < len(row))
    wrong[row] = False
    strays[order] = wrong
    return strays


def _unwrapped(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return numbers without their wraps, where few of the cell's blocks are missing."""
    rank = np.arange(len(numbers), dtype=np.int64)
    half = NUMBERS // 2
    ahead = (numbers - rank + half) % NUMBERS - half
    middle = int(np.median(ahead))
    return rank + middle + (ahead - middle + half) % NUMBERS - half


def _longest_rise(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of the longest row, left to right, in which no number falls."""
    ends: list[int] = []  # the smallest number that a row of each length can end with
    places: list[int] = []  # and where that is
    before = np.full(len(numbers), -1, dtype=np.int64)
    for place, number in enumerate(numbers.tolist()):
        length = bisect_right(ends, number)
        if length:
            before[place] = places[length - 1]
        if length == len(ends):
            ends.append(number)
            places.append(place)
        else:
            ends[length], places[length] = number, place
    row = np.empty(len(ends), dtype=np.int64)
    place = places[-1]
    for n in range(len(ends) - 1, -1, -1):
        row[n] = place
        place = int(before[place])
    return row
