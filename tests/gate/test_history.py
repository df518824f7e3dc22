"""A drive over its runs: what is held against what, and what is called a change."""

from collections.abc import Sequence

import numpy as np
import pytest

from kvbench.compare.policy import find_policy
from kvbench.gate.history import History, LeftOut, history_of
from kvbench.measure.model import MeasuredRun
from tests.compare.runs import a_run
from tests.compare.samples import a_summary

GATE = find_policy(None, "gate")
STEADY = tuple(1000.0 + n for n in range(8))
SLOW = tuple(800.0 + n for n in range(8))


def run(name: str, values: Sequence[float] = STEADY, **facts: str) -> MeasuredRun:
    told = {name: value for name, value in facts.items() if name != "device_firmware"}
    firmware = facts.get("device_firmware", "FW1")
    return a_run(name, {"iops": values}, facts=told | {"device_firmware": firmware})


def history(*runs: MeasuredRun) -> History:
    return history_of(runs, GATE, serial="S1")


def called(found: History) -> list[str]:
    (series,) = found.series
    return [point.called for point in series.points]


def test_a_change_is_called_where_the_gate_calls_it_and_nowhere_else() -> None:
    found = history(
        run("a"), run("b"), run("c", SLOW, device_firmware="FW2"), run("d", SLOW), run("e")
    )
    assert called(found) == ["", "", "WORSE", "", "BETTER"]
    assert [one.against for one in found.runs] == [None, 0, 1, 2, 3]
    assert [one.outcome for one in found.runs] == [None, "PASS", "FAIL", "PASS", "PASS"]
    assert [one.firmware for one in found.runs] == ["FW1", "FW1", "FW2", "FW1", "FW1"]


def test_small_steps_are_called_when_they_add_up_and_against_what() -> None:
    steps = [run(str(n), tuple(v * 0.96**n for v in STEADY)) for n in range(5)]
    found = history(*steps)
    assert [one.outcome for one in found.runs] == [None, "PASS", "PASS", "PASS", "PASS"]
    assert called(found) == ["", "", "WORSE", "", "WORSE"]
    (series,) = found.series
    assert [point.since for point in series.points] == [None, None, 0, None, 2]
    crept = series.points[2]
    assert crept.change is not None
    assert crept.change.estimate == pytest.approx(0.96**2, abs=1e-3)
    assert (crept.verdict, crept.against) == ("PASS", 1)


def test_a_change_that_was_called_is_what_later_runs_are_held_against() -> None:
    slow = [tuple(v * factor for v in SLOW) for factor in (1.0, 0.96, 0.93)]
    found = history(run("a"), *(run(str(n), values) for n, values in enumerate(slow)))
    (series,) = found.series
    assert called(found) == ["", "WORSE", "", "WORSE"]
    assert [point.since for point in series.points] == [None, None, None, 1]


def test_a_number_that_vanished_is_called_once() -> None:
    gone = a_summary([], parameters={}, reason="overloaded: offered 9k/s, achieved 5k/s", lacking=8)
    p99 = tuple(0.001 * v for v in STEADY)
    runs = [
        a_run("a", {"iops": STEADY, "latency_p99": p99}),
        a_run("b", {"latency_p99": p99}, summaries=(gone,)),
        a_run("c", {"latency_p99": p99}, summaries=(gone,)),
        a_run("d", {"latency_p99": p99}),
    ]
    found = history_of(runs, GATE, serial="S1")
    (iops,) = (one for one in found.series if one.key.metric == "iops")
    assert [(p.run, p.called) for p in iops.points] == [(0, ""), (1, "MISSING"), (2, "")]
    assert found.runs[1].outcome == "FAIL"
    absent = history_of([runs[0], runs[3]], GATE, serial="S1")
    (iops,) = (one for one in absent.series if one.key.metric == "iops")
    assert iops.points[1].called == "MISSING"
    assert iops.points[1].sample.reason == "not in this run"


def test_an_unchanged_drive_is_rarely_called_worse() -> None:
    rng = np.random.default_rng(11)
    runs = [run(str(n), np.exp(rng.normal(0, 0.1, 8)).tolist()) for n in range(60)]
    assert called(history(*runs)).count("WORSE") <= 3


def test_too_few_repetitions_are_no_change_however_far_apart() -> None:
    found = history(run("a", STEADY[:3]), run("b", tuple(v / 2 for v in STEADY[:2])))
    assert called(found) == ["", ""]
    assert found.runs[1].outcome == "UNCLEAR"


def test_a_run_is_held_against_the_latest_that_it_may_be_held_against() -> None:
    found = history(run("a"), run("b", SLOW, kernel="6.9"), run("c"))
    assert [one.against for one in found.runs] == [None, None, 0]
    assert called(found) == ["", "", ""]
    assert found.runs[1].apart == "kernel must not differ and does (6.1, 6.9)"
    assert found.runs[2].apart == "kernel must not differ and does (6.9, 6.1)"
    assert found.runs[0].apart == ""
    (series,) = found.series
    assert [point.against for point in series.points] == [None, None, 0]


def test_a_single_run_is_a_history_without_a_verdict() -> None:
    found = history(run("a"))
    assert found.runs[0].outcome is None
    assert called(found) == [""]


def test_numbers_without_any_value_make_no_series_and_what_is_left_out_is_told() -> None:
    left_out = LeftOut(run_id="z", reason="it prepared the drive")
    found = history_of([run("a")], GATE, serial="S1", left_out=[left_out])
    assert [series.key.metric for series in found.series] == ["iops"]
    assert found.left_out == (left_out,)
    assert found.device == "DRIVE 1 S1"
