"""The ``[[stream]]`` tables of a workload file -> Stream."""

import re
from typing import get_args

import msgspec

from kvbench.document import found
from kvbench.workload import rules
from kvbench.workload.kv import KvObject, uses_kv, with_kv
from kvbench.workload.schema import (
    BlockShare,
    Buffers,
    Direction,
    Pattern,
    Shape,
    Side,
    Stream,
    Verify,
    WritePolicy,
)
from kvbench.workload.table import Table, duration_s, plain_text, real, size, whole

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)
SHAPES: tuple[Shape, ...] = get_args(Shape)
WRITE_POLICIES: tuple[WritePolicy, ...] = get_args(WritePolicy)
BUFFERS: tuple[Buffers, ...] = get_args(Buffers)
SIDES: tuple[Side, ...] = get_args(Side)
VERIFY: tuple[Verify, ...] = get_args(Verify)

STREAM_KEYS = (
    "name",
    "direction",
    "pattern",
    "block_size",
    "block_mix",
    "read_percent",
    "chunk_size",
    "queue_depth",
    "jobs",
    "rate_iops",
    "barrier",
    "zipf_theta",
    "span_start_percent",
    "span_percent",
    "shape",
    "write_policy",
    "fsync_every",
    "buffers",
    "buffered",
    "align",
    "stride",
    "payload",
    "request_steps",
    "deadline",
    "compute_per_step",
    "prefetch_steps",
    "burst_ios",
    "pause",
    "span_size",
    "side",
    "verify",
)
BLOCK_MIX_KEYS = ("size", "percent")
NUMBER_KEYS = (
    "read_percent",
    "chunk_size",
    "queue_depth",
    "jobs",
    "rate_iops",
    "zipf_theta",
    "span_start_percent",
    "span_percent",
    "fsync_every",
    "align",
    "stride",
    "payload",
    "request_steps",
    "deadline",
    "compute_per_step",
    "prefetch_steps",
    "burst_ios",
    "pause",
    "span_size",
)
FIELDS = {  # keys whose field has another name
    "chunk_size": "chunk_bytes",
    "align": "align_bytes",
    "stride": "stride_bytes",
    "payload": "payload_bytes",
    "deadline": "deadline_s",
    "compute_per_step": "compute_s",
    "pause": "pause_s",
    "span_size": "span_limit_bytes",
}
_WHOLE_MAX = {
    "queue_depth": rules.DEPTH_MAX,
    "jobs": rules.JOBS_MAX,
    "read_percent": 99,
    "fsync_every": rules.FSYNC_MAX,
    "request_steps": rules.STEPS_MAX,
    "prefetch_steps": rules.STEPS_MAX,
    "burst_ios": rules.BURST_MAX,
}
_NAME = re.compile(rules.NAME)


def read_streams(
    table: Table, *, ramp_s: float, kv: KvObject | None
) -> tuple[tuple[Stream, ...], str]:
    """Return the streams of a workload file, each checked by itself.

    ``kv`` is the object whose size a stream may take; the second value tells what a stream's
    blocks made of it, "" where it stayed as it was.
    """
    told = ""
    streams: list[Stream] = []
    entries = table.tables("stream", at_most=rules.STREAMS_MAX)
    if kv is not None and not uses_kv(entries):
        raise table.error("kv", "no stream uses it", 'write block_size = "kv" in a stream')
    for entry in entries:
        sized, rounded = with_kv(entry, kv)
        told = told or rounded
        stream = _stream(sized, ramp_s=ramp_s)
        if stream.name in (other.name for other in streams):
            raise entry.error("name", f"two streams are called {stream.name!r}")
        streams.append(stream)
    return tuple(streams), told


def allowed_name(value: object, table: Table, key: str) -> str:
    """Return ``value`` as the name of a stream or workload."""
    text = plain_text(value, table, key, limit=200)
    if not _NAME.fullmatch(text):
        raise table.error(key, f"not an allowed name: {found(value)}", rules.NAME_HINT)
    return text


def _stream(table: Table, *, ramp_s: float) -> Stream:
    table.allow_only(STREAM_KEYS)
    name = allowed_name(table.require("name"), table, "name")
    if name.startswith("global"):
        raise table.error(
            "name",
            f"a stream cannot be called {name!r}",
            "fio takes every section that starts with 'global' for its defaults",
        )
    stream = Stream(
        name=name,
        direction=table.choice("direction", DIRECTIONS, None),
        pattern=table.choice("pattern", PATTERNS, None),
        block_mix=_block_mix(table),
        barrier=table.flag("barrier", default=False),
        shape=table.choice("shape", SHAPES, "latency"),
        write_policy=table.choice("write_policy", WRITE_POLICIES, "plain"),
        buffers=table.choice("buffers", BUFFERS, "scattered"),
        buffered=table.flag("buffered", default=False),
        side=table.choice("side", SIDES, None) if "side" in table else None,
        verify=table.choice("verify", VERIFY, None) if "verify" in table else None,
    )
    numbers = {
        FIELDS.get(key, key): number(key, table.values[key], table, key)
        for key in NUMBER_KEYS
        if key in table
    }
    stream = msgspec.structs.replace(stream, **numbers)
    for breach in rules.breaches(stream, ramp_s=ramp_s):
        raise table.error(breach.field, breach.message, breach.hint)
    return stream


def number(kind: str, value: object, table: Table, key: str) -> int | float:
    """Return the value of one numeric key of a stream, within its own limits."""
    match kind:
        case "block_size":
            return size(value, table, key, low=rules.BLOCK_MIN, high=rules.BLOCK_MAX)
        case "chunk_size":
            return size(value, table, key, low=rules.CHUNK_MIN, high=rules.CHUNK_MAX)
        case "zipf_theta":
            return real(value, table, key, low=rules.THETA_MIN, high=rules.THETA_MAX)
        case "span_percent":
            return real(value, table, key, low=rules.SPAN_MIN, high=100)
        case "span_start_percent":
            return real(value, table, key, low=0, high=100)
        case "align" | "stride" | "payload" | "span_size":
            low = 1 if kind == "payload" else rules.BLOCK_MIN
            return size(value, table, key, low=low, high=rules.SPAN_BYTES_MAX)
        case "deadline" | "compute_per_step" | "pause":
            return duration_s(value, table, key, low=rules.PAUSE_MIN_S, high=rules.RUNTIME_MAX_S)
        case "rate_iops":
            return float(whole(value, table, key, low=1, high=rules.RATE_MAX))
        case _:
            return whole(value, table, key, low=1, high=_WHOLE_MAX[kind])


def _block_mix(table: Table) -> tuple[BlockShare, ...]:
    if ("block_size" in table) == ("block_mix" in table):
        raise table.error("block_size", "give either block_size or block_mix")
    if "block_size" in table:
        only = table.size("block_size", low=rules.BLOCK_MIN, high=rules.BLOCK_MAX)
        return (BlockShare(size_bytes=only, percent=100),)
    shares = []
    for entry in table.tables("block_mix", at_most=rules.MIX_MAX):
        entry.allow_only(BLOCK_MIX_KEYS)
        size_bytes = entry.size("size", low=rules.BLOCK_MIN, high=rules.BLOCK_MAX)
        percent = entry.integer("percent", low=1, high=100)
        shares.append(BlockShare(size_bytes=size_bytes, percent=percent))
    return tuple(shares)
