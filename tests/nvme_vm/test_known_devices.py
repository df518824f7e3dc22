"""What must be seen of devices whose latency is known; and one of them, seen by ``kvbench run``."""

import pytest

from kvbench.store.read import list_runs, read_run
from tests.nvme_vm import boot
from tests.nvme_vm.guest import Seen
from tests.nvme_vm.known import (
    DEPTH_1,
    DEPTH_1_SHORT,
    DEPTH_8,
    ONE_MS,
    configured_s,
    off,
    tail,
)
from tests.nvme_vm.rows import Row, rows_of

MANY = 100_000


def row(*values_s: float, percentile: float = 99.0) -> Row:
    return Row(
        device=ONE_MS,
        load=DEPTH_1,
        percentile=percentile,
        configured_s=(1e-3,),
        values_s=values_s,
        io_counts=tuple(MANY for _ in values_s),
    )


def test_a_percentile_is_the_latency_of_the_pieces_that_it_falls_on() -> None:
    device = tail("tail", 985, 10, 5)
    found = [configured_s(device, p, MANY) for p in (50.0, 98.0, 99.0, 99.9, 99.99)]
    assert found == [(1e-3,), (1e-3,), (5e-3,), (20e-3,), (20e-3,)]


def test_a_percentile_at_the_step_between_two_latencies_may_be_either() -> None:
    assert configured_s(tail("tail", 989, 10, 1), 99.9, MANY) == (5e-3, 20e-3)


def test_few_reads_tell_less_of_where_a_step_is() -> None:
    device = tail("tail", 989, 10, 1)
    assert configured_s(device, 99.0, MANY) == (5e-3,)
    assert configured_s(device, 99.0, 10_000) == (1e-3, 5e-3)


def test_the_difference_is_to_the_nearest_latency() -> None:
    assert off(5.05e-3, (5e-3, 20e-3)) == pytest.approx(0.01)
    assert off(19e-3, (5e-3, 20e-3)) == pytest.approx(-0.05)


def test_a_row_is_right_only_near_the_configured_latency() -> None:
    assert row(1.03e-3, 1.03e-3).right
    assert not row(1.03e-3, 1.04e-3).right
    assert not row(0.96e-3, 0.96e-3).right


def test_a_row_is_right_only_when_all_boots_see_the_same() -> None:
    assert row(1.005e-3, 1.020e-3).right
    assert not row(1.000e-3, 1.020e-3).right
    assert not row(1.005e-3, 1.020e-3, percentile=50.0).right


def test_a_runtime_is_long_enough_for_the_wanted_reads() -> None:
    assert DEPTH_1.runtime_s(ONE_MS) == 105
    assert DEPTH_8.runtime_s(ONE_MS) == 6


def test_the_pieces_of_several_devices_lie_one_after_the_other() -> None:
    table = boot.linear_table([("/dev/nullb1", 989), ("/dev/nullb2", 11)])
    assert table == "0 2025472 linear /dev/nullb1 0\n2025472 22528 linear /dev/nullb2 0\n"


@pytest.mark.slow
@pytest.mark.vm
def test_a_device_of_1_ms_reads_as_1_ms(known: Seen) -> None:
    (folder,) = list_runs(known.share / ONE_MS.name)
    rows = list(rows_of(ONE_MS, [DEPTH_1_SHORT], [read_run(folder)]))
    assert [one.percentile for one in rows] == [50.0, 99.0, 99.9]
    assert [one for one in rows if not one.right] == []
