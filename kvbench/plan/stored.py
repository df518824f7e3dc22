"""Whether a plan that was stored is one that kvbench would make for this target.  Pure."""

import re

from kvbench.document import found, printable
from kvbench.errors import Refused
from kvbench.plan.model import CELL_ID, Cell, Identified, Plan


def check_stored(plan: Plan, identified: Identified) -> None:
    """Return when a plan that was stored is one that ``make_plan`` makes for this target.

    A stored plan is data from a file: what it says of the target must be what was identified, or
    the guard would look at one thing and fio write another, or beyond it.

    Args:
        plan: the stored plan.
        identified: what the guard holds to be its target.

    Raises:
        Refused: the plan contradicts the target or itself; the message says where.
    """
    target = plan.target
    path = identified.real_path
    if target.path not in (identified.path, path) or target.kind != identified.kind:
        raise _unfit(
            f"it is for the {target.kind} {found(target.path)}, this is a {identified.kind}", path
        )
    if not 0 < target.size_bytes <= identified.size_bytes:
        raise _unfit(
            f"it is for {target.size_bytes} bytes, the target has {identified.size_bytes}", path
        )
    if not plan.cells:
        raise _unfit("it has no cells", path)
    ids = [cell.cell_id for cell in plan.cells]
    if len(set(ids)) < len(ids):
        raise _unfit("two of its cells have the same number", path)
    for cell in plan.cells:
        problem = _cell_problem(cell, plan)
        if problem:
            raise _unfit(f"cell {found(cell.cell_id)} {problem}", path)


def _unfit(problem: str, path: str) -> Refused:
    return Refused(
        f"the stored plan cannot be used: {problem}",
        where=printable(path),
        hint="its run.json was changed, or not written by kvbench; start a new run",
    )


def _cell_problem(cell: Cell, plan: Plan) -> str:
    """Return what a stored cell has that no cell of its plan can have, "" when all is well."""
    if not re.fullmatch(CELL_ID, cell.cell_id, re.ASCII):
        return "has no number"
    ceiling = cell.purpose == "ceiling"
    if cell.engine != ("null" if ceiling else plan.engine):
        return f"uses the engine {cell.engine} and not the plan's"
    if cell.direct != (plan.direct and not ceiling):
        return "uses another mode than the plan"
    if not cell.placed:
        return "has no stream"
    if cell.undecided and cell != cell.as_planned:
        return "has a rate that is yet to be decided"
    trims = any(placed.stream.trims for placed in cell.placed)
    if cell.trims_by_holes != (trims and plan.target.kind == "file"):
        return "trims in another way than its target can"
    for placed in cell.placed:
        if placed.offset_bytes < 0 or placed.size_bytes <= 0:
            return f"has {placed.size_bytes} bytes at {placed.offset_bytes}"
        if placed.offset_bytes + placed.size_bytes > plan.target.size_bytes:
            return "ends beyond the target"
    return ""
