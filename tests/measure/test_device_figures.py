"""What the device saw of a stream: sizes of requests, and the share that the page cache left."""

import pytest
from msgspec import structs

from kvbench.measure.checks import findings_of
from kvbench.measure.evidence import Evidence
from kvbench.measure.model import Finding, Measurement
from kvbench.measure.values import measure_values
from kvbench.units import KIB, MIB
from kvbench.workload.schema import Timing
from tests.measure.builders import cell, counters, direction, evidence, job, stream


def a_cell(
    seen_bytes: int | None, requests: int = 100, *, ramp_s: float = 0.0, **changes: object
) -> Evidence:
    """100 MiB of 1 MiB reads in one second, and what the device saw of them and of the ramp."""
    asked = structs.replace(
        cell(stream("reads", MIB, **changes)), timing=Timing(runtime_s=1.0, ramp_s=ramp_s)
    )
    given = evidence(asked, job(read=direction(100, 9_000, block_bytes=MIB)))
    if seen_bytes is None:
        return given
    before, after = counters(read_bytes=seen_bytes, requests=requests)
    record = structs.replace(given.record, device="vda", before=before, after=after)
    return structs.replace(given, record=record)


def numbers(given: Evidence) -> dict[str, Measurement]:
    return {m.metric: m for m in measure_values(given, (), {}).measurements}


def from_cache(given: Evidence) -> list[Finding]:
    return [f for f in findings_of(given) if f.check == "page-cache"]


@pytest.mark.parametrize("ramp", [0.0, 0.2, 1.0])
def test_the_share_of_the_device_is_of_the_measured_time_alone(ramp: float) -> None:
    sent = round((1 + ramp) * 100 * MIB)
    whole = a_cell(sent, buffered=True, ramp_s=ramp)
    assert numbers(whole)["device_byte_share"].value == pytest.approx(100.0)
    assert from_cache(whole) == []
    half = a_cell(sent // 2, buffered=True, ramp_s=ramp)
    assert numbers(half)["device_byte_share"].value == pytest.approx(50.0)
    assert [f.severity for f in from_cache(half)] == ["doubt"]


def test_a_ramp_does_not_hide_what_the_cache_served() -> None:
    # 100 MiB measured and 100 MiB of ramp; the device saw 120 MiB of these 200
    given = a_cell(120 * MIB, buffered=True, ramp_s=1.0)
    assert numbers(given)["device_byte_share"].value == pytest.approx(60.0)
    (found,) = from_cache(given)
    assert "of about 200 MiB that were read the device saw 120 MiB" in found.text
    assert found.stream == "reads"


def test_a_stream_that_the_cache_served_alone_has_0_percent_and_no_request_size() -> None:
    found = numbers(a_cell(0, buffered=True))
    assert (found["device_byte_share"].value, found["device_byte_share"].reason) == (0.0, "")
    for metric in ("device_requests_per_io", "device_request_bytes"):
        assert found[metric].value is None
        assert found[metric].reason == "the device saw no request"
    assert len(from_cache(a_cell(0, buffered=True))) == 1


def test_without_counters_the_share_is_not_0_but_unknown() -> None:
    found = numbers(a_cell(None, buffered=True))["device_byte_share"]
    assert (found.value, found.reason) == (None, "no counters of the device")


def test_a_direct_stream_has_no_share_and_the_size_of_its_requests() -> None:
    found = numbers(a_cell(100 * MIB, requests=800))
    assert "device_byte_share" not in found
    assert found["device_request_bytes"].value == pytest.approx(128 * KIB)
    assert found["device_requests_per_io"].value == pytest.approx(8.0)


def test_what_somebody_else_read_is_not_taken_for_the_streams() -> None:
    found = numbers(a_cell(900 * MIB, buffered=True))
    for metric in ("device_byte_share", "device_request_bytes"):
        assert found[metric].value is None
        assert found[metric].reason == "something else used the device meanwhile"


def test_a_trim_moves_no_bytes_and_has_no_figures_of_the_device() -> None:
    given = evidence(cell(stream(direction="trim")), job(trim=direction(100)))
    found = numbers(given)
    assert found["iops"].direction == "trim"
    assert not [name for name in found if name.startswith("device_")]


def test_the_times_of_the_block_layer_go_on_after_their_32_bits() -> None:
    given = a_cell(100 * MIB)
    record = given.record
    assert record.before is not None
    assert record.after is not None
    before = structs.replace(record.before, read_ticks_ms=2**32 - 300)
    after = structs.replace(record.after, read_ticks_ms=500)
    wrapped = structs.replace(record, before=before, after=after)
    found = numbers(structs.replace(given, record=wrapped))["device_latency_mean"]
    assert found.value == pytest.approx(0.008)  # 800 ms over 100 requests
