"""Summaries -> rate and latency against queue depth.  Pure.

A workload that does not sweep its queue depth, or has numbers at one depth only, has no such
figure: one number is not a curve.
"""

from collections.abc import Sequence

from kvbench.measure.model import IoDirection, Summary
from kvbench.plan import Placed
from kvbench.report.model import DepthPanel, DepthSeries, Figure, PlainTable
from kvbench.report.points import Index, Point, directions, latency_prefix, primary_metrics
from kvbench.report.words import (
    metric_label,
    parameter_words,
    quantity,
    short,
    summary_detail,
    summary_text,
)
from kvbench.workload.schema import Stream, Workload

SERIES_MAX = 8
DEPTH = "queue_depth"

Rung = tuple[Point, Placed]
Ladder = tuple[str, IoDirection, list[Rung]]  # label, direction, rungs by depth


def depth_figures(index: Index, workload: Workload, figure_id: str) -> tuple[Figure, ...]:
    """Return one figure per stream whose queue depth is swept."""
    found: list[Figure] = []
    for stream in workload.streams:
        axes = [axis for axis in workload.sweep if axis.stream == stream.name]
        if any(axis.field == DEPTH for axis in axes):
            figure = _figure(index, workload, stream, f"{figure_id}-{len(found) + 1}")
            if figure is not None:
                found.append(figure)
    return tuple(found)


def rate_metric(workload: Workload, stream: Stream) -> str:
    """Return the rate that a workload asks for: requests, bytes or I/Os per second."""
    primary = primary_metrics(workload, stream.name)
    if stream.barrier and "iops" not in primary:
        return "request_rate"
    return "bandwidth" if "bandwidth" in primary and "iops" not in primary else "iops"


def _figure(index: Index, workload: Workload, stream: Stream, figure_id: str) -> Figure | None:
    ladders = _ladders(index, workload, stream)
    shown = ladders[:SERIES_MAX]
    rate = rate_metric(workload, stream)
    tail, middle = f"{latency_prefix(stream)}_p99", f"{latency_prefix(stream)}_p50"
    metrics = [rate, tail if _drawable(index, shown, tail) else middle]
    panels = [panel for m in metrics if (panel := _panel(index, workload, shown, m, m == rate))]
    if not panels:
        return None
    name = short(workload.name)
    left_out = (
        f" {len(shown)} of {len(ladders)} lines are drawn." if len(shown) < len(ladders) else ""
    )
    return Figure(
        figure_id=figure_id,
        title=f"{name}: rate and latency against queue depth",
        question=f"How much does {name} gain from more I/Os in flight, and what do they cost in "
        "latency?",
        how_to_read="Line: median; dots: every repetition. Depth is per job. A depth with too few "
        f"I/Os for a percentile has no point.{left_out}",
        panels=tuple(panels),
        table=_data_table(index, workload, ladders, (rate, middle, tail)),
    )


def _ladders(index: Index, workload: Workload, stream: Stream) -> list[Ladder]:
    """Return the points of ``stream`` that differ in depth only, each with two depths or more."""
    groups: dict[tuple[object, ...], Ladder] = {}
    for point in index.points(workload):
        for placed in point.cell.placed:
            if placed.stream.name != stream.name:
                continue
            others = {
                key: value
                for key, value in point.cell.parameters.items()
                if key.rpartition(".")[2] != DEPTH
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


def _summaries(index: Index, ladder: Ladder, metric: str) -> list[tuple[int, Summary]]:
    """Return (depth, summary) where the number is known, by depth."""
    _, direction, rungs = ladder
    found = []
    for point, placed in rungs:
        summary = index.summary(point, placed.stream.name, direction, metric)
        if summary is not None and summary.median is not None:
            found.append((placed.stream.queue_depth, summary))
    return sorted(found, key=lambda pair: pair[0])


def _drawable(index: Index, ladders: Sequence[Ladder], metric: str) -> bool:
    return any(len(_summaries(index, ladder, metric)) > 1 for ladder in ladders)


def _panel(
    index: Index, workload: Workload, ladders: Sequence[Ladder], metric: str, is_rate: bool
) -> DepthPanel | None:
    series = []
    unit = ""
    families = list(dict.fromkeys(_family(ladder) for ladder in ladders))
    seen: dict[str, int] = {}
    for ladder in ladders:
        family = _family(ladder)
        variant = seen[family] = seen.get(family, -1) + 1
        found = _summaries(index, ladder, metric)
        if len(found) < 2:
            continue
        unit = found[0][1].unit
        series.append(
            DepthSeries(
                label=ladder[0],
                colour=families.index(family),
                variant=variant,
                depth=tuple(float(depth) for depth, _ in found),
                median=tuple(s.median for _, s in found if s.median is not None),
                dots=tuple((float(depth), value) for depth, s in found for value in s.values),
            )
        )
    if not series:
        return None
    label = metric_label(metric)
    axis = {"iops": "IOPS (1/s)", "bandwidth": "bandwidth"}.get(metric, label)
    return DepthPanel(
        title=f"{short(workload.name)}: {label} against queue depth",
        description=" ".join(_describe(metric, unit, one) for one in series),
        x_label="queue depth (I/Os in flight per job)",
        y_label=axis if is_rate else f"{label} (log scale)",
        unit=unit,
        from_zero=is_rate,
        series=tuple(series),
    )


def _family(ladder: Ladder) -> str:
    """Return what the lines of one colour have in common: the first words of the label."""
    return ladder[0].split(", ", 1)[0]


def _describe(metric: str, unit: str, series: DepthSeries) -> str:
    first, last = (quantity(metric, unit, series.median[i]) for i in (0, -1))
    return f"{series.label}: {first} at depth {series.depth[0]:g}, {last} at {series.depth[-1]:g}."


def _data_table(
    index: Index, workload: Workload, ladders: Sequence[Ladder], metrics: Sequence[str]
) -> PlainTable:
    rows = []
    for label, direction, rungs in ladders:
        for point, placed in rungs:
            row = [label, str(placed.stream.queue_depth)]
            for metric in metrics:
                summary = index.summary(point, placed.stream.name, direction, metric)
                row.append(
                    point.missing_words()[0]
                    if summary is None
                    else f"{summary_text(summary)} ({summary_detail(summary)})"
                )
            rows.append(tuple(row))
    return PlainTable(
        caption=f"{short(workload.name)}: numbers against queue depth",
        head=("line", "queue depth", *(metric_label(metric) for metric in metrics)),
        rows=tuple(rows),
    )
