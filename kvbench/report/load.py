"""Summaries -> latency against offered load, with the usable rate.  Pure.

The shares of the peak are open loops, so waiting is part of their latency.  The peak itself is a
closed loop at another depth: its rate is marked, its latency is no point of the curve.
"""

from collections.abc import Sequence

from msgspec import Struct

from kvbench.measure.model import IoDirection, Summary
from kvbench.metrics import percentile_name
from kvbench.report.model import Figure, LinePanel, LineSeries, PlainTable, Rule
from kvbench.report.points import Index, Point, directions
from kvbench.report.words import (
    load_words,
    metric_label,
    parameter_words,
    quantity,
    short,
    summary_detail,
    summary_text,
)
from kvbench.workload.schema import Load, Stream, SweepValue, Workload
from kvbench.workload.subject import PEAK

LOAD = "load"
PERCENTILES = (50.0, 99.0, 99.9)
FIGURES_MAX = 4
OVERLOADED = "overloaded"  # the check that finds a rate which was not achieved


class LoadCurve(Struct, frozen=True, eq=False):
    """The points of one load curve: all that differ in the load only."""

    words: str
    direction: IoDirection
    peak: Point | None
    shares: tuple[Point, ...]


def load_figures(index: Index, workload: Workload, figure_id: str) -> tuple[Figure, ...]:
    """Return one figure per load curve of ``workload``, at most ``FIGURES_MAX``."""
    if workload.load is None:
        return ()
    found: list[Figure] = []
    for curve in curves_of(index, workload):
        name = f"{figure_id}-{len(found) + 1}"
        figure = _figure(index, workload, workload.load, curve, name)
        if figure is not None:
            found.append(figure)
    return tuple(found[:FIGURES_MAX])


def curves_of(index: Index, workload: Workload) -> list[LoadCurve]:
    """Return the load curves of ``workload``: one per combination of what else is swept."""
    groups: dict[tuple[object, ...], tuple[dict[str, SweepValue], list[Point]]] = {}
    for point in index.points(workload):
        others = {k: v for k, v in point.cell.parameters.items() if k != LOAD}
        groups.setdefault(tuple(others.items()), (others, []))[1].append(point)
    return [
        LoadCurve(
            parameter_words(others),
            direction,
            next((p for p in points if p.cell.parameters.get(LOAD) == PEAK), None),
            tuple(p for p in points if p.cell.parameters.get(LOAD) != PEAK),
        )
        for others, points in groups.values()
        for direction in directions(workload.streams[0])
    ]


def _figure(
    index: Index, workload: Workload, load: Load, curve: LoadCurve, figure_id: str
) -> Figure | None:
    stream = workload.streams[0]
    wanted = tuple(dict.fromkeys((*PERCENTILES, load.percentile)))
    series = [s for n, p in enumerate(wanted) if (s := _series(index, stream, curve, p, n))]
    if not any(len(one.x) > 1 for one in series):  # one rate makes no curve
        return None
    rules = _rules(index, stream, load, curve)
    name = short(workload.name)
    words = f" ({curve.words})" if curve.words else ""
    tail = percentile_name(load.percentile)
    usable = next((rule for rule in rules if rule.short_label == "usable"), None)
    drawn = " The shaded strip is its interval over the repetitions." if usable else ""
    return Figure(
        figure_id=figure_id,
        title=f"{name}: latency against offered load{words}",
        question=f"At which rate does {name} start to wait, and up to which rate does its {tail} "
        f"stay within {quantity('latency_p50', 's', load.limit_s)}?",
        how_to_read="Line: median; dots: every repetition, at the rate that it achieved. A hollow "
        "point was overloaded: it did not reach the rate that was offered, so its latency has no "
        f"bound.{drawn} The peak is a closed loop.",
        panels=(
            LinePanel(
                title=f"{name}: latency against offered load{words}",
                description=" ".join(_describe(one) for one in series)
                + "".join(f" {rule.label}." for rule in rules),
                x_label="achieved rate (IOPS)",
                y_label="latency (log scale)",
                x_unit="1/s",
                x_scale="linear",
                unit="s",
                from_zero=False,
                series=tuple(series),
                rules=tuple(rules),
            ),
        ),
        table=_data_table(index, workload, stream, curve, wanted),
    )


