"""Measurements: the ten-beyond rule, censoring, sums over jobs, and reasons in place of numbers."""

import numpy as np
import pytest
from msgspec import structs

from kvbench.measure.checks import findings_of
from kvbench.measure.model import Measurement
from kvbench.measure.values import FIO_LAST_BIN_NS, measure_values, percentiles
from tests.measure.builders import cell, counters, direction, evidence, job, latency, stream


def named(found: list[Measurement] | tuple[Measurement, ...], metric: str) -> Measurement:
    return next(m for m in found if m.metric == metric)


def of_counts(*counts: int) -> list[Measurement]:
    values = np.arange(1, len(counts) + 1, dtype=np.float64) * 1e6
    return percentiles("latency", "reads", "read", values, np.array(counts))


@pytest.mark.parametrize(
    ("metric", "needed"),
    [
        ("latency_p50", 20),
        ("latency_p90", 100),
        ("latency_p99", 1_000),
        ("latency_p99.9", 10_000),
        ("latency_p99.99", 100_000),
        ("latency_p99.999", 1_000_000),
    ],
)
def test_a_percentile_needs_ten_ios_beyond_it(metric: str, needed: int) -> None:
    enough, short = named(of_counts(needed), metric), named(of_counts(needed - 1), metric)
    assert enough.value == pytest.approx(0.001)
    assert enough.reason == ""
    assert short.value is None
    assert short.reason == f"too few I/Os: {needed - 1:,} of {needed:,} needed"
    assert short.io_count == needed - 1


def test_too_few_requests_are_called_requests() -> None:
    found = percentiles("request", "reads", "read", np.array([1.0]), np.array([19]))
    assert named(found, "request_p50").reason == "too few requests: 19 of 20 needed"


def test_a_latency_in_fios_last_bin_is_a_lower_bound() -> None:
    values = np.array([1e6, float(FIO_LAST_BIN_NS)])
    found = percentiles("latency", "reads", "read", values, np.array([950, 50]))
    assert named(found, "latency_p90").censored is False
    p99 = named(found, "latency_p99")
    assert p99.censored is True
    assert p99.value == pytest.approx(17.1, abs=0.02)


def test_the_last_bin_is_that_of_fios_layout() -> None:
    groups, buckets = 29, 64
    index = groups * buckets - 1
    width_bits = (index >> 6) - 1
    low = (1 << (width_bits + 6)) + (index % buckets << width_bits)
    assert low + (1 << width_bits) / 2 == FIO_LAST_BIN_NS == 17_112_760_320


def two_jobs() -> tuple[Measurement, ...]:
    asked = cell(stream(jobs=2))
    rows = (
        job(index=0, read=direction(10_000, 90, runtime_ms=1000)),
        job(index=1, read=direction(2_000, 400, runtime_ms=500)),
    )
    return measure_values(evidence(asked, *rows), (), {}).measurements


def test_rates_of_jobs_add_up_each_over_its_own_runtime() -> None:
    found = two_jobs()
    assert named(found, "iops").value == pytest.approx(10_000 + 4_000)
    assert named(found, "bandwidth").value == pytest.approx(14_000 * 4096)
    assert named(found, "iops").io_count == 12_000


def test_the_mean_latency_is_over_all_ios() -> None:
    expected = (10_000 * 90e-6 + 2_000 * 400e-6) / 12_000
    assert named(two_jobs(), "latency_mean").value == pytest.approx(expected)
    assert named(two_jobs(), "depth_mean").value == pytest.approx(14_000 * expected)


def test_cpu_time_is_of_all_jobs_over_all_ios() -> None:
    # 30 % of a second, twice, over 12,000 I/Os
    assert named(two_jobs(), "cpu_per_io").value == pytest.approx(0.6 / 12_000)


def test_both_directions_of_a_mix_are_measured_and_cpu_once() -> None:
    asked = cell(stream(direction="mixed", read_percent=70))
    rows = job(read=direction(7_000), write=direction(3_000))
    found = measure_values(evidence(asked, rows), (), {}).measurements
    assert [(m.direction, m.value) for m in found if m.metric == "iops"] == [
        ("read", 7_000.0),
        ("write", 3_000.0),
    ]
    cpu = [m for m in found if m.metric == "cpu_per_io"]
    assert [m.value for m in cpu] == [pytest.approx(0.3 / 10_000)]


def test_device_requests_per_io_do_not_depend_on_the_ramp() -> None:
    given = evidence(
        cell(stream(block_bytes=2**20)), job(read=direction(100, 9_000, block_bytes=2**20))
    )
    for share_seen in (1.0, 1.2):  # the device also saw the ramp
        sent = round(100 * share_seen)
        before, after = counters(read_bytes=sent * 2**20, requests=sent * 8)
        record = structs.replace(given.record, device="vda", before=before, after=after)
        found = measure_values(structs.replace(given, record=record), (), {}).measurements
        assert named(found, "device_requests_per_io").value == pytest.approx(8.0)


def test_device_requests_of_several_streams_cannot_be_told_apart() -> None:
    asked = cell(stream("a"), stream("b"))
    rows = (job(0, 0, "a", read=direction()), job(1, 1, "b", read=direction()))
    found = measure_values(evidence(asked, *rows), (), {}).measurements
    assert "cannot be split" in named(found, "device_requests_per_io").reason


def test_a_ceiling_cell_has_no_device_requests() -> None:
    asked = cell(stream(), purpose="ceiling", engine="null")
    found = measure_values(evidence(asked, job(read=direction())), (), {}).measurements
    assert "device_requests_per_io" not in {m.metric for m in found}


def test_an_overloaded_stream_has_rates_and_no_percentiles() -> None:
    stats = structs.replace(
        latency(50, 10_000), bin_ns=np.array([5e4]), bin_counts=np.array([10_000])
    )
    given = evidence(
        cell(stream(queue_depth=8, rate_iops=20_000.0)), job(read=direction(10_000, lat=stats))
    )
    found = measure_values(given, findings_of(given), {}).measurements
    assert named(found, "iops").value == 10_000
    p50 = named(found, "latency_p50")
    assert p50.value is None
    assert p50.reason == "overloaded: offered 20.0k/s, achieved 10.0k/s"


def test_a_stream_without_rows_says_so() -> None:
    found = measure_values(evidence(cell(stream())), (), {}).measurements
    assert [(m.metric, m.value, m.reason) for m in found] == [("iops", None, "no I/O was done")]


def test_a_histogram_is_kept_in_seconds() -> None:
    stats = structs.replace(
        latency(100, 10_000), bin_ns=np.array([5e4, 2e5]), bin_counts=np.array([9_000, 1_000])
    )
    given = evidence(cell(stream()), job(read=direction(lat=stats)))
    (histogram,) = measure_values(given, (), {}).histograms
    assert histogram.latency_s.tolist() == pytest.approx([5e-5, 2e-4])
    assert histogram.counts.tolist() == [9_000, 1_000]
    assert histogram.what == "latency"
