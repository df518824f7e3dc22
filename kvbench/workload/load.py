"""Workload and suite files -> Workload, Suite.  Whatever is wrong is refused with file and key.

A workload file is data from strangers.  It can say what I/O is done and nothing else: there is no
key for a file name or for an option of fio, spans are shares of the target, names are plain
words, and every number has a limit.
"""

import hashlib
import re
from pathlib import Path
from typing import get_args

import msgspec

from kvbench.document import FORMAT, found
from kvbench.errors import UsageError
from kvbench.metrics import PERCENTILES
from kvbench.workload import rules
from kvbench.workload.kv import KvChoice, read_kv
from kvbench.workload.primary import read_primary
from kvbench.workload.schema import (
    ROLES,
    Evidence,
    Load,
    Stream,
    Suite,
    SweepAxis,
    Timing,
    Workload,
)
from kvbench.workload.streams import allowed_name, read_streams
from kvbench.workload.sweep import check_points, read_sweep
from kvbench.workload.table import Table, read_document, whole

EVIDENCE: tuple[Evidence, ...] = get_args(Evidence)

WORKLOAD_KEYS = (
    "format",
    "summary",
    "role",
    "source",
    "evidence",
    "cannot_express",
    "isolate",
    "in_order",
    "primary",
    "timing",
    "kv",
    "load",
    "sweep",
    "stream",
)
TIMING_KEYS = ("runtime", "ramp")
LOAD_KEYS = ("percent", "queue_depth", "jobs", "latency_limit", "percentile", "search_steps")
SUITE_KEYS = ("format", "summary", "workloads", "repetitions")

# fields that digests once did without, and their defaults
ADDED = {"buffers": "scattered", "buffered": False, "request_steps": 1}

SUMMARY_MAX, TEXT_MAX = 200, 2000
LOAD_POINTS_MAX, SEARCH_STEPS_MAX = 20, 8
SUITE_WORKLOADS_MAX = 200
REPETITIONS_MAX = 1000
_FILE_STEM = re.compile(f"_?{rules.NAME}")


def load_workload(path: Path, kv_choice: KvChoice | None = None) -> Workload:
    """Return the workload in ``path``; its name is the file's name.

    Args:
        path: the file.
        kv_choice: another model, dtype or number of ranks for its ``[kv]`` table; a file without
            one is the same for every model.

    Raises:
        UsageError: the file cannot be read, or a key or value is not allowed.
    """
    table = read_document(path)
    try:
        return _workload(path, table, kv_choice)
    except UsageError as error:
        if kv_choice is None or "kv" not in table:
            raise
        raise UsageError(
            f"{error.message} (with the sizes of {kv_choice.model})",
            where=error.where,
            hint=error.hint,
        ) from None


def _workload(path: Path, table: Table, kv_choice: KvChoice | None) -> Workload:
    name = _file_name(path, table)
    table.allow_only(WORKLOAD_KEYS)
    timing = _timing(table.table("timing"))
    kv = read_kv(table, kv_choice)
    streams, told = read_streams(table, ramp_s=timing.ramp_s, kv=kv)
    sweep = read_sweep(table.table("sweep"), streams)
    isolate = table.flag("isolate", default=False)
    if isolate and len(streams) == 1:
        raise table.error("isolate", "needs at least two streams")
    check_points(table, streams, sweep, ramp_s=timing.ramp_s)
    load = _load(table, streams, isolate=isolate) if "load" in table else None
    in_order = table.flag("in_order", default=False)
    workload = Workload(
        name=name,
        summary=table.text("summary", limit=SUMMARY_MAX),
        role=table.choice("role", ROLES, None),
        source=table.text("source", limit=TEXT_MAX),
        evidence=table.choice("evidence", EVIDENCE, None),
        cannot_express=table.text("cannot_express", limit=TEXT_MAX, default=""),
        streams=streams,
        sweep=sweep,
        timing=timing,
        isolate=isolate,
        primary=(),
        digest=digest(streams, sweep, timing, isolate=isolate, load=load, in_order=in_order),
        derivation=f"{kv.derivation}{told}" if kv else "",
        load=load,
        in_order=in_order,
    )
    _check_matrix(table, workload)
    _check_order(table, workload)
    return msgspec.structs.replace(workload, primary=read_primary(table, workload))


def load_suite(path: Path) -> Suite:
    """Return the suite in ``path``; whether its workloads exist is the catalog's question.

    Raises:
        UsageError: as for ``load_workload``.
    """
    table = read_document(path)
    name = _file_name(path, table)
    table.allow_only(SUITE_KEYS)
    names = [
        allowed_name(value, table, f"workloads[{n}]")
        for n, value in enumerate(table.array("workloads", at_most=SUITE_WORKLOADS_MAX), start=1)
    ]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise table.error("workloads", f"names {twice!r} twice")
    return Suite(
        name=name,
        summary=table.text("summary", limit=SUMMARY_MAX),
        workloads=tuple(names),
        repetitions=table.integer("repetitions", low=1, high=REPETITIONS_MAX),
    )


