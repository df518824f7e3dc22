"""What may be verified, and phases that follow each other."""

from pathlib import Path

import pytest

from kvbench.errors import UsageError
from kvbench.workload.load import load_workload
from kvbench.workload.schema import Workload
from tests.workload.files import READS, TOP, write

WRITES = READS.replace('"read"', '"write"').replace('"reads"', '"w"') + 'verify = "crc32c"\n'
AGAIN = WRITES.replace('"w"', '"again"')
TRIMS = (
    READS.replace('"read"', '"trim"').replace('"random"', '"sequential"').replace('"reads"', '"t"')
    + 'rate_iops = 4\nverify = "deallocated"\n'
)
HEAD = TOP.replace("reads.iops", "w.iops")
NO_RAMP = "[timing]\nramp = 0\n"


def load(folder: Path, *streams: str, top: str = "", more: str = NO_RAMP) -> Workload:
    return load_workload(write(folder, f"{HEAD}{top}\n{''.join(streams)}\n{more}\n"))


def test_one_stream_is_written_once_and_checked(tmp_path: Path) -> None:
    (stream,) = load(tmp_path, WRITES).streams
    assert (stream.verify, stream.once, stream.writes) == ("crc32c", True, True)


def test_phases_follow_each_other_in_the_order_of_the_file(tmp_path: Path) -> None:
    reader = READS + 'verify = "crc32c"\n'
    got = load(tmp_path, WRITES, TRIMS, reader, AGAIN, top="in_order = true")
    assert got.in_order
    assert [stream.verify for stream in got.streams] == [
        *("crc32c", "deallocated", "crc32c", "crc32c")
    ]


def test_the_order_is_a_part_of_what_decides_the_io(tmp_path: Path) -> None:
    plain = [one.replace('verify = "crc32c"\n', "") for one in (WRITES, AGAIN)]
    together = load(tmp_path, *plain)
    in_turn = load(tmp_path, *plain, top="in_order = true")
    assert together.digest != in_turn.digest


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("jobs = 2", "verify: needs one job"),
        ("zipf_theta = 0.9", "verify: needs uniform offsets"),
        ("rate_iops = 100", "verify: needs a closed loop"),
        ('shape = "throughput"', 'verify: needs shape = "latency", no barrier'),
        ("buffered = true", "verify: needs no buffered = true"),
    ],
)
def test_what_would_leave_unknown_what_must_be_there_is_refused(
    tmp_path: Path, lines: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        load(tmp_path, f"{WRITES}{lines}\n")


def test_a_ramp_and_a_mix_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"verify: needs timing\.ramp = 0"):
        load(tmp_path, WRITES, more="")
    mixed = WRITES.replace('"write"', '"mixed"') + "read_percent = 50\n"
    with pytest.raises(UsageError, match="verify: needs one direction"):
        load(tmp_path, mixed)
    mix = 'block_mix = [{ size = "4KiB", percent = 50 }, { size = "8KiB", percent = 50 }]'
    with pytest.raises(UsageError, match="verify: needs one block size"):
        load(tmp_path, WRITES.replace('block_size = "4KiB"', mix))


def test_each_kind_of_check_is_for_its_own_direction(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='verify: needs direction = "trim"'):
        load(tmp_path, WRITES.replace("crc32c", "deallocated"))
    with pytest.raises(UsageError, match="verify: needs one direction"):
        load(tmp_path, TRIMS.replace("deallocated", "crc32c").replace('"t"', '"w"'))
    with pytest.raises(UsageError, match="must be one of crc32c, deallocated"):
        load(tmp_path, WRITES.replace("crc32c", "md5"))


def test_others_must_not_write_beside_what_is_checked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must be the only stream, or in_order = true"):
        load(tmp_path, WRITES, AGAIN)


def test_a_reading_phase_needs_one_that_wrote_such_blocks(tmp_path: Path) -> None:
    reader = READS + 'verify = "crc32c"\n'
    with pytest.raises(UsageError, match=r"stream\[1\].verify: needs an earlier phase"):
        load(tmp_path, reader, WRITES, top="in_order = true")
    larger = reader.replace("4KiB", "8KiB")
    with pytest.raises(UsageError, match=r"stream\[2\].verify: needs an earlier phase"):
        load(tmp_path, WRITES, larger, top="in_order = true")


@pytest.mark.parametrize(
    ("top", "more", "message"),
    [
        ("isolate = true", "", "in_order: needs no isolate"),
        ("", "[sweep]\nw.queue_depth = [1, 2]\n", "in_order: needs no sweep"),
    ],
)
def test_phases_are_cells_of_their_own_and_nothing_else(
    tmp_path: Path, top: str, more: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        load(tmp_path, WRITES, AGAIN, top=f"in_order = true\n{top}", more=NO_RAMP + more)
    with pytest.raises(UsageError, match="in_order: needs at least two streams"):
        load(tmp_path, WRITES, top="in_order = true")
