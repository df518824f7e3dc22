"""Whether the state that a stamp records still holds, and which device it belongs to."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from kvbench.errors import StoreError
from kvbench.host.identity import identify
from kvbench.host.model import Identity, WriteHistory
from kvbench.store.preparation import (
    FORMAT,
    Binding,
    Condition,
    Coverage,
    Preparation,
    Purge,
    SteadyMetric,
    binding_of,
    can_be_bound,
    judge,
)
from kvbench.store.stamps import (
    as_bound,
    drop_stamp,
    find_stamp,
    hidden_binding,
    save_stamp,
    stamp_path,
)
from kvbench.units import GIB, MIB
from tests.host.loops import call, loop_over, make_backing, needs_loops

DRIVE = Binding(
    serial="S1",
    wwid="eui.01, nsid 1",
    size_bytes=64 * GIB,
    logical_block_bytes=512,
)
THEN = WriteHistory(
    smart_written_bytes=1000 * GIB,
    power_cycles=7,
    write_sectors=5_000_000,
    discard_sectors=100,
    boot_id="boot-1",
    diskseq="9",
)
NO_TOOL = replace(THEN, smart_written_bytes=None, power_cycles=None, reason="there is no nvme-cli")


def metric(state: str) -> SteadyMetric:
    return SteadyMetric(
        metric="iops",
        unit="1/s",
        values=(1.0,) * 5,
        state=state,  # type: ignore[arg-type]
        first_round=1,
        mean=1.0,
        range_share=0.0,
        slope_share=0.0,
    )


def stamp(*states: str, history: WriteHistory = THEN, proven: bool = True) -> Preparation:
    return Preparation(
        format=FORMAT,
        run_id="r1",
        made_at="2026-01-01T00:00:00+00:00",
        binding=DRIVE,
        history=history,
        purge=Purge(
            method="discard", verified=True, sampled=256, held=0, empty=256, wall_s=1.0, text="ok"
        ),
        fills=(),
        coverage=Coverage(proven=proven, sampled=256, empty=0, text="ok"),
        workload="steady-state",
        workload_digest="d",
        round_s=60.0,
        metrics=tuple(metric(state) for state in states or ("steady",)),
    )


def judged(
    now: WriteHistory, of: Preparation | None = None, *, empty: int = 0, binding: Binding = DRIVE
) -> Condition:
    return judge(of or stamp(), binding, now, empty_samples=empty)


def test_a_stamp_holds_while_nothing_was_written() -> None:
    found = judged(THEN)
    assert (found.state, found.covered, found.steady, found.doubt) == ("holds", True, "steady", "")


@pytest.mark.parametrize("states", [("not steady",), ("steady", "too few rounds")])
def test_a_stamp_of_rounds_that_were_not_steady_is_a_doubt(states: tuple[str, ...]) -> None:
    found = judged(THEN, stamp(*states))
    assert found.state == "holds"
    assert "steady" in found.doubt


def test_one_metric_that_is_not_steady_decides() -> None:
    assert stamp("steady", "not steady", "too few rounds").state == "not steady"
    assert stamp("steady", "too few rounds").state == "too few rounds"


@pytest.mark.parametrize(
    "now",
    [
        replace(THEN, smart_written_bytes=1001 * GIB),
        replace(THEN, write_sectors=5_000_000 + GIB // 512),
        replace(THEN, smart_written_bytes=1001 * GIB, boot_id="boot-2", write_sectors=3),
    ],
    ids=["the drive counts", "the kernel counts", "the drive counts over a restart"],
)
def test_writes_since_break_it_and_are_told_in_bytes(now: WriteHistory) -> None:
    found = judged(now)
    assert (found.state, found.written_since_bytes) == ("broken", GIB)
    assert "1 GiB were written since" in found.doubt
    assert found.covered  # what is written over is still written


def test_a_few_writes_do_not_break_it() -> None:
    assert judged(replace(THEN, write_sectors=5_000_000 + 60 * MIB // 512)).state == "holds"
    assert judged(replace(THEN, write_sectors=5_000_000 + 70 * MIB // 512)).state == "broken"


def test_a_deallocation_breaks_it_and_nothing_proves_its_blocks_written() -> None:
    found = judged(replace(THEN, discard_sectors=108))
    assert (found.state, found.covered) == ("broken", False)
    assert "4 KiB were deallocated" in found.doubt


def test_empty_blocks_break_it_even_where_no_counter_tells() -> None:
    found = judged(replace(THEN, boot_id="boot-2"), empty=3)
    assert (found.state, found.covered) == ("broken", False)


def test_after_a_restart_a_drive_without_a_log_cannot_tell() -> None:
    found = judged(replace(NO_TOOL, boot_id="boot-2"), stamp(history=NO_TOOL))
    assert found.state == "unknown"
    assert "there is no nvme-cli" in found.doubt
    assert found.written_since_bytes is None


def test_a_device_number_that_was_used_anew_counts_anew() -> None:
    found = judged(replace(NO_TOOL, diskseq="10"), stamp(history=NO_TOOL))
    assert found.state == "unknown"


def test_power_cycles_do_not_break_it_and_are_told() -> None:
    found = judged(replace(THEN, power_cycles=9, boot_id="boot-2", write_sectors=0))
    assert found.state == "holds"
    assert "through 2 power cycles" in found.text


@pytest.mark.parametrize(
    "other",
    [
        replace(DRIVE, serial="S2"),
        replace(DRIVE, wwid="eui.01, nsid 2"),
        replace(DRIVE, size_bytes=GIB),
        replace(DRIVE, logical_block_bytes=4096),
    ],
)
def test_a_stamp_of_another_drive_namespace_or_format_says_nothing(other: Binding) -> None:
    found = judged(THEN, binding=other)
    assert found.state == "none"
    assert "another device" in found.text


def test_coverage_that_was_not_proven_is_not_proven_later() -> None:
    assert not judged(THEN, stamp(proven=False)).covered


def test_a_device_without_any_name_cannot_be_bound() -> None:
    nameless = Identity(
        path="/dev/vdb",
        real_path="/dev/vdb",
        kind="block",
        device_number="254:16",
        inode=5,
        size_bytes=GIB,
    )
    assert not can_be_bound(binding_of(nameless, 512))
    assert can_be_bound(binding_of(replace(nameless, serial="X"), 512))
    assert not can_be_bound(binding_of(replace(nameless, wwid="partition 2"), 512))


@needs_loops
@pytest.mark.blockdev
def test_partitions_of_one_loop_device_have_stamps_of_their_own(tmp_path: Path) -> None:
    bindings = []
    with loop_over(make_backing(tmp_path / "back")) as device:
        for number, start in ((1, 2048), (2, 2048 + 8192), (1, 4096)):
            call("addpart", device, str(number), str(start), "8192")
            try:
                node = Path(f"{device}p{number}")
                if not node.exists():
                    pytest.skip("this kernel makes no nodes for partitions of loop devices")
                identity = identify(str(node))
            finally:
                call("delpart", device, str(number))
            assert identity.start_sector == start
            bindings.append(binding_of(identity, 512))
    first, second, moved = bindings
    assert all(can_be_bound(one) for one in bindings)
    save_stamp(tmp_path, replace(stamp(), binding=first))
    assert find_stamp(tmp_path, first) is not None
    assert find_stamp(tmp_path, second) is None
    found = find_stamp(tmp_path, moved)
    assert found is not None
    assert "it differs in start sector" in judged(THEN, found, binding=moved).text
    assert hidden_binding(first) != hidden_binding(second)
    assert str(tmp_path) not in str(hidden_binding(first))


def test_a_stamp_is_found_by_what_binds_it_and_not_by_another_drive(tmp_path: Path) -> None:
    save_stamp(tmp_path, stamp())
    assert find_stamp(tmp_path, DRIVE) == stamp()
    assert find_stamp(tmp_path, replace(DRIVE, serial="S2")) is None
    drop_stamp(tmp_path, DRIVE)
    assert find_stamp(tmp_path, DRIVE) is None
    drop_stamp(tmp_path, DRIVE)


def test_a_stamp_that_is_dropped_is_gone_from_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_stamp(tmp_path, stamp())
    synced: list[tuple[str, bool]] = []

    def note(descriptor: int) -> None:
        synced.append((str(Path(f"/proc/self/fd/{descriptor}").readlink()), path.exists()))

    monkeypatch.setattr(os, "fsync", note)
    drop_stamp(tmp_path, DRIVE)
    assert (str(path.parent), False) in synced


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', "\xff"])
def test_a_stamp_that_is_damaged_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = save_stamp(tmp_path, stamp())
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(StoreError, match=r"damaged|missing"):
        find_stamp(tmp_path, DRIVE)


def test_a_pipe_in_the_place_of_a_stamp_is_not_waited_for(tmp_path: Path) -> None:
    path = stamp_path(tmp_path, DRIVE)
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(StoreError, match=r"regular file|cannot be"):
        find_stamp(tmp_path, DRIVE)


def test_a_hostile_serial_makes_no_path(tmp_path: Path) -> None:
    path = stamp_path(tmp_path, replace(DRIVE, serial="../../etc/x\n"))
    assert path.parent == tmp_path / "stamps"


@pytest.mark.parametrize(
    ("now", "covered"),
    [
        (replace(THEN, smart_written_bytes=1), True),
        (replace(THEN, write_sectors=1), True),
        (replace(THEN, discard_sectors=1), False),
        (replace(THEN, smart_written_bytes=1, boot_id="boot-2"), False),
        (replace(THEN, smart_written_bytes=1, write_sectors=1), False),
    ],
    ids=["the drive's", "the kernel's", "of deallocations", "after a restart", "all of writes"],
)
def test_a_count_that_runs_backwards_tells_nothing(now: WriteHistory, covered: bool) -> None:
    found = judged(now)
    assert (found.state, found.covered) == ("unknown", covered)
    assert found.written_since_bytes is None
    assert "ran backwards" in found.doubt


@pytest.mark.parametrize(
    ("now", "covered"),
    [
        (replace(THEN, smart_written_bytes=0, discard_sectors=10**9), False),
        (replace(THEN, write_sectors=0, discard_sectors=10**9), False),
        (replace(THEN, smart_written_bytes=0, write_sectors=10**9), True),
        (replace(THEN, smart_written_bytes=10**18, write_sectors=1), True),
        (replace(THEN, smart_written_bytes=10**18, discard_sectors=1), False),
    ],
)
def test_a_count_that_runs_backwards_hides_no_other(now: WriteHistory, covered: bool) -> None:
    found = judged(now)
    assert (found.state, found.covered) == ("broken", covered)
    assert "were written since" in found.doubt or "were deallocated since" in found.doubt


@pytest.mark.parametrize("now", [{"boot_id": "boot-2"}, {"diskseq": "10"}])
def test_where_no_count_goes_on_samples_alone_prove_no_coverage(now: dict[str, str]) -> None:
    found = judged(replace(NO_TOOL, **now), stamp(history=NO_TOOL))
    assert (found.state, found.covered) == ("unknown", False)
    assert "the kernel's counters began anew" in found.doubt


PART = replace(NO_TOOL, disk_write_sectors=9_000_000, disk_discard_sectors=500)


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ({"disk_write_sectors": 9_000_000 + GIB // 512}, "wrote 1 GiB more since"),
        ({"disk_discard_sectors": 508}, "deallocated 4 KiB more since"),
    ],
)
def test_what_passed_a_partition_by_through_its_disk_is_not_taken_for_nothing(
    now: dict[str, int], words: str
) -> None:
    found = judged(replace(PART, **now), stamp(history=PART))
    assert (found.state, found.covered) == ("unknown", False)
    assert f"its whole disk {words} than this partition" in found.doubt


def test_what_a_partition_wrote_itself_its_disk_counts_too() -> None:
    assert judged(PART, stamp(history=PART)).state == "holds"
    both = replace(PART, write_sectors=5_000_100, disk_write_sectors=9_000_100)
    assert judged(both, stamp(history=PART)).covered
    gone = replace(PART, discard_sectors=108, disk_discard_sectors=508)
    assert judged(gone, stamp(history=PART)).state == "broken"
    back = judged(replace(PART, disk_discard_sectors=1), stamp(history=PART))
    assert (back.state, back.covered) == ("unknown", False)


def test_fewer_power_cycles_than_before_are_not_told_as_some() -> None:
    assert "-" not in judged(replace(THEN, power_cycles=1)).text.partition("was steady")[2]


LOOP = replace(DRIVE, serial=None, wwid="backing file /srv/secret/disk.img (254:0 inode 5)")


@pytest.mark.parametrize("binding", [DRIVE, LOOP, replace(DRIVE, wwid=None)])
def test_a_redacted_stamp_names_no_drive_and_is_found_again(
    tmp_path: Path, binding: Binding
) -> None:
    closed = replace(stamp(), binding=hidden_binding(binding), run_id="closed")
    path = save_stamp(tmp_path, closed)
    said = path.name + path.read_text()
    for secret in ("S1", "eui.01", "/srv/secret"):
        assert secret not in said
    found = find_stamp(tmp_path, binding)
    assert found == closed
    assert judged(THEN, found, binding=as_bound(found, binding)).state == "holds"
    assert find_stamp(tmp_path, replace(binding, serial="S2")) is None
    drop_stamp(tmp_path, binding)
    assert find_stamp(tmp_path, binding) is None


def test_of_an_open_and_a_redacted_stamp_the_later_one_counts(tmp_path: Path) -> None:
    later = "2026-02-01T00:00:00+00:00"
    closed = replace(stamp(), binding=hidden_binding(DRIVE), run_id="closed")
    save_stamp(tmp_path, closed)
    save_stamp(tmp_path, replace(stamp(), made_at=later))
    found = find_stamp(tmp_path, DRIVE)
    assert found is not None
    assert (found.run_id, as_bound(found, DRIVE)) == ("r1", DRIVE)
    save_stamp(tmp_path, replace(closed, made_at=later + "z"))
    found = find_stamp(tmp_path, DRIVE)
    assert found is not None
    assert found.run_id == "closed"
