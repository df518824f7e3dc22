"""Which reads of a run stand for a reload, how large, how many at once, and what is missing."""

import pytest

from kvbench.measure.reload import NOT_RUN, LeftOut, find_reloads
from kvbench.units import KIB, MIB
from kvbench.workload.schema import BlockShare, Stream, SweepAxis
from tests.measure.reloads import (
    PLAIN,
    Values,
    a_block_stream,
    a_chunk_stream,
    a_reload,
    a_run,
    at_once,
    blocks,
)


def test_a_block_is_a_request_and_each_job_has_its_depth_in_flight() -> None:
    found = find_reloads(a_run(a_reload(sweep=at_once(1, 4)))).points
    assert [(p.request_bytes, p.in_flight, p.parameters) for p in found] == [
        (2 * MIB, 1, {"jobs": 1}),
        (2 * MIB, 4, {"jobs": 4}),
    ]
    deep = a_reload(a_block_stream(queue_depth=8, jobs=2))
    assert find_reloads(a_run(deep)).points[0].in_flight == 16


def test_figures_are_medians_over_repetitions_with_their_n() -> None:
    (point,) = find_reloads(a_run(a_reload(), repetitions=6)).points
    assert (point.p50.value, point.p50.n, point.p50.unit) == (0.001, 6, "s")
    assert (point.p50.low, point.p50.high, point.p50.interval) == (0.001, 0.001, "95 %")
    assert point.p99.value == 0.004
    assert (point.bandwidth.value, point.bandwidth.unit) == (2e9, "B/s")
    assert point.request_count == 600


def test_behind_a_barrier_the_request_is_the_group_and_its_own_time_counts() -> None:
    values: Values = {"bandwidth": 1e9, "latency_p50": 9.0, "request_p50": 0.1, "request_p99": 0.3}
    run = a_run(a_reload(a_chunk_stream()), values=values)
    (point,) = find_reloads(run).points
    assert (point.request_bytes, point.in_flight) == (32 * MIB, 4)
    assert (point.p50.value, point.p99.value) == (0.1, 0.3)


def test_blocks_inside_a_chunk_without_barrier_are_requests_of_a_block() -> None:
    stream = a_chunk_stream(barrier=False, queue_depth=8, jobs=1)
    (point,) = find_reloads(a_run(a_reload(stream))).points
    assert (point.request_bytes, point.in_flight, point.p50.value) == (MIB, 8, 0.001)


def test_a_tenant_is_found_beside_the_others_and_alone() -> None:
    writer = a_block_stream(name="writer", direction="write")
    run = a_run(a_reload(a_block_stream(), writer, isolate=True))
    found = find_reloads(run)
    assert [(p.stream.name, p.alone, p.others) for p in found.points] == [
        ("load", False, 1),
        ("load", True, 0),
    ]
    assert found.left_out == ()


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (a_block_stream(block_mix=blocks(32 * KIB)), "its reads are smaller than 64 KiB"),
        (a_block_stream(direction="mixed", read_percent=70), "it also writes"),
        (a_block_stream(rate_iops=10.0, queue_depth=64), "its rate is paced"),
        (a_block_stream(buffered=True), "it goes through the page cache and was not named"),
        (
            a_block_stream(
                block_mix=(
                    BlockShare(size_bytes=MIB, percent=50),
                    BlockShare(size_bytes=2 * MIB, percent=50),
                )
            ),
            "its reads are of several sizes",
        ),
    ],
)
def test_other_reads_are_left_out_with_the_reason(stream: Stream, reason: str) -> None:
    found = find_reloads(a_run(a_reload(stream)))
    assert found.points == ()
    assert [(o.workload, o.stream) for o in found.left_out] == [("blocks", "load")]
    assert found.left_out[0].reason.startswith(reason)


def test_a_stream_through_the_page_cache_stands_for_a_reload_where_it_is_named() -> None:
    run = a_run(a_reload(a_block_stream(buffered=True)))
    found = find_reloads(run, "blocks")
    assert [point.stream.name for point in found.points] == ["load"]
    assert found.left_out == ()


def test_64_kib_is_a_block_and_only_the_points_below_are_left_out() -> None:
    sizes = SweepAxis(stream="load", field="block_size", values=(4 * KIB, 32 * KIB, 64 * KIB))
    found = find_reloads(a_run(a_reload(sweep=(sizes,))))
    assert [p.request_bytes for p in found.points] == [64 * KIB]
    assert len(found.left_out) == 1


def test_memory_workloads_reload_nothing_whatever_their_size() -> None:
    (left,) = find_reloads(a_run(a_reload(role="memory"))).left_out
    assert "role memory" in left.reason


def test_projected_evidence_is_used_only_when_it_is_named() -> None:
    run = a_run(
        a_reload(), a_reload(name="maybe", digest="other", evidence="projected", role="capacity")
    )
    found = find_reloads(run)
    assert [p.workload for p in found.points] == ["blocks"]
    assert found.left_out == (
        LeftOut(
            workload="maybe",
            stream="load",
            reason="it rests on projected evidence and was not named",
        ),
    )
    (named,) = find_reloads(run, "maybe").points
    assert (named.workload, named.evidence) == ("maybe", "projected")


def test_what_was_not_measured_says_why_and_is_never_zero() -> None:
    (point,) = find_reloads(a_run(a_reload(), values=PLAIN | {"latency_p99": None})).points
    assert (point.p99.value, point.p99.n) == (None, 0)
    assert point.p99.reason == "too few I/Os: 10 of 1,000 needed"
    (never,) = find_reloads(a_run(a_reload(), done=lambda _: False)).points
    assert {f.value for f in (never.p50, never.p99, never.bandwidth)} == {None}
    assert never.p50.reason == NOT_RUN
    (bad,) = find_reloads(a_run(a_reload(), outcome=lambda _: "invalid")).points
    assert bad.p50.value is None
    assert bad.p50.reason == "no repetition counts: 3 invalid"
    assert bad.excluded == 3


def test_a_time_beyond_what_fio_sees_is_no_time() -> None:
    values = PLAIN | {"latency_p99": 17.1}
    (point,) = find_reloads(a_run(a_reload(), values=values, censored="latency_p99")).points
    assert point.p99.value is None
    assert "17.1 s" in point.p99.reason
    assert point.p50.value == 0.001


def test_a_time_of_zero_is_not_computed_with() -> None:
    (point,) = find_reloads(a_run(a_reload(), values=PLAIN | {"latency_p50": 0.0})).points
    assert point.p50.value is None
    assert point.p50.reason


def test_repetitions_that_do_not_count_are_told() -> None:
    run = a_run(a_reload(), outcome=lambda c: "failed" if c.repetition == 2 else "valid")
    (point,) = find_reloads(run).points
    assert (point.p50.n, point.excluded) == (2, 1)