def digest(
    streams: tuple[Stream, ...],
    sweep: tuple[SweepAxis, ...],
    timing: Timing,
    *,
    isolate: bool,
    load: Load | None = None,
    in_order: bool = False,
) -> str:
    """Return 16 hex digits over everything that decides the I/O, and over no other text.

    Fields that are None are left out, and so are those of ``ADDED`` that have their default: a
    field added later leaves the digests of the workloads that do not use it as they are.
    """
    decisive = {
        "format": FORMAT,
        "streams": [_used(stream) for stream in streams],
        "sweep": sorted((axis.stream, axis.field, axis.values) for axis in sweep),
        "timing": _used(timing),
        "isolate": isolate,
    }
    if in_order:
        decisive["in_order"] = True
    if load is not None:
        decisive["load"] = msgspec.to_builtins(load)
    encoded = msgspec.json.encode(decisive, order="sorted")
    return hashlib.sha256(encoded).hexdigest()[:16]


def _used(struct: Stream | Timing) -> dict[str, object]:
    fields = msgspec.to_builtins(struct)
    return {
        name: value
        for name, value in fields.items()
        if value is not None and ADDED.get(name) != value
    }


def _file_name(path: Path, table: Table) -> str:
    if not _FILE_STEM.fullmatch(path.stem):
        raise table.error(
            "", f"the file's name is not allowed: {found(path.stem)}", rules.NAME_HINT
        )
    return path.stem


def _timing(table: Table) -> Timing:
    table.allow_only(TIMING_KEYS)
    base = Timing()
    runtime_s, ramp_s = base.runtime_s, base.ramp_s
    if "runtime" in table:
        runtime_s = table.duration_s("runtime", low=rules.RUNTIME_MIN_S, high=rules.RUNTIME_MAX_S)
    if "ramp" in table:
        ramp_s = table.duration_s("ramp", low=0, high=rules.RAMP_MAX_S)
    return Timing(runtime_s=runtime_s, ramp_s=ramp_s)


def _load(table: Table, streams: tuple[Stream, ...], *, isolate: bool) -> Load:
    """Return the load curve of a workload of one stream that reads in a closed loop."""
    entry = table.table("load")
    entry.allow_only(LOAD_KEYS)
    stream = streams[0]
    needs = (
        (len(streams) == 1 and not isolate, "one stream"),
        (stream.direction == "read", "a stream that reads"),
        (stream.rate_iops is None, "a closed loop: its peak is what the rates are shares of"),
        (not stream.barrier, "no barrier"),
        (not stream.buffered and stream.burst_ios is None, "plain O_DIRECT I/O without pauses"),
        (stream.side is None, "no side"),
    )
    for met, need in needs:
        if not met:
            raise table.error("load", f"needs {need}")
    percents = tuple(
        whole(value, entry, f"percent[{n}]", low=1, high=99)
        for n, value in enumerate(entry.array("percent", at_most=LOAD_POINTS_MAX), start=1)
    )
    if list(percents) != sorted(set(percents)):
        raise entry.error("percent", "must go up, each value once")
    depth = entry.integer("queue_depth", low=1, high=rules.DEPTH_MAX)
    jobs = entry.integer("jobs", low=1, high=rules.JOBS_MAX) if "jobs" in entry else 1
    open_loop = msgspec.structs.replace(stream, queue_depth=depth, jobs=jobs)
    for breach in (*rules.breaches(open_loop, ramp_s=0), *rules.point_breaches((open_loop,))):
        raise entry.error(breach.field, breach.message, breach.hint)
    percentile = 99.9
    if "percentile" in entry:
        percentile = entry.number("percentile", low=50, high=99.999)
        if percentile not in PERCENTILES:
            known = ", ".join(f"{p:g}" for p in PERCENTILES)
            raise entry.error("percentile", f"must be one of {known}, not {percentile:g}")
    steps = 0
    if "search_steps" in entry:
        steps = entry.integer("search_steps", low=0, high=SEARCH_STEPS_MAX)
    return Load(
        percents=percents,
        queue_depth=depth,
        limit_s=entry.duration_s("latency_limit", low=1e-6, high=17.0),
        percentile=percentile,
        search_steps=steps,
        jobs=jobs,
    )


def _check_matrix(table: Table, workload: Workload) -> None:
    if not workload.matrix:
        return
    if workload.isolate:
        raise table.error("isolate", "goes without saying where streams have a side")
    if workload.sweep:
        raise table.error("sweep", "has no place in a file whose streams have a side")


def _check_order(table: Table, workload: Workload) -> None:
    """Phases are cells of their own; what is checked must not be written by others meanwhile."""
    if workload.in_order:
        needs = (
            (len(workload.streams) > 1, "at least two streams"),
            (not workload.isolate, "no isolate: each stream is a cell of its own anyway"),
            (not workload.matrix, "streams without a side"),
            (not workload.sweep, "no sweep"),
        )
        for met, need in needs:
            if not met:
                raise table.error("in_order", f"needs {need}")
    elif len(workload.streams) > 1 and any(stream.verify for stream in workload.streams):
        raise table.error(
            "stream",
            "one with verify must be the only stream, or in_order = true",
            "beside it another could write what is checked",
        )
    for n, stream in enumerate(workload.streams, start=1):
        if stream.once and stream.reads and not _written_before(workload.streams[: n - 1], stream):
            raise table.error(
                f"stream[{n}].verify",
                "needs an earlier phase that writes and verifies blocks of this size",
                "what nobody wrote with a header cannot be checked",
            )


def _written_before(earlier: tuple[Stream, ...], reader: Stream) -> bool:
    return any(s.once and s.writes and s.block_mix == reader.block_mix for s in earlier)
