"""One I/O that took a large share of the measured time, or stood out absurdly."""

import numpy as np
import pytest
from msgspec import structs

from kvbench.fio.model import LatencyStats
from kvbench.measure.model import Finding
from kvbench.measure.slowest import is_stall, stalled
from tests.measure.builders import cell, direction, evidence, job, latency, stream


def timed(median_s: float, slowest_s: float, ios: int = 1000) -> LatencyStats:
    """Latencies that are the median, but for one."""
    return structs.replace(
        latency(median_s * 1e6, ios, slowest_s * 1e6),
        bin_ns=np.array([median_s, slowest_s]) * 1e9,
        bin_counts=np.array([ios - 1, 1]),
    )


def found(stats: LatencyStats, **changes: object) -> list[Finding]:
    asked = cell(stream(queue_depth=4), runtime_s=5.0, **changes)
    row = direction(1000, 50_000.0, runtime_ms=5000.0, lat=stats)
    return list(stalled(evidence(asked, job(read=row))))


def test_an_io_that_took_a_large_share_of_the_time_is_a_stall() -> None:
    (said,) = found(timed(0.050, 2.0))
    assert (said.check, said.severity, said.stream) == ("stalled", "doubt", "reads")
    assert "one I/O took 2.00 s of the 5.00 s measured, the median 50.0 ms" in said.text


def test_a_tail_is_no_stall() -> None:
    assert found(timed(0.050, 1.0)) == []


def test_a_ceiling_cell_has_no_device_that_could_stall() -> None:
    assert found(timed(1e-6, 2.0), purpose="ceiling", engine="null") == []


def test_a_row_without_a_histogram_has_no_median_to_compare_with() -> None:
    assert found(latency(50_000.0, 1000, 2e6)) == []


@pytest.mark.parametrize(
    ("slowest_s", "median_s", "measured_s", "stall"),
    [
        (0.30, 100e-6, 1.0, True),  # nearly a third of the second
        (0.20, 100e-6, 1.0, False),  # a long tail, in a short cell
        (0.90, 0.5, 1.0, False),  # every I/O is long: 64 MiB from a slow disk
        (0.08, 100e-6, 0.3, False),  # a busy host can do that
        (1.20, 100e-6, 3600.0, True),  # a small share, but 12,000 medians
        (1.20, 0.05, 3600.0, False),  # 24 medians: the tail of a slow device
        (0.50, 100e-6, 3600.0, False),
    ],
)
def test_what_is_a_stall(slowest_s: float, median_s: float, measured_s: float, stall: bool) -> None:
    assert is_stall(slowest_s, median_s, measured_s) is stall
