"""What ``run`` shows while it runs, on stderr: a live line on a terminal, plain lines elsewhere."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from kvbench.cli.points import describe_point
from kvbench.fio.launch import LiveCounters
from kvbench.plan import Cell
from kvbench.store.records import CellRecord
from kvbench.units import format_bandwidth, format_clock, format_count


class LiveView:
    """An observer of a session that prints.  Use it as a context manager."""

    def __init__(self, *, quiet: bool, repetitions: int) -> None:
        self._console = Console(file=sys.stderr, highlight=False)
        self._quiet = quiet
        self._repetitions = repetitions
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._left_s = 0.0
        self._last = (0.0, 0)
        if not quiet and self._console.is_terminal:
            self._progress = Progress(
                TextColumn("cell {task.fields[number]} of {task.total}"),
                BarColumn(bar_width=16),
                TextColumn("{task.fields[what]}"),
                TextColumn("[bold]{task.fields[rate]}"),
                TextColumn("{task.fields[left]} left"),
                console=self._console,
                transient=True,
            )

    def __enter__(self) -> Self:
        if self._progress:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress:
            self._progress.stop()

    def cell_started(self, cell: Cell, number: int, total: int, left_s: float) -> None:
        """Say which cell runs."""
        self._left_s = left_s
        self._last = (0.0, 0)
        what = describe_cell(cell, self._repetitions)
        if self._progress:
            left = format_clock(left_s)
            if self._task is None:
                self._task = self._progress.add_task(
                    "", total=total, left="", number=0, what="", rate=""
                )
            self._progress.update(
                self._task, completed=number - 1, number=number, what=what, rate="", left=left
            )
        elif not self._quiet:
            left = format_clock(left_s)
            self._console.print(
                f"cell {number} of {total}  {what}  {left} left", soft_wrap=True, markup=False
            )

    def cell_running(self, cell: Cell, counters: LiveCounters) -> None:
        """Show the rate since the last tick."""
        if self._progress is None or self._task is None:
            return
        rate = self._rate(cell, counters)
        left = format_clock(self._left_s - counters.elapsed_s)
        self._progress.update(self._task, rate=rate, left=left)

    def cell_stored(self, cell: Cell, record: CellRecord) -> None:
        """Say at once when fio did not end as it should."""
        if record.end == "not-run":
            self._console.print(
                f"cell {cell.cell_id} {cell.workload} was not run: {record.note}",
                soft_wrap=True,
                markup=False,
            )
        elif record.end != "exited" or record.exit_code != 0:
            hows = {"interrupted": "was stopped", "timeout": "did not end in time"}
            how = hows.get(record.end, f"ended with exit code {record.exit_code}")
            self._console.print(
                f"cell {cell.cell_id} {cell.workload}: fio {how}; kept, and told in the report",
                soft_wrap=True,
                markup=False,
            )

    def _rate(self, cell: Cell, counters: LiveCounters) -> str:
        """Bytes that fio's process moved since the last tick; it is not asked and not disturbed."""
        if counters.read_bytes is None or counters.write_bytes is None:
            return ""
        moved = counters.read_bytes + counters.write_bytes
        since_s, before = self._last
        self._last = (counters.elapsed_s, moved)
        span_s = counters.elapsed_s - since_s
        # Between two ticks of a running job only: the first one also holds fio's start.
        if before == 0 or span_s <= 0 or moved <= before:
            return ""
        bytes_per_s = (moved - before) / span_s
        shown = format_bandwidth(bytes_per_s)
        if len(cell.placed) == 1:
            iops = bytes_per_s / cell.placed[0].stream.mean_block_bytes
            shown = f"{format_count(iops)} IOPS, {shown}"
        return shown


def describe_cell(cell: Cell, repetitions: int) -> str:
    """Return what a cell is, in words: ``iops-ladder: 4 KiB, depth 32 (2/3)``."""
    if cell.purpose == "ceiling":
        return f"host ceiling, shape of {cell.workload}"
    return f"{cell.workload}: {describe_point(cell)} ({cell.repetition}/{repetitions})"
