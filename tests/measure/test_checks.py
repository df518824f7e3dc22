"""The asked-against-got checks on rows made by hand: each fires, and only where it should."""

import numpy as np
import pytest
from msgspec import structs

from kvbench.fio.model import Diagnostic, DiskUtil
from kvbench.measure.asked import runtime_tolerance_s
from kvbench.measure.checks import failures_of, findings_of, launch_failures, outcome_of
from kvbench.measure.evidence import Evidence
from kvbench.measure.model import Finding, Severity
from kvbench.plan import Cell
from kvbench.workload.schema import Timing
from tests.measure.builders import (
    UNPROVEN,
    cell,
    counters,
    direction,
    evidence,
    job,
    latency,
    launch,
    stream,
)


def found(evidence: Evidence, severity: Severity = "invalid") -> set[str]:
    return {f.check for f in findings_of(evidence) if f.severity == severity}


def with_device(given: Evidence, **amounts: int) -> Evidence:
    before, after = counters(**amounts)
    record = structs.replace(given.record, device="vda", before=before, after=after)
    return structs.replace(given, record=record)


def test_a_row_as_asked_has_no_finding() -> None:
    given = with_device(evidence(cell(stream()), job(read=direction())), read_bytes=40_960_000)
    assert failures_of(given) == ()
    assert findings_of(given) == ()


@pytest.mark.parametrize(
    ("asked_s", "tolerance_s"), [(0.5, 0.125), (1, 0.25), (4, 1.0), (30, 1.0), (100, 2.0)]
)
def test_the_runtime_tolerance_grows_with_the_runtime(asked_s: float, tolerance_s: float) -> None:
    assert runtime_tolerance_s(asked_s) == pytest.approx(tolerance_s)


@pytest.mark.parametrize("runtime_ms", [114.0, 700.0, 1300.0, 60_000.0])
def test_a_runtime_too_short_or_too_long_is_invalid(runtime_ms: float) -> None:
    row = direction(int(10 * runtime_ms), runtime_ms=runtime_ms)
    assert "runtime" in found(evidence(cell(stream()), job(read=row)))


def test_waiting_for_the_slowest_io_at_the_end_is_no_overrun() -> None:
    slow = direction(100, 10_000, runtime_ms=1400, lat=latency(10_000, 100, max_us=300_000))
    assert found(evidence(cell(stream()), job(read=slow))) == set()


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"short_ios": 1}, "whole-ios"),
        ({"drop_ios": 1}, "whole-ios"),
        ({"bandwidth_bytes_per_s": 42e6}, "bandwidth"),
        ({"iops": 10_200.0}, "iops"),
        ({"lat": latency(100, 9_000)}, "samples"),
        ({"clat": latency(120, 10_000)}, "clat-over-lat"),
        ({"lat": latency(100, 10_000, max_us=5e6)}, "latency-over-runtime"),
        ({"lat": latency(200, 10_000)}, "little-law"),
        ({"io_bytes": 41_000_000, "bandwidth_bytes_per_s": 41e6}, "block-size"),
        ({"io_bytes": 40_900_000, "bandwidth_bytes_per_s": 40.9e6}, "block-size"),
    ],
)
def test_numbers_that_disagree_are_invalid(changes: dict[str, object], check: str) -> None:
    assert check in found(evidence(cell(stream()), job(read=direction(**changes))))  # type: ignore[arg-type]


def test_bins_that_do_not_add_up_are_invalid() -> None:
    stats = structs.replace(
        latency(100, 10_000), bin_ns=np.array([1e5]), bin_counts=np.array([9_999])
    )
    assert "bins" in found(evidence(cell(stream()), job(read=direction(lat=stats))))


def test_ios_in_flight_at_the_end_of_the_ramp_are_no_disagreement() -> None:
    # 2 MiB at depth 64 in 0.6 s, as seen: 557 I/Os issued, 616 completed.
    row = direction(
        557,
        82_700,
        block_bytes=2**21,
        runtime_ms=669,
        io_bytes=616 * 2**21,
        bandwidth_bytes_per_s=616 * 2**21 * 1000 / 669,
        lat=latency(82_700, 616, max_us=232_600),
        clat=latency(82_000, 616, max_us=232_000),
    )
    asked = cell(stream(block_bytes=2**21, queue_depth=64), runtime_s=0.6)
    asked = structs.replace(asked, timing=Timing(runtime_s=0.6, ramp_s=0.2))
    given = evidence(asked, job(read=row))
    assert found(given) == set()
    merged = given.streams[0].merged("read")
    assert merged is not None
    assert merged.ios == 616
    assert merged.iops * 2**21 == pytest.approx(merged.bandwidth_bytes_per_s)


