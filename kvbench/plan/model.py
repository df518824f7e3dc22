"""The types of a plan: what is run, on what, in which order.  Data only."""

from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from kvbench.workload.schema import Engine, Role, Stream, SweepValue, Timing, Workload

FORMAT = 1
CELL_OVERHEAD_S = (
    0.4  # starting and ending fio, storing: what one cell costs beyond ramp and runtime
)

# a cell that writes every block once and reads all back takes as long as the device needs
ONCE_BYTES_PER_S = 100_000_000  # expected
# slower than this, and than this long per block, is taken for a hang
ONCE_BYTES_PER_S_MIN, ONCE_BLOCK_S_MAX = 20_000_000, 0.01

INTERVAL_REPETITIONS_MIN = 6  # fewer have no 95 % interval

CELL_ID = r"[0-9]{4,9}"  # also the name of a folder

# measure: a point of the report; search: a probe for the usable rate, whose rate differs from
# repetition to repetition; ceiling: what the host generates without a device
Purpose = Literal["measure", "search", "ceiling"]
CellEngine = Literal["io_uring", "libaio", "psync", "null"]  # null does no I/O at all
TargetKind = Literal["file", "block"]


class Placed(Struct, frozen=True, kw_only=True):
    """A stream and the part of the target that it may touch."""

    stream: Stream
    offset_bytes: int
    size_bytes: int


class CellLoad(Struct, frozen=True, kw_only=True):
    """What a cell of a load curve is.

    The rate of a share or a search step follows from cells before it in the same repetition; the
    session decides it, and the stored cell has it.  In the plan its stream has no rate.
    """

    kind: Literal["peak", "share", "search"]
    percent: float | None = None  # share: of the peak
    step: int | None = None  # search: 1 for the first


class Cell(Struct, frozen=True, kw_only=True):
    """One fio invocation, fully decided but for the rate of a cell with ``load``.

    ``point_id`` is the same in every repetition of the same point.  ``alone`` names the only
    stream of a cell that measures a tenant by itself.
    """

    cell_id: str
    point_id: str
    repetition: int
    purpose: Purpose
    workload: str
    workload_digest: str
    role: Role
    parameters: dict[str, SweepValue]
    alone: str | None
    placed: tuple[Placed, ...]
    timing: Timing
    engine: CellEngine
    direct: bool
    seed: int
    load: CellLoad | None = None
    trims_by_holes: bool = False  # the target is a file, where a trim punches a hole

    @property
    def undecided(self) -> bool:
        """Whether the rate of the cell follows from cells before it."""
        return self.load is not None and self.load.kind != "peak"

    @property
    def as_planned(self) -> "Cell":
        """The cell as its plan has it: without the rate that was decided during the run."""
        if not self.undecided:
            return self
        streams = (replace(one.stream, rate_iops=None) for one in self.placed)
        placed = tuple(
            replace(one, stream=stream) for one, stream in zip(self.placed, streams, strict=True)
        )
        return replace(self, placed=placed)

    @property
    def writes(self) -> bool:
        """Whether the cell changes the target; only an engine that does no I/O never does."""
        return self.engine != "null" and any(p.stream.changes for p in self.placed)

    @property
    def trims(self) -> bool:
        """Whether the cell leaves ranges of the target without data."""
        return self.engine != "null" and any(p.stream.trims for p in self.placed)

    @property
    def once(self) -> bool:
        """Whether it does every block once and checks it, however long that takes."""
        return self.engine != "null" and any(p.stream.once for p in self.placed)

    @property
    def measured_s(self) -> float:
        """The time that fio should measure for."""
        if self.once:
            return 2 * sum(p.size_bytes for p in self.placed) / ONCE_BYTES_PER_S
        return self.timing.runtime_s

    @property
    def expected_s(self) -> float:
        """The wall time that the cell should take."""
        return self.timing.ramp_s + self.measured_s + CELL_OVERHEAD_S

    @property
    def longest_s(self) -> float:
        """The wall time after which fio is taken for hung, without its time to start and end."""
        if self.once:
            size = sum(p.size_bytes for p in self.placed)
            blocks = sum(p.size_bytes // p.stream.max_block_bytes for p in self.placed)
            return 2 * size / ONCE_BYTES_PER_S_MIN + blocks * ONCE_BLOCK_S_MAX
        return self.timing.ramp_s + self.timing.runtime_s


class TargetSpec(Struct, frozen=True, kw_only=True):
    """The target as the plan sees it."""

    path: str
    kind: TargetKind
    size_bytes: int
    own_file: bool  # kvbench made it, so kvbench may write it
    logical_block_bytes: int = 512


class Identified(Protocol):
    """What a plan must know of an identified target to be held against it."""

    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def real_path(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> TargetKind: ...  # noqa: D102
    @property
    def size_bytes(self) -> int: ...  # noqa: D102


class Skipped(Struct, frozen=True, kw_only=True):
    """A workload that is not run here, and why."""

    workload: str
    reason: str


class Unsupported(Struct, frozen=True, kw_only=True):
    """A point that this target cannot do, as a cell that is never run; it keeps its place."""

    cell: Cell
    reason: str


class Scaled(Struct, frozen=True, kw_only=True):
    """What of a workload was made smaller to fit this target; its numbers still count."""

    workload: str
    text: str


class Plan(Struct, frozen=True, kw_only=True):
    """What ``kvbench run`` will do, in order.

    With ``until_precise`` the repetitions are the most that are run: it ends earlier, once the
    interval of every primary number is narrower than this share of its median.
    """

    format: int
    suite: str
    seed: int
    repetitions: int
    target: TargetSpec
    engine: Engine
    direct: bool
    workloads: tuple[Workload, ...]
    cells: tuple[Cell, ...]
    skipped: tuple[Skipped, ...]
    scaled: tuple[Scaled, ...] = ()
    until_precise: float | None = None
    unsupported: tuple[Unsupported, ...] = ()

    @property
    def expected_s(self) -> float:
        """The wall time of all cells."""
        return sum(cell.expected_s for cell in self.cells)

    @property
    def writing_cells(self) -> int:
        """How many cells write."""
        return sum(cell.writes for cell in self.cells)
