"""Summaries -> what each victim loses beside each aggressor, as a shaded table.  Pure."""

from collections.abc import Iterable, Sequence

from kvbench.measure.model import Summary
from kvbench.metrics import METRICS
from kvbench.report.model import Figure, HeatCell, HeatPanel, PlainTable
from kvbench.report.points import Index, Point, directions
from kvbench.report.words import (
    metric_label,
    short,
    stream_words,
    summary_detail,
    summary_text,
)
from kvbench.workload.schema import Stream, Workload

TAIL, MIDDLE = "latency_p99.9_mixed_over_alone", "latency_p99_mixed_over_alone"
STEPS = (1.1, 1.5, 2.0, 5.0)  # ratios at which the shade grows
KEY = (
    (0, "below 1.1 x"),
    (1, "1.1 to 1.5 x"),
    (2, "1.5 to 2 x"),
    (3, "2 to 5 x"),
    (4, "5 x and more"),
)
BESIDE = ("iops_mixed_over_alone", "jain_index")


def matrix_figure(index: Index, workload: Workload, figure_id: str) -> Figure | None:
    """Return the matrix of ``workload``, None when it has none or no ratio was measured."""
    victims = [s for s in workload.streams if s.side == "victim"]
    aggressors = [s for s in workload.streams if s.side == "aggressor"]
    pairs = {
        (str(p.cell.parameters.get("victim")), str(p.cell.parameters.get("aggressor"))): p
        for p in index.points(workload)
        if p.cell.alone is None
    }
    metrics = {victim.name: _metric(index, victim, pairs.values()) for victim in victims}
    if not aggressors or not any(metrics.values()):
        return None
    rows = tuple(
        (
            short(victim.name, 24),
            _alone(index, workload, victim, metrics[victim.name] or TAIL),
            tuple(
                _cell(index, victim, pairs.get((victim.name, other.name)), metrics[victim.name])
                for other in aggressors
            ),
        )
        for victim in victims
    )
    name = short(workload.name)
    tails = [m for m in (TAIL, MIDDLE) if m in metrics.values()]
    tail = " or ".join(_tail(metric) for metric in tails)
    return Figure(
        figure_id=figure_id,
        title=f"{name}: victims beside aggressors",
        question=f"How much longer is the {tail} latency of each victim beside each aggressor?",
        how_to_read="Each cell: the latency beside the aggressor over that of the victim alone, "
        "paired per repetition, median with its spread. The darker, the worse; orange is the worst."
        + ("" if MIDDLE not in tails else " p99 stands where the I/Os do not suffice for a p99.9."),
        panels=(
            HeatPanel(
                title=f"{name}: {tail} beside each aggressor over alone",
                description=" ".join(_describe(row, aggressors) for row in rows),
                corner="victim \\ beside",
                columns=tuple(short(a.name, 24) for a in aggressors),
                rows=rows,
                key=KEY,
            ),
        ),
        table=_data_table(index, workload, victims, aggressors, pairs),
    )


def _metric(index: Index, victim: Stream, points: Iterable[Point]) -> str | None:
    """Return p99.9 when any pair of ``victim`` has it, else p99 when any has that."""
    found = tuple(points)
    for metric in (TAIL, MIDDLE):
        summaries = (_of(index, victim, point, metric) for point in found)
        if any(s is not None and s.median is not None for s in summaries):
            return metric
    return None


def _tail(metric: str) -> str:
    """Return the percentile of a ratio: ``p99.9``."""
    return metric.removeprefix("latency_").removesuffix("_mixed_over_alone")


def _of(index: Index, stream: Stream, point: Point | None, metric: str) -> Summary | None:
    """Return a summary of one stream at one point, of its first direction that has one."""
    if point is None:
        return None
    found = (index.summary(point, stream.name, d, metric) for d in directions(stream))
    return next((summary for summary in found if summary is not None), None)


def _alone(index: Index, workload: Workload, victim: Stream, metric: str) -> str:
    """Return the victim's latency by itself, which the ratios are of."""
    own = metric.removesuffix("_mixed_over_alone")
    for point in index.points(workload):
        if point.cell.alone == victim.name:
            summary = _of(index, victim, point, own)
            if summary is not None:
                return f"{_tail(metric)}, alone {summary_text(summary)}"
    return "alone: not measured"


def _cell(index: Index, victim: Stream, point: Point | None, metric: str | None) -> HeatCell:
    summary = _of(index, victim, point, metric or MIDDLE)
    if summary is None:
        words = point.missing_words() if point is not None else ("not planned", "")
        return HeatCell(text=words[0], detail=words[1], level=None)
    if summary.median is None:
        return HeatCell(text=summary_text(summary), detail=summary_detail(summary), level=None)
    level = sum(summary.median >= step for step in STEPS)
    return HeatCell(text=summary_text(summary), detail=summary_detail(summary), level=level)


def _describe(row: tuple[str, str, tuple[HeatCell, ...]], aggressors: Sequence[Stream]) -> str:
    name, alone, cells = row
    parts = (
        f"{cell.text} beside {short(aggressor.name, 24)}"
        for cell, aggressor in zip(cells, aggressors, strict=True)
    )
    return f"{name} ({alone}): {', '.join(parts)}."


def _data_table(
    index: Index,
    workload: Workload,
    victims: Sequence[Stream],
    aggressors: Sequence[Stream],
    pairs: dict[tuple[str, str], Point],
) -> PlainTable:
    metrics = ("latency_p99", "latency_p99.9", MIDDLE, TAIL, *BESIDE)
    there = [m for m in metrics if m in METRICS and index.has_anywhere(workload, m)]
    rows = []
    for victim in victims:
        for aggressor in aggressors:
            point = pairs.get((victim.name, aggressor.name))
            row = [f"{short(victim.name, 24)} beside {short(aggressor.name, 24)}"]
            rate = _of(index, aggressor, point, "bandwidth")
            reached = f" ({summary_text(rate)})" if rate is not None else ""
            row.append(f"{stream_words(aggressor)}{reached}")
            for metric in there:
                summary = _of(index, victim, point, metric)
                text = "" if summary is None else summary_text(summary)
                row.append(f"{text} ({summary_detail(summary)})" if summary else text)
            rows.append(tuple(row))
    return PlainTable(
        caption=f"{short(workload.name)}: each victim beside each aggressor",
        head=("pair", "the aggressor does", *(metric_label(metric) for metric in there)),
        rows=tuple(rows),
    )
