"""Runs of made-up drives to be held against each other; no device made them."""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from kvbench.compare.join import compare_runs
from kvbench.compare.model import Comparison
from kvbench.compare.policy import find_policy
from kvbench.host.model import Fact
from kvbench.measure.model import MeasuredCell, MeasuredRun, Summary
from kvbench.metrics import METRICS
from kvbench.report.compare_model import CompareView
from kvbench.report.compare_view import build
from kvbench.workload.schema import Workload
from tests.report.example import BLOCKS, LOAD, all_valid, ladder, make_run

REPETITIONS = 8
SMALL = (ladder(sizes=(512,), jobs=(1,)), BLOCKS)
MANY = (ladder(), BLOCKS, LOAD)


def drive(
    name: str,
    *,
    slower: float = 1.0,
    jitter: int = 0,
    workloads: Iterable[Workload] = SMALL,
    repetitions: int = REPETITIONS,
    model: str | None = "ACME 9000",
    serial: str | None = None,
    firmware: str | None = "FW1",
    kernel: str = "6.1.0",
    label: str | None = None,
    cells_done: int | None = None,
) -> MeasuredRun:
    """A run on a drive whose times are ``slower`` times those of the example, and rates less so.

    ``jitter`` moves every repetition by up to 1 %, so that two drives are not equal to the bit.
    """
    facts = {
        "device_model": model,
        "device_serial": serial or f"S-{name}",
        "device_firmware": firmware,
        "kernel": kernel,
        "cpu": "2 x AMD EPYC 7B13",
    }
    run = make_run(
        workloads,
        repetitions=repetitions,
        judge=all_valid,
        label=name if label is None else label,
        facts=tuple(Fact(name=key, value=value) for key, value in facts.items()),
        cells_done=cells_done,
    )
    record = replace(run.record, run_id=f"20250304T050607Z-{name}")
    rng = np.random.default_rng(jitter)
    return replace(
        run,
        record=record,
        cells=tuple(_scaled_cell(cell, slower) for cell in run.cells),
        summaries=tuple(_scaled(summary, slower, rng) for summary in run.summaries),
    )


def _factor(metric: str, slower: float) -> float:
    return {"s": slower, "1/s": 1 / slower, "B/s": 1 / slower}.get(METRICS[metric].unit, 1.0)


def _scaled(summary: Summary, slower: float, rng: np.random.Generator) -> Summary:
    factor = _factor(summary.metric, slower)
    if summary.median is None:
        return summary
    values = tuple(v * factor * rng.uniform(0.99, 1.01) for v in summary.values)
    return replace(
        summary,
        values=values,
        median=float(np.median(values)),
        low=None if summary.low is None else min(values),
        high=None if summary.high is None else max(values),
    )


def _scaled_cell(cell: MeasuredCell, slower: float) -> MeasuredCell:
    return replace(
        cell,
        histograms=tuple(replace(h, latency_s=h.latency_s * slower) for h in cell.histograms),
    )


def compared(runs: Sequence[MeasuredRun]) -> Comparison:
    """The runs by the policy that comes with kvbench."""
    return compare_runs(runs, find_policy(None, "compare"))


def view_of(runs: Sequence[MeasuredRun]) -> CompareView:
    """What is shown of them."""
    return build(compared(runs), runs)
