"""What ``run`` shows while it runs, on stderr: a live line on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from kvbench.cli.points import describe_point
from kvbench.fio.launch import LiveCounters
from kvbench.host.health_model import HealthSample
from kvbench.host.model import ticks_between
from kvbench.plan import Cell
from kvbench.store.records import CellRecord
from kvbench.units import MS_PER_S, format_bandwidth, format_clock, format_count, format_time


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
                TextColumn("{task.fields[drive]}"),
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
                    "", total=total, left="", number=0, what="", rate="", drive=""
                )
            self._progress.update(
                self._task,
                completed=number - 1,
                number=number,
                what=what,
                rate="",
                drive="",
                left=left,
            )
        elif not self._quiet:
            left = format_clock(left_s)
            self._console.print(
                f"cell {number} of {total}  {what}  {left} left", soft_wrap=True, markup=False
            )

    def cell_running(
        self, cell: Cell, counters: LiveCounters, samples: Sequence[HealthSample]
    ) -> None:
        """Show the rate since the last tick, and what the device showed in the last second."""
        if self._progress is None or self._task is None:
            return
        rate = self._rate(cell, counters)
        left = format_clock(self._left_s - counters.elapsed_s)
        self._progress.update(self._task, rate=rate, drive=drive_words(samples), left=left)

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


def drive_words(samples: Sequence[HealthSample]) -> str:
    """Return the mean latency in the block layer over the last two looks, and the temperature.

    Both are the kernel's, so neither fio nor the drive is asked, and nothing is disturbed.
    """
    parts = []
    counted = [sample.counters for sample in samples[-2:] if sample.counters is not None]
    if len(counted) == 2:
        before, after = counted
        ios = after.read_ios - before.read_ios + after.write_ios - before.write_ios
        ticks = [
            ticks_between(earlier, later)
            for earlier, later in (
                (before.read_ticks_ms, after.read_ticks_ms),
                (before.write_ticks_ms, after.write_ticks_ms),
            )
            if earlier is not None and later is not None
        ]
        if ios > 0 and len(ticks) == 2:
            parts.append(f"device {format_time(sum(ticks) / MS_PER_S / ios)}")
    heat = samples[-1].temperature_c if samples else None
    if heat is not None:
        parts.append(f"{heat:.0f} C")
    return ", ".join(parts)


def describe_cell(cell: Cell, repetitions: int) -> str:
    """Return what a cell is, in words: ``iops-ladder: 4 KiB, depth 32 (2/3)``."""
    if cell.purpose == "ceiling":
        return f"host ceiling, shape of {cell.workload}"
    return f"{cell.workload}: {describe_point(cell)} ({cell.repetition}/{repetitions})"
