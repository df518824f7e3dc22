"""p50, p99 and p99.9 against the server's own log of each request."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kvbench.measure.model import MeasuredCell
from tests.known_devices import servers
from tests.known_devices.cells import figure, on_server, plan_of, reads

pytestmark = [pytest.mark.fio, pytest.mark.slow, servers.needs_servers]

# 3 % for the way between fio and the server, and half the width of fio's buckets.
TOLERANCE = 0.03 + 0.008
# 1,664 arrivals per second for 6.4 s: 10,650 I/Os, enough for p99.9.  A closed loop of this size
# would go in step with the delay, hundreds of I/Os at once, and measure how long they queue for
# two cores.  Many jobs of a low rate each, because fio lets all I/Os of a job end before it sleeps
# until the next arrival, and times those in flight at a job's end by the slowest of them.
RATE_IOPS, JOBS, DEPTH, RUNTIME_S = 1664.0, 64, 64, 6.4
THREADS = 40  # of a connection: the arrivals of a second, after an I/O that took so long


def open_loop(
    fio: str,
    folder: Path,
    server: servers.Server,
    *,
    rate_iops: float = RATE_IOPS,
    runtime_s: float = RUNTIME_S,
    ramp_s: float = 0.0,
) -> MeasuredCell:
    stream = reads(queue_depth=DEPTH, jobs=JOBS, rate_iops=rate_iops)
    plan = plan_of(stream, runtime_s=runtime_s, ramp_s=ramp_s)
    measured = on_server(plan, fio, folder, server)
    assert measured.outcome in ("valid", "doubtful"), measured.findings
    assert not [f for f in measured.findings if f.check in ("overloaded", "stalled")]
    return measured


def agree(
    measured: MeasuredCell, truth_s: NDArray[np.float64], what: str, percents: Iterable[float]
) -> None:
    """The percentiles are those of the log: nearest rank in both."""
    for percent in percents:
        got = figure(measured, f"{what}_p{percent:g}")
        assert got.value is not None, got.reason
        want_s = float(np.quantile(truth_s, percent / 100, method="inverted_cdf"))
        assert got.value == pytest.approx(want_s, rel=TOLERANCE), f"{what}_p{percent:g}"


def counts_agree(measured: MeasuredCell, log: servers.Reads, in_flight: int) -> None:
    counted = figure(measured, "iops").io_count
    assert abs(counted - log.latency_s.size) <= in_flight


def test_a_fixed_latency_is_the_median(fio: str, tmp_path: Path) -> None:
    with servers.fixed(50, threads=THREADS) as server:
        measured = open_loop(fio, tmp_path, server, runtime_s=1.5)
        log = server.reads()
    assert log.latency_s.min() >= 0.050
    counts_agree(measured, log, JOBS * DEPTH)
    agree(measured, log.latency_s, "latency", (50.0,))


def test_a_fixed_latency_is_seen_to_its_tail(fio: str, tmp_path: Path) -> None:
    # 3 % of 50 ms is less than a busy machine makes of one I/O in a hundred; of 400 ms it is not.
    # The jobs begin together while the server makes its threads, so the first half second, which
    # would be all of the p99.9, does not count.
    ramp_s = 0.5
    with servers.fixed(400, threads=THREADS) as server:
        measured = open_loop(
            fio, tmp_path, server, rate_iops=JOBS * 17.0, runtime_s=10.0, ramp_s=ramp_s
        )
        log = server.reads().after(ramp_s)
    counts_agree(measured, log, JOBS * DEPTH)
    agree(measured, log.latency_s, "latency", (50.0, 99.0, 99.9))


def test_two_percent_of_slow_places_are_the_p99(fio: str, tmp_path: Path) -> None:
    with servers.slow_places(50, 400, permille=20, threads=THREADS) as server:
        measured = open_loop(fio, tmp_path, server)
        log = server.reads()
    slow = log.latency_s >= 0.400
    assert 0.01 < slow.mean() < 0.03
    counts_agree(measured, log, JOBS * DEPTH)
    agree(measured, log.latency_s, "latency", (50.0, 99.0, 99.9))


def test_one_in_three_hundred_that_takes_a_second_is_the_p99_9_and_not_the_p99(
    fio: str, tmp_path: Path
) -> None:
    with servers.sometimes_slow(50, 1, percent=0.3, threads=THREADS) as server:
        # At half the rate: two slow ones in a row hold a job's arrivals back for over two seconds,
        # and 30 due meanwhile would rightly be called a standstill.
        measured = open_loop(
            fio, tmp_path, server, rate_iops=RATE_IOPS / 2, runtime_s=2 * RUNTIME_S
        )
        log = server.reads()
    slow = log.latency_s >= 1.0
    assert 0.001 < slow.mean() < 0.006
    counts_agree(measured, log, JOBS * DEPTH)
    agree(measured, log.latency_s, "latency", (50.0, 99.9))
    # As above: 50 ms are not known to 3 % so far up, but no slow one may be taken for the p99.
    p99 = figure(measured, "latency_p99").value
    assert p99 is not None
    assert 0.050 <= p99 < 0.5


def test_a_request_of_eight_takes_as_long_as_its_slowest(fio: str, tmp_path: Path) -> None:
    group, jobs = 8, 24
    stream = reads(queue_depth=group, jobs=jobs, barrier=True)
    with servers.slow_places(50, 400, permille=20, threads=group) as server:
        measured = on_server(plan_of(stream, runtime_s=5.6), fio, tmp_path, server)
        log = server.reads()
    assert measured.outcome in ("valid", "doubtful"), measured.findings
    counts_agree(measured, log, jobs * group)
    truth_s = log.slowest_of(group)
    # One in seven requests has a slow place among its eight.
    assert 0.08 < (truth_s >= 0.400).mean() < 0.25
    assert abs(figure(measured, "request_p50").io_count - truth_s.size) <= jobs
    # 10,000 requests, for p99.9, would take 50 s.
    agree(measured, truth_s, "request", (50.0, 99.0))