def test_a_missing_row_a_strange_row_and_a_wrong_name_are_failures() -> None:
    asked = cell(stream(jobs=2))
    rows = [job(index=0, read=direction()), job(index=1, name="yesterday", read=direction())]
    assert [f.check for f in failures_of(evidence(asked, rows[0]))] == ["rows"]
    assert [f.check for f in failures_of(evidence(asked, *rows))] == ["rows"]
    third = job(index=2, group_id=5, read=direction())
    assert "jobs that were not asked for" in failures_of(evidence(asked, *rows[:1], third))[1].text


def test_a_direction_of_a_mix_that_never_came_is_a_failure() -> None:
    asked = cell(stream(direction="mixed", read_percent=70))
    assert [f.text for f in failures_of(evidence(asked, job(read=direction())))] == [
        "not one write was done"
    ]
    rows = job(read=direction(7000), write=direction(3000))
    assert failures_of(evidence(asked, rows)) == ()


def test_one_job_of_several_that_never_wrote_is_a_failure_unless_by_chance() -> None:
    asked = cell(stream(direction="mixed", read_percent=70, jobs=2))
    both = job(index=0, read=direction(7000), write=direction(3000))
    lazy = evidence(asked, both, job(index=1, read=direction(9000)))
    assert [f.text for f in failures_of(lazy)] == ["1 of 2 jobs did no write (fio's job 2)"]
    assert failures_of(evidence(asked, both, job(index=1, read=direction(20)))) == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"end": "timeout", "exit_code": -9}, "did not end within"),
        ({"end": "interrupted", "exit_code": 128}, "interrupted after"),
        ({"exit_code": -11}, "SIGSEGV"),
        ({"exit_code": 1}, "exit code 1"),
        ({"exit_code": None}, "never started"),
        ({"survivors": (12, 13)}, "12, 13"),
    ],
)
def test_a_launch_that_went_wrong_is_a_failure(changes: dict[str, object], words: str) -> None:
    (only,) = launch_failures(launch(cell(stream()), "", **changes))
    assert words in only.text


def test_what_fio_says_is_a_failure_when_an_error_and_a_note_otherwise() -> None:
    given = evidence(cell(stream()), job(read=direction()))
    lines = (
        Diagnostic(level="error", text="no space"),
        Diagnostic(level="warning", text="old libc"),
    )
    given = structs.replace(given, result=structs.replace(given.result, diagnostics=lines))
    assert [f.text for f in failures_of(given)] == ["fio said: no space"]
    assert "fio-said" in found(given, "note")


@pytest.mark.parametrize(("lead_s", "stale"), [(-60, True), (-3, False), (3, False), (60, True)])
def test_a_time_stamp_outside_the_launch_is_invalid(lead_s: int, stale: bool) -> None:
    given = evidence(cell(stream()), job(read=direction()), stamp_ms=1_800_000_000_000)
    assert "stale" not in found(given)
    given = evidence(
        cell(stream()), job(read=direction()), stamp_ms=1_800_000_000_000 + 1000 * lead_s
    )
    assert ("stale" in found(given)) is stale


def deep(mean_us: float, **changes: object) -> Evidence:
    """10,000 I/Os a second at this mean latency, where depth 8 was asked for."""
    return evidence(
        cell(stream("reads", 4096, queue_depth=8, **changes)),
        job(read=direction(10_000, mean_us=mean_us)),
    )


def test_a_queue_that_was_not_filled_is_invalid() -> None:
    assert found(deep(790)) == set()
    assert found(deep(390)) == {"depth"}


@pytest.mark.parametrize("jobs", [2, 4])
def test_one_job_of_several_with_a_queue_of_one_is_invalid(jobs: int) -> None:
    alone = job(index=0, read=direction(mean_us=100), depth_percent={"1": 100.0})
    others = [
        job(index=n, read=direction(mean_us=790), depth_percent={"8": 100.0})
        for n in range(1, jobs)
    ]
    given = evidence(cell(stream(queue_depth=8, jobs=jobs)), alone, *others)
    assert found(given) == {"depth"}
    (text,) = [f.text for f in findings_of(given) if f.check == "depth"]
    assert text.endswith(f"alone in the queue in 1 of {jobs} jobs")


def test_a_depth_that_cannot_be_told_is_doubted() -> None:
    untimed = direction(lat=None, clat=None)
    assert "depth" in found(evidence(cell(stream(queue_depth=8)), job(read=untimed)), "doubt")
    assert "depth" not in found(evidence(cell(stream()), job(read=untimed)), "doubt")


