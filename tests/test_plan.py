from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvbench.errors import UsageError
from kvbench.plan import (
    ALIGN_BYTES,
    CEILING_TIMING,
    CELL_OVERHEAD_S,
    UNITS_PER_JOB_MIN,
    Plan,
    TargetSpec,
    ceiling_shape,
    huge_pages_needed,
    make_plan,
    min_target_bytes,
)
from kvbench.units import GIB, MIB
from kvbench.workload.schema import BlockShare, Engine, Stream, SweepAxis, Timing, Workload
from tests.records import a_stream, a_target, a_workload


def fixed(size_bytes: int) -> tuple[BlockShare, ...]:
    return (BlockShare(size_bytes=size_bytes, percent=100),)


def of(*streams: Stream, **changes: object) -> Workload:
    return a_workload(streams=streams, sweep=(), **changes)


def plan(
    *workloads: Workload,
    repetitions: int = 3,
    seed: int = 1,
    may_write: bool = True,
    engine: Engine = "io_uring",
    target: TargetSpec | None = None,
    span_bytes: int | None = None,
    runtime_s: float | None = None,
    huge_pages_free: int | None = None,
) -> Plan:
    return make_plan(
        workloads or (a_workload(),),
        target or a_target(),
        repetitions=repetitions,
        seed=seed,
        may_write=may_write,
        engine=engine,
        span_bytes=span_bytes,
        runtime_s=runtime_s,
        huge_pages_free=huge_pages_free,
    )


LADDER = a_workload(
    sweep=(
        SweepAxis(stream="reads", field="queue_depth", values=(1, 4)),
        SweepAxis(stream="reads", field="block_size", values=(512, 4096, 8192)),
    )
)
TENANTS = of(
    a_stream(name="a", span_percent=50.0),
    a_stream(name="b", span_start_percent=50.0, span_percent=50.0, direction="write"),
    name="tenants",
    isolate=True,
    digest="fedcba9876543210",
)


def test_every_repetition_holds_every_point_once_in_an_order_of_its_own() -> None:
    got = plan(LADDER, TENANTS, repetitions=4)
    passes = [
        [c.point_id for c in got.cells if c.purpose == "measure" and c.repetition == n]
        for n in range(1, 5)
    ]
    assert all(sorted(points) == sorted(passes[0]) for points in passes)
    assert len(set(passes[0])) == len(passes[0]) == 6 + 3
    assert len({tuple(points) for points in passes}) == 4


def test_repetitions_follow_each_other_so_that_drift_touches_all_points_alike() -> None:
    repetitions = [c.repetition for c in plan(LADDER).cells if c.purpose == "measure"]
    assert repetitions == sorted(repetitions)


def test_cells_are_numbered_in_their_order_and_have_seeds_of_their_own() -> None:
    cells = plan(LADDER).cells
    assert [c.cell_id for c in cells] == [f"{n:04d}" for n in range(1, len(cells) + 1)]
    assert len({c.seed for c in cells}) == len(cells)
    assert all(1 <= c.seed < 2**31 for c in cells)


def test_a_seed_gives_the_same_plan_and_another_seed_another() -> None:
    assert plan(LADDER, seed=5) == plan(LADDER, seed=5)
    assert plan(LADDER, seed=5) != plan(LADDER, seed=6)


def test_points_keep_their_names_over_seeds_but_not_over_workloads() -> None:
    one = {c.point_id for c in plan(LADDER, seed=1).cells if c.purpose == "measure"}
    two = {c.point_id for c in plan(LADDER, seed=2).cells if c.purpose == "measure"}
    copy = msgspec.structs.replace(LADDER, name="copy")
    other = {c.point_id for c in plan(copy).cells if c.purpose == "measure"}
    assert one == two
    assert not one & other


def test_a_sweep_sets_the_fields_and_names_them() -> None:
    cells = [c for c in plan(LADDER, repetitions=1).cells if c.purpose == "measure"]
    for cell in cells:
        stream = cell.placed[0].stream
        assert cell.parameters == {
            "queue_depth": stream.queue_depth,
            "block_size": stream.max_block_bytes,
        }
        assert stream.block_mix == fixed(stream.max_block_bytes)


def test_several_streams_put_their_names_before_the_parameter() -> None:
    sweep = (SweepAxis(stream="a", field="queue_depth", values=(1, 2)),)
    cells = plan(msgspec.structs.replace(TENANTS, sweep=sweep)).cells
    assert {tuple(c.parameters) for c in cells} == {("a.queue_depth",)}


def test_isolate_measures_each_tenant_alone_in_its_own_place() -> None:
    cells = [c for c in plan(TENANTS, repetitions=1).cells if c.purpose == "measure"]
    by_alone = {c.alone: c for c in cells}
    assert set(by_alone) == {None, "a", "b"}
    together = {p.stream.name: p for p in by_alone[None].placed}
    for name in ("a", "b"):
        assert by_alone[name].placed == (together[name],)
    assert [by_alone[name].writes for name in (None, "a", "b")] == [True, False, True]


