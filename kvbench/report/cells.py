"""The cells of a run one by one: what is wrong with them, their numbers, their job texts.  Pure."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from kvbench.measure.model import MeasuredCell, MeasuredRun, Outcome
from kvbench.plan import Cell, Plan
from kvbench.report.model import CellRow, JobGroup, JobView, Problem
from kvbench.report.points import Index
from kvbench.report.words import (
    DASH,
    measurement_text,
    parameter_words,
    sentence,
    short,
    visible_lines,
)


def anchors_of(plan: Plan) -> dict[str, str]:
    """Return cell id -> what a link inside the page calls the row of that cell.

    An id of an archive may be anything; one that is no number becomes the place of its cell.
    """
    found: dict[str, str] = {}
    for place, cell in enumerate(plan.cells, start=1):
        fit = re.fullmatch("[0-9]{1,8}", cell.cell_id, re.ASCII)
        found.setdefault(cell.cell_id, f"cell-{cell.cell_id}" if fit else f"cell-at-{place}")
    return found


def list_problems(run: MeasuredRun) -> Iterator[Problem]:
    """Yield cells that are not simply valid, worst first, those with the same reasons together."""
    groups: defaultdict[tuple[Outcome, str, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for cell in run.cells:
        if cell.outcome != "valid":
            key = (cell.outcome, cell.cell.workload, _point_words(cell.cell), _reasons(cell))
            groups[key].append(cell.cell.cell_id)
    anchors = anchors_of(run.record.plan)
    order: tuple[Outcome, ...] = ("failed", "invalid", "doubtful", "valid")
    for found in sorted(groups, key=lambda found: order.index(found[0])):
        outcome, workload, point, reasons = found
        yield Problem(
            outcome=outcome,
            cells=tuple(short(cell_id) for cell_id in groups[found]),
            workload=short(workload),
            point=point,
            reasons=reasons,
            anchors=tuple(anchors.get(cell_id, "") for cell_id in groups[found]),
        )
    stored = {cell.cell.cell_id for cell in run.cells}
    missing = [cell.cell_id for cell in run.record.plan.cells if cell.cell_id not in stored]
    if missing:
        yield Problem(
            outcome="not stored",
            cells=tuple(short(cell_id) for cell_id in missing),
            workload="",
            point="",
            reasons=("the plan has these cells and the archive does not",),
            anchors=tuple(anchors[cell_id] for cell_id in missing),
        )


def _reasons(cell: MeasuredCell) -> tuple[str, ...]:
    serious = [finding for finding in cell.findings if finding.severity != "note"]
    texts = (f"{short(f.stream)}: {f.text}" if f.stream else f.text for f in serious)
    return tuple(sentence(text) for text in texts) or ("no reason is given",)


def _point_words(cell: Cell) -> str:
    if cell.purpose == "ceiling":
        shape = parameter_words(cell.parameters)
        return f"host ceiling{f', {shape}' if shape else ''}"
    parts = [parameter_words(cell.parameters)]
    if cell.alone is not None:
        parts.append(f"{short(cell.alone)} alone")
    return ", ".join(part for part in parts if part)


def list_cells(index: Index) -> Iterator[CellRow]:
    """Yield one row per cell of the plan, in the order of running."""
    plan = index.run.record.plan
    primary = {(w.name, name) for w in plan.workloads for name in w.primary}
    anchors = anchors_of(plan)
    for cell in plan.cells:
        measured = index.measured.get(cell.cell_id)
        many = len(cell.placed) > 1
        yield CellRow(
            cell_id=short(cell.cell_id),
            repetition=DASH if cell.purpose == "ceiling" else str(cell.repetition),
            workload=short(cell.workload),
            point=_point_words(cell),
            outcome=measured.outcome if measured else "not stored",
            values=tuple(_cell_values(measured, primary, many)) if measured else (),
            anchor=anchors.pop(cell.cell_id, ""),
        )


def _cell_values(
    measured: MeasuredCell, primary: set[tuple[str, str]], many: bool
) -> Iterator[str]:
    rate_only = measured.cell.purpose == "ceiling"
    directions = {(m.stream, m.direction) for m in measured.measurements}
    for m in measured.measurements:
        wanted = (measured.cell.workload, f"{m.stream}.{m.metric}") in primary
        if m.metric == "iops" if rate_only else wanted:
            both = len([d for s, d in directions if s == m.stream]) > 1
            owner = [short(m.stream, 24)] if many else []
            owner += [f"{m.direction}s"] if both else []
            yield " ".join([*owner, measurement_text(m)])


def list_jobs(run: MeasuredRun, jobs: Mapping[str, str]) -> tuple[JobGroup, ...]:
    """Return the exact job text of each cell of the plan, by workload."""
    groups: defaultdict[str, list[JobView]] = defaultdict(list)
    anchors = anchors_of(run.record.plan)
    for cell in run.record.plan.cells:
        text = jobs.get(cell.cell_id)
        turn = "" if cell.purpose == "ceiling" else f"repetition {cell.repetition}"
        parts = (_point_words(cell), turn)
        groups[cell.workload].append(
            JobView(
                cell_id=short(cell.cell_id),
                label=", ".join(part for part in parts if part),
                text=visible_lines(text) if text else None,
                anchor=anchors.pop(cell.cell_id, ""),
            )
        )
    return tuple(
        JobGroup(workload=short(name), jobs=tuple(group)) for name, group in groups.items()
    )
