"""Latency logs of barrier streams: groups of N entries are requests."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvbench.measure.model import Measurement
from kvbench.measure.requests import Requests, gather_requests, group_maxima, read_log
from kvbench.measure.values import measure_values
from kvbench.store.layout import log_job_number
from tests.measure.builders import cell, direction, evidence, job, stream


def write_log(path: Path, latencies_ns: list[int], columns: str = "0, 4096, 0") -> Path:
    path.write_text("".join(f"{i}, {ns}, {columns}\n" for i, ns in enumerate(latencies_ns)))
    return path


def of_log(
    folder: Path, latencies_ns: list[int], runtime_ms: float, depth: int = 4, **changes: object
) -> Requests:
    """The requests of one job behind a barrier whose log holds these latencies."""
    count = len(latencies_ns)
    asked = cell(stream("rows", 4096, barrier=True, queue_depth=depth, **changes))
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


def test_steps_of_depth_one_add_up_and_the_last_request_is_dropped_with_its_steps(
    tmp_path: Path,
) -> None:
    found = of_log(tmp_path, [1, 2, 3, 4, 5, 6, 7, 8], 36e-6, depth=1, request_steps=3)
    assert found.steps_ns.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert found.time_ns.tolist() == [6, 15]
    # the two steps of the third request took their time, and count for the rate
    assert found.rate_per_s == pytest.approx(8 / 3 / 36e-9)


def test_a_step_of_depth_four_is_its_slowest_io(tmp_path: Path) -> None:
    latencies = [1, 9, 2, 3, 4, 4, 5, 4, 7, 1, 1, 1, 8, 8, 8, 8, 99, 99]
    found = of_log(tmp_path, latencies, 1.0, request_steps=2)
    assert found.steps_ns.tolist() == [[9, 5], [7, 8]]
    assert found.time_ns.tolist() == [14, 15]


@given(
    st.lists(st.lists(st.integers(1, 10**6), min_size=1, max_size=60), min_size=1, max_size=3),
    st.integers(1, 4),
    st.integers(1, 5),
)
def test_requests_of_several_jobs_are_never_mixed(
    jobs: list[list[int]], depth: int, steps: int
) -> None:
    asked = cell(
        stream("rows", barrier=True, queue_depth=depth, jobs=len(jobs), request_steps=steps)
    )
    rows = evidence(
        asked, *(job(0, i, "rows", read=direction(len(one))) for i, one in enumerate(jobs))
    ).streams[0]
    with TemporaryDirectory() as folder:
        logs = {
            number: write_log(Path(folder) / f"latency_lat.{number}.log", one)
            for number, one in enumerate(jobs, start=1)
        }
        found = gather_requests(rows, logs)
    expected = []
    for one in jobs:
        size = depth * steps
        for start in range(0, len(one) - size + 1, size):
            groups = [one[start + i : start + i + depth] for i in range(0, size, depth)]
            expected.append(sum(max(group) for group in groups))
    assert found.time_ns.tolist() == expected


MS = 1_000_000


def numbers(steps_ms: list[list[int]], **changes: object) -> dict[str, Measurement]:
    """The measurements of a stream whose requests took these times per step."""
    steps = np.array(steps_ms, dtype=np.int64) * MS
    asked = cell(stream("rows", 4096, barrier=True, request_steps=steps.shape[1], **changes))
    given = evidence(asked, job(name="rows", read=direction(steps.size)))
    found = measure_values(given, (), {"rows": Requests(steps_ns=steps, rate_per_s=1.0)})
    return {m.metric: m for m in found.measurements}


def test_steps_have_percentiles_of_their_own_where_a_request_has_several() -> None:
    several = numbers([[1, 2]] * 10 + [[3, 4]] * 10)
    assert several["request_p50"].value == pytest.approx(0.003)
    assert several["step_p50"].value == pytest.approx(0.002)
    assert several["step_p50"].io_count == 40
    assert several["step_p90"].reason == "too few steps: 40 of 100 needed"
    assert not [name for name in numbers([[1]] * 20) if name.startswith("step_")]


def test_a_deadline_holds_the_whole_request_and_each_step_from_its_start() -> None:
    found = numbers([[1, 1, 1], [1, 4, 1], [6, 0, 0], [2, 2, 1]], deadline_s=0.005)
    assert found["deadline_hit_share"].value == 50.0  # 3, 6, 6 and 5 ms
    assert found["deadline_hit_share"].io_count == 4
    # in time: 3, 2 (1 and 5 ms), 0 and 3 of 3 steps
    assert found["deadline_step_share"].value == pytest.approx(100 * 8 / 12)
    assert found["deadline_step_share"].io_count == 12


def test_stalls_are_per_request_and_need_a_time_to_compute() -> None:
    found = numbers([[1, 1]] * 20, compute_s=0.002)
    assert found["stall_p50"].value == pytest.approx(0.001)
    assert found["stall_p90"].reason == "too few requests: 20 of 100 needed"
    assert not [name for name in numbers([[1, 1]]) if name.startswith("stall_")]


def test_without_requests_every_number_of_them_has_the_reason() -> None:
    asked = cell(stream("rows", barrier=True, request_steps=2, deadline_s=1.0, compute_s=0.1))
    given = evidence(asked, job(name="rows", read=direction(8)))
    none = Requests(
        steps_ns=np.empty((0, 2), dtype=np.int64), rate_per_s=0.0, reason="the log is lost"
    )
    found = measure_values(given, (), {"rows": none}).measurements
    names = ("request_", "step_", "stall_", "deadline_")
    mine = [m for m in found if m.metric.startswith(names)]
    assert {name for name in names if any(m.metric.startswith(name) for m in mine)} == set(names)
    assert {(m.value, m.reason) for m in mine} == {(None, "the log is lost")}


def test_amplification_is_the_bytes_of_an_io_over_those_that_are_wanted() -> None:
    asked = cell(stream("rows", block_bytes=4096, payload_bytes=656))
    given = evidence(asked, job(name="rows", read=direction(100)))
    (found,) = [
        m for m in measure_values(given, (), {}).measurements if m.metric == "read_amplification"
    ]
    assert found.value == pytest.approx(4096 / 656)
    bare = measure_values(
        evidence(cell(stream("rows")), job(name="rows", read=direction(100))), (), {}
    )
    assert "read_amplification" not in {m.metric for m in bare.measurements}
