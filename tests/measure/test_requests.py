"""Latency logs of barrier streams: groups of N entries are requests."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvbench.measure.requests import Requests, gather_requests, group_maxima, read_log
from kvbench.measure.values import measure_values
from kvbench.store.layout import log_job_number
from tests.measure.builders import cell, direction, evidence, job, stream


def write_log(path: Path, latencies_ns: list[int], columns: str = "0, 4096, 0") -> Path:
    path.write_text("".join(f"{i}, {ns}, {columns}\n" for i, ns in enumerate(latencies_ns)))
    return path


def of_log(folder: Path, latencies_ns: list[int], runtime_ms: float, **changes: object) -> Requests:
    """The requests of one job of barrier 4 whose log holds these latencies."""
    count = len(latencies_ns)
    asked = cell(stream("rows", 4096, barrier=True, queue_depth=4, **changes))
    rows = evidence(asked, job(name="rows", read=direction(count, runtime_ms=runtime_ms)))
    logs = {1: write_log(folder / "latency_lat.1.log", latencies_ns)}
    return gather_requests(rows.streams[0], logs)


def test_a_request_takes_as_long_as_its_slowest_io(tmp_path: Path) -> None:
    ms = 1_000_000
    found = of_log(tmp_path, [1 * ms, 5 * ms, 2 * ms, 1 * ms, 4 * ms, 3 * ms, 1 * ms, 1 * ms], 9.0)
    assert found.time_ns.tolist() == [5 * ms, 4 * ms]
    assert found.rate_per_s == pytest.approx(2 / 0.009)
    assert found.findings == ()


def test_the_incomplete_last_group_is_no_request(tmp_path: Path) -> None:
    found = of_log(tmp_path, [1_000_000] * 403, 101.0)
    assert found.time_ns.size == 100


@given(st.lists(st.integers(1, 10**9), max_size=40), st.integers(1, 9))
def test_there_is_one_maximum_per_whole_group(latencies: list[int], group: int) -> None:
    maxima = group_maxima(np.array(latencies, dtype=np.int64), group)
    whole = [latencies[i : i + group] for i in range(0, len(latencies) - group + 1, group)]
    assert maxima.tolist() == [max(members) for members in whole]


def test_requests_that_overlap_are_no_barrier(tmp_path: Path) -> None:
    found = of_log(tmp_path, [1_000_000] * 400, 50.0)
    assert [(f.check, f.severity) for f in found.findings] == [("barrier", "invalid")]
    assert "2.00 of its runtime" in found.findings[0].text


def test_requests_far_apart_are_doubted_unless_paced(tmp_path: Path) -> None:
    assert [f.severity for f in of_log(tmp_path, [1_000_000] * 400, 200.0).findings] == ["doubt"]
    assert of_log(tmp_path, [1_000_000] * 400, 200.0, rate_iops=2000.0).findings == ()


def test_a_log_with_another_number_of_ios_cannot_be_grouped(tmp_path: Path) -> None:
    asked = cell(stream("rows", barrier=True, queue_depth=4))
    rows = evidence(asked, job(name="rows", read=direction(8))).streams[0]
    found = gather_requests(rows, {1: write_log(tmp_path / "latency_lat.1.log", [5] * 7)})
    assert found.time_ns.size == 0
    assert "7 entries and fio counted 8 I/Os" in found.reason
    assert found.findings[0].severity == "invalid"


@pytest.mark.parametrize("content", [None, "", "no log\n", "1, 2, 3\n4, x, 6\n"])
def test_a_log_that_cannot_be_used_is_a_finding_and_no_crash(
    tmp_path: Path, content: str | None
) -> None:
    asked = cell(stream("rows", barrier=True, queue_depth=4))
    rows = evidence(asked, job(name="rows", read=direction(8))).streams[0]
    log = tmp_path / "latency_lat.1.log"
    if content is not None:
        log.write_text(content)
    found = gather_requests(rows, {} if content is None else {1: log})
    assert found.reason
    assert [f.severity for f in found.findings] == ["invalid"]


def test_the_jobs_of_a_later_stream_have_the_later_logs(tmp_path: Path) -> None:
    asked = cell(stream("steady", jobs=2), stream("rows", barrier=True, queue_depth=4, jobs=2))
    busy = direction(400, runtime_ms=100)
    rows = evidence(
        asked,
        *(job(0, i, "steady", read=busy) for i in (0, 1)),
        *(job(1, i, "rows", read=busy) for i in (2, 3)),
    ).streams[1]
    logs = {
        number: write_log(tmp_path / f"latency_lat.{number}.log", [number * 250_000] * 400)
        for number in (3, 4)
    }
    found = gather_requests(rows, logs)
    assert sorted(set(found.time_ns.tolist())) == [750_000, 1_000_000]
    assert found.rate_per_s == pytest.approx(2 * 100 / 0.1)


def test_columns_that_newer_versions_append_are_ignored(tmp_path: Path) -> None:
    log = write_log(tmp_path / "latency_lat.12.log", [7, 8], columns="0, 4096, 8192, 0, 5")
    assert read_log(log).tolist() == [7, 8]
    assert log_job_number(log) == 12


def test_requests_become_measurements_and_a_histogram(tmp_path: Path) -> None:
    found = of_log(tmp_path, [1_000_000] * 400, 100.0)
    asked = cell(stream("rows", barrier=True, queue_depth=4))
    given = evidence(asked, job(name="rows", read=direction(400, runtime_ms=100)))
    values = measure_values(given, (), {"rows": found})
    by_name = {m.metric: m for m in values.measurements}
    assert by_name["request_rate"].value == pytest.approx(1000)
    assert by_name["request_p90"].value == pytest.approx(0.001)
    assert by_name["request_p90"].io_count == 100
    assert by_name["request_p99"].reason == "too few requests: 100 of 1,000 needed"
    assert [h.what for h in values.histograms] == ["request"]
