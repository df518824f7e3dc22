"""Summaries -> one table per role, projected workloads apart.  Pure."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from kvbench.measure.model import IoDirection, Summary
from kvbench.metrics import METRICS
from kvbench.plan import Placed
from kvbench.report.doubts import Marks
from kvbench.report.model import Column, ResultTable, Row, RowGroup, Value
from kvbench.report.points import Index, Point, directions, primary_metrics
from kvbench.report.words import (
    EVIDENCE_WORDS,
    metric_label,
    metric_meaning,
    short,
    stream_words,
    summary_detail,
    summary_text,
)
from kvbench.workload.schema import Role, Workload

ALWAYS = ("iops", "latency_p50", "latency_p99")
BEHIND_BARRIER = ("request_p50", "request_p99", "request_rate")
WHEN_THERE = ("host_ceiling_share",)
RATIOS = {"latency_p99": "latency_p99_mixed_over_alone", "iops": "iops_mixed_over_alone"}
FULL_NAME_CHARS_MAX = 400


def result_tables(
    index: Index, role: Role, workloads: Sequence[Workload], marks: Marks
) -> tuple[ResultTable, ...]:
    """Return the tables of one role: what ships, traces and probes; then what is projected."""
    mine = [workload for workload in workloads if workload.role == role]
    parted = (
        (
            f"{role.capitalize()}: measured results",
            False,
            [w for w in mine if w.evidence != "projected"],
        ),
        (
            f"{role.capitalize()}: projected workloads",
            True,
            [w for w in mine if w.evidence == "projected"],
        ),
    )
    return tuple(
        _table(index, caption, projected, part, marks)
        for caption, projected, part in parted
        if part
    )


def _table(
    index: Index, caption: str, projected: bool, workloads: Sequence[Workload], marks: Marks
) -> ResultTable:
    metrics = _metrics(index, workloads)
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


def _metrics(index: Index, workloads: Sequence[Workload]) -> tuple[str, ...]:
    """Return the columns: primary metrics, the usual ones, the host's share where it is known.

    A ratio of mixed to alone has no column: it stands beside the number that it is about.
    """
    wanted = {name.rpartition(".")[2] for w in workloads for name in w.primary}
    if any(not s.barrier for w in workloads for s in w.streams):
        wanted |= set(ALWAYS)
    if any(s.barrier for w in workloads for s in w.streams):
        wanted |= set(BEHIND_BARRIER)
    for metric, ratio in RATIOS.items():
        if ratio in wanted:
            wanted = (wanted - {ratio}) | {metric}
    for metric in WHEN_THERE:
        if any(index.has(point, metric) for w in workloads for point in index.points(w)):
            wanted.add(metric)
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
    )


def _rows(index: Index, workload: Workload, metrics: Sequence[str], marks: Marks) -> Iterable[Row]:
    for point in index.points(workload):
        for placed in point.cell.placed:
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
        found = _value(point, summary, metric in primary, marks)
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
    setting = point.setting or ("mixed" if workload.isolate else "")
    return Row(
        parameters=stream_words(stream),
        stream=f"{name}, {direction}s" if stream.direction == "mixed" else name,
        setting=setting,
        values=tuple(value(metric) for metric in metrics),
    )


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
        primary=primary,
        marks=marks.of(summary.doubts),
    )


def _sentence(text: str) -> str:
    """Return a text of a workload file with one full stop at its end, "" for nothing."""
    shown = short(text.strip(), FULL_NAME_CHARS_MAX).rstrip(".")
    return f"{shown}." if shown else ""