def _series(
    index: Index, stream: Stream, curve: LoadCurve, percentile: float, number: int
) -> LineSeries | None:
    metric = f"latency_{percentile_name(percentile)}"
    found: list[tuple[float, Summary, Summary, bool]] = []
    for point in curve.shares:
        rate = index.summary(point, stream.name, curve.direction, "iops")
        latency = index.summary(point, stream.name, curve.direction, metric)
        if rate is None or latency is None or rate.median is None or latency.median is None:
            continue
        found.append((rate.median, rate, latency, overloaded(point)))
    if not found:
        return None
    found.sort(key=lambda item: item[0])
    dots = []
    for at, rate, latency, _ in found:
        paired = rate.values if len(rate.values) == len(latency.values) else ()
        dots += list(zip(paired or (at,) * len(latency.values), latency.values, strict=True))
    return LineSeries(
        label=percentile_name(percentile),
        colour=number,
        variant=number,
        x=tuple(at for at, *_ in found),
        median=tuple(s.median for _, _, s, _ in found if s.median is not None),
        dots=tuple(dots),
        hollow=tuple(place for place, item in enumerate(found) if item[3]),
    )


def overloaded(point: Point) -> bool:
    """Whether most repetitions that count did not reach the rate that was offered."""
    used = point.used
    missed = sum(any(f.check == OVERLOADED for f in cell.findings) for cell in used)
    return 2 * missed > len(used)


def _rules(index: Index, stream: Stream, load: Load, curve: LoadCurve) -> list[Rule]:
    limit = quantity("latency_p50", "s", load.limit_s)
    rules = [
        Rule(
            axis="y",
            value=load.limit_s,
            label=f"the limit of {percentile_name(load.percentile)} is {limit}",
            short_label=f"limit of {percentile_name(load.percentile)}",
        )
    ]
    for metric, at, name in (("iops", curve.peak, "peak"), ("usable_iops", None, "usable")):
        summary = anywhere(index, stream, curve, metric) if at is None else None
        if at is not None:
            summary = index.summary(at, stream.name, curve.direction, metric)
        if summary is None or summary.median is None:
            continue
        rules.append(
            Rule(
                axis="x",
                value=summary.median,
                label=f"{name} {summary_text(summary)} ({summary_detail(summary)})",
                short_label=name,
                low=summary.low if name == "usable" else None,
                high=summary.high if name == "usable" else None,
            )
        )
    return rules


def anywhere(index: Index, stream: Stream, curve: LoadCurve, metric: str) -> Summary | None:
    """Return a number of the curve as a whole, with whichever of its points it is stored."""
    points = (*((curve.peak,) if curve.peak else ()), *curve.shares)
    found = [index.summary(point, stream.name, curve.direction, metric) for point in points]
    there = [summary for summary in found if summary is not None]
    return next((s for s in there if s.median is not None), there[0] if there else None)


def _describe(series: LineSeries) -> str:
    first, last = (quantity("latency_p50", "s", series.median[i]) for i in (0, -1))
    low, high = (quantity("iops", "1/s", series.x[i]) for i in (0, -1))
    return f"{series.label}: {first} at {low}, {last} at {high}."


def _data_table(
    index: Index,
    workload: Workload,
    stream: Stream,
    curve: LoadCurve,
    percentiles: Sequence[float],
) -> PlainTable:
    metrics = ("iops", *(f"latency_{percentile_name(p)}" for p in percentiles))
    rows = []
    for point in (*((curve.peak,) if curve.peak else ()), *curve.shares):
        row = [load_words(point.cell.parameters.get(LOAD, ""))]
        for metric in metrics:
            summary = index.summary(point, stream.name, curve.direction, metric)
            row.append(
                point.missing_words()[0]
                if summary is None
                else f"{summary_text(summary)} ({summary_detail(summary)})"
            )
        row.append("yes" if overloaded(point) else "no" if point.used else "")
        rows.append(tuple(row))
    for metric in ("usable_iops", "usable_share"):
        summary = anywhere(index, stream, curve, metric)
        if summary is not None:
            text = f"{summary_text(summary)} ({summary_detail(summary)})"
            rows.append((metric_label(metric), text, *("",) * len(metrics)))
    return PlainTable(
        caption=f"{short(workload.name)}: numbers against load"
        + (f", {curve.words}" if curve.words else ""),
        head=("load", *(metric_label(metric) for metric in metrics), "overloaded"),
        rows=tuple(rows),
    )
