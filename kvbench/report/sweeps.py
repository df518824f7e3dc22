"""Summaries -> numbers against what a workload sweeps: depth, submitters, span.  Pure.

A workload that does not sweep such a field, or has numbers at one value only, has no such figure:
one number is not a curve.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from kvbench.measure.model import IoDirection, Summary
from kvbench.plan import Placed
from kvbench.report.model import Figure, LinePanel, LineSeries, PlainTable, Rule
from kvbench.report.points import Index, Point, directions, latency_prefix, primary_metrics
from kvbench.report.words import (
    metric_label,
    parameter_words,
    quantity,
    short,
    summary_detail,
    summary_text,
)
from kvbench.units import format_value
from kvbench.workload.schema import Stream, Workload

SERIES_MAX = 8

Rung = tuple[Point, Placed]
Ladder = tuple[str, IoDirection, list[Rung]]  # label, direction, rungs by the swept value


class Axis(Struct, frozen=True, kw_only=True):
    """One thing that a workload may sweep, and what a figure over it asks."""

    fields: tuple[str, ...]  # the keys of a sweep that change it
    of: Callable[[Placed], float]
    name: str  # "queue depth"
    label: str
    unit: str  # of the values; "1" is a plain number
    question: str  # {name} is the workload's
    note: str
    values_min: int = 2  # with fewer there is no figure


DEPTH = Axis(
    fields=("queue_depth",),
    of=lambda placed: float(placed.stream.queue_depth),
    name="queue depth",
    label="queue depth (I/Os in flight per job)",
    unit="1",
    question="How much does {name} gain from more I/Os in flight, and what do they cost in "
    "latency?",
    note="Depth is per job.",
)
JOBS = Axis(
    fields=("jobs",),
    of=lambda placed: float(placed.stream.jobs),
    name="submitters",
    label="submitters (jobs, each with a queue of its own)",
    unit="1",
    question="Does the rate of {name} hold as ever more submitters share the drive, or collapse?",
    note="Every submitter has a queue of its own, of the same depth.",
    values_min=3,
)
SPAN = Axis(
    fields=("span_size", "span_limit_bytes", "span_percent"),
    of=lambda placed: float(placed.size_bytes),
    name="span",
    label="span that is read (log scale)",
    unit="B",
    question="Does a read of {name} take longer when more of the drive is read?",
    note="A flat line: what the drive must look up for a read does not grow with the span. A "
    "vertical line marks the knee, where one was found.",
)
AXES = (DEPTH, JOBS, SPAN)


def _axes(workload: Workload, stream: Stream) -> list[Axis]:
    """Return what is worth a figure: over a swept span nothing but the span is."""
    swept = {a.field: len(a.values) for a in workload.sweep if a.stream == stream.name}
    found = [
        axis
        for axis in AXES
        if any(swept.get(field, 0) >= axis.values_min for field in axis.fields)
    ]
    return [SPAN] if SPAN in found else found


def sweep_figures(index: Index, workload: Workload, figure_id: str) -> tuple[Figure, ...]:
    """Return one figure per stream and swept axis."""
    found: list[Figure] = []
    for stream in workload.streams:
        for axis in _axes(workload, stream):
            figure = _figure(index, workload, stream, axis, f"{figure_id}-{len(found) + 1}")
            if figure is not None:
                found.append(figure)
    return tuple(found)


def rate_metric(workload: Workload, stream: Stream) -> str:
    """Return the rate that a workload asks for: requests, bytes or I/Os per second."""
    primary = primary_metrics(workload, stream.name)
    if stream.barrier and "iops" not in primary:
        return "request_rate"
    return "bandwidth" if "bandwidth" in primary and "iops" not in primary else "iops"


def axis_title(metric: str) -> str:
    """Return what stands at the y axis of a rate."""
    return {"iops": "IOPS (1/s)", "bandwidth": "bandwidth"}.get(metric, metric_label(metric))


def _figure(
    index: Index, workload: Workload, stream: Stream, axis: Axis, figure_id: str
) -> Figure | None:
    ladders = _ladders(index, workload, stream, axis)
    shown = ladders[:SERIES_MAX]
    rate = rate_metric(workload, stream)
    tail, middle = f"{latency_prefix(stream)}_p99", f"{latency_prefix(stream)}_p50"
    drawn = [rate, tail if _drawable(index, shown, axis, tail) else middle]
    if axis is JOBS:
        drawn = [rate]
    elif axis is SPAN:
        drawn = [middle]
    panels = [panel for m in drawn if (panel := _panel(index, workload, shown, axis, m, m == rate))]
    if not panels:
        return None
    name = short(workload.name)
    left_out = (
        f" {len(shown)} of {len(ladders)} lines are drawn." if len(shown) < len(ladders) else ""
    )
    what = {JOBS.name: "rate", SPAN.name: "median latency"}.get(axis.name, "rate and latency")
    return Figure(
        figure_id=figure_id,
        title=f"{name}: {what} against {axis.name}",
        question=axis.question.format(name=name),
        how_to_read=f"Line: median; dots: every repetition. {axis.note} "
        f"A point with too few I/Os for a percentile is missing.{left_out}",
        panels=tuple(panels),
        table=_data_table(index, workload, ladders, axis, (rate, middle, tail)),
    )


def _ladders(index: Index, workload: Workload, stream: Stream, axis: Axis) -> list[Ladder]:
    """Return the points of ``stream`` that differ on the axis only, each with two or more."""
    groups: dict[tuple[object, ...], Ladder] = {}
    for point in index.points(workload):
        for placed in point.cell.placed:
            if placed.stream.name != stream.name:
                continue
            others = {
                key: value
                for key, value in point.cell.parameters.items()
                if key.rpartition(".")[2] not in axis.fields
            }
            for direction in directions(placed.stream):
                key = (point.cell.alone, direction, *others.items())
                parts = [parameter_words(others)]
                if stream.direction == "mixed":
                    parts.append(f"{direction}s")
                if workload.isolate:
                    parts.append("alone" if point.setting else "mixed")
                label = ", ".join(p for p in parts if p) or short(stream.name, 24)
                groups.setdefault(key, (label, direction, []))[2].append((point, placed))
    return [ladder for ladder in groups.values() if len(ladder[2]) > 1]


def _summaries(
    index: Index, ladder: Ladder, axis: Axis, metric: str
) -> list[tuple[float, Summary]]:
    """Return (value on the axis, summary) where the number is known, in ascending order."""
    _, direction, rungs = ladder
    found = []
    for point, placed in rungs:
        summary = index.summary(point, placed.stream.name, direction, metric)
        if summary is not None and summary.median is not None:
            found.append((axis.of(placed), summary))
    return sorted(found, key=lambda pair: pair[0])


def _drawable(index: Index, ladders: Sequence[Ladder], axis: Axis, metric: str) -> bool:
    return any(_places(_summaries(index, ladder, axis, metric)) > 1 for ladder in ladders)


def _places(found: Sequence[tuple[float, Summary]]) -> int:
    """Return at how many values there is a number: spans may be equal on a small target."""
    return len({value for value, _ in found})


def _panel(
    index: Index,
    workload: Workload,
    ladders: Sequence[Ladder],
    axis: Axis,
    metric: str,
    is_rate: bool,
) -> LinePanel | None:
    series: list[LineSeries] = []
    rules: list[Rule] = []
    unit = ""
    families = list(dict.fromkeys(_family(ladder) for ladder in ladders))
    seen: dict[str, int] = {}
    for ladder in ladders:
        family = _family(ladder)
        variant = seen[family] = seen.get(family, -1) + 1
        found = _summaries(index, ladder, axis, metric)
        if _places(found) < 2:
            continue
        unit = found[0][1].unit
        series.append(
            LineSeries(
                label=ladder[0],
                colour=families.index(family),
                variant=variant,
                x=tuple(value for value, _ in found),
                median=tuple(s.median for _, s in found if s.median is not None),
                dots=tuple((x, value) for x, s in found for value in s.values),
            )
        )
        if axis is SPAN:
            rules += _knee(index, ladder, series[-1])
    if not series:
        return None
    rules = _merged(rules)
    label = metric_label(metric)
    return LinePanel(
        title=f"{short(workload.name)}: {label} against {axis.name}",
        description=" ".join(
            [*(_describe(metric, unit, axis, one) for one in series)]
            + [f"{rule.label}." for rule in rules]
        ),
        x_label=axis.label,
        y_label=axis_title(metric) if is_rate else f"{label} (log scale)",
        x_unit=axis.unit,
        unit=unit,
        from_zero=is_rate,
        series=tuple(series),
        rules=tuple(rules),
    )


def _knee(index: Index, ladder: Ladder, series: LineSeries) -> list[Rule]:
    """Return the knee of one line; it may be stored with any of its points."""
    _, direction, rungs = ladder
    for point, placed in rungs:
        summary = index.summary(point, placed.stream.name, direction, "span_knee")
        if summary is not None and summary.median is not None:
            return [
                Rule(
                    axis="x",
                    value=summary.median,
                    label=f"knee of {series.label}: {summary_text(summary)}",
                    short_label="knee",
                    colour=series.colour,
                    variant=series.variant,
                )
            ]
    return []


def _merged(rules: Sequence[Rule]) -> list[Rule]:
    """Return ``rules`` with those at one value made one, in ink: their names would overlap."""
    by_value: dict[float, list[Rule]] = {}
    for rule in rules:
        by_value.setdefault(rule.value, []).append(rule)
    return [
        same[0]
        if len(same) == 1
        else Rule(
            axis="x",
            value=value,
            label="; ".join(rule.label for rule in same),
            short_label=f"knee of {len(same)} lines",
        )
        for value, same in by_value.items()
    ]


def _family(ladder: Ladder) -> str:
    """Return what the lines of one colour have in common: the first words of the label."""
    return ladder[0].split(", ", 1)[0]


def _describe(metric: str, unit: str, axis: Axis, series: LineSeries) -> str:
    first, last = (quantity(metric, unit, series.median[i]) for i in (0, -1))
    low, high = (_axis_text(axis, series.x[i]) for i in (0, -1))
    return f"{series.label}: {first} at {axis.name} {low}, {last} at {high}."


def _axis_text(axis: Axis, value: float) -> str:
    return format_value(value, axis.unit) if axis.unit != "1" else f"{value:g}"


def _data_table(
    index: Index,
    workload: Workload,
    ladders: Sequence[Ladder],
    axis: Axis,
    metrics: Sequence[str],
) -> PlainTable:
    extra: dict[str, tuple[str, ...]] = {
        SPAN.name: ("latency_over_smallest_span", "span_knee", "span_slope")
    }
    extra[JOBS.name] = ("iops_over_fewer_jobs",)
    there = [
        metric
        for metric in extra.get(axis.name, ())
        if any(index.has(point, metric) for point in index.points(workload))
    ]
    rows = []
    for label, direction, rungs in ladders:
        for point, placed in rungs:
            row = [label, _axis_text(axis, axis.of(placed))]
            for metric in (*metrics, *there):
                summary = index.summary(point, placed.stream.name, direction, metric)
                absent = "" if metric in there else point.missing_words()[0]
                row.append(
                    absent
                    if summary is None
                    else f"{summary_text(summary)} ({summary_detail(summary)})"
                )
            rows.append(tuple(row))
    return PlainTable(
        caption=f"{short(workload.name)}: numbers against {axis.name}",
        head=("line", axis.name, *(metric_label(metric) for metric in (*metrics, *there))),
        rows=tuple(rows),
    )
