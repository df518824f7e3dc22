"""The ``[sweep]`` table, and the points of a workload: every combination of swept values."""

from collections.abc import Iterable
from itertools import product
from math import prod

import msgspec

from kvbench.document import found, suggestion
from kvbench.workload import rules
from kvbench.workload.schema import BlockShare, Stream, SweepAxis, SweepValue
from kvbench.workload.streams import FIELDS, number
from kvbench.workload.table import Table

SWEEP_FIELDS = (
    "block_size",
    "queue_depth",
    "jobs",
    "rate_iops",
    "zipf_theta",
    "span_percent",
    "span_size",
    "read_percent",
    "request_steps",
    "prefetch_steps",
    "pause",
)

Point = tuple[tuple[Stream, ...], dict[str, SweepValue]]


def points(streams: tuple[Stream, ...], sweep: tuple[SweepAxis, ...]) -> Iterable[Point]:
    """Yield the streams and the parameters of each point; one point when nothing is swept.

    A parameter is named ``field``, or ``stream.field`` where there are several streams.
    """
    for values in product(*(axis.values for axis in sweep)):
        parameters: dict[str, SweepValue] = {}
        changes: dict[str, dict[str, object]] = {}
        for axis, value in zip(sweep, values, strict=True):
            label = axis.field if len(streams) == 1 else f"{axis.stream}.{axis.field}"
            parameters[label] = value
            changes.setdefault(axis.stream, {}).update(_as_fields(axis.field, value))
        changed = tuple(
            msgspec.structs.replace(stream, **changes.get(stream.name, {})) for stream in streams
        )
        yield changed, parameters


def _as_fields(field: str, value: SweepValue) -> dict[str, object]:
    """A swept ``block_size`` is a mix of one; every other field is itself."""
    if field != "block_size":
        return {FIELDS.get(field, field): value}
    return {"block_mix": (BlockShare(size_bytes=int(value), percent=100),)}


def read_sweep(table: Table, streams: tuple[Stream, ...]) -> tuple[SweepAxis, ...]:
    """Return the swept fields of a workload file, every value within its own limits."""
    axes: list[SweepAxis] = []
    for key, value in _flat(table):
        stream_name, _, field = key.rpartition(".")
        if not stream_name and len(streams) > 1:
            raise table.error(
                key, "must name its stream, as there are several", f"write {streams[0].name}.{key}"
            )
        stream_name = stream_name or streams[0].name
        names = [stream.name for stream in streams]
        if stream_name not in names:
            raise table.error(
                key, f"there is no stream {found(stream_name)}", suggestion(stream_name, names)
            )
        if field not in SWEEP_FIELDS:
            raise table.error(
                key, f"{found(field)} cannot be swept", suggestion(field, SWEEP_FIELDS)
            )
        if not isinstance(value, list) or not 1 <= len(value) <= rules.POINTS_MAX:
            raise table.error(
                key, f"must be a list of 1 to {rules.POINTS_MAX} values, not {found(value)}"
            )
        values = tuple(
            number(field, entry, table, f"{key}[{n}]") for n, entry in enumerate(value, start=1)
        )
        if len(set(values)) < len(values):
            raise table.error(key, "names the same value twice")
        if any((axis.stream, axis.field) == (stream_name, field) for axis in axes):
            raise table.error(key, "is swept twice")
        axes.append(SweepAxis(stream=stream_name, field=field, values=values))
    return tuple(axes)


def _flat(table: Table) -> list[tuple[str, object]]:
    """Return the sweep's keys; TOML makes a table of an unquoted ``stream.field``."""
    flat: list[tuple[str, object]] = []
    for key, value in table.values.items():
        if isinstance(value, dict):
            flat += [(f"{key}.{field}", inner) for field, inner in value.items()]
        else:
            flat.append((key, value))
    return flat


def check_points(
    table: Table, streams: tuple[Stream, ...], sweep: tuple[SweepAxis, ...], *, ramp_s: float
) -> None:
    """Refuse a sweep with a point that would be refused as a workload of its own."""
    count = prod(len(axis.values) for axis in sweep)
    if count > rules.POINTS_MAX:
        raise table.error("sweep", f"has {count} points, at most {rules.POINTS_MAX}")
    for members, parameters in points(streams, sweep):
        at = ", ".join(f"{label} = {value}" for label, value in parameters.items())
        told = f" (at {at})" if at else ""
        together = [("stream", breach) for breach in rules.point_breaches(members)]
        single = [
            (f"stream[{n}]", breach)
            for n, stream in enumerate(members, start=1)
            for breach in rules.breaches(stream, ramp_s=ramp_s)
        ]
        for where, breach in single + together:
            raise table.error(f"{where}.{breach.field}", breach.message + told, breach.hint)