def test_one_ceiling_per_closed_loop_shape_comes_first() -> None:
    got = plan(LADDER)
    ceilings = [c for c in got.cells if c.purpose == "ceiling"]
    assert list(got.cells[: len(ceilings)]) == ceilings
    assert len(ceilings) == 2  # two depths; the block size of a read costs the generator nothing
    assert {ceiling_shape(c) for c in ceilings} == {ceiling_shape(c) for c in got.cells}
    for ceiling in ceilings:
        assert (ceiling.engine, ceiling.direct, ceiling.writes) == ("null", False, False)
        assert ceiling.point_id == f"ceiling-{ceiling_shape(ceiling)}"
        assert ceiling.timing == CEILING_TIMING


def test_paced_streams_have_no_ceiling() -> None:
    paced = of(a_stream(rate_iops=100.0))
    assert {c.purpose for c in plan(paced).cells} == {"measure"}


def test_writers_of_different_block_sizes_have_different_ceilings() -> None:
    sweep = (SweepAxis(stream="reads", field="block_size", values=(4096, 65536)),)
    writes = a_workload(streams=(a_stream(direction="write"),), sweep=sweep)
    assert sum(c.purpose == "ceiling" for c in plan(writes).cells) == 2


def test_a_workload_that_writes_is_skipped_with_the_reason_on_a_target_that_is_read() -> None:
    got = plan(LADDER, TENANTS, may_write=False)
    assert [s.workload for s in got.skipped] == ["tenants"]
    assert "--destroy" in got.skipped[0].reason
    assert [w.name for w in got.workloads] == ["small-reads"]
    assert got.writing_cells == 0


def test_a_depth_that_the_engine_cannot_give_is_skipped() -> None:
    shallow = of(a_stream(queue_depth=1), name="shallow")
    got = plan(a_workload(), shallow, engine="psync")
    assert [s.workload for s in got.skipped] == ["small-reads"]
    assert "psync" in got.skipped[0].reason


@pytest.mark.parametrize(
    ("stream", "pages"),
    [
        (a_stream(buffers="huge", queue_depth=1, block_mix=fixed(2 * MIB)), 3),
        (a_stream(buffers="huge", queue_depth=1, block_mix=fixed(2 * MIB), jobs=4), 12),
        (a_stream(buffers="huge", queue_depth=64), 2),
        (a_stream(queue_depth=1, block_mix=fixed(2 * MIB)), 0),
    ],
)
def test_huge_pages_are_counted_as_fio_maps_them(stream: Stream, pages: int) -> None:
    assert huge_pages_needed([stream]) == pages


def test_a_workload_that_lacks_huge_pages_is_skipped_with_the_command_that_mends_it() -> None:
    sweep = (SweepAxis(stream="reads", field="jobs", values=(1, 4)),)
    huge = a_workload(name="huge", streams=(a_stream(buffers="huge"),), sweep=sweep)
    got = plan(LADDER, huge, huge_pages_free=7)
    assert [s.workload for s in got.skipped] == ["huge"]
    assert "need 8 huge pages" in got.skipped[0].reason
    assert "sysctl vm.nr_hugepages=8" in got.skipped[0].reason
    assert not plan(LADDER, huge, huge_pages_free=8).skipped
    assert not plan(LADDER, huge).skipped


