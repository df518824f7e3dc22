"""Measured runs that no device made: realistic numbers, and every case that a report must show."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from statistics import median

import msgspec
import numpy as np
from msgspec.structs import replace

from kvbench.host.model import Fact, Identity, Written
from kvbench.measure.model import (
    Finding,
    IoDirection,
    MeasuredCell,
    MeasuredRun,
    Measurement,
    Outcome,
    StreamHistogram,
    Summary,
)
from kvbench.metrics import METRICS
from kvbench.plan import Cell, CellLoad, Placed, Plan, TargetSpec, make_plan
from kvbench.report.points import directions
from kvbench.store.records import FORMAT, EndRecord, RunRecord
from kvbench.units import GIB, KIB, MIB
from kvbench.workload.schema import (
    BlockShare,
    Load,
    Stream,
    SweepAxis,
    SweepValue,
    Timing,
    Workload,
)
from kvbench.workload.sweep import points

CENSORED_S = 17.1


def one_size(size_bytes: int) -> tuple[BlockShare, ...]:
    return (BlockShare(size_bytes=size_bytes, percent=100),)


def ladder(sizes: tuple[int, ...] = (512, 4 * KIB), jobs: tuple[int, ...] = (1, 2)) -> Workload:
    reads = Stream(
        name="reads",
        direction="read",
        pattern="random",
        block_mix=one_size(4 * KIB),
        shape="throughput",
    )
    return Workload(
        name="iops-ladder",
        summary="Random reads from 512 B to 4 KiB, from one in flight to many.",
        role="memory",
        source="the usual ladder of data sheets",
        evidence="probe",
        cannot_express="no dependency between reads",
        streams=(reads,),
        sweep=(
            SweepAxis(stream="reads", field="block_size", values=sizes),
            SweepAxis(stream="reads", field="queue_depth", values=(1, 4, 16, 64)),
            SweepAxis(stream="reads", field="jobs", values=jobs),
        ),
        timing=Timing(),
        isolate=False,
        primary=("reads.iops", "reads.latency_p99"),
        digest="d-ladder",
    )


SPARSE = Workload(
    name="sparse-fetch",
    summary="Fetch 32 scattered rows, wait for all of them, fetch the next 32.",
    role="memory",
    source="sparse attention with an index on the host",
    evidence="projected",
    cannot_express="the computation between two fetches",
    streams=(
        Stream(
            name="rows",
            direction="read",
            pattern="random",
            block_mix=one_size(4 * KIB),
            queue_depth=32,
            barrier=True,
        ),
    ),
    sweep=(),
    timing=Timing(ramp_s=0.0),
    isolate=False,
    primary=("rows.request_p99", "rows.request_rate"),
    digest="d-sparse",
)
BLOCKS = Workload(
    name="block-reload",
    summary="Whole KV blocks of 2 MiB, several requests at once.",
    role="performance",
    source="block-wise offload of a serving engine",
    evidence="shipping",
    cannot_express="",
    streams=(
        Stream(name="blocks", direction="read", pattern="random", block_mix=one_size(2 * MIB)),
    ),
    sweep=(SweepAxis(stream="blocks", field="queue_depth", values=(1, 2, 4, 8)),),
    timing=Timing(),
    isolate=False,
    primary=("blocks.bandwidth", "blocks.latency_p50"),
    digest="d-blocks",
)
TENANTS = Workload(
    name="three-tenants",
    summary="Small urgent reads beside chunk reloads and a background writer.",
    role="performance",
    source="mixed serving and offload",
    evidence="trace",
    cannot_express="admission control",
    streams=(
        Stream(
            name="lookup",
            direction="read",
            pattern="random",
            block_mix=one_size(4 * KIB),
            queue_depth=64,
            rate_iops=2000.0,
            span_percent=50.0,
        ),
        Stream(
            name="reload",
            direction="read",
            pattern="chunk",
            block_mix=one_size(256 * KIB),
            chunk_bytes=32 * MIB,
            queue_depth=4,
            span_percent=50.0,
        ),
        Stream(
            name="writer",
            direction="write",
            pattern="sequential",
            block_mix=one_size(MIB),
            queue_depth=2,
            span_start_percent=50.0,
            span_percent=50.0,
        ),
    ),
    sweep=(),
    timing=Timing(),
    isolate=True,
    primary=("lookup.latency_p99", "lookup.iops", "reload.bandwidth", "writer.bandwidth"),
    digest="d-tenants",
)
CHUNKS = Workload(
    name="chunk-write",
    summary="New chunks are written while old ones are read.",
    role="capacity",
    source="write-back of evicted prefixes",
    evidence="shipping",
    cannot_express="deletion",
    streams=(
        Stream(
            name="chunks",
            direction="mixed",
            read_percent=70,
            pattern="chunk",
            block_mix=one_size(MIB),
            chunk_bytes=32 * MIB,
            queue_depth=4,
        ),
    ),
    sweep=(),
    timing=Timing(),
    isolate=False,
    primary=("chunks.bandwidth", "chunks.latency_p99"),
    digest="d-chunks",
)
LOAD = Workload(
    name="load-curve",
    summary="4 KiB reads at shares of their peak.",
    role="memory",
    source="open-loop arrivals",
    evidence="probe",
    cannot_express="",
    streams=(
        Stream(
            name="read",
            direction="read",
            pattern="random",
            block_mix=one_size(4 * KIB),
            queue_depth=32,
        ),
    ),
    sweep=(),
    timing=Timing(),
    isolate=False,
    primary=("read.usable_iops", "read.usable_share", "read.latency_p99.9"),
    digest="d-load",
    load=Load(percents=(10, 30, 50, 70, 90), queue_depth=512, limit_s=1e-3, search_steps=2),
)
SPAN = Workload(
    name="map-span",
    summary="Small reads from a part of the target to all of it.",
    role="capacity",
    source="a map that does not fit",
    evidence="probe",
    cannot_express="absolute spans",
    streams=(Stream(name="read", direction="read", pattern="random", block_mix=one_size(4 * KIB)),),
    sweep=(
        SweepAxis(stream="read", field="block_size", values=(512, 4 * KIB)),
        SweepAxis(stream="read", field="queue_depth", values=(1, 128)),
        SweepAxis(
            stream="read",
            field="span_size",
            values=(64 * MIB, 256 * MIB, GIB, 2 * GIB, 4 * GIB),
        ),
    ),
    timing=Timing(),
    isolate=False,
    primary=("read.latency_p50", "read.span_knee"),
    digest="d-span",
)
FANOUT = Workload(
    name="queue-fanout",
    summary="Ever more submitters with one read each.",
    role="memory",
    source="the shape of reads that a GPU starts",
    evidence="probe",
    cannot_express="queues in GPU memory",
    streams=(Stream(name="read", direction="read", pattern="random", block_mix=one_size(4 * KIB)),),
    sweep=(
        SweepAxis(stream="read", field="block_size", values=(512, 4 * KIB)),
        SweepAxis(stream="read", field="jobs", values=(1, 2, 4, 8, 16)),
    ),
    timing=Timing(),
    isolate=False,
    primary=("read.iops", "read.iops_over_fewer_jobs"),
    digest="d-fanout",
)
MATRIX = Workload(
    name="neighbour-matrix",
    summary="Each victim beside each aggressor.",
    role="performance",
    source="tenants on one drive",
    evidence="probe",
    cannot_express="namespaces of their own",
    streams=(
        *(
            Stream(
                name=name,
                direction="read",
                pattern="random",
                block_mix=one_size(size),
                queue_depth=8,
                side="victim",
            )
            for name, size in (("rows", 512), ("pages", 4 * KIB), ("blocks", 2 * MIB))
        ),
        Stream(
            name="writer",
            direction="write",
            pattern="sequential",
            block_mix=one_size(MIB),
            queue_depth=4,
            side="aggressor",
        ),
        Stream(
            name="big-reads",
            direction="read",
            pattern="random",
            block_mix=one_size(4 * MIB),
            queue_depth=4,
            side="aggressor",
        ),
        Stream(
            name="trimmer",
            direction="trim",
            pattern="random",
            block_mix=one_size(4 * MIB),
            side="aggressor",
        ),
    ),
    sweep=(),
    timing=Timing(),
    isolate=False,
    primary=("rows.latency_p99.9_mixed_over_alone", "rows.jain_index"),
    digest="d-matrix",
)
STEPS = Workload(
    name="layer-pipeline",
    summary="32 layers of a chunk, one after the other, while a GPU computes.",
    role="performance",
    source="layer-wise loading",
    evidence="shipping",
    cannot_express="the computation itself",
    derivation="one layer of llama-3.1-8b in bf16: 256 tokens x 1 layer x 2 (K and V) x 8 KV heads "
    "x 128 x 2 B = 1048576 B (1 MiB)",
    streams=(
        Stream(
            name="layers",
            direction="read",
            pattern="random",
            block_mix=one_size(MIB),
            barrier=True,
            request_steps=32,
            deadline_s=0.05,
            compute_s=0.002,
            prefetch_steps=2,
            buffers="contiguous",
        ),
    ),
    sweep=(SweepAxis(stream="layers", field="jobs", values=(1, 4)),),
    timing=Timing(),
    isolate=False,
    primary=(
        "layers.request_p50",
        "layers.stall_p50",
        "layers.deadline_hit_share",
        "layers.deadline_step_share",
    ),
    digest="d-steps",
)
NEW = (LOAD, SPAN, FANOUT, MATRIX, STEPS)
ALL = (ladder(), SPARSE, BLOCKS, TENANTS, CHUNKS)

Judge = Callable[[Cell], tuple[Outcome, tuple[Finding, ...]]]


def all_valid(_: Cell) -> tuple[Outcome, tuple[Finding, ...]]:
    return "valid", ()


def with_trouble(cell: Cell) -> tuple[Outcome, tuple[Finding, ...]]:
    """One invalid cell, one failed cell, doubtful ladder cells at depth 64."""
    if cell.workload == "block-reload" and cell.repetition == 2:
        if cell.parameters["queue_depth"] == 4:
            return "invalid", (
                Finding(
                    check="runtime",
                    severity="invalid",
                    text="asked for 1.0 s, fio measured 0.4 s",
                    stream="blocks",
                ),
            )
        if cell.parameters["queue_depth"] == 8:
            return "failed", (
                Finding(
                    check="launch",
                    severity="invalid",
                    text="fio ended with exit code 1: Input/output error",
                ),
            )
    if cell.workload == "iops-ladder" and cell.parameters["queue_depth"] == 64:
        return "doubtful", (
            Finding(
                check="host-bound",
                severity="doubt",
                text=f"{71 + cell.repetition} % of what this host generates: the host may be the "
                "limit, not the target",
                stream="reads",
            ),
        )
    return "valid", ()


def never_written(cell: Cell) -> tuple[Outcome, tuple[Finding, ...]]:
    """Every read cell of a device without proof of a fill."""
    if any(p.stream.reads for p in cell.placed):
        return "doubtful", (
            Finding(
                check="never-written",
                severity="doubt",
                text="reads may have met blocks that were never written, which many SSDs answer "
                "without reading",
            ),
        )
    return "valid", ()


def make_run(
    workloads: Iterable[Workload] = ALL,
    *,
    repetitions: int = 3,
    judge: Judge = with_trouble,
    engine: str = "io_uring",
    direct: bool = True,
    path: str = "results/target.bin",
    kind: str = "file",
    may_write: bool = True,
    written: str = "proven",
    end: str | None = "complete",
    cells_done: int | None = None,
    damage: tuple[str, ...] = (),
    caveats: tuple[str, ...] = (),
    facts: tuple[Fact, ...] | None = None,
    label: str = "",
) -> MeasuredRun:
    plan = make_plan(
        tuple(workloads),
        TargetSpec(
            path=path,
            kind="block" if kind == "block" else "file",
            size_bytes=4 * GIB,
            own_file=kind == "file",
        ),
        suite="quick",
        repetitions=repetitions,
        seed=7,
        engine="libaio" if engine == "libaio" else "psync" if engine == "psync" else "io_uring",
        direct=direct,
        may_write=may_write,
    )
    plan = _with_special_cells(plan)
    done = plan.cells if cells_done is None else plan.cells[:cells_done]
    cells = tuple(_measure(cell, judge) for cell in done)
    ended = None
    if end is not None:
        ended = EndRecord(
            format=FORMAT,
            end="interrupted" if end == "interrupted" else "complete",
            ended_at="2025-03-04T05:09:58+00:00",
            cells_done=len(cells),
            reason="stopped by Ctrl-C" if end == "interrupted" else "",
        )
    return MeasuredRun(
        record=_record(plan, path, written, caveats, facts, label, may_write),
        end=ended,
        cells=cells,
        summaries=_summaries(cells),
        damage=damage,
    )


def _with_special_cells(plan: Plan) -> Plan:
    """Return ``plan`` with the cells of load curves, pairs and spans as sessions have them."""
    special = {w.name: w for w in plan.workloads if w.load is not None or w.matrix or w is SPAN}
    cells: list[Cell] = [c for c in plan.cells if c.workload not in special]
    for workload in special.values():
        first = next(c for c in plan.cells if c.workload == workload.name and c.repetition)
        for repetition in range(1, plan.repetitions + 1):
            cells += [
                replace(cell, repetition=repetition, seed=1000 * repetition + number)
                for number, cell in enumerate(_special(workload, first))
            ]
    numbered = (replace(cell, cell_id=f"{n:04d}") for n, cell in enumerate(cells, start=1))
    return replace(plan, cells=tuple(numbered))


def _special(workload: Workload, first: Cell) -> Iterable[Cell]:
    def cell(
        name: str,
        parameters: dict[str, SweepValue],
        streams: Iterable[Stream],
        alone: str | None = None,
        load: CellLoad | None = None,
    ) -> Cell:
        return replace(
            first,
            purpose="search" if load is not None and load.kind == "search" else "measure",
            point_id=f"{workload.name}-{name}",
            parameters=parameters,
            alone=alone,
            load=load,
            placed=tuple(
                Placed(stream=s, offset_bytes=0, size_bytes=s.span_limit_bytes or 4 * GIB)
                for s in streams
            ),
        )

    if workload.load is not None:
        for number, (streams, swept) in enumerate(points(workload.streams, workload.sweep)):
            tail = f"-{number}" if number else ""
            peak = {**swept, "load": "peak"}
            yield cell(f"peak{tail}", peak, streams, load=CellLoad(kind="peak"))
            depth, jobs = workload.load.queue_depth, workload.load.jobs
            open_loop = (replace(streams[0], queue_depth=depth, jobs=jobs),)
            for percent in workload.load.percents:
                load = CellLoad(kind="share", percent=percent)
                share = {**swept, "load": f"{percent} %"}
                yield cell(f"{percent}{tail}", share, open_loop, load=load)
            for step in range(1, workload.load.search_steps + 1):
                load = CellLoad(kind="search", step=step)
                search = {**swept, "load": f"search {step}"}
                yield cell(f"search{step}{tail}", search, open_loop, load=load)
    elif workload.matrix:
        for stream in workload.streams:
            yield cell(f"alone-{stream.name}", {}, (stream,), alone=stream.name)
        for victim in (s for s in workload.streams if s.side == "victim"):
            for other in (s for s in workload.streams if s.side == "aggressor"):
                names: dict[str, SweepValue] = {"victim": victim.name, "aggressor": other.name}
                yield cell(f"{victim.name}-{other.name}", names, (victim, other))
    else:
        for number, (streams, parameters) in enumerate(points(workload.streams, workload.sweep)):
            yield cell(f"{number}", parameters, streams)


def job_texts(run: MeasuredRun) -> dict[str, str]:
    return {
        cell.cell_id: f"; kvbench cell {cell.cell_id}\n[global]\nioengine={cell.engine}\n"
        f"direct={int(cell.direct)}\nrandseed={cell.seed}\nthread=1\n\n"
        + "".join(
            f"[{p.stream.name}]\nnew_group=1\nbs={p.stream.max_block_bytes}\n"
            f"iodepth={p.stream.queue_depth}\nnumjobs={p.stream.jobs}\n"
            for p in cell.placed
        )
        for cell in run.record.plan.cells
    }


def _record(
    plan: Plan,
    path: str,
    written: str,
    caveats: tuple[str, ...],
    facts: tuple[Fact, ...] | None,
    label: str,
    may_write: bool,
) -> RunRecord:
    state = {
        "unproven": Written(state="unproven", reason="a block device without record of a fill"),
        "buffered": Written(state="buffered", reason="the page cache serves the reads"),
    }.get(written, Written(state="proven", reason="no hole and no unwritten extent in 4 GiB"))
    return RunRecord(
        format=FORMAT,
        run_id="20250304T050607Z",
        kvbench_version="0.1.0",
        created_at="2025-03-04T05:06:07+00:00",
        label=label,
        command=("kvbench", "run", path, "--suite", "quick")
        + (() if may_write else ("--label", "read only")),
        plan=plan,
        identity=Identity(
            path=path,
            real_path=path,
            kind=plan.target.kind,
            device_number="254:1",
            inode=131,
            size_bytes=plan.target.size_bytes,
        ),
        written=state,
        facts=facts
        if facts is not None
        else (
            Fact(name="kernel", value="6.1.0-18-amd64"),
            Fact(name="cpu", value="2 x AMD EPYC 7B13"),
            Fact(name="device_model", value=None, reason="a virtio disk does not tell its model"),
            Fact(name="file_system", value="ext4"),
            Fact(name="device_scheduler", value="none"),
            Fact(
                name="device_temperature",
                value=None,
                reason="nvme-cli is not installed",
            ),
        ),
        fio_version="fio-3.33",
        caveats=caveats,
    )


_MADE: dict[bytes, tuple[tuple[Measurement, ...], tuple[StreamHistogram, ...]]] = {}


def _measure(cell: Cell, judge: Judge) -> MeasuredCell:
    outcome, findings = ("valid", ()) if cell.purpose == "ceiling" else judge(cell)
    if cell.load is not None and cell.load.percent == 90:
        text = "overloaded: offered 81k/s, achieved 74k/s"
        findings = (Finding(check="overloaded", severity="doubt", text=text, stream="read"),)
        outcome = "doubtful"
    if outcome == "failed":
        return MeasuredCell(
            cell=cell, outcome=outcome, findings=findings, measurements=(), histograms=()
        )
    measurements, histograms = _made(cell)
    return MeasuredCell(
        cell=cell,
        outcome=outcome,
        findings=findings,
        measurements=measurements,
        histograms=histograms,
    )


def _made(cell: Cell) -> tuple[tuple[Measurement, ...], tuple[StreamHistogram, ...]]:
    """Return the numbers of a cell, which depend on it alone: many runs have the same cells."""
    key = msgspec.msgpack.encode(replace(cell, cell_id=""))
    if key not in _MADE:
        rng = np.random.default_rng(cell.seed)
        measurements: list[Measurement] = []
        histograms: list[StreamHistogram] = []
        for placed in cell.placed:
            for direction in directions(placed.stream):
                numbers, found = _numbers(cell, placed, direction, rng)
                measurements += numbers
                histograms += found
        for one in histograms:
            one.latency_s.setflags(write=False)
            one.counts.setflags(write=False)
        _MADE[key] = tuple(measurements), tuple(histograms)
    return _MADE[key]


def _numbers(
    cell: Cell, placed: Placed, direction: IoDirection, rng: np.random.Generator
) -> tuple[list[Measurement], list[StreamHistogram]]:
    stream = placed.stream
    size = stream.mean_block_bytes
    crowd = 1.0 if len(cell.placed) == 1 else 2.4
    base_s = (60e-6 + size / 1.6e9 + (80e-6 if direction == "write" else 0.0)) * crowd
    if stream.span_limit_bytes is not None and stream.span_limit_bytes > GIB:
        base_s *= 1 + 0.25 * np.log2(stream.span_limit_bytes / GIB)
    if "aggressor" in cell.parameters:
        base_s *= {"writer": 1.0, "big-reads": 3.0}.get(str(cell.parameters["aggressor"]), 0.45)
    inflight = stream.queue_depth * stream.jobs if stream.rate_iops is None else 1
    latency_s = base_s * max(1.0, inflight / 6) * rng.uniform(0.93, 1.07)
    rate = inflight / latency_s if stream.rate_iops is None else stream.rate_iops
    if cell.load is not None and cell.load.kind != "peak":
        share = (cell.load.percent or 75) / 100
        latency_s = base_s / (1.02 - share) ** 0.8 * rng.uniform(0.93, 1.07)
        rate = 90_000.0 * min(share, 0.82) * rng.uniform(0.99, 1.01)
    if stream.jobs > 8:
        rate *= 0.6
    if cell.purpose == "ceiling":
        latency_s, rate = 2e-6 * inflight, 480_000.0
    count = max(20, round(rate * cell.timing.runtime_s))
    stuck = cell.workload == "chunk-write" and direction == "write"
    sample = latency_s * rng.lognormal(-0.05, 0.3, min(count, 40_000))
    sample[rng.random(sample.size) < 0.004] *= 9
    if stuck:
        sample[rng.random(sample.size) < 0.05] = 20.0
    latency, counts = _bins(np.minimum(sample, CENSORED_S), count)
    built = [
        StreamHistogram(
            stream=stream.name,
            direction=direction,
            what="latency",
            latency_s=latency,
            counts=counts,
        )
    ]

    def number(metric: str, value: float | None, n: int, reason: str = "") -> Measurement:
        return Measurement(
            stream=stream.name,
            direction=direction,
            metric=metric,
            value=value,
            io_count=n,
            reason=reason,
            censored=value is not None and METRICS[metric].unit == "s" and value >= CENSORED_S,
        )

    numbers = [number("iops", rate, count), number("bandwidth", rate * size, count)]
    numbers += _percentiles(number, "latency", latency, counts)
    numbers.append(number("cpu_per_io", 6.2e-6, count))
    if stream.barrier:
        requests = count // stream.queue_depth
        slow, slow_counts = _bins(
            latency_s * rng.lognormal(0.6, 0.25, max(20, requests)), max(20, requests)
        )
        built.append(
            StreamHistogram(
                stream=stream.name,
                direction=direction,
                what="request",
                latency_s=slow,
                counts=slow_counts,
            )
        )
        numbers.append(number("request_rate", rate / stream.queue_depth, requests))
        numbers += _percentiles(number, "request", slow, slow_counts)
    numbers += [
        number(metric, value, count) for metric, value in _special_numbers(cell, stream).items()
    ]
    if cell.purpose == "measure" and stream.rate_iops is None:
        numbers.append(number("host_ceiling_share", min(99.0, rate / 4800.0), count))
    if cell.workload == "three-tenants" and cell.alone is None:
        numbers.append(number("latency_p99_mixed_over_alone", 2.4, count))
        numbers.append(number("iops_mixed_over_alone", 0.42, count))
    return numbers, built


def _special_numbers(cell: Cell, stream: Stream) -> dict[str, float]:
    """Return the numbers of several cells together, and those of requests with steps."""
    seed = cell.seed % 7
    if cell.load is not None and cell.load.kind == "peak":
        return {"usable_iops": 61_000.0 + 900 * seed, "usable_share": 68.0 + seed}
    if cell.workload == "map-span":
        knees = {"span_knee": float(GIB), "span_slope": 15e-6} if stream.queue_depth == 1 else {}
        return {"latency_over_smallest_span": 1.2, **knees}
    if cell.workload == "queue-fanout":
        return {} if stream.jobs == 1 else {"iops_over_fewer_jobs": 1.9 if stream.jobs < 9 else 0.6}
    if "victim" in cell.parameters and stream.side == "victim":
        ratio = {"writer": 1.05, "big-reads": 2.7, "trimmer": 8.5}
        base = ratio.get(str(cell.parameters["aggressor"]), 1.6) * (1 + 0.05 * seed)
        tail = {} if stream.name == "blocks" else {"latency_p99.9_mixed_over_alone": base * 1.2}
        return {**tail, "latency_p99_mixed_over_alone": base, "jain_index": 0.93}
    if stream.compute_s is not None:
        return {
            "stall_p50": 0.004,
            "deadline_hit_share": 93.5,
            "deadline_step_share": 98.2,
            "device_requests_per_io": 2.1,
            "device_request_bytes": 512.0 * KIB,
        }
    return {}


def _percentiles(
    number: Callable[..., Measurement],
    prefix: str,
    latency: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    counts: "np.ndarray[tuple[int], np.dtype[np.int64]]",
) -> Iterable[Measurement]:
    total = int(counts.sum())
    running = np.cumsum(counts)
    for metric in METRICS.values():
        p = metric.percentile
        if p is None or not metric.name.startswith(f"{prefix}_"):
            continue
        if total < metric.min_ios:
            reason = f"too few I/Os: {total:,} of {metric.min_ios:,} needed"
            yield number(metric.name, None, total, reason)
        else:
            place = int(np.searchsorted(running, np.ceil(total * p / 100)))
            yield number(metric.name, float(latency[place]), total)


def _bins(
    sample: "np.ndarray[tuple[int], np.dtype[np.float64]]", count: int
) -> tuple[
    "np.ndarray[tuple[int], np.dtype[np.float64]]", "np.ndarray[tuple[int], np.dtype[np.int64]]"
]:
    """Return bins as fio's are: 64 per power of two."""
    keys = np.ceil(np.log2(sample * 1e9) * 64).astype(np.int64)
    names, counts = np.unique(keys, return_counts=True)
    counts = np.maximum(1, counts * max(1, count // sample.size))
    return np.minimum(2.0 ** (names / 64) / 1e9, CENSORED_S), counts.astype(np.int64)


def _summaries(cells: Iterable[MeasuredCell]) -> tuple[Summary, ...]:
    found: dict[tuple[str, str, IoDirection, str], list[tuple[MeasuredCell, Measurement]]]
    found = defaultdict(list)
    missing: dict[str, int] = defaultdict(int)
    for cell in cells:
        if cell.outcome in ("invalid", "failed"):
            missing[cell.cell.point_id] += 1
            continue
        for m in cell.measurements:
            found[cell.cell.point_id, m.stream, m.direction, m.metric].append((cell, m))
    summaries = []
    for (point_id, stream, direction, metric), pairs in found.items():
        first = pairs[0][0].cell
        values = tuple(m.value for _, m in pairs if m.value is not None)
        complete = len(values) == len(pairs)
        ordered = sorted(values)
        wide = len(values) >= 6
        summaries.append(
            Summary(
                point_id=point_id,
                purpose=first.purpose,
                workload=first.workload,
                role=first.role,
                parameters=first.parameters,
                alone=first.alone,
                stream=stream,
                direction=direction,
                metric=metric,
                unit=METRICS[metric].unit,
                median=median(values) if complete else None,
                low=ordered[0] if complete and len(values) > 1 else None,
                high=ordered[-1] if complete and len(values) > 1 else None,
                interval="none" if not complete or len(values) < 2 else "95 %" if wide else "range",
                n=len(values) if complete else 0,
                values=values if complete else (),
                io_count=sum(m.io_count for _, m in pairs),
                excluded=missing[point_id],
                censored=any(m.censored for _, m in pairs),
                reason="" if complete else next(m.reason for _, m in pairs if m.reason),
                doubts=tuple(
                    dict.fromkeys(
                        f.text for c, _ in pairs for f in c.findings if f.severity == "doubt"
                    )
                ),
            )
        )
    return tuple(summaries)


def renamed(workload: Workload, name: str, stream: str) -> Workload:
    """Return ``workload`` (of one stream) under hostile names."""
    only = replace(workload.streams[0], name=stream)
    return replace(
        workload,
        name=name,
        summary=name,
        source=name,
        cannot_express=name,
        streams=(only,),
        sweep=tuple(replace(axis, stream=stream) for axis in workload.sweep),
        primary=tuple(f"{stream}.{p.rpartition('.')[2]}" for p in workload.primary),
    )
