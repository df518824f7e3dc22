"""The records that a run folder holds.  ``FORMAT`` grows when a reader must know the difference.

results/<run_id>/run.json                a RunRecord
results/<run_id>/cells/0001/cell.json    a CellRecord
results/<run_id>/cells/0001/job.fio      the job text, which plain fio runs as it is
results/<run_id>/cells/0001/fio.json     fio's output, never edited
results/<run_id>/cells/0001/stderr.txt   fio's standard error
results/<run_id>/cells/0001/*.log        fio's logs, where the workload asks for them
results/<run_id>/end.json                an EndRecord, absent while the run goes on or was killed
"""

from typing import Literal

from msgspec import Struct

from kvbench.plan import Cell, Plan

FORMAT = 1

LaunchEnd = Literal["exited", "timeout", "interrupted"]
RunEnd = Literal["complete", "interrupted", "failed"]


class DeviceCounters(Struct, frozen=True, kw_only=True):
    """/sys/block/*/stat of the device under the target, the fields that are used."""

    read_ios: int
    read_sectors: int
    write_ios: int
    write_sectors: int


class Fact(Struct, frozen=True, kw_only=True):
    """One fact about the host or the target; ``value`` None with the reason it is unknown."""

    name: str
    value: str | None
    reason: str = ""


class Identity(Struct, frozen=True, kw_only=True):
    """What must not change under a run: which thing the path leads to.

    For a file ``device_number`` and ``inode`` bind it; for a block device its own number, size,
    serial, wwid and disk sequence (a number the kernel never reuses).
    """

    path: str
    real_path: str
    kind: Literal["file", "block"]
    device_number: str  # "major:minor": of the device itself, or of the file system of a file
    inode: int
    size_bytes: int
    serial: str | None = None
    wwid: str | None = None
    diskseq: str | None = None


class Written(Struct, frozen=True, kw_only=True):
    """Whether the span under test is known to hold written data.

    proven: the file's extent map shows no hole and no unwritten extent.
    unproven: nobody can say (a block device without a record of a fill).
    buffered: the page cache serves the reads, so the question does not arise.
    """

    state: Literal["proven", "unproven", "buffered"]
    reason: str


class RunRecord(Struct, frozen=True, kw_only=True):
    """run.json: everything that was decided and known before the first cell."""

    format: int
    run_id: str
    kvbench_version: str
    created_at: str  # ISO 8601, UTC
    label: str
    command: tuple[str, ...]
    plan: Plan
    identity: Identity
    written: Written
    facts: tuple[Fact, ...]
    fio_version: str
    caveats: tuple[str, ...] = ()  # what makes the whole run doubtful, in words


class CellRecord(Struct, frozen=True, kw_only=True):
    """cell.json: how one launch went."""

    format: int
    cell: Cell
    argv: tuple[str, ...]
    started_at: str
    wall_s: float
    end: LaunchEnd
    exit_code: int | None  # negative: died of that signal
    survivors: tuple[int, ...]  # pids of this launch that were still there after KILL; () is good
    device: str | None  # kernel name of the device whose counters follow
    before: DeviceCounters | None
    after: DeviceCounters | None
    note: str = ""


class EndRecord(Struct, frozen=True, kw_only=True):
    """end.json: how the run ended."""

    format: int
    end: RunEnd
    ended_at: str
    cells_done: int
    reason: str = ""
