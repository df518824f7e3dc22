"""The figures of several runs laid over each other.  Pure.

A side keeps its colour on the whole page; dashes tell lines of one side apart.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kvbench.metrics import percentile_name
from kvbench.report.compare_words import letter
from kvbench.report.curves import (
    Member,
    curve_of,
    histograms_of,
    member_label,
    members_of,
    refusals_of,
    refused_words,
)
from kvbench.report.load import load_figures
from kvbench.report.model import Curve, CurvePanel, Figure, LinePanel, LineSeries, PlainTable, Rule
from kvbench.report.points import Index, Point, latency_prefix
from kvbench.report.sweeps import sweep_figures
from kvbench.report.words import (
    DASH,
    micro,
    parameter_words,
    quantity,
    short,
    summary_detail,
    summary_text,
)
from kvbench.units import format_value
from kvbench.workload.schema import Workload
from kvbench.workload.subject import PEAK

LINES_MAX = 8  # in one panel
NAME_CHARS_MAX = 28  # of a run in a legend
PLACES_MAX = 2  # points of a workload whose percentiles are drawn: the first and the last
TOGETHER_SHARE = 0.06  # of an axis: rules closer than this share their name
TABLE_PERCENTS = (50.0, 90.0, 99.0, 99.9, 99.99)
_TELLING = ("p99", "p99.9", "p50")  # of a load curve, when not all of its lines have room

PointKey = tuple[object, ...]


class _Line(Struct, frozen=True, eq=False):
    """What a percentile curve is made from."""

    index: Index
    workload: Workload
    member: Member


OfPoint = dict[int, _Line]  # by side


def workload_figures(
    indexes: Sequence[Index], names: Sequence[str], name: str, figure_id: str
) -> Iterator[Figure]:
    """Yield the figures of workload ``name`` over all sides that have it.

    ``names`` has the name of each side, for the legends.
    """
    own = [_workload(index, name) for index in indexes]
    drawn = [
        (side, load_figures(index, workload, figure_id) + sweep_figures(index, workload, figure_id))
        for side, (index, workload) in enumerate(zip(indexes, own, strict=True))
        if workload is not None
    ]
    for number, figure in enumerate(_merged(drawn, names), start=1):
        yield replace(figure, figure_id=f"{figure_id}-{number}")
    curves = _percentiles(indexes, own, names, f"{figure_id}-curves")
    if curves is not None:
        yield curves


def _workload(index: Index, name: str) -> Workload | None:
    return next((w for w in index.run.record.plan.workloads if w.name == name), None)


def _merged(
    drawn: Sequence[tuple[int, Sequence[Figure]]], names: Sequence[str]
) -> Iterator[Figure]:
    """Yield figures of one title as one, in the order in which they come first."""
    by_title: dict[str, list[tuple[int, Figure]]] = {}
    for side, figures in drawn:
        for figure in figures:
            by_title.setdefault(figure.title, []).append((side, figure))
    for title, found in by_title.items():
        panels: dict[str, list[tuple[int, LinePanel]]] = {}
        for side, figure in found:
            for panel in figure.panels:
                if isinstance(panel, LinePanel):
                    panels.setdefault(panel.title, []).append((side, panel))
        merged = tuple(_overlaid(of_one_title, names) for of_one_title in panels.values())
        left_out = _left_out(panels.values(), merged)
        yield Figure(
            figure_id="",
            title=title,
            question=found[0][1].question,
            how_to_read="Line: median; dots: every repetition. A colour is a run; dashes and "
            f"markers tell its lines apart.{left_out}",
            panels=merged,
            table=_line_table(title, merged),
        )


def _left_out(
    before: Iterable[Sequence[tuple[int, LinePanel]]], merged: Sequence[LinePanel]
) -> str:
    there = max(sum(len(panel.series) for _, panel in panels) for panels in before)
    shown = max(len(panel.series) for panel in merged)
    return f" {shown} of {there} lines are drawn." if shown < there else ""


def _overlaid(panels: Sequence[tuple[int, LinePanel]], names: Sequence[str]) -> LinePanel:
    """Return panels of one title as one, with at most ``LINES_MAX`` lines."""
    chosen = _chosen([panel for _, panel in panels])
    single = len({one.label for _, panel in panels for one in panel.series}) == 1
    series: list[LineSeries] = []
    rules: list[Rule] = []
    for side, panel in panels[:LINES_MAX]:
        own = [one for one in panel.series if one.label in chosen]
        series += [
            replace(
                one,
                label=_label(side, names[side] if single else one.label),
                colour=side,
                variant=number,
            )
            for number, one in enumerate(sorted(own, key=lambda one: chosen.index(one.label)))
        ]
        for rule in panel.rules:
            if rule.axis == "y" or rule.short_label == "peak" or not own:
                continue
            name = rule.short_label.partition(" of ")[0]
            rules.append(
                replace(
                    rule,
                    label=f"{letter(side)}: {rule.label}",
                    short_label=f"{letter(side)} {name}",
                    colour=side,
                )
            )
    first = panels[0][1]
    limits = {rule.label: rule for _, panel in panels for rule in panel.rules if rule.axis == "y"}
    apart = _apart(rules, series)
    return replace(
        first,
        description=" ".join(
            [*(_describe(first, one) for one in series), *(f"{rule.label}." for rule in rules)]
        ),
        series=tuple(series),
        rules=(*limits.values(), *apart),
    )


def _chosen(panels: Sequence[LinePanel]) -> list[str]:
    """Return the labels that are drawn of each side: those that most sides have, in order."""
    counts: dict[str, int] = {}
    for panel in panels:
        for one in panel.series:
            counts[one.label] = counts.get(one.label, 0) + 1
    room = max(1, LINES_MAX // min(len(panels), LINES_MAX))
    labels = sorted(counts, key=lambda label: -counts[label])
    if len(labels) > room and set(labels) & set(_TELLING):
        labels.sort(key=lambda label: _TELLING.index(label) if label in _TELLING else len(_TELLING))
    return labels[:room]


def _label(side: int, words: str) -> str:
    return f"{letter(side)}: {short(words, NAME_CHARS_MAX)}"


def _apart(rules: Sequence[Rule], series: Sequence[LineSeries]) -> list[Rule]:
    """Return ``rules`` with names that would lie on each other written once, at the first."""
    if not rules:
        return []
    top = max([rule.value for rule in rules] + [max(one.x) for one in series if one.x])
    found: list[Rule] = []
    for rule in sorted(rules, key=lambda rule: rule.value):
        if found and rule.value - found[-1].value < TOGETHER_SHARE * top:
            place = max(n for n, one in enumerate(found) if one.short_label)
            names = f"{found[place].short_label}, {rule.short_label}"
            found[place] = replace(found[place], short_label=names)
            rule = replace(rule, short_label="")
        found.append(rule)
    return found


def _describe(panel: LinePanel, series: LineSeries) -> str:
    first, last = (_value(series.median[i], panel.unit) for i in (0, -1))
    low, high = (_place(series.x[i], panel) for i in (0, -1))
    return f"{series.label}: {first} at {low}, {last} at {high}."


def _value(value: float, unit: str) -> str:
    return micro(format_value(value, unit))


def _place(x: float, panel: LinePanel) -> str:
    return f"{x:g}" if panel.x_unit == "1" else format_value(x, panel.x_unit)


def _line_table(title: str, panels: Sequence[LinePanel]) -> PlainTable:
    return PlainTable(
        caption=f"{title}, medians",
        head=("line", "what", "at", "median"),
        rows=tuple(
            (series.label, panel.y_label, _place(x, panel), _value(value, panel.unit))
            for panel in panels
            for series in panel.series
            for x, value in zip(series.x, series.median, strict=True)
        ),
    )


def _percentiles(
    indexes: Sequence[Index],
    own: Sequence[Workload | None],
    names: Sequence[str],
    figure_id: str,
) -> Figure | None:
    """Return the percentile curves of the primary stream, at the first and the last point."""
    first = next((workload for workload in own if workload is not None), None)
    if first is None or first.matrix or not first.primary:
        return None
    stream = first.primary[0].partition(".")[0]
    shared = _shared(_lines(indexes, own, stream))
    places = shared[:1] + shared[-1:] if len(shared) > 1 else shared
    drawn = [
        (panel, of_point)
        for of_point in places[:PLACES_MAX]
        if (panel := _curve_panel(first, of_point, names)) is not None
    ]
    if not drawn:
        return None
    name = short(first.name)
    return Figure(
        figure_id=figure_id,
        title=f"{name}: latency percentiles",
        question=f"How long does {name} take in each run, and how much longer do the slowest take?",
        how_to_read="Bold: median of the repetitions at each percentile; thin: every repetition. "
        "A colour is a run. A line ends where fewer than ten lie beyond."
        + (" The first and the last point that they share are drawn." if len(shared) > 2 else "")
        + refused_words(list(_refused(indexes, own, stream))),
        panels=tuple(panel for panel, _ in drawn),
        table=_curve_table(
            f"{name}: latency percentiles, median over repetitions",
            [(panel.title, of_point) for panel, of_point in drawn],
        ),
    )


def _lines(
    indexes: Sequence[Index], own: Sequence[Workload | None], stream: str
) -> dict[PointKey, OfPoint]:
    """Return the lines that can be drawn, by point and side."""
    found: dict[PointKey, OfPoint] = {}
    for side, (index, workload) in enumerate(zip(indexes, own, strict=True)):
        for member in members_of(index, workload) if workload is not None else ():
            point, placed, direction = member
            if placed.stream.name != stream or not _belongs(point) or workload is None:
                continue
            if any(True for _ in histograms_of(member)):
                key = (*sorted(point.cell.parameters.items()), direction)
                found.setdefault(key, {})[side] = _Line(index, workload, member)
    return found


def _refused(
    indexes: Sequence[Index], own: Sequence[Workload | None], stream: str
) -> Iterator[tuple[str, Member]]:
    """Yield the lines of which repetitions do not count, with their names."""
    for side, (index, workload) in enumerate(zip(indexes, own, strict=True)):
        for member in members_of(index, workload) if workload is not None else ():
            point, placed, _ = member
            if placed.stream.name != stream or not _belongs(point) or workload is None:
                continue
            if refusals_of(member):
                yield f"{letter(side)}: {member_label(workload, member)}", member


def _shared(lines: dict[PointKey, OfPoint]) -> list[OfPoint]:
    """Return the points that most sides have."""
    most = max((len(of_point) for of_point in lines.values()), default=0)
    return [of_point for of_point in lines.values() if len(of_point) == most]


def _belongs(point: Point) -> bool:
    """Whether the point shows the workload as a whole, at a rate that is offered."""
    return point.cell.alone is None and point.cell.parameters.get("load") != PEAK


def _curve_panel(workload: Workload, of_point: OfPoint, names: Sequence[str]) -> CurvePanel | None:
    curves: list[Curve] = []
    for side, line in list(of_point.items())[:LINES_MAX]:
        curve = curve_of(line.workload, line.member, side)
        if curve is not None:
            curves.append(replace(curve, label=_label(side, names[side]), dashed=False))
    if not curves:
        return None
    point, placed, _ = next(iter(of_point.values())).member
    what = "requests" if placed.stream.barrier else "I/Os"
    words = parameter_words(point.cell.parameters)
    stream = short(placed.stream.name, 24)
    title = ": ".join(part for part in (stream, words) if part)
    if len(workload.streams) == 1 and words:
        title = words
    return CurvePanel(
        title=title,
        description=" ".join(
            f"{curve.label}: {_latency(curve.latency_s[0])} at 50 %, "
            f"{_latency(curve.latency_s[-1])} at {curve.percent[-1]:.5g} %."
            for curve in curves
        ),
        x_label=f"share of {what} that were at most this slow (%)",
        y_label="request time (log scale)" if placed.stream.barrier else "latency (log scale)",
        curves=tuple(curves),
    )


def _latency(seconds: float) -> str:
    return quantity("latency_p50", "s", seconds)


def _curve_table(caption: str, panels: Sequence[tuple[str, OfPoint]]) -> PlainTable:
    rows = []
    for title, of_point in panels:
        for side, line in of_point.items():
            point, placed, direction = line.member
            row = [f"{letter(side)}: {title}"]
            for percent in TABLE_PERCENTS:
                metric = f"{latency_prefix(placed.stream)}_{percentile_name(percent)}"
                found = line.index.summary(point, placed.stream.name, direction, metric)
                row.append(
                    DASH if found is None else f"{summary_text(found)} ({summary_detail(found)})"
                )
            rows.append(tuple(row))
    return PlainTable(
        caption=caption,
        head=("line", *(percentile_name(percent) for percent in TABLE_PERCENTS)),
        rows=tuple(rows),
    )
