"""A run and its reruns -> one run with all their repetitions.  Pure.

A rerun measures a part of the points.  A relative number (a ratio to another point, a share, a
knee) gets no repetition from a rerun that did not plan all that it is made of: there it was not
lost, it was not asked for.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from kvbench.compare.aspects import ASPECTS
from kvbench.compare.join import incomplete
from kvbench.compare.model import Key
from kvbench.errors import UsageError
from kvbench.measure.bases import bases_of
from kvbench.measure.model import MeasuredCell, MeasuredRun, Measurement
from kvbench.measure.summarise import summarise
from kvbench.plan import Plan
from kvbench.store.records import RunRecord

# Of a rerun all of this must be as in the run that it adds to; its plan is a part of that one's.
SAME = (
    *("model", "serial", "namespace", "firmware", "capacity", "lba_format", "pcie_link"),
    *("target_kind", "file", "preparation", "engine", "io_mode", "fio", "kernel", "kvbench"),
)


def pooled(run: MeasuredRun, more: Sequence[MeasuredRun]) -> MeasuredRun:
    """Return ``run`` with the repetitions of ``more`` added to its own.

    Raises:
        UsageError: one of them is not of the same drive in the same state, or is given twice.
    """
    if not more:
        return run
    ids = [one.record.run_id for one in (run, *more)]
    if len(set(ids)) < len(ids):
        raise UsageError("a run is given twice, so its repetitions would count twice")
    cells = list(run.cells)
    for one in more:
        refuse_stranger(run.record, one.record)
        refuse_other(run.record, one.record)
        first = max((cell.cell.repetition for cell in cells), default=0)
        planned = frozenset(cell.point_id for cell in one.record.plan.cells)
        cells += [
            _shifted(_asked(cell, planned, run.record.plan), first, one.record.run_id)
            for cell in one.cells
            if cell.cell.purpose != "ceiling"
        ]
    return MeasuredRun(
        record=run.record,
        end=run.end,
        cells=tuple(cells),
        summaries=summarise(run.record.plan, cells),
        damage=(
            *run.damage,
            *(f"{one.record.run_id}: {text}" for one in more if (text := incomplete(one))),
        ),
    )


def _asked(cell: MeasuredCell, planned: frozenset[str], whole: Plan) -> MeasuredCell:
    """Return a cell of a part of ``whole`` with the numbers that this part could have."""
    return replace(
        cell,
        measurements=tuple(
            found
            for found in cell.measurements
            if bases_of(cell.cell, found.stream, found.metric, whole) <= planned
        ),
    )


def looks_of(run: MeasuredRun, key: Key) -> int:
    """Return how often a number of ``run`` was measured for one decision.

    Once, and once more for each rerun that has a repetition of it: a number that nobody measured
    again was not looked at again.  A repetition that failed is one too.
    """
    mine = (key.workload, key.parameters, key.alone)
    again = {
        cell.cell.cell_id.rpartition("/")[0]
        for cell in run.cells
        if (cell.cell.workload, cell.cell.parameters, cell.cell.alone) == mine
        and (not cell.measurements or any(_is_of(found, key) for found in cell.measurements))
    }
    return 1 + len(again - {""})


def _is_of(found: Measurement, key: Key) -> bool:
    return (found.stream, found.direction, found.metric) == (key.stream, key.direction, key.metric)


def _shifted(cell: MeasuredCell, by: int, run_id: str) -> MeasuredCell:
    """Return a cell of another run as a further repetition, under a number of its own."""
    number = f"{run_id}/{cell.cell.cell_id}"
    moved = replace(cell.cell, repetition=cell.cell.repetition + by, cell_id=number)
    return replace(cell, cell=moved)


def refuse_stranger(run: RunRecord, other: RunRecord) -> None:
    """Refuse a run that was not measured as a rerun of ``run``.

    Raises:
        UsageError: it was not.
    """
    pairing = other.pairing
    if pairing is None or pairing.kind != "rerun" or pairing.of != run.run_id:
        raise UsageError(
            f"is no rerun of {run.run_id}",
            where=other.run_id,
            hint="kvbench gate --rerun makes one",
        )


def refuse_other(run: RunRecord, other: RunRecord) -> None:
    """Refuse to add repetitions of another drive, or of the same in another state.

    Raises:
        UsageError: it is another; the message says in what.
    """
    for name in SAME:
        title, read = ASPECTS[name]
        ours, theirs = read(run), read(other)
        if ours != theirs:
            raise UsageError(
                f"cannot add to {run.run_id}: {title} is {theirs or 'unknown'} "
                f"and not {ours or 'unknown'}",
                where=other.run_id,
                hint="only repetitions of one drive in one state make one sample",
            )
    ours_points = _points(run)
    odd = [point[0] for point in _points(other) if point not in ours_points]
    if odd:
        raise UsageError(
            f"cannot add to {run.run_id}: it did not run {odd[0]} in this way",
            where=other.run_id,
        )


def _points(record: RunRecord) -> list[tuple[object, ...]]:
    """Return what each point of a run does: its workload, where it lies, and how long it runs."""
    cells = {c.point_id: c for c in record.plan.cells if c.purpose != "ceiling"}
    return [
        (
            *(cell.workload, cell.workload_digest, point, cell.timing),
            tuple((one.offset_bytes, one.size_bytes) for one in cell.placed),
        )
        for point, cell in cells.items()
    ]
