import pytest

from kvbench.metrics import METRICS, PERCENTILES, ios_needed, percentile_name

UNITS = {"1/s", "B/s", "s", "1", "%", "B"}


def test_every_metric_stands_under_its_own_name_with_a_known_unit_and_a_meaning() -> None:
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.unit in UNITS
        assert metric.better in ("higher", "lower", "neither")
        assert len(metric.meaning) > 10


@pytest.mark.parametrize(
    ("percentile", "ios"),
    [(50, 20), (90, 100), (99, 1000), (99.9, 10_000), (99.99, 100_000), (99.999, 1_000_000)],
)
def test_a_percentile_needs_ten_ios_beyond_it(percentile: float, ios: int) -> None:
    assert ios_needed(percentile) == ios
    assert METRICS[f"latency_{percentile_name(percentile)}"].min_ios == ios
    assert METRICS[f"request_{percentile_name(percentile)}"].min_ios == ios


def test_a_lower_latency_is_better_and_a_higher_rate() -> None:
    assert all(m.better == "lower" for m in METRICS.values() if m.percentile is not None)
    assert METRICS["iops"].better == METRICS["bandwidth"].better == "higher"


def test_metrics_without_a_percentile_need_one_io() -> None:
    assert METRICS["iops"].min_ios == 1
    assert [percentile_name(p) for p in PERCENTILES][:4] == ["p50", "p90", "p99", "p99.9"]