def test_an_empty_queue_is_by_design_with_fsync_and_in_a_paced_stream() -> None:
    assert found(deep(390, write_policy="fsync", fsync_every=1)) == set()
    assert "depth" not in found(deep(390, rate_iops=10_000.0))


def test_a_batch_waits_in_submission_by_design() -> None:
    row = direction(10_000, mean_us=790, slat=latency(500, 10_000))
    for changes in ({"barrier": True}, {"shape": "throughput"}):
        asked = cell(stream("reads", 4096, queue_depth=8, **changes))
        assert found(evidence(asked, job(read=row))) == set()
    blocked = direction(10_000, mean_us=790, slat=latency(95, 10_000))
    assert found(evidence(cell(stream(queue_depth=8)), job(read=blocked))) == {"submission-bound"}


def test_an_open_loop_near_its_peak_is_doubted_for_blocked_submission_not_thrown_away() -> None:
    blocked = direction(10_000, mean_us=790, slat=latency(95, 10_000))
    open_loop = stream(queue_depth=8, rate_iops=10_000.0)
    findings = findings_of(evidence(cell(open_loop), job(read=blocked)))
    severities = {f.severity for f in findings if f.check == "submission-bound"}
    assert severities == {"doubt"}


def paced(rate: float, ios: int, depth: int = 8, **levels: float) -> Evidence:
    percent = {name.removeprefix("at_"): share for name, share in levels.items()}
    return evidence(
        cell(stream(queue_depth=depth, rate_iops=rate)),
        job(read=direction(ios, mean_us=50), depth_percent=percent),
    )


@pytest.mark.parametrize(
    ("ios", "checks"),
    [(10_000, set()), (9_600, set()), (9_400, {"overloaded"}), (10_600, {"rate"})],
)
def test_an_open_loop_must_achieve_what_was_offered(ios: int, checks: set[str]) -> None:
    assert found(paced(10_000, ios), "doubt") - {"held-back"} == checks


def test_few_arrivals_may_differ_by_chance() -> None:
    assert found(paced(100, 70), "doubt") == set()
    assert found(paced(100, 55), "doubt") == {"overloaded"}


def test_a_queue_that_filled_is_overloaded_even_at_the_right_rate() -> None:
    assert "overloaded" not in found(paced(10_000, 10_000, at_8=0.5), "doubt")
    assert "overloaded" in found(paced(10_000, 10_000, at_8=1.5), "doubt")


def test_a_paced_queue_of_one_is_full_while_an_io_is_under_way() -> None:
    assert "overloaded" in found(paced(10_000, 10_000, depth=1), "doubt")
    assert found(paced(100, 100, depth=1), "doubt") == set()


def test_a_paced_job_that_is_seldom_idle_holds_arrivals_back() -> None:
    # the mean latency of these rows is known: what counts is how many are in flight per job
    busy, calm = paced(10_000, 10_000), paced(100, 100)
    assert "held-back" in found(busy, "doubt")
    assert "held-back" not in found(calm, "doubt")
    closed = evidence(cell(stream()), job(read=direction()))
    assert "held-back" not in found(closed, "doubt")


def test_the_device_must_see_the_bytes_that_fio_moved() -> None:
    given = evidence(cell(stream()), job(read=direction()))
    assert found(with_device(given, read_bytes=40_960_000)) == set()
    assert found(with_device(given, read_bytes=49_000_000)) == set()
    assert found(with_device(given, read_bytes=30_000_000)) == {"never-written"}
    writes = evidence(cell(stream(direction="write")), job(write=direction()))
    assert found(with_device(writes, write_bytes=30_000_000)) == {"device-counters"}


def test_a_device_that_went_away_makes_the_cell_invalid() -> None:
    given = with_device(evidence(cell(stream()), job(read=direction())), read_bytes=40_960_000)
    record = structs.replace(given.record, after=None)
    assert found(structs.replace(given, record=record)) == {"device-gone"}
    unknown = structs.replace(record, before=None)
    assert found(structs.replace(given, record=unknown)) == set()


def test_the_page_cache_is_doubted_and_its_hits_are_not_held_against_the_device() -> None:
    given = evidence(cell(stream(), direct=False), job(read=direction()))
    assert found(with_device(given, read_bytes=0), "doubt") == {"page-cache"}
    assert found(with_device(given, read_bytes=0)) == set()


def test_only_reads_are_doubted_on_a_device_that_nobody_filled() -> None:
    reads = evidence(cell(stream()), job(read=direction()), written=UNPROVEN)
    writes = evidence(cell(stream(direction="write")), job(write=direction()), written=UNPROVEN)
    assert found(reads, "doubt") == {"never-written"}
    assert found(writes, "doubt") == set()


