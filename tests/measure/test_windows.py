"""fio's logs of time windows: when did no I/O of an open loop complete?"""

import gzip
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from kvbench.measure.model import Finding
from kvbench.measure.values import measure_values
from kvbench.measure.windows import longest_gap, read_windows, windows_without_io
from kvbench.plan import Cell
from tests.measure.builders import cell, direction, evidence, job, latency, stream

# Two seconds without a completion at a device of 50 ms, as fio 3.33 wrote it.
STALL = [111, 216, 326, 432, 543, 651, 2726, 2800, 2900, 3001, 3101, 3200, 3300, 3401, 3502]
STALL += [3612, 3723, 3825, 3932, 4038, 4042]
EVEN = list(range(105, 4000, 100))


def log(folder: Path, number: int, stamps: list[int], code: int = 0) -> Path:
    """Add lines to the log of a job."""
    path = folder / f"windows_lat.{number}.log.gz"
    with gzip.open(path, "at") as lines:
        lines.writelines(f"{stamp}, 50582970, {code}, 0, 0\n" for stamp in stamps)
    return path


def found(folder: Path, asked: Cell, *stamps: list[int]) -> tuple[Finding, ...]:
    """What is said of a cell of one stream, of whose jobs these are the lines."""
    only = asked.placed[0].stream
    for old in folder.glob("*.gz"):
        old.unlink()
    row = direction(1600, 50_000.0, runtime_ms=4000.0)
    jobs = [job(index=number, read=row) for number in range(only.jobs)]
    logs = {n: log(folder, n, lines) for n, lines in enumerate(stamps, start=1)}
    return windows_without_io(evidence(asked, *jobs), logs)


def paced(rate: float, **changes: object) -> Cell:
    fields: dict[str, object] = {"queue_depth": 512, "rate_iops": rate}
    return cell(structs.replace(stream(), **(fields | changes)), runtime_s=4.0)


def test_a_time_without_completions_is_overloaded_and_says_from_when_to_when(
    tmp_path: Path,
) -> None:
    (said,) = found(tmp_path, paced(400.0), STALL)
    assert (said.check, said.severity, said.stream) == ("overloaded", "doubt", "reads")
    assert "from 0.70 s to 2.73 s not one I/O of job 1 completed, and 810 were due" in said.text


def test_lines_in_every_window_are_no_finding(tmp_path: Path) -> None:
    assert found(tmp_path, paced(400.0), EVEN) == ()


def test_so_few_due_that_chance_makes_such_a_gap_are_no_finding(tmp_path: Path) -> None:
    assert found(tmp_path, paced(14.0), STALL) == ()
    assert found(tmp_path, paced(15.0), STALL) != ()


def test_each_job_is_judged_by_its_own_rate(tmp_path: Path) -> None:
    (said,) = found(tmp_path, paced(800.0, jobs=2), EVEN, STALL)
    assert "of job 2 completed, and 810 were due" in said.text
    assert found(tmp_path, paced(28.0, jobs=2), EVEN, STALL) == ()


def test_each_direction_is_judged_by_its_share_of_the_rate(tmp_path: Path) -> None:
    asked = paced(400.0, direction="mixed", read_percent=75)
    path = log(tmp_path, 1, EVEN, code=0)
    log(tmp_path, 1, STALL, code=1)  # the writes stood still
    row = direction(800, 50_000.0, runtime_ms=4000.0)
    (said,) = windows_without_io(evidence(asked, job(read=row, write=row)), {1: path})
    assert "and 203 were due" in said.text


def test_a_queue_that_begins_empty_lacks_no_io_before_the_first_can_be_done() -> None:
    slow = np.array([620, 700, 800, 900], dtype=np.int64)
    assert longest_gap(slow, 600.0, 1000.0).length_ms < 100
    assert longest_gap(slow, 0.0, 1000.0).length_ms == 520


def test_what_completes_after_the_measured_time_was_due_before_it() -> None:
    drained = np.array([*range(105, 1000, 100), 2951], dtype=np.int64)
    assert longest_gap(drained, 0.0, 1000.0).length_ms < 100


def test_a_gap_at_the_end_is_seen_with_and_without_a_line_of_the_rest() -> None:
    for stamps in ([105, 205], [105, 205, 1000]):
        gap = longest_gap(np.array(stamps, dtype=np.int64), 0.0, 1000.0)
        assert (gap.begin_ms, gap.end_ms) == (300, 1000)


def test_no_line_at_all_is_a_gap_from_the_first_window_on() -> None:
    gap = longest_gap(np.empty(0, dtype=np.int64), 0.0, 1000.0)
    assert (gap.begin_ms, gap.end_ms) == (100, 1000)


def test_closed_loops_and_barriers_have_no_windows(tmp_path: Path) -> None:
    closed = cell(stream(queue_depth=4), runtime_s=4.0)
    barrier = cell(stream(queue_depth=8, barrier=True, rate_iops=800.0), runtime_s=4.0)
    for asked in (closed, barrier):
        assert found(tmp_path, asked, STALL) == ()


def test_a_run_without_such_logs_says_that_it_cannot_know(tmp_path: Path) -> None:
    (said,) = found(tmp_path, paced(400.0))
    assert (said.check, said.severity) == ("windows", "note")


@pytest.mark.parametrize("text", ["not a log\n", "1, 2\n", "1, 2, x\n"])
def test_a_log_that_is_damaged_or_of_a_job_less_is_doubted(tmp_path: Path, text: str) -> None:
    asked = paced(800.0, jobs=2)
    (missing,) = found(tmp_path, asked, EVEN)
    assert (missing.check, missing.severity) == ("windows", "doubt")
    assert "job 2" in missing.text
    bad = tmp_path / "windows_lat.1.log"
    bad.write_text(text)
    row = direction(1600, 50_000.0, runtime_ms=4000.0)
    told = evidence(asked, job(read=row), job(index=1, read=row))
    (damaged,) = windows_without_io(told, {1: bad, 2: bad})
    assert (damaged.check, damaged.severity) == ("windows", "doubt")
    assert "\n" not in damaged.text


def test_an_empty_log_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "windows_lat.1.log"
    path.write_text("")
    assert read_windows(path).shape == (0, 2)


def test_a_stream_with_such_a_gap_has_no_percentiles(tmp_path: Path) -> None:
    timed = structs.replace(
        latency(50_000.0, 1600), bin_ns=np.array([5e7]), bin_counts=np.array([1600])
    )
    row = direction(1600, 50_000.0, runtime_ms=4000.0, lat=timed)
    told = evidence(paced(400.0), job(read=row))
    for stamps, refused in ((EVEN, False), (STALL, True)):
        said = windows_without_io(told, {1: log(tmp_path, 1 + refused, stamps)})
        (p50,) = [
            m for m in measure_values(told, said, {}).measurements if m.metric == "latency_p50"
        ]
        assert (p50.value is None) == refused
        assert ("were due" in p50.reason) == refused
