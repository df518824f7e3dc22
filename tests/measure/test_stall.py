"""The stall of a request against a plain simulation, and what it must obey."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvbench.measure.stall import stalls_ns

steps_of_requests = st.integers(1, 8).flatmap(
    lambda steps: st.lists(
        st.lists(st.integers(0, 1000), min_size=steps, max_size=steps), min_size=1, max_size=4
    )
)


def simulated(loads: list[int], compute: int, ahead: int | None) -> int:
    """Tick by tick: one loader, one GPU; a buffer is free when its step's computation begins."""
    steps = len(loads)
    loading, left = 0, -1  # the step that is loaded next, and the time that it still needs
    loaded = computing = 0
    busy = 0  # of the GPU, with the step before ``computing``
    now = 0
    while True:
        moved = True
        while moved:  # all that happens at this instant
            moved = False
            if busy == 0 and computing == steps:
                return now - steps * compute
            if left < 0 and loading < steps and (ahead is None or loading - ahead < computing):
                left, moved = loads[loading], True
            if left == 0:
                loaded, loading, left, moved = loaded + 1, loading + 1, -1, True
            if busy == 0 and computing < loaded:
                computing, busy, moved = computing + 1, compute, True
        now += 1
        left -= left > 0
        busy -= busy > 0


@given(steps_of_requests, st.integers(0, 1000), st.none() | st.integers(1, 9))
def test_it_is_what_a_plain_simulation_gives(
    requests: list[list[int]], compute: int, ahead: int | None
) -> None:
    # a tenth of the times, as the simulation goes tick by tick
    requests = [[load // 20 for load in loads] for loads in requests]
    compute //= 20
    found = stalls_ns(np.array(requests), compute, ahead)
    assert found.tolist() == [simulated(loads, compute, ahead) for loads in requests]


@given(steps_of_requests, st.integers(0, 1000), st.integers(1, 8))
def test_more_prefetch_never_stalls_longer_and_less_computing_never_shorter(
    requests: list[list[int]], compute: int, ahead: int
) -> None:
    steps = np.array(requests)
    bounded = stalls_ns(steps, compute, ahead)
    assert (stalls_ns(steps, compute, ahead + 1) <= bounded).all()
    assert (stalls_ns(steps, compute, None) <= bounded).all()
    assert (stalls_ns(steps, compute + 1, ahead) <= bounded).all()


@pytest.mark.parametrize(
    ("loads", "compute", "ahead", "stall"),
    [
        ([100, 100, 100], 0, None, 300),  # nothing to compute: all of the loading is waited for
        ([100, 100, 100], 500, None, 100),  # only the first load is
        ([100, 100, 100], 100, None, 100),
        ([100, 300, 100], 200, None, 200),
        ([10, 10, 500], 100, None, 320),
        ([10, 10, 500], 100, 1, 410),  # the third is loaded only once the second is computed
        ([70], 30, 1, 70),
    ],
)
def test_cases_that_can_be_worked_by_hand(
    loads: list[int], compute: int, ahead: int | None, stall: int
) -> None:
    assert stalls_ns(np.array([loads]), compute, ahead).tolist() == [stall]


def test_no_request_has_no_stall() -> None:
    assert stalls_ns(np.empty((0, 4), dtype=np.int64), 5.0, None).shape == (0,)
