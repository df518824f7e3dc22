"""Workloads x target x repetitions -> the ordered cells, with expected time and bytes.  Pure.

Cells are shuffled inside each repetition by the plan's seed, so that a drifting device does not
favour a workload, and fio's seed changes with every cell, so that no cell replays another's
offsets.  Ceiling cells (fio's null engine, the same job shape) come first: they tell what this
host can generate.
"""

import random
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from kvbench.errors import UsageError
from kvbench.plan.cells import Mode, Together, ceilings, cells_of, shuffled
from kvbench.plan.model import FORMAT, Plan, Scaled, Skipped, TargetSpec, Unsupported
from kvbench.plan.place import fit
from kvbench.units import HUGE_PAGE_BYTES, format_size
from kvbench.workload.schema import Engine, Stream, Workload
from kvbench.workload.sweep import points


def make_plan(
    workloads: Sequence[Workload],
    target: TargetSpec,
    *,
    suite: str = "",
    repetitions: int,
    seed: int,
    engine: Engine = "io_uring",
    direct: bool = True,
    may_write: bool,
    huge_pages_free: int | None = None,
    why_not_contiguous: str = "",
    runtime_s: float | None = None,
    span_bytes: int | None = None,
) -> Plan:
    """Return the plan of ``workloads`` on ``target``.

    Args:
        workloads: what to run, in the order in which reports show it.
        target: what to run it on.
        suite: the suite's name, "" when workloads were named one by one.
        repetitions: passes over all cells; the statistical sample size.
        seed: decides the order of cells and every offset that fio draws.
        engine: fio's I/O engine.
        direct: O_DIRECT, or the page cache.
        may_write: without it workloads that write are skipped, with the reason.
        huge_pages_free: reserved 2 MiB pages that nobody uses; workloads that need more of them
            are skipped, with the reason.  None skips none.
        why_not_contiguous: why this host gives no contiguous buffers; workloads that ask for
            them are skipped with it.  "" when it does.
        runtime_s: overrides the runtime of every workload.
        span_bytes: only the first so many bytes of the target are used.

    Raises:
        UsageError: nothing is left to run, or the target is too small for a workload.
    """
    span = target.size_bytes if span_bytes is None else span_bytes
    if span > target.size_bytes:
        raise UsageError(
            f"span {format_size(span)} is larger than the target, "
            f"which has {format_size(target.size_bytes)}",
            where=target.path,
        )
    if repetitions < 1:
        raise UsageError(f"repetitions must be at least 1, not {repetitions}")
    runnable: list[Workload] = []
    skipped: list[Skipped] = []
    scaled: list[Scaled] = []
    for workload in _distinct(workloads):
        reason = _why_not(workload, target, may_write=may_write, engine=engine)
        if reason is None and huge_pages_free is not None:
            reason = _why_no_memory(workload, huge_pages_free)
        if reason is None and why_not_contiguous and _contiguous(workload):
            reason = f"its buffers cannot be contiguous here: {why_not_contiguous}"
        if reason:
            skipped.append(Skipped(workload=workload.name, reason=reason))
        else:
            fitted, cut = fit(workload, span)
            runnable.append(fitted)
            scaled += cut
    if not runnable:
        reasons = "; ".join(f"{s.workload}: {s.reason}" for s in skipped)
        raise UsageError(f"nothing to run: {reasons or 'no workload was named'}")
    on_file = target.kind == "file"
    mode = Mode(engine=engine, direct=direct, on_file=on_file, runtime_s=runtime_s)
    planned = [together for workload in runnable for together in cells_of(workload, span, mode)]
    one_pass, unsupported = _supported(planned, target)
    rng = random.Random(seed)  # noqa: S311 - an order to repeat, not a secret
    ordered = list(ceilings([cell for together in one_pass for cell in together]))
    for repetition in range(1, repetitions + 1):
        ordered += [replace(cell, repetition=repetition) for cell in shuffled(one_pass, rng)]
    cells = tuple(
        replace(cell, cell_id=f"{number:04d}", seed=rng.randrange(1, 2**31))
        for number, cell in enumerate(ordered, start=1)
    )
    return Plan(
        format=FORMAT,
        suite=suite,
        seed=seed,
        repetitions=repetitions,
        target=target,
        engine=engine,
        direct=direct,
        workloads=tuple(runnable),
        cells=cells,
        skipped=tuple(skipped),
        scaled=tuple(scaled),
        unsupported=unsupported,
    )


