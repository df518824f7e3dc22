"""A run without a command line: its record, and an observer that shows nothing."""

import threading
from datetime import UTC, datetime
from pathlib import Path

from kvbench import target
from kvbench.fio.launch import LiveCounters
from kvbench.fio.probe import FioTool
from kvbench.host import probe
from kvbench.plan import Cell, Plan
from kvbench.session import Observer
from kvbench.store import layout
from kvbench.store.records import FORMAT, CellRecord, RunRecord
from kvbench.store.write import RunWriter
from tests.sessions import run_plan


class Silent:
    """An observer that shows nothing."""

    def cell_started(self, cell: Cell, number: int, total: int, left_s: float) -> None:
        """Nothing to show."""

    def cell_running(self, cell: Cell, counters: LiveCounters, samples: object) -> None:
        """Nothing to show."""

    def cell_stored(self, cell: Cell, record: CellRecord) -> None:
        """Nothing to show."""


def run_silently(plan: Plan, tool: FioTool, folder: Path, observer: Observer | None = None) -> Path:
    """Run ``plan`` and return the folder of the run; ``observer`` may show something after all."""
    record = RunRecord(
        format=FORMAT,
        run_id=layout.run_id(datetime.now(UTC), ""),
        kvbench_version="bench",
        created_at="",
        label="",
        command=(),
        plan=plan,
        identity=probe.identify(plan.target.path),
        written=target.prove(Path(plan.target.path), plan.target.size_bytes, direct=plan.direct),
        facts=(),
        fio_version=tool.version_text,
    )
    writer = RunWriter.create(folder, record)
    run_plan(
        plan,
        tool=tool,
        identity=record.identity,
        writer=writer,
        observer=observer or Silent(),
        stop=threading.Event(),
    )
    return writer.folder
