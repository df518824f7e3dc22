"""The load curves of a run while it goes on: what was measured decides what is run next."""

from pathlib import Path

from kvbench.measure.load import CurveKey, curve_key, decide_rate, with_rate
from kvbench.measure.model import MeasuredCell
from kvbench.measure.run import measure_cell
from kvbench.plan import Cell, Plan
from kvbench.store import layout
from kvbench.store.read import ArchivedCell, read_run
from kvbench.store.records import CellRecord, RunRecord


class Curves:
    """The load curves of a run so far: the rate of a cell follows from the cells before it."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._loads = {w.digest: w.load for w in plan.workloads}
        self._folder = folder
        self._record: RunRecord | None = None
        self._measured: dict[CurveKey, list[MeasuredCell]] = {}
        if any(workload.load is not None for workload in plan.workloads):
            archive = read_run(folder)
            self._record = archive.record
            for archived in archive.cells:
                self._add(archived, archive.record)

    def decided(self, cell: Cell) -> tuple[Cell, str]:
        """Return the cell with its rate; or as it is, and why there is no rate."""
        load = self._loads.get(cell.workload_digest)
        if load is None or not cell.undecided:
            return cell, ""
        decision = decide_rate(cell, load, self._measured.get(curve_key(cell), ()))
        if decision.rate_iops is None:
            return cell, decision.reason
        return with_rate(cell, decision.rate_iops), ""

    def add(self, record: CellRecord) -> None:
        """Take in a cell that is on disk."""
        if self._record is not None and record.cell.load is not None:
            place = layout.cell_folder(self._folder, record.cell.cell_id)
            self._add(ArchivedCell(record=record, folder=place), self._record)

    def _add(self, archived: ArchivedCell, record: RunRecord) -> None:
        if archived.record.cell.load is not None:
            key = curve_key(archived.record.cell)
            self._measured.setdefault(key, []).append(measure_cell(archived, record))
