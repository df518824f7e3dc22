"""The types that a workload file becomes.  Data only: loading and checking live in ``load``.

Every key of a workload file is a field here, and every field is described in
``workloads/README.md`` (a test compares the two).
"""

from typing import Literal

from msgspec import Struct

Role = Literal["memory", "performance", "capacity"]
Evidence = Literal["shipping", "trace", "projected", "probe"]
Direction = Literal["read", "write", "mixed"]
Pattern = Literal["random", "sequential", "chunk"]
Shape = Literal["latency", "throughput"]
WritePolicy = Literal["plain", "dsync", "fsync"]
Buffers = Literal["scattered", "huge"]
Engine = Literal["io_uring", "libaio", "psync"]

ROLES: tuple[Role, ...] = ("memory", "performance", "capacity")
ROLE_MEANINGS: dict[Role, str] = {
    "memory": "512 B to 4 KiB random reads; judged by latency and its spread",
    "performance": "hot blocks and metadata, 16 KiB to 8 MiB, many tenants, reads under writes",
    "capacity": "chunk-sized sequential reloads, bulk writes, the whole span",
}
ENGINES: tuple[Engine, ...] = ("io_uring", "libaio", "psync")


class BlockShare(Struct, frozen=True, kw_only=True):
    """One size of a block mix and its share of the I/Os."""

    size_bytes: int
    percent: int


class Stream(Struct, frozen=True, kw_only=True):
    """One tenant's I/O inside a workload, fully decided.

    ``block_mix`` has one entry of 100 % for a fixed size.  ``rate_iops`` is the rate of the whole
    stream (Poisson arrivals, open loop); None is a closed loop.  With ``barrier`` the
    ``queue_depth`` I/Os submitted together are one request and the next waits for all of them.
    The span is a share of the target, so that a file can never name an address outside it.
    ``buffers`` is the memory that the data goes through: a large read into scattered pages
    reaches the device in more pieces than one into huge pages.
    """

    name: str
    direction: Direction
    pattern: Pattern
    block_mix: tuple[BlockShare, ...]
    read_percent: int | None = None  # mixed only
    chunk_bytes: int | None = None  # pattern "chunk": random chunks, sequential inside
    queue_depth: int = 1  # I/Os in flight per job
    jobs: int = 1  # submitters, each with a ring of its own
    rate_iops: float | None = None
    barrier: bool = False
    zipf_theta: float | None = None  # skew of random offsets; None is uniform
    span_start_percent: float = 0.0
    span_percent: float = 100.0
    shape: Shape = "latency"
    write_policy: WritePolicy = "plain"
    fsync_every: int | None = None  # write_policy "fsync": I/Os between two fsyncs
    buffers: Buffers = "scattered"

    @property
    def reads(self) -> bool:
        """Whether the stream reads at all."""
        return self.direction != "write"

    @property
    def writes(self) -> bool:
        """Whether the stream writes at all."""
        return self.direction != "read"

    @property
    def min_block_bytes(self) -> int:
        """The smallest block of the mix."""
        return min(share.size_bytes for share in self.block_mix)

    @property
    def max_block_bytes(self) -> int:
        """The largest block of the mix."""
        return max(share.size_bytes for share in self.block_mix)

    @property
    def mean_block_bytes(self) -> float:
        """The mean block size over the mix."""
        return sum(share.size_bytes * share.percent for share in self.block_mix) / 100

    @property
    def unit_bytes(self) -> int:
        """What one random position covers: a chunk, or the largest block."""
        return self.chunk_bytes or self.max_block_bytes


class Timing(Struct, frozen=True, kw_only=True):
    """How long one cell measures, and how long it warms up before."""

    runtime_s: float = 1.0
    ramp_s: float = 0.2


SweepValue = int | float | str


class SweepAxis(Struct, frozen=True, kw_only=True):
    """One field of one stream and the values that it takes, in stored form (sizes in bytes)."""

    stream: str
    field: str
    values: tuple[SweepValue, ...]


class Workload(Struct, frozen=True, kw_only=True):
    """One workload file.

    ``isolate`` asks for each stream to be measured alone as well as together with the others.
    ``digest`` is over everything that decides the I/O, so equal digests are comparable.
    ``derivation`` says how the size of a KV object came out of a model's geometry, "" where the
    file states all its sizes itself.
    """

    name: str
    summary: str
    role: Role
    source: str
    evidence: Evidence
    cannot_express: str
    streams: tuple[Stream, ...]
    sweep: tuple[SweepAxis, ...]
    timing: Timing
    isolate: bool
    primary: tuple[str, ...]  # "stream.metric" names, most important first
    digest: str
    derivation: str = ""


class Suite(Struct, frozen=True, kw_only=True):
    """A named list of workloads with the number of repetitions that suits it."""

    name: str
    summary: str
    workloads: tuple[str, ...]
    repetitions: int
