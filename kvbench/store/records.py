"""The records that a run folder holds.  ``FORMAT`` grows when a reader must know the difference.

results/<run_id>/run.json                a RunRecord
results/<run_id>/cells/0001/cell.json    a CellRecord
results/<run_id>/cells/0001/job.fio      the job text, which plain fio runs as it is
results/<run_id>/cells/0001/fio.json     fio's output, never edited
results/<run_id>/cells/0001/stderr.txt   fio's standard error
results/<run_id>/cells/0001/*.log.gz     fio's logs, compressed, where the workload needs them
results/<run_id>/cells/.interrupted-*    cells that were measured anew: kept, and not read
results/<run_id>/prepare.json            a Preparation, of a run of kvbench prepare
results/<run_id>/health.json             a RunHealth: the drive before and after each session
results/<run_id>/writes.jsonl            which cells began to write what is verified, and when
results/<run_id>/trims.jsonl             which cells trimmed, and whether it was written again
results/<run_id>/end.json                an EndRecord, absent while the run goes on or was killed
results/stamps/<device>.json             a Preparation, which later runs on the device look for
"""

from typing import Literal

from msgspec import Struct

from kvbench.host.health_model import CellHealth
from kvbench.host.model import DeviceCounters, Fact, Identity, Written
from kvbench.plan import Cell, Plan
from kvbench.store.preparation import Condition

FORMAT = 1

# not-run: what the cell depends on was not measured; the note says what
LaunchEnd = Literal["exited", "timeout", "interrupted", "not-run"]
RunEnd = Literal["complete", "interrupted", "failed"]


class Pairing(Struct, frozen=True, kw_only=True):
    """That a run belongs to another.

    "ab": one side of a pair; ``order`` says whether it was measured first, second, or in turns
    with the other, repetition by repetition.  "rerun": more repetitions of the run ``of``.
    ``between`` is the operator's command that ran between the sides, "" for none.
    """

    kind: Literal["ab", "rerun"]
    pair_id: str
    side: Literal["A", "B", ""] = ""
    order: Literal["first", "second", "turns", ""] = ""
    of: str = ""
    between: str = ""


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
    pairing: Pairing | None = None
    fingerprint: str = ""  # of what must not differ between runs (``compare.aspects``)
    condition: Condition | None = None  # of a block device: whether its preparation still holds
    boot_id: str = ""  # the boot that it began in; "" where nobody kept it, or it is redacted


class AfterTrim(Struct, frozen=True, kw_only=True):
    """What trimmed blocks of one stream returned, read several times after the trim.

    Units are counted by what the first read gave: all zero bits, all one bits, what stood there
    before the trim, or something else; ``changed`` counts those that did not read alike every
    time.  ``reason`` says why nothing was read.
    """

    stream: str
    unit_bytes: int
    reads: int = 0
    units: int = 0
    zero: int = 0
    ones: int = 0
    old: int = 0
    other: int = 0
    changed: int = 0
    zero_before: int = 0  # units that were zero already before the trim
    reason: str = ""


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
    health: CellHealth | None = None  # None: stored by a version that did not look
    after_trim: tuple[AfterTrim, ...] = ()  # what trimmed blocks returned, where asked for


class EndRecord(Struct, frozen=True, kw_only=True):
    """end.json: how the run ended.

    ``repetitions`` is set where it ended in order before its last planned repetition, because its
    numbers were precise enough; later cells of the plan were never to be run.
    """

    format: int
    end: RunEnd
    ended_at: str
    cells_done: int
    reason: str = ""
    repetitions: int | None = None
