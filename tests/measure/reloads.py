"""Runs of block reloads with numbers that can be worked by hand."""

from collections.abc import Callable

from kvbench.measure.model import MeasuredCell, MeasuredRun, Measurement, Outcome
from kvbench.measure.summarise import summarise
from kvbench.plan import Cell
from kvbench.units import GIB, MIB
from kvbench.workload.schema import BlockShare, Stream, SweepAxis, Workload
from tests import records

Values = dict[str, float | None]
PLAIN: Values = {"iops": 1000.0, "bandwidth": 2e9, "latency_p50": 0.001, "latency_p99": 0.004}


def blocks(size_bytes: int = 2 * MIB) -> tuple[BlockShare, ...]:
    return (BlockShare(size_bytes=size_bytes, percent=100),)


def a_block_stream(**changes: object) -> Stream:
    """2 MiB random reads, one at a time."""
    fields: dict[str, object] = {"name": "load", "block_mix": blocks(), "queue_depth": 1}
    return records.a_stream(**(fields | changes))


def a_chunk_stream(**changes: object) -> Stream:
    """Chunks of 32 MiB as 32 blocks behind a barrier, by 4 workers."""
    fields: dict[str, object] = {
        "name": "reload",
        "pattern": "chunk",
        "chunk_bytes": 32 * MIB,
        "block_mix": blocks(MIB),
        "queue_depth": 32,
        "barrier": True,
        "jobs": 4,
    }
    return records.a_stream(**(fields | changes))


def a_reload(*streams: Stream, **changes: object) -> Workload:
    """A workload of the performance role that shipping software does, without a sweep."""
    fields: dict[str, object] = {
        "name": "blocks",
        "role": "performance",
        "evidence": "shipping",
        "streams": streams or (a_block_stream(),),
        "sweep": (),
        "primary": (),
    }
    return records.a_workload(**(fields | changes))


def at_once(*jobs: int) -> tuple[SweepAxis, ...]:
    """So many requests at once."""
    return (SweepAxis(stream="load", field="jobs", values=jobs),)


def a_run(
    *workloads: Workload,
    values: Values = PLAIN,
    repetitions: int = 3,
    outcome: Callable[[Cell], Outcome] = lambda _: "valid",
    done: Callable[[Cell], bool] = lambda _: True,
    reason: str = "too few I/Os: 10 of 1,000 needed",
    censored: str = "",
) -> MeasuredRun:
    """A run in which every stream of every cell measured ``values``; None is for ``reason``."""
    target = records.a_target(size_bytes=4 * GIB)
    plan = records.a_plan(*workloads, target=target, repetitions=repetitions)
    cells = [
        MeasuredCell(
            cell=cell,
            outcome=outcome(cell),
            findings=(),
            measurements=tuple(
                Measurement(
                    stream=placed.stream.name,
                    direction="read",
                    metric=metric,
                    value=value,
                    io_count=100,
                    reason="" if value is not None else reason,
                    censored=metric == censored,
                )
                for placed in cell.placed
                for metric, value in values.items()
            ),
            histograms=(),
        )
        for cell in plan.cells
        if done(cell)
    ]
    return MeasuredRun(
        record=records.a_run_record(plan),
        end=None,
        cells=tuple(cells),
        summaries=summarise(plan, cells),
        damage=(),
    )
