"""What the device saw beside what fio counted: others, or a ramp that was quicker."""

from msgspec import structs

from kvbench.host.health_model import CellHealth, HealthSample
from kvbench.measure.checks import findings_of
from kvbench.measure.evidence import Evidence
from kvbench.measure.values import measure_values
from kvbench.workload.schema import Timing
from tests.measure.builders import cell, counters, direction, evidence, job, stream
from tests.measure.test_checks import found, with_device

DEVICE = "device_requests_per_io"


def after_a_ramp(*, ramp_bytes: int, others_bytes: int = 0, looked: bool = True) -> Evidence:
    """2 s of ramp and 10 s of 4.1 MB/s, with a look at the device's counters every second."""
    asked = structs.replace(cell(stream()), timing=Timing(runtime_s=10.0, ramp_s=2.0))
    moved = 40_960_000
    given = evidence(asked, job(read=direction(mean_us=1000.0, runtime_ms=10_000.0)))
    samples = []
    for second in range(13):
        measured = max(0.0, min(10.0, second - 2.2)) / 10.0  # fio needs 0.2 s to begin
        done = ramp_bytes * min(1.0, second / 2.2) + measured * (moved + others_bytes)
        _, counted = counters(read_bytes=round(done))
        samples.append(HealthSample(at_s=float(second), counters=counted))
    whole = with_device(given, read_bytes=ramp_bytes + moved + others_bytes)
    health = CellHealth(samples=tuple(samples)) if looked else None
    record = structs.replace(whole.record, wall_s=12.4, health=health)
    return structs.replace(whole, record=record)


def test_a_ramp_that_was_quicker_than_what_followed_is_not_taken_for_others() -> None:
    assert found(after_a_ramp(ramp_bytes=200_000_000), "doubt") == set()
    assert found(after_a_ramp(ramp_bytes=8_000_000), "doubt") == set()


def test_others_beside_a_cell_with_a_ramp_are_still_found_and_the_ramp_is_not_blamed() -> None:
    for ramp in (0, 8_000_000, 200_000_000):
        given = after_a_ramp(ramp_bytes=ramp, others_bytes=60_000_000)
        (only,) = [one for one in findings_of(given) if one.severity == "doubt"]
        assert only.check == "foreign-io"
        assert only.text.startswith("something else used the device")
        assert "ramp" not in only.text


def test_without_a_look_after_the_ramp_the_finding_says_that_it_may_be_the_ramp() -> None:
    (only,) = [
        one
        for one in findings_of(after_a_ramp(ramp_bytes=200_000_000, looked=False))
        if one.severity == "doubt"
    ]
    assert only.check == "foreign-io"
    assert "may have used" in only.text
    assert "the ramp, whose bytes fio does not count" in only.text


def test_a_quick_ramp_leaves_no_figure_of_the_device_s_share() -> None:
    numbers = {
        m.metric: m
        for m in measure_values(after_a_ramp(ramp_bytes=200_000_000), (), {}).measurements
    }
    assert numbers[DEVICE].value is None
    assert "the ramp was much quicker" in numbers[DEVICE].reason
