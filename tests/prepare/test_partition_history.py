"""What a partition's stamp sees of writes through its whole disk; on loop devices of the tests'."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from kvbench.host.identity import identify
from kvbench.host.model import WriteHistory
from kvbench.host.probe import write_history
from kvbench.store.preparation import Condition, binding_of, judge
from kvbench.units import MIB
from tests.host.loops import call, loop_over, make_backing, needs_loops, partition_on
from tests.store.test_preparation import stamp

pytestmark = [pytest.mark.blockdev, needs_loops]


def write(device: str, size_bytes: int) -> None:
    descriptor = os.open(device, os.O_WRONLY)
    try:
        os.pwrite(descriptor, os.urandom(size_bytes), 2 * MIB)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def judged(partition: str, then: WriteHistory) -> Condition:
    identity = identify(partition)
    binding = binding_of(identity, 512)
    return judge(
        replace(stamp(history=then), binding=binding),
        binding,
        write_history(identity),
        empty_samples=0,
    )


def test_writes_and_deallocations_through_the_whole_disk_are_seen(tmp_path: Path) -> None:
    with loop_over(make_backing(tmp_path / "back")) as disk, partition_on(disk) as partition:
        then = write_history(identify(partition))
        assert None not in (then.disk_write_sectors, then.disk_discard_sectors)
        found = judged(partition, then)
        assert (found.state, found.covered) == ("holds", True)
        write(partition, MIB)
        assert judged(partition, then).state == "broken"  # its own writes, told as such
        then = write_history(identify(partition))
        write(disk, 2 * MIB)
        found = judged(partition, then)
        assert (found.state, found.covered) == ("unknown", False)
        assert "its whole disk wrote 2 MiB more since" in found.text
        then = write_history(identify(partition))
        call("blkdiscard", "--offset", str(2 * MIB), "--length", str(MIB), disk)
        found = judged(partition, then)
        assert (found.state, found.covered) == ("unknown", False)
        assert "deallocated 1 MiB more" in found.text


def test_a_whole_disk_counts_what_went_through_its_partition(tmp_path: Path) -> None:
    with loop_over(make_backing(tmp_path / "back")) as disk, partition_on(disk) as partition:
        then = write_history(identify(disk))
        assert then.disk_write_sectors is None
        write(partition, MIB)
        assert judged(disk, then).state == "broken"
