"""What is told before anything is destroyed: bytes, time, and which drive."""

import pytest
from msgspec.structs import replace

from kvbench.cli.prepare_words import Todo, cost_words, describe
from kvbench.host.model import Identity
from kvbench.plan import TargetSpec, make_plan
from kvbench.prepare.fill import passes
from kvbench.units import GIB, KIB
from kvbench.workload import catalog

TARGET = Identity(
    path="/dev/nvme0n1",
    real_path="/dev/nvme0n1",
    kind="block",
    device_number="259:0",
    inode=3,
    size_bytes=1000 * GIB,
    serial="S4EVNX0R123",
)


def todo(rounds: int = 25, *, sequential: int = 2, randoms: int = 2) -> Todo:
    """A preparation of 1000 GiB."""
    size = TARGET.size_bytes
    plan = make_plan(
        [catalog.find_workload("steady-state", None)],
        TargetSpec(path="/dev/nvme0n1", kind="block", size_bytes=size, own_file=False),
        repetitions=rounds,
        seed=1,
        may_write=True,
    )
    return Todo(
        plan=plan,
        method="format",
        why="chosen",
        unit_bytes=16 * KIB,
        unit_reason="as the device says",
        passes=passes(size, 16 * KIB, sequential, randoms),
    )


@pytest.mark.parametrize(
    ("sequential", "randoms", "words"),
    [
        # 1000 GiB take 1,074 s at 1 GB/s and 4,295 s at 250 MB/s
        (1, 1, "1.95 TiB are written in 2 passes (1 h 29 min at"),
        (2, 1, "2.93 TiB are written in 3 passes (1 h 47 min at"),
        (2, 2, "3.91 TiB are written in 4 passes (2 h 58 min at"),
    ],
)
def test_the_bytes_and_the_time_of_the_fill_are_told(
    sequential: int, randoms: int, words: str
) -> None:
    said = cost_words(todo(sequential=sequential, randoms=randoms))
    assert said.startswith(words)
    assert "1.00 GB/s in order and 250 MB/s at random" in said


def test_the_rounds_are_told_with_the_least_and_the_most_of_them() -> None:
    plan = todo().plan
    (cell, *_) = (one for one in plan.cells if one.purpose == "measure")
    assert 60 <= cell.expected_s < 66
    assert cost_words(todo()).endswith(
        "then 5 to 25 rounds of writes take 5 min 02 s to 25 min 10 s"
    )
    assert cost_words(todo(5)).endswith("then 5 rounds of writes take 5 min 02 s")


def test_what_will_be_done_names_the_drive_the_purge_and_the_block_size() -> None:
    lines = describe(todo(), TARGET, "S4EVNX0R123")
    assert lines[0] == "target      /dev/nvme0n1 (block, 1000 GiB, serial S4EVNX0R123)"
    assert lines[1] == "purge       format (chosen)"
    assert lines[2].endswith("in blocks of 16384 B (as the device says)")
    assert lines[4] == f"cost        {cost_words(todo())}"
    hidden = describe(todo(), replace(TARGET, serial="S4EVNX0R123"), "redacted-0123456789ab")
    assert not any("S4EVNX0R123" in line for line in hidden)
