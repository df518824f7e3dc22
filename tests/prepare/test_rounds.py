"""What rounds show, from measured cells made by hand."""

from collections.abc import Sequence

from kvbench.measure.model import MeasuredCell, MeasuredRun, Measurement, Outcome
from kvbench.plan import TargetSpec, make_plan
from kvbench.prepare.rounds import STEADY_METRICS, steady_metrics
from kvbench.store.preparation import SteadyMetric
from kvbench.units import GIB
from kvbench.workload import catalog
from tests.records import a_run_record

TARGET = TargetSpec(path="/dev/x", kind="block", size_bytes=GIB, own_file=False)
PLAN = make_plan(
    [catalog.find_workload("steady-state", None)],
    TARGET,
    repetitions=25,
    seed=1,
    may_write=True,
)
ROUNDS = [cell for cell in PLAN.cells if cell.purpose == "measure"]


def rounds(
    iops: Sequence[float], p999: Sequence[float | None], outcomes: dict[int, Outcome] | None = None
) -> dict[str, SteadyMetric]:
    """Return what rounds with these values show, by metric."""
    cells = []
    for cell, rate, tail in zip(ROUNDS, iops, p999, strict=False):
        values = {"iops": rate, "bandwidth": rate * 4096, "latency_p99.9": tail}
        cells.append(
            MeasuredCell(
                cell=cell,
                outcome=(outcomes or {}).get(cell.repetition, "valid"),
                findings=(),
                measurements=tuple(
                    Measurement(
                        stream="write",
                        direction="write",
                        metric=name,
                        value=values[name],
                        io_count=1,
                        reason="" if values[name] is not None else "too few I/Os",
                    )
                    for name in STEADY_METRICS
                ),
                histograms=(),
            )
        )
    cells.reverse()  # the order in the archive is not the order of the rounds
    run = MeasuredRun(
        record=a_run_record(PLAN), end=None, cells=tuple(cells), summaries=(), damage=()
    )
    return {metric.metric: metric for metric in steady_metrics(run)}


def test_rounds_are_in_order_and_steady_when_the_last_five_agree() -> None:
    found = rounds([900, 500, 100, 101, 99, 100, 102], [0.001] * 7)
    assert found["iops"].values == (900, 500, 100, 101, 99, 100, 102)
    assert (found["iops"].state, found["iops"].first_round) == ("steady", 3)
    assert found["bandwidth"].mean == found["iops"].mean * 4096  # type: ignore[operator]


def test_a_tail_that_still_grows_is_not_steady_where_the_rate_is() -> None:
    found = rounds([100] * 5, [0.001, 0.002, 0.003, 0.004, 0.005])
    assert (found["iops"].state, found["latency_p99.9"].state) == ("steady", "not steady")


def test_a_round_without_a_value_breaks_the_row() -> None:
    found = rounds([100] * 6, [0.001, 0.001, None, 0.001, 0.001, 0.001])
    tail = found["latency_p99.9"]
    assert tail.state == "too few rounds"
    assert tail.values[2] is None
    assert tail.reason == "too few I/Os"


def test_an_invalid_round_has_no_value_in_any_metric() -> None:
    found = rounds([100] * 6, [0.001] * 6, {2: "invalid"})
    assert found["iops"].values[1] is None
    assert found["iops"].reason == "round 2 is invalid"
    assert found["iops"].state == "too few rounds"
