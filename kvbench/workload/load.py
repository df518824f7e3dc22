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

from kvbench.document import FORMAT, found, suggestion
from kvbench.metrics import METRICS
from kvbench.workload import rules
from kvbench.workload.kv import read_kv
from kvbench.workload.schema import (
    ROLES,
    Evidence,
    Stream,
    Suite,
    SweepAxis,
    Timing,
    Workload,
)
from kvbench.workload.streams import allowed_name, read_streams
from kvbench.workload.sweep import check_points, read_sweep
from kvbench.workload.table import Table, plain_text, read_document

EVIDENCE: tuple[Evidence, ...] = get_args(Evidence)

WORKLOAD_KEYS = (
    "format",
    "summary",
    "role",
    "source",
    "evidence",
    "cannot_express",
    "isolate",
    "primary",
    "timing",
    "kv",
    "sweep",
    "stream",
)
TIMING_KEYS = ("runtime", "ramp")
SUITE_KEYS = ("format", "summary", "workloads", "repetitions")

# fields that digests once did without, and their defaults
ADDED = {"buffers": "scattered", "buffered": False, "request_steps": 1}

SUMMARY_MAX, TEXT_MAX = 200, 2000
PRIMARY_MAX = 16
SUITE_WORKLOADS_MAX = 200
REPETITIONS_MAX = 1000
_FILE_STEM = re.compile(f"_?{rules.NAME}")


def load_workload(path: Path) -> Workload:
    """Return the workload in ``path``; its name is the file's name.

    Raises:
        UsageError: the file cannot be read, or a key or value is not allowed.
    """
    table = read_document(path)
    name = _file_name(path, table)
    table.allow_only(WORKLOAD_KEYS)
    timing = _timing(table.table("timing"))
    kv = read_kv(table)
    streams = read_streams(table, ramp_s=timing.ramp_s, kv=kv)
    sweep = read_sweep(table.table("sweep"), streams)
    isolate = table.flag("isolate", default=False)
    if isolate and len(streams) == 1:
        raise table.error("isolate", "needs at least two streams")
    check_points(table, streams, sweep, ramp_s=timing.ramp_s)
    return Workload(
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
        primary=_primary(table, streams, isolate=isolate),
        digest=digest(streams, sweep, timing, isolate=isolate),
        derivation=kv.derivation if kv else "",
    )


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
    streams: tuple[Stream, ...], sweep: tuple[SweepAxis, ...], timing: Timing, *, isolate: bool
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


def _primary(table: Table, streams: tuple[Stream, ...], *, isolate: bool) -> tuple[str, ...]:
    """Return the ``stream.metric`` names, each of which the workload can give."""
    names = []
    for n, value in enumerate(table.array("primary", at_most=PRIMARY_MAX), start=1):
        key = f"primary[{n}]"
        text = plain_text(value, table, key, limit=100)
        stream_name, _, metric = text.partition(".")
        stream = next((s for s in streams if s.name == stream_name), None)
        if stream is None:
            raise table.error(
                key,
                f"{found(text)} names no stream of this file",
                suggestion(stream_name, [s.name for s in streams]),
            )
        if metric not in METRICS:
            raise table.error(key, f"{found(text)} names no metric", suggestion(metric, METRICS))
        if metric.startswith("request_") and not stream.barrier:
            raise table.error(key, f"{metric} needs a stream with barrier = true")
        if metric.endswith("_mixed_over_alone") and not isolate:
            raise table.error(key, f"{metric} needs isolate = true")
        names.append(text)
    return tuple(names)
