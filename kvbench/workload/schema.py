"""The types that a workload file becomes.  Data only: loading and checking live in ``load``.

Every key of a workload file is a field here, and every field is described in
``workloads/README.md`` (a test compares the two).
"""

from typing import Literal

from msgspec import Struct

Role = Literal["memory", "performance", "capacity"]
Evidence = Literal["shipping", "trace", "projected", "probe"]
Direction = Literal["read", "write", "mixed", "trim"]
Pattern = Literal["random", "sequential", "chunk"]
Shape = Literal["latency", "throughput"]
WritePolicy = Literal["plain", "dsync", "fsync"]
Buffers = Literal["scattered", "contiguous", "huge"]
Side = Literal["victim", "aggressor"]
Verify = Literal["crc32c", "deallocated"]
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
    ``verify`` is "crc32c" on a stream that writes (each block once, with fio's header, read back
    and checked) or reads (what an earlier phase wrote is checked), and "deallocated" on one that
    trims (what trimmed blocks return is looked at).
    ``buffers`` is the memory that the data goes through: a large read into scattered pages
    reaches the device in more pieces than one into huge pages.

    With a ``barrier`` a request is ``request_steps`` groups of ``queue_depth`` I/Os, one group
    after the other: 16 serial blocks are 16 steps of depth 1, a search is its hops.  What a step
    is followed by in the software (``compute_s``) is not waited for; the stall that it would
    leave is computed from the times of the steps.
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
    buffered: bool = False  # through the page cache, whatever the run's mode
    align_bytes: int | None = None  # random offsets are multiples of this; None is the block
    stride_bytes: int | None = None  # sequential: from one start to the next; None is the block
    payload_bytes: int | None = None  # what the software wants of one I/O
    request_steps: int = 1  # barrier: groups one after the other in a request
    deadline_s: float | None = None  # of a request
    compute_s: float | None = None  # what the GPU computes per step while the next is loaded
    prefetch_steps: int | None = None  # steps that may be loaded ahead; None is all
    burst_ios: int | None = None  # per job: this many I/Os, then a pause
    pause_s: float | None = None
    span_limit_bytes: int | None = None  # uses at most this much of its part
    side: Side | None = None  # matrix: every victim is measured beside every aggressor
    verify: Verify | None = None  # what was written or trimmed is read back and checked

    @property
    def once(self) -> bool:
        """Whether each block of its part is done once and checked, however long that takes."""
        return self.verify == "crc32c"

    @property
    def reads(self) -> bool:
        """Whether the stream reads at all."""
        return self.direction in ("read", "mixed")

    @property
    def writes(self) -> bool:
        """Whether the stream writes at all."""
        return self.direction in ("write", "mixed")

    @property
    def trims(self) -> bool:
        """Whether the stream deallocates: what it touches holds no data afterwards."""
        return self.direction == "trim"

    @property
    def changes(self) -> bool:
        """Whether the target holds other data afterwards."""
        return self.writes or self.trims

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
        """What one position covers: a chunk, a stride, or the largest block."""
        return self.chunk_bytes or self.stride_bytes or self.max_block_bytes


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


class Load(Struct, frozen=True, kw_only=True):
    """Latency against offered load, and the usable rate, of the only stream of a workload.

    Each repetition first measures the peak (the stream as its file states it, a closed loop),
    then open loops with Poisson arrivals at ``percents`` of that peak, then ``search_steps``
    bisections for the highest rate at which ``percentile`` of the latency stays within
    ``limit_s``.
    """

    percents: tuple[int, ...]  # ascending
    queue_depth: int  # of the open loops, per job; never to be filled
    limit_s: float
    percentile: float = 99.9
    search_steps: int = 0
    jobs: int = 1  # submitters of the open loops: what one of them waits for, the others do not


class Workload(Struct, frozen=True, kw_only=True):
    """One workload file.

    ``isolate`` asks for each stream to be measured alone as well as together with the others.
    ``in_order`` makes a phase of each stream: one cell after the other, in the order of the file.
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
    load: Load | None = None
    in_order: bool = False

    @property
    def matrix(self) -> bool:
        """Whether victims meet aggressors in pairs; then each stream is measured alone as well."""
        return any(stream.side is not None for stream in self.streams)


class Suite(Struct, frozen=True, kw_only=True):
    """A named list of workloads with the number of repetitions that suits it."""

    name: str
    summary: str
    workloads: tuple[str, ...]
    repetitions: int