def _distinct(workloads: Sequence[Workload]) -> Iterable[Workload]:
    """Return each workload once; a name with two meanings is refused."""
    by_name: dict[str, Workload] = {}
    for workload in workloads:
        if by_name.setdefault(workload.name, workload).digest != workload.digest:
            raise UsageError(
                f"two different workloads are called {workload.name}",
                hint="rename one file, as reports tell workloads apart by name",
            )
    return by_name.values()


def _why_not(
    workload: Workload, target: TargetSpec, *, may_write: bool, engine: Engine
) -> str | None:
    variants = [streams for streams, _ in points(workload.streams, workload.sweep)]
    streams = [s for streams in variants for s in streams]
    if not may_write and any(s.changes for s in streams):
        return "it writes, and this target is only read (give --destroy to allow writing)"
    depths = [s.queue_depth for s in streams]
    if workload.load is not None:
        depths.append(workload.load.queue_depth)
    if engine == "psync" and max(depths) > 1:
        return "it needs a queue depth above 1, which psync cannot give"
    unfit = [_unfit(members, target) for members in variants]
    return unfit[0] if all(unfit) else None


def _unfit(streams: Iterable[Stream], target: TargetSpec) -> str | None:
    """Return why a device cannot be asked for these I/Os, None when it can."""
    block = target.logical_block_bytes
    of_device = f"not a multiple of the device's {block} B logical block"
    for stream in streams:
        places = {"start": stream.align_bytes, "stride": stream.stride_bytes}
        for size in sorted(share.size_bytes for share in stream.block_mix):
            if size % block:
                return f"its {size} B blocks are {of_device}"
        for what, place in places.items():
            if place is not None and place % block:
                return f"its {what} of {place} B is {of_device}"
    return None


def _supported(
    planned: Iterable[Together], target: TargetSpec
) -> tuple[list[Together], tuple[Unsupported, ...]]:
    """Return the cells that the target can do, and those that it cannot, with the reason."""
    can: list[Together] = []
    cannot: list[Unsupported] = []
    for together in planned:
        reasons = [_unfit([one.stream for one in cell.placed], target) for cell in together]
        kept = tuple(c for c, reason in zip(together, reasons, strict=True) if not reason)
        cannot += [
            Unsupported(cell=cell, reason=reason)
            for cell, reason in zip(together, reasons, strict=True)
            if reason
        ]
        if kept:
            can.append(kept)
    return can, tuple(cannot)


def huge_pages_needed(streams: Iterable[Stream]) -> int:
    """Return the 2 MiB pages that fio maps for the buffers of ``streams``.

    Seen with fio 3.33: for every job the bytes in flight and 8 KiB less one to align them, in
    whole pages, and one page more.
    """
    return sum(
        stream.jobs * (1 - -(stream.queue_depth * stream.max_block_bytes + 8191) // HUGE_PAGE_BYTES)
        for stream in streams
        if stream.buffers == "huge"
    )


def _contiguous(workload: Workload) -> bool:
    return any(
        stream.buffers == "contiguous"
        for streams, _ in points(workload.streams, workload.sweep)
        for stream in streams
    )


def _why_no_memory(workload: Workload, huge_pages_free: int) -> str | None:
    needed = max(
        huge_pages_needed(streams) for streams, _ in points(workload.streams, workload.sweep)
    )
    if needed <= huge_pages_free:
        return None
    return (
        f"its buffers need {needed} huge pages of 2 MiB and {huge_pages_free} are free "
        f"(sysctl vm.nr_hugepages={needed})"
    )
