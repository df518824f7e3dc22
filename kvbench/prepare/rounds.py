"""Run rounds of one workload until its numbers are steady, and say what the rounds show."""

from collections.abc import Callable, Sequence
from itertools import groupby

from kvbench.measure.model import MeasuredRun, Measurement
from kvbench.measure.run import measure_run
from kvbench.metrics import METRICS
from kvbench.plan import Plan
from kvbench.session import Session
from kvbench.stats.steady import WINDOW_ROUNDS, steadiness
from kvbench.store.preparation import SteadyMetric, overall
from kvbench.store.read import read_run
from kvbench.store.records import EndRecord
from kvbench.store.write import RunWriter
from kvbench.workload.schema import Workload

STEADY_METRICS = ("iops", "bandwidth", "latency_p99.9")

Tell = Callable[[int, tuple[SteadyMetric, ...]], None]


def run_rounds(
    session: Session, plan: Plan, writer: RunWriter, tell: Tell
) -> tuple[EndRecord, tuple[SteadyMetric, ...]]:
    """Run repetition by repetition until every metric is steady, or the plan ends.

    Args:
        session: of the plan.
        plan: one workload; a repetition is a round.
        writer: its run folder.
        tell: is given the number of the round that ended, and what all rounds show.

    Raises:
        StoreError: the run folder can no longer be written; what it holds is kept.
    """
    metrics: tuple[SteadyMetric, ...] = ()
    for number, cells in groupby(plan.cells, key=lambda cell: cell.repetition):
        goes_on = session.run(cells)
        metrics = steady_metrics(measure_run(read_run(writer.folder)))
        if not goes_on:
            return session.finish(), metrics
        if number:  # 0 is the host's ceiling
            tell(number, metrics)
        if overall(metrics) == "steady":
            said = f"steady over rounds {number - WINDOW_ROUNDS + 1} to {number}"
            return session.finish(said, repetitions=number), metrics
    return session.finish(f"not steady after {plan.repetitions} rounds"), metrics


def steady_metrics(run: MeasuredRun) -> tuple[SteadyMetric, ...]:
    """Return each metric of the rounds that were measured, and whether it is steady.  Pure.

    A round without a value breaks the row: only rounds after it are looked at.
    """
    stream = writing_stream(run.record.plan.workloads[0])
    rounds = sorted(
        (cell for cell in run.cells if cell.cell.purpose == "measure"),
        key=lambda cell: cell.cell.repetition,
    )
    found = []
    for name in STEADY_METRICS:
        values: list[float | None] = []
        reason = ""
        for one in rounds:
            value, why = _value(one.measurements, stream, name)
            if one.outcome in ("failed", "invalid"):
                value, why = None, f"round {one.cell.repetition} is {one.outcome}"
            values.append(value)
            reason = why or reason
        found.append(_steady(name, values, reason))
    return tuple(found)


def writing_stream(workload: Workload) -> str:
    """Return the name of the first stream that writes, or of the first."""
    writers = [stream for stream in workload.streams if stream.writes]
    return (writers or list(workload.streams))[0].name


def _value(
    measurements: Sequence[Measurement], stream: str, metric: str
) -> tuple[float | None, str]:
    for one in measurements:
        if (one.stream, one.metric, one.direction) == (stream, metric, "write"):
            return one.value, one.reason
    return None, "not measured"


def _steady(metric: str, values: Sequence[float | None], reason: str) -> SteadyMetric:
    row: list[float] = []
    for value in values:
        row = [] if value is None else [*row, value]
    found = steadiness(row)
    skipped = len(values) - len(row)
    return SteadyMetric(
        metric=metric,
        unit=METRICS[metric].unit,
        values=tuple(values),
        state=found.state,
        first_round=found.first_round + skipped,
        mean=found.mean,
        range_share=found.range_share,
        slope_share=found.slope_share,
        reason=reason,
    )
