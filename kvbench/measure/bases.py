"""Which other points a relative number is made of: ratios, shares, the knee of a sweep.  Pure.

A part of a plan that is run again may hold the point of such a number without those.  Then it says
nothing of the number, which is not the same as a number that was lost.
"""

from collections.abc import Iterator

from kvbench.measure.subjects import BASE_BLOCK_BYTES, BASES
from kvbench.measure.tenants import RATIOS, shared_parameters
from kvbench.plan import Cell, Plan
from kvbench.workload.schema import SweepValue

_OF_SPANS = ("span_knee", "span_slope")
_OF_LOADS = ("usable_iops", "usable_share")


def bases_of(cell: Cell, stream: str, metric: str, plan: Plan) -> frozenset[str]:
    """Return the ids of the other points of ``plan`` that ``metric`` of ``cell`` is made of.

    Empty for a number that a cell has by itself.
    """
    others = (other for other in plan.cells if other.workload == cell.workload)
    found: Iterator[Cell]
    if metric in RATIOS or metric == "jain_index":
        found = (
            other
            for other in others
            if other.purpose == "measure"
            and (other.alone is not None if metric == "jain_index" else other.alone == stream)
            and shared_parameters(other) == shared_parameters(cell)
        )
    elif metric in _OF_LOADS:
        found = (
            other
            for other in others
            if other.load is not None and _without(other, "load") == _without(cell, "load")
        )
    elif metric in BASES or metric in _OF_SPANS:
        found = _of_a_sweep(cell, stream, metric, plan)
    else:
        return frozenset()
    return frozenset(other.point_id for other in found if other.point_id != cell.point_id)


def _of_a_sweep(cell: Cell, stream: str, metric: str, plan: Plan) -> Iterator[Cell]:
    """Yield the cells that matter to the metric and differ from ``cell`` in its axis only."""
    field = BASES.get(metric, "span_size")
    label = field if field in cell.parameters else f"{stream}.{field}"
    if label not in cell.parameters:
        return
    mine = [
        other
        for other in plan.cells
        if (other.workload, other.purpose, other.alone) == (cell.workload, "measure", cell.alone)
        and label in other.parameters
        and _without(other, label) == _without(cell, label)
    ]
    smallest = min((_number(other, label) for other in mine), default=0.0)
    for other in mine:
        value = _number(other, label)
        wanted = {
            "iops_over_4kib": value == BASE_BLOCK_BYTES,
            "iops_over_fewer_jobs": value < _number(cell, label),
            "latency_over_smallest_span": value == smallest,
        }
        if wanted.get(metric, True):
            yield other


def _without(cell: Cell, name: str) -> dict[str, SweepValue]:
    return {key: value for key, value in cell.parameters.items() if key != name}


def _number(cell: Cell, label: str) -> float:
    return float(cell.parameters[label])