def test_a_ceiling_cell_is_not_judged_as_a_device() -> None:
    asked: Cell = cell(stream(queue_depth=64), purpose="ceiling", engine="null", direct=False)
    given = evidence(asked, job(read=direction(), depth_percent={"1": 100.0}), written=UNPROVEN)
    assert findings_of(given) == ()


def test_the_latencies_of_the_null_engine_are_not_judged() -> None:
    wrong = direction(lat=latency(1, 10_000), clat=latency(245_000, 10_000))
    asked = structs.replace(cell(stream(queue_depth=4)), purpose="ceiling", engine="null")
    assert findings_of(evidence(asked, job(read=wrong))) == ()


def test_another_device_in_fios_report_is_noted() -> None:
    given = with_device(evidence(cell(stream()), job(read=direction())), read_bytes=40_960_000)
    disks = (DiskUtil(name="vdb", read_ios=1, write_ios=0),)
    given = structs.replace(given, result=structs.replace(given.result, disk_util=disks))
    assert found(given, "note") == {"device"}


@pytest.mark.parametrize(
    ("severities", "outcome"),
    [
        ([], "valid"),
        (["note"], "valid"),
        (["note", "doubt"], "doubtful"),
        (["doubt", "invalid", "note"], "invalid"),
    ],
)
def test_the_worst_finding_gives_the_outcome(severities: list[Severity], outcome: str) -> None:
    findings = [Finding(check="x", severity=s, text="x") for s in severities]
    assert outcome_of(findings, failed=False) == outcome
    assert outcome_of(findings, failed=True) == "failed"


def test_what_others_did_on_the_device_is_doubted() -> None:
    given = evidence(cell(stream()), job(read=direction()))  # 40.96 MB of reads
    assert found(with_device(given, read_bytes=50_000_000), "doubt") == set()
    assert found(with_device(given, read_bytes=90_000_000), "doubt") == {"foreign-io"}
    written = with_device(given, read_bytes=40_960_000, write_bytes=20_000_000)
    assert found(written, "doubt") == {"foreign-io"}


def test_submitters_without_time_to_wait_are_host_bound() -> None:
    busy = job(read=direction(), user_cpu_percent=35.0, system_cpu_percent=60.0)
    assert found(evidence(cell(stream()), busy), "doubt") == {"host-bound"}
    polling = stream(queue_depth=4, shape="throughput")
    assert "host-bound" not in found(evidence(cell(polling), busy), "doubt")


def beside(**amounts: int) -> Evidence:
    """41 MB through the page cache beside as many direct reads, and what the device saw."""
    streams = stream("cached", buffered=True), stream("direct")
    rows = job(0, 0, "cached", read=direction()), job(1, 1, "direct", read=direction())
    return with_device(evidence(cell(*streams), *rows), **amounts)


def test_a_buffered_stream_is_held_against_what_direct_ones_leave_of_the_devices_bytes() -> None:
    assert findings_of(beside(read_bytes=81_920_000)) == ()
    (only,) = findings_of(beside(read_bytes=61_440_000))  # half of it from the cache
    assert (only.check, only.severity, only.stream) == ("page-cache", "doubt", "cached")
    assert "19.53 MiB" in only.text


def test_a_buffered_stream_does_not_excuse_direct_reads_that_never_reached_the_device() -> None:
    assert found(beside(read_bytes=30_000_000)) == {"never-written"}
    assert found(beside(read_bytes=40_960_000)) == set()


def test_the_cache_is_looked_at_in_the_direction_of_the_buffered_stream_only() -> None:
    streams = stream("cached", buffered=True), stream("writes", direction="write")
    rows = job(0, 0, "cached", read=direction()), job(1, 1, "writes", write=direction())
    given = evidence(cell(*streams), *rows)
    whole = with_device(given, read_bytes=40_960_000, write_bytes=40_960_000)
    assert findings_of(whole) == ()
    lost = with_device(given, read_bytes=40_960_000, write_bytes=20_000_000)
    assert found(lost, "doubt") == set()
    assert found(lost) == {"device-counters"}


def test_read_ahead_is_not_taken_for_others_and_what_is_more_than_it_is() -> None:
    assert findings_of(beside(read_bytes=3 * 40_960_000)) == ()
    assert found(beside(read_bytes=5 * 40_960_000), "doubt") == {"foreign-io"}


def test_a_small_buffered_read_may_cost_the_device_a_whole_page() -> None:
    given = evidence(
        cell(stream("cached", 512, buffered=True)),
        job(0, 0, "cached", read=direction(block_bytes=512)),
    )
    assert findings_of(with_device(given, read_bytes=40_960_000)) == ()
