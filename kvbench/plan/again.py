"""A part of a plan once more: the same points in the same order, with fresh offsets.  Pure."""

import random
from collections.abc import Collection, Iterator

from msgspec.structs import replace

from kvbench.plan.model import Cell, Plan, TargetSpec


def again(
    plan: Plan,
    *,
    points: Collection[str],
    workloads: Collection[str],
    target: TargetSpec,
    repetitions: int,
    seed: int,
) -> Plan:
    """Return a plan of some points of ``plan``, in the order in which it had them.

    A repetition beyond those of ``plan`` repeats the order of an earlier one.

    Args:
        plan: what was run.
        points: ids of points to run again.
        workloads: names of workloads to run again whole.
        target: what to run them on.
        repetitions: how often.
        seed: decides the offsets that fio draws.
    """
    rng = random.Random(seed)  # noqa: S311 - offsets to repeat, not a secret
    wanted = [
        cell
        for cell in plan.cells
        if cell.purpose == "ceiling" or cell.point_id in points or cell.workload in workloads
    ]
    cells = [
        replace(cell, cell_id=f"{number:04d}", seed=rng.randrange(1, 2**31))
        for number, cell in enumerate(_repeated(wanted, plan, repetitions), start=1)
    ]
    names = {cell.workload for cell in cells if cell.purpose != "ceiling"}
    return replace(
        plan,
        suite="",
        seed=seed,
        repetitions=repetitions,
        target=target,
        workloads=tuple(w for w in plan.workloads if w.name in names),
        cells=tuple(cells),
        skipped=(),
        scaled=tuple(s for s in plan.scaled if s.workload in names),
        until_precise=None,
    )


def _repeated(cells: list[Cell], plan: Plan, repetitions: int) -> Iterator[Cell]:
    yield from (cell for cell in cells if cell.repetition == 0)
    for repetition in range(1, repetitions + 1):
        like = (repetition - 1) % plan.repetitions + 1
        for cell in cells:
            if cell.repetition == like:
                yield replace(cell.as_planned, repetition=repetition)