@pytest.mark.parametrize("mix", [fixed(512), (*fixed(4096), *fixed(4608))])
def test_blocks_below_the_devices_own_are_skipped(mix: tuple[BlockShare, ...]) -> None:
    shares = tuple(BlockShare(size_bytes=s.size_bytes, percent=100 // len(mix)) for s in mix)
    target = msgspec.structs.replace(a_target(), logical_block_bytes=4096)
    good = of(a_stream(), name="good")
    got = plan(of(a_stream(block_mix=shares)), good, target=target)
    assert [s.workload for s in got.skipped] == ["small-reads"]
    assert f"{shares[-1].size_bytes} B blocks are not a multiple" in got.skipped[0].reason


def test_a_point_below_the_devices_own_block_keeps_its_place_and_the_others_run() -> None:
    sizes = SweepAxis(stream="reads", field="block_size", values=(512, 2048, 4096, 8192))
    target = msgspec.structs.replace(a_target(), logical_block_bytes=4096)
    got = plan(a_workload(sweep=(sizes,)), target=target)
    assert not got.skipped
    asked = [cell.parameters["block_size"] for cell in got.cells if cell.purpose == "measure"]
    assert set(asked) == {4096, 8192}
    told = [(one.cell.parameters["block_size"], one.reason) for one in got.unsupported]
    assert [size for size, _ in told] == [512, 2048]
    assert told[0][1] == "its 512 B blocks are not a multiple of the device's 4096 B logical block"


def test_starts_below_the_devices_own_block_are_not_asked_for() -> None:
    target = msgspec.structs.replace(a_target(), logical_block_bytes=4096)
    aligned = of(a_stream(align_bytes=4608), name="aligned")
    got = plan(aligned, of(a_stream(), name="good"), target=target)
    assert "its start of 4608 B is not a multiple" in got.skipped[0].reason


def test_a_plan_with_nothing_to_run_says_why() -> None:
    with pytest.raises(UsageError, match="nothing to run: tenants: it writes"):
        plan(TENANTS, may_write=False)
    with pytest.raises(UsageError, match="no workload was named"):
        make_plan((), a_target(), repetitions=1, seed=1, may_write=True)


def test_a_target_that_is_too_small_is_refused_with_both_sizes() -> None:
    large = of(a_stream(block_mix=fixed(2 * MIB), jobs=4))
    with pytest.raises(UsageError) as caught:
        plan(large, target=a_target(size_bytes=7 * MIB))
    assert (
        caught.value.message
        == "target too small for workload small-reads: it needs 8 MiB and has 7 MiB"
    )
    assert caught.value.hint


def test_a_target_with_few_blocks_per_job_serves_and_the_plan_says_so() -> None:
    large = of(a_stream(block_mix=fixed(2 * MIB), jobs=4))
    assert not plan(large, target=a_target(size_bytes=64 * MIB)).scaled
    (scaled,) = plan(large, target=a_target(size_bytes=8 * MIB)).scaled
    assert scaled.workload == "small-reads"
    assert "4 x 2 MiB for 4 jobs" in scaled.text


def test_a_span_keeps_all_cells_inside_it_and_cannot_exceed_the_target() -> None:
    cells = plan(TENANTS, span_bytes=32 * MIB).cells
    assert max(p.offset_bytes + p.size_bytes for c in cells for p in c.placed) == 32 * MIB
    with pytest.raises(UsageError, match="larger than the target"):
        plan(span_bytes=65 * MIB)


def test_a_workload_named_twice_runs_once_and_a_name_with_two_meanings_is_refused() -> None:
    assert plan(LADDER, LADDER) == plan(LADDER)
    with pytest.raises(UsageError, match="two different workloads are called small-reads"):
        plan(LADDER, msgspec.structs.replace(LADDER, digest="0" * 16))


@pytest.mark.parametrize("repetitions", [0, -1])
def test_fewer_than_one_repetition_is_refused(repetitions: int) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        plan(repetitions=repetitions)


def test_the_expected_time_is_the_sum_over_cells() -> None:
    workload = of(a_stream(), timing=Timing(runtime_s=2.0, ramp_s=0.5))
    got = plan(workload, repetitions=3)
    ceiling = CEILING_TIMING.runtime_s + CELL_OVERHEAD_S
    assert got.expected_s == pytest.approx(ceiling + 3 * (2.5 + CELL_OVERHEAD_S))
    shorter = plan(workload, repetitions=3, runtime_s=1.0)
    assert shorter.expected_s == pytest.approx(got.expected_s - 3)


def test_a_plan_survives_the_archive() -> None:
    got = plan(LADDER, TENANTS)
    assert msgspec.json.decode(msgspec.json.encode(got), type=Plan) == got


def test_blocks_are_spread_over_the_target_as_the_file_says() -> None:
    placed = {p.stream.name: p for c in plan(TENANTS).cells for p in c.placed}
    assert (placed["a"].offset_bytes, placed["a"].size_bytes) == (0, 32 * MIB)
    assert (placed["b"].offset_bytes, placed["b"].size_bytes) == (32 * MIB, 32 * MIB)
    assert Counter(c.workload for c in plan(TENANTS, repetitions=2).cells)["tenants"] >= 6


@given(
    block=st.integers(1, 4096).map(lambda n: n * 512),
    blocks_per_chunk=st.none() | st.integers(1, 64),
    jobs=st.integers(1, 64),
    start=st.floats(0, 99),
    share=st.floats(0.01, 100),
    extra=st.integers(0, 3 * GIB),
)
def test_the_smallest_target_fits_and_so_does_every_larger_one(
    block: int, blocks_per_chunk: int | None, jobs: int, start: float, share: float, extra: int
) -> None:
    share = min(share, 100 - start)
    chunk = None if blocks_per_chunk is None else block * blocks_per_chunk
    workload = of(
        a_stream(
            block_mix=fixed(block),
            pattern="random" if chunk is None else "chunk",
            chunk_bytes=chunk,
            jobs=jobs,
            span_start_percent=start,
            span_percent=share,
        )
    )
    size = min_target_bytes(workload) + extra
    placed = plan(workload, target=a_target(size_bytes=size), repetitions=1).cells[-1].placed[0]
    assert placed.size_bytes % placed.stream.unit_bytes == 0
    assert placed.size_bytes >= UNITS_PER_JOB_MIN * placed.stream.unit_bytes * jobs
    assert placed.offset_bytes % ALIGN_BYTES == 0
    assert placed.offset_bytes + placed.size_bytes <= size


def test_contiguous_buffers_are_skipped_where_the_host_gives_none() -> None:
    contiguous = a_workload(name="contiguous", streams=(a_stream(buffers="contiguous"),))
    target = a_target()
    asked = (a_workload(), contiguous)
    for reason, skipped in (("", []), ("pages are off", ["contiguous"])):
        got = make_plan(
            asked, target, repetitions=1, seed=1, may_write=True, why_not_contiguous=reason
        )
        assert [one.workload for one in got.skipped] == skipped
        assert all(reason in one.reason for one in got.skipped)
