"""Summaries -> each tenant alone beside the same tenant among the others.  Pure."""

from collections.abc import Sequence

from msgspec import Struct

from kvbench.measure.model import IoDirection, Summary
from kvbench.report.model import Bar, BarGroup, BarPanel, Figure, PlainTable
from kvbench.report.points import Index, Point, directions, latency_prefix
from kvbench.report.sweeps import rate_metric
from kvbench.report.tables import RATIOS
from kvbench.report.words import (
    DASH,
    metric_label,
    parameter_words,
    quantity,
    short,
    summary_detail,
    summary_text,
)
from kvbench.workload.schema import Stream, Workload

FIGURES_MAX = 4  # one per point of the sweep; the tables hold the others


class _Tenant(Struct, frozen=True, eq=False):
    label: str
    stream: Stream
    direction: IoDirection
    alone: Point | None
    mixed: Point


def tenant_figures(index: Index, workload: Workload, figure_id: str) -> tuple[Figure, ...]:
    """Return one figure per point of an isolating workload with more than one tenant."""
    if not workload.isolate or len(workload.streams) < 2:
        return ()
    points = index.points(workload)
    figures: list[Figure] = []
    for point in points:
        if point.cell.alone is None:
            tenants = _tenants(point, points)
            figure = _figure(index, workload, point, tenants, f"{figure_id}-{len(figures) + 1}")
            if figure is not None:
                figures.append(figure)
    return tuple(figures[:FIGURES_MAX])


def _tenants(mixed: Point, points: Sequence[Point]) -> list[_Tenant]:
    tenants = []
    for placed in mixed.cell.placed:
        stream = placed.stream
        alone = [
            point
            for point in points
            if point.cell.alone == stream.name and point.cell.parameters == mixed.cell.parameters
        ]
        for direction in directions(stream):
            label = short(stream.name, 20)
            if stream.direction == "mixed":
                label = f"{label}, {direction}s"
            tenants.append(_Tenant(label, stream, direction, alone[0] if alone else None, mixed))
    return tenants


def _figure(
    index: Index, workload: Workload, point: Point, tenants: Sequence[_Tenant], figure_id: str
) -> Figure | None:
    tails = [_latency_metric(index, tenant) for tenant in tenants]
    rates = [rate_metric(workload, t.stream) for t in tenants]
    panels = [
        panel
        for panel in (
            _panel(index, workload, tenants, tails, "latency"),
            _panel(index, workload, tenants, rates, "rate"),
        )
        if panel is not None
    ]
    if not panels:
        return None
    name = short(workload.name)
    words = parameter_words(point.cell.parameters)
    return Figure(
        figure_id=figure_id,
        title=f"{name}: tenants alone and together{f' ({words})' if words else ''}",
        question=f"What does each tenant of {name} lose when the others run beside it?",
        how_to_read="Bar: median; dots: every repetition. Each tenant has an axis of its own, and "
        "every axis starts at zero.",
        panels=tuple(panels),
        table=_data_table(index, workload, tenants, tails, rates),
    )


def _latency_metric(index: Index, tenant: _Tenant) -> str:
    """Return p99, or p50 where the I/Os of one side do not suffice for a p99."""
    prefix = latency_prefix(tenant.stream)
    pair = [_summary(index, tenant, p, f"{prefix}_p99") for p in (tenant.alone, tenant.mixed)]
    known = all(summary is not None and summary.median is not None for summary in pair)
    return f"{prefix}_p99" if known else f"{prefix}_p50"


def _summary(index: Index, tenant: _Tenant, point: Point | None, metric: str) -> Summary | None:
    if point is None:
        return None
    return index.summary(point, tenant.stream.name, tenant.direction, metric)


def _panel(
    index: Index,
    workload: Workload,
    tenants: Sequence[_Tenant],
    metrics: Sequence[str],
    what: str,
) -> BarPanel | None:
    groups = []
    words = []
    for tenant, metric in zip(tenants, metrics, strict=True):
        pair = [_summary(index, tenant, p, metric) for p in (tenant.alone, tenant.mixed)]
        if any(summary is not None and summary.median is not None for summary in pair):
            unit = next(summary.unit for summary in pair if summary is not None)
            bars = tuple(
                Bar(
                    label=label,
                    colour=colour,
                    median=summary.median if summary is not None else None,
                    dots=summary.values if summary is not None else (),
                )
                for label, colour, summary in zip(("alone", "mixed"), (0, 1), pair, strict=True)
            )
            groups.append(BarGroup(label=tenant.label, metric=metric, unit=unit, bars=bars))
            words.append(_describe(tenant.label, metric, unit, bars))
    if not groups:
        return None
    return BarPanel(
        title=f"{short(workload.name)}: {what} of each tenant, alone and mixed",
        description=" ".join(words),
        what=what,
        groups=tuple(groups),
    )


def _describe(label: str, metric: str, unit: str, bars: Sequence[Bar]) -> str:
    parts = (
        f"{bar.label} {quantity(metric, unit, bar.median)}"
        if bar.median is not None
        else f"{bar.label} not measured"
        for bar in bars
    )
    return f"{label}, {metric_label(metric)}: {', '.join(parts)}."


def _data_table(
    index: Index,
    workload: Workload,
    tenants: Sequence[_Tenant],
    tails: Sequence[str],
    rates: Sequence[str],
) -> PlainTable:
    rows = []
    for tenant, tail, rate in zip(tenants, tails, rates, strict=True):
        for metric in (tail, rate):
            row = [tenant.label, metric_label(metric)]
            ratio = _summary(index, tenant, tenant.mixed, RATIOS.get(metric, ""))
            for point in (tenant.alone, tenant.mixed):
                summary = _summary(index, tenant, point, metric)
                row.append(_cell(summary, "not measured"))
            row.append(_cell(ratio, DASH))
            rows.append(tuple(row))
    return PlainTable(
        caption=f"{short(workload.name)}: each tenant alone and mixed",
        head=("tenant", "metric", "alone", "mixed", "mixed / alone, per repetition"),
        rows=tuple(rows),
    )


def _cell(summary: Summary | None, absent: str) -> str:
    return absent if summary is None else f"{summary_text(summary)} ({summary_detail(summary)})"
