"""Summaries -> the tables of a role, projected workloads apart.  Pure.

Workloads share a table when they share what is measured of them, so that no table is wider than
a page and none is full of holes.
"""

from collections.abc import Iterable, Sequence
from math import isfinite

from msgspec.structs import replace

from kvbench.measure.model import IoDirection, Summary
from kvbench.metrics import METRICS
from kvbench.plan import SPANS_END, Placed
from kvbench.report.doubts import Marks
from kvbench.report.model import Column, ResultTable, Row, RowGroup, Value
from kvbench.report.points import Index, Point, directions, primary_metrics
from kvbench.report.words import (
    EVIDENCE_WORDS,
    load_words,
    metric_label,
    metric_meaning,
    short,
    stream_words,
    summary_detail,
    summary_text,
)
from kvbench.units import KIB
from kvbench.workload.schema import Role, Stream, Workload
from kvbench.workload.subject import PEAK

ALWAYS = ("iops", "latency_p50", "latency_p99")
BEHIND_BARRIER = ("request_p50", "request_p99", "request_rate")
WHEN_THERE = ("host_ceiling_share",)
RATIOS = {
    "latency_p99": "latency_p99_mixed_over_alone",
    "latency_p99.9": "latency_p99.9_mixed_over_alone",
    "iops": "iops_mixed_over_alone",
}
# Numbers of several cells together: they are stored with some points of a workload, and say
# nothing of the others.
OF_SEVERAL = (
    *("usable_iops", "usable_share", "iops_over_4kib", "iops_over_fewer_jobs"),
    *("latency_over_smallest_span", "span_knee", "span_slope", "jain_index"),
)
COLUMNS_MAX = 6  # of a table 1,200 pixels wide, beside a narrow one
HOLES_MAX = 2  # columns that a workload may leave empty in a table that it shares
LARGE_BYTES = 64 * KIB  # from here on a device may cut an I/O into several requests
FULL_NAME_CHARS_MAX = 400


def result_tables(
    index: Index, role: Role, workloads: Sequence[Workload], marks: Marks
) -> tuple[ResultTable, ...]:
    """Return the tables of one role: what ships, traces and probes; then what is projected."""
    mine = [workload for workload in workloads if workload.role == role]
    parted = (
        ("measured results", False, [w for w in mine if w.evidence != "projected"]),
        ("projected workloads", True, [w for w in mine if w.evidence == "projected"]),
    )
    tables = []
    for words, projected, part in parted:
        families = _families([(workload, _metrics(index, workload)) for workload in part])
        for metrics, members in families:
            caption = f"{role.capitalize()}: {words}"
            if len(families) > 1:
                caption += f", {_family_words(metrics)}"
            tables.append(_table(index, caption, projected, metrics, members, marks))
    return tuple(tables)


def _families(
    workloads: Sequence[tuple[Workload, tuple[str, ...]]],
) -> list[tuple[tuple[str, ...], list[Workload]]]:
    """Return (columns, workloads) per table: workloads join where their columns nearly agree."""
    found: list[tuple[list[set[str]], list[Workload]]] = []
    for workload, metrics in workloads:
        mine = set(metrics)
        for sets, members in found:
            union = mine.union(*sets)
            wide = len(union - set(WHEN_THERE)) > max(COLUMNS_MAX, *map(len, sets))
            holes = max(len(union - one - set(WHEN_THERE)) for one in (mine, *sets))
            if not wide and holes <= HOLES_MAX:
                sets.append(mine)
                members.append(workload)
                break
        else:
            found.append(([mine], [workload]))
    return [(_ordered(set().union(*sets)), members) for sets, members in found]


def _family_words(metrics: Sequence[str]) -> str:
    """Return what the workloads of a table have in common."""
    for prefix, words in (
        ("usable_", "rates under a limit"),
        ("stall_", "requests beside computing"),
        ("deadline_", "requests with a deadline"),
        ("request_", "requests"),
        ("span_", "spans"),
        ("jain_", "tenants"),
        ("latency_p99.9", "tails"),
    ):
        if any(metric.startswith(prefix) for metric in metrics):
            return words
    return "single I/Os"


def _table(
    index: Index,
    caption: str,
    projected: bool,
    metrics: Sequence[str],
    workloads: Sequence[Workload],
    marks: Marks,
) -> ResultTable:
    groups = tuple(_group(index, workload, metrics, marks) for workload in workloads)
    used = (
        mark
        for group in groups
        for row in group.rows
        for value in row.values
        if value is not None
        for mark in value.marks
    )
    return ResultTable(
        caption=caption,
        projected=projected,
        columns=tuple(
            Column(
                metric=m,
                label=metric_label(m),
                meaning=metric_meaning(m),
                narrow=m in WHEN_THERE,
            )
            for m in metrics
        ),
        groups=groups,
        notes=marks.notes(used),
    )


def _metrics(index: Index, workload: Workload) -> tuple[str, ...]:
    """Return the columns: primary metrics, the usual ones, the host's share where it is known.

    A ratio of mixed to alone has no column: it stands beside the number that it is about.
    """
    primary = {m for stream in workload.streams for m in primary_metrics(workload, stream.name)}
    usual = [
        metric
        for metrics, barrier in ((ALWAYS, False), (BEHIND_BARRIER, True))
        if any(stream.barrier == barrier for stream in workload.streams)
        for metric in metrics
    ]
    for metric, ratio in RATIOS.items():
        if ratio in primary:
            primary = (primary - {ratio}) | {metric}
    room = COLUMNS_MAX - len(primary)
    wanted = primary | set([m for m in usual if m not in primary][: max(0, room)])
    wanted |= {m for m in WHEN_THERE if index.has_anywhere(workload, m)}
    return _ordered(wanted)


