"""An observer of a run that shows nothing."""

from kvbench.fio.launch import LiveCounters
from kvbench.plan import Cell
from kvbench.store.records import CellRecord


class Silent:
    """An observer that shows nothing."""

    def cell_started(self, cell: Cell, number: int, total: int, left_s: float) -> None:
        """Nothing to show."""

    def cell_running(self, cell: Cell, counters: LiveCounters) -> None:
        """Nothing to show."""

    def cell_stored(self, cell: Cell, record: CellRecord) -> None:
        """Nothing to show."""
