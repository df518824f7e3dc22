"""Workloads x target x repetitions -> ordered cells."""

from kvbench.plan.again import again
from kvbench.plan.cells import CEILING_TIMING, ceiling_shape
from kvbench.plan.make import huge_pages_needed, make_plan
from kvbench.plan.model import (
    CELL_ID,
    CELL_OVERHEAD_S,
    INTERVAL_REPETITIONS_MIN,
    Cell,
    CellLoad,
    Identified,
    Placed,
    Plan,
    Purpose,
    Scaled,
    Skipped,
    TargetKind,
    TargetSpec,
    Unsupported,
)
from kvbench.plan.place import ALIGN_BYTES, SPANS_END, UNITS_PER_JOB_MIN, min_target_bytes
from kvbench.plan.stored import check_stored

__all__ = [
    "ALIGN_BYTES",
    "CEILING_TIMING",
    "CELL_ID",
    "CELL_OVERHEAD_S",
    "INTERVAL_REPETITIONS_MIN",
    "SPANS_END",
    "UNITS_PER_JOB_MIN",
    "Cell",
    "CellLoad",
    "Identified",
    "Placed",
    "Plan",
    "Purpose",
    "Scaled",
    "Skipped",
    "TargetKind",
    "TargetSpec",
    "Unsupported",
    "again",
    "ceiling_shape",
    "check_stored",
    "huge_pages_needed",
    "make_plan",
    "min_target_bytes",
]