def _ordered(wanted: set[str]) -> tuple[str, ...]:
    order = [*METRICS, *sorted(wanted - set(METRICS))]
    return tuple(metric for metric in order if metric in wanted)


def _group(index: Index, workload: Workload, metrics: Sequence[str], marks: Marks) -> RowGroup:
    return RowGroup(
        workload=short(workload.name),
        full_name=short(workload.name, FULL_NAME_CHARS_MAX),
        evidence=workload.evidence,
        evidence_words=EVIDENCE_WORDS[workload.evidence],
        summary=_sentence(workload.summary),
        cannot_express=_sentence(workload.cannot_express),
        rows=tuple(_rows(index, workload, metrics, marks)),
        derivation=_sentence(workload.derivation),
    )


def _rows(index: Index, workload: Workload, metrics: Sequence[str], marks: Marks) -> Iterable[Row]:
    for point in index.points(workload):
        for placed in point.cell.placed:
            if workload.matrix and not point.setting and placed.stream.side != "victim":
                continue  # what an aggressor itself reaches stands in the matrix's numbers
            for direction in directions(placed.stream):
                yield _row(index, workload, point, placed, direction, metrics, marks)


def _row(
    index: Index,
    workload: Workload,
    point: Point,
    placed: Placed,
    direction: IoDirection,
    metrics: Sequence[str],
    marks: Marks,
) -> Row:
    stream = placed.stream
    primary = primary_metrics(workload, stream.name)

    def value(metric: str) -> Value | None:
        summary = index.summary(point, stream.name, direction, metric)
        ratio_name = RATIOS.get(metric, "")
        elsewhere = metric in OF_SEVERAL and index.has_anywhere(workload, metric)
        wanted = metric in primary and (summary is not None or not elsewhere)
        found = _value(point, summary, wanted, marks)
        ratio = index.summary(point, stream.name, direction, ratio_name)
        if found is None or ratio is None or (ratio.median is None and ratio_name not in primary):
            return found
        return replace(
            found,
            versus=f"{summary_text(ratio)} alone"
            if ratio.median is not None
            else "mixed / alone: not measured",
            versus_detail=summary_detail(ratio),
            versus_primary=ratio_name in primary,
        )

    name = short(stream.name)
    return Row(
        parameters=stream_words(stream, paced=_paced(point), had_bytes=placed.size_bytes)
        + _cut_words(index, workload, placed),
        stream=f"{name}, {direction}s" if stream.direction == "mixed" else name,
        setting=_setting(workload, point, stream),
        values=tuple(value(metric) for metric in metrics),
        device=_device(index, point, stream, direction),
    )


def _cut_words(index: Index, workload: Workload, placed: Placed) -> str:
    """Return what stands at the last point of a sweep of spans that the target cut short."""
    cut = any(
        scaled.workload == workload.name and scaled.text.startswith(SPANS_END)
        for scaled in index.run.record.plan.scaled
    )
    name, limit = placed.stream.name, placed.stream.span_limit_bytes
    axes = [a for a in workload.sweep if a.field == "span_size" and a.stream == name]
    last = any(limit == axis.values[-1] for axis in axes)
    return ", all that the target has" if cut and last else ""


def _paced(point: Point) -> bool:
    """Whether the rate of the point follows from other cells of the run."""
    return point.cell.parameters.get("load", PEAK) != PEAK


def _setting(workload: Workload, point: Point, stream: Stream) -> str:
    """Return what tells a row from others of the same stream."""
    if point.setting or "load" in point.cell.parameters:
        return point.setting or load_words(point.cell.parameters["load"])
    if workload.matrix:
        others = [p.stream.name for p in point.cell.placed if p.stream.name != stream.name]
        return f"beside {short(', '.join(others), 24)}" if others else ""
    return "mixed" if workload.isolate else ""


def _device(index: Index, point: Point, stream: Stream, direction: IoDirection) -> str:
    """Return what the block device saw of each large I/O, "" for small ones or when unknown."""
    if stream.max_block_bytes < LARGE_BYTES:
        return ""
    count, size = (
        index.summary(point, stream.name, direction, metric)
        for metric in ("device_requests_per_io", "device_request_bytes")
    )
    if count is None or count.median is None:
        return ""
    words = f"device: {summary_text(count)} per I/O"
    if size is not None and size.median is not None:
        words += f", {summary_text(size)} in the mean"
    return words


def _value(point: Point, summary: Summary | None, primary: bool, marks: Marks) -> Value | None:
    if summary is None:
        if not primary:
            return None
        text, detail = point.missing_words()
        return Value(text=text, detail=detail, known=False, primary=True)
    return Value(
        text=summary_text(summary),
        detail=summary_detail(summary),
        known=summary.median is not None,
        n=summary.n,
        raw=summary.median if summary.median is not None and isfinite(summary.median) else None,
        primary=primary,
        marks=marks.of(summary.doubts),
    )


def _sentence(text: str) -> str:
    """Return a text of a workload file with one full stop at its end, "" for nothing."""
    shown = short(text.strip(), FULL_NAME_CHARS_MAX).rstrip(".")
    return f"{shown}." if shown else ""
