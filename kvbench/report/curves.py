"""Latency histograms -> percentile curves for one workload.  Pure.

A curve is the median over repetitions at each percentile, as every number of a report is; each
repetition is kept beside it.  A curve ends where fewer than ten I/Os lie beyond.  A repetition
whose percentiles do not count, an overloaded one, is no part of a line either.
"""

from collections.abc import Iterable, Sequence
from math import log10
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kvbench.measure.model import IoDirection, MeasuredCell, StreamHistogram
from kvbench.metrics import BEYOND_MIN, PERCENTILES
from kvbench.plan import Placed
from kvbench.report.model import Curve, CurvePanel, Figure, PlainTable
from kvbench.report.points import Index, Point, directions, latency_prefix
from kvbench.report.words import (
    DASH,
    metric_label,
    parameter_words,
    quantity,
    sentence,
    short,
    summary_detail,
    summary_text,
)
from kvbench.workload.schema import Workload

CURVES_MAX = 8
REFUSED_MAX = 4  # lines that are named because they are not drawn
NINES_FIRST = -log10(1 - 0.5)  # the axis starts at the median
NINES_STEP = 0.05
RANK_SLACK = 1e-12  # a share that is a float is not raised to the next rank by its last bit
IOS_MIN = 2 * BEYOND_MIN  # with fewer, not even the median may be shown

Numbers = NDArray[np.float64]
_T = TypeVar("_T")
Member = tuple[Point, Placed, IoDirection]


def curve_figure(index: Index, workload: Workload, figure_id: str) -> Figure | None:
    """Return the latency curves of ``workload``, None when nothing can be drawn.

    Of pairs of victims and aggressors there are too many; their matrix says what they do.
    """
    if workload.matrix:
        return None
    members = [m for m in members_of(index, workload) if any(histograms_of(m))]
    chosen = _choose(members)
    colours = _colours(workload, chosen)
    drawn = [(m, curve_of(workload, m, colour)) for m, colour in zip(chosen, colours, strict=True)]
    curves = tuple(curve for _, curve in drawn if curve is not None)
    if not curves:
        return None
    name = short(workload.name)
    barrier = all(placed.stream.barrier for _, placed, _ in chosen)
    what = "requests" if barrier else "I/Os"
    steps = any(placed.stream.request_steps > 1 for _, placed, _ in chosen)
    unit = f"a request ({'all its steps' if steps else 'its slowest I/O'})" if barrier else "an I/O"
    shown = (
        f" {len(curves)} of {len(members)} lines are drawn." if len(curves) < len(members) else ""
    )
    return Figure(
        figure_id=figure_id,
        title=f"{name}: latency percentiles",
        question=f"How long does {unit} of {name} take, and how much longer do the slowest take?",
        how_to_read="Bold: median of the repetitions at each percentile; thin: every repetition. "
        f"A line ends where fewer than ten {what} lie beyond.{shown}"
        f"{refused_words(_refused(index, workload))}",
        panels=(
            CurvePanel(
                title=f"{name}: latency percentiles",
                description=" ".join(_describe(curve) for curve in curves),
                x_label=f"share of {what} that were at most this slow (%)",
                y_label="request time (log scale)" if barrier else "latency (log scale)",
                curves=curves,
            ),
        ),
        table=_data_table(index, workload, chosen),
    )


def member_label(workload: Workload, member: Member) -> str:
    """Return what tells one line of a workload from the others."""
    point, placed, direction = member
    parts = []
    if len(workload.streams) > 1:
        parts.append(short(placed.stream.name, 24))
    if placed.stream.direction == "mixed":
        parts.append(f"{direction}s")
    if words := parameter_words(point.cell.parameters):
        parts.append(words)
    if workload.isolate:
        parts.append("alone" if point.setting == "alone" else "mixed")
    return ", ".join(parts) or short(placed.stream.name, 24)


def nines(percent: Numbers) -> Numbers:
    """Return the place of percentiles on the nines axis: 90 -> 1, 99 -> 2, 99.9 -> 3."""
    return -np.log10(1 - percent / 100)


def quantiles(histogram: StreamHistogram, place: Numbers) -> Numbers:
    """Return the latency at each ``place`` on the nines axis, by fio's rule.

    The bin is the first whose running count reaches the share asked for.
    """
    running = np.cumsum(histogram.counts)
    wanted = np.ceil((1 - 10.0**-place) * running[-1] * (1 - RANK_SLACK))
    bins = np.searchsorted(running, wanted).clip(0, len(running) - 1)
    return np.asarray(histogram.latency_s[bins], dtype=np.float64)


def members_of(index: Index, workload: Workload) -> list[Member]:
    """Return every line that a workload could have, in the order of its sweep."""
    return [
        (point, placed, direction)
        for point in index.points(workload)
        for placed in point.cell.placed
        for direction in directions(placed.stream)
    ]


def histograms_of(member: Member) -> Iterable[StreamHistogram]:
    """Yield one histogram per repetition whose percentiles count, with I/Os for a median."""
    for found, refusal in _told(member):
        if not refusal:
            yield found


def refusals_of(member: Member) -> tuple[str, ...]:
    """Return why repetitions that count are no part of the line, one reason for each."""
    return tuple(refusal for _, refusal in _told(member) if refusal)


def refused_words(refused: Sequence[tuple[str, Member]]) -> str:
    """Return which lines lack what and why, "" for none: `` Not drawn: writer (overloaded).``.

    Args:
        refused: the label of a line, and the line.
    """
    whole: list[str] = []
    part: list[str] = []
    for label, member in refused:
        reasons = refusals_of(member)
        heads = dict.fromkeys(sentence(reason.partition(":")[0]) for reason in reasons)
        why = ", ".join(heads)
        if any(histograms_of(member)):
            used = len(member[0].used)
            part.append(f"{label} ({len(reasons)} of {used} repetitions: {why})")
        elif reasons:
            whole.append(f"{label} ({why})")
    texts = (("Not drawn", whole), ("Without the repetitions that do not count", part))
    return "".join(f" {head}: {_some(names)}." for head, names in texts if names)


def _some(names: Sequence[str]) -> str:
    more = f"; and {len(names) - REFUSED_MAX} more" if len(names) > REFUSED_MAX else ""
    return f"{'; '.join(names[:REFUSED_MAX])}{more}"


def _refused(index: Index, workload: Workload) -> list[tuple[str, Member]]:
    members = members_of(index, workload)
    return [(member_label(workload, m), m) for m in members if refusals_of(m)]


def _told(member: Member) -> Iterable[tuple[StreamHistogram, str]]:
    """Yield the histogram of each repetition with enough I/Os, and why it does not count."""
    point, placed, direction = member
    for cell in point.used:
        found = _histogram(cell, placed, direction)
        if found is not None and found.counts.sum() >= IOS_MIN:
            yield found, _refusal(cell, placed, direction)


def _refusal(cell: MeasuredCell, placed: Placed, direction: IoDirection) -> str:
    """Return why not even the median of a histogram counts, "" where it does."""
    wanted = (placed.stream.name, direction, f"{latency_prefix(placed.stream)}_p50")
    for one in cell.measurements:
        if (one.stream, one.direction, one.metric) == wanted and one.value is None:
            return one.reason or "no reason is given"
    return ""


def _histogram(
    cell: MeasuredCell, placed: Placed, direction: IoDirection
) -> StreamHistogram | None:
    wanted = (placed.stream.name, direction, latency_prefix(placed.stream))
    for histogram in cell.histograms:
        if (histogram.stream, histogram.direction, histogram.what) == wanted:
            return histogram
    return None


def _choose(members: Sequence[Member]) -> list[Member]:
    """Return at most ``CURVES_MAX`` members: whole depth ladders, spread over the shapes."""
    if len(members) <= CURVES_MAX:
        return list(members)
    ladders: dict[tuple[object, ...], list[Member]] = {}
    for member in members:
        point, placed, direction = member
        others = [
            (key, value)
            for key, value in point.cell.parameters.items()
            if key.rpartition(".")[2] != "queue_depth"
        ]
        key = (point.cell.alone, placed.stream.name, direction, *others)
        ladders.setdefault(key, []).append(member)
    lists = list(ladders.values())
    if len(lists) == len(members):  # no depth is swept: spread the lines over the sweep
        return _spread(members, CURVES_MAX)
    longest = max(len(ladder) for ladder in lists)
    some = _spread(lists, max(2, CURVES_MAX // longest))
    return [m for ladder in some for m in _spread(ladder, CURVES_MAX // len(some))]


def _spread(members: Sequence[_T], count: int) -> list[_T]:
    """Return ``count`` members evenly, with the first and the last."""
    places = np.unique(np.linspace(0, len(members) - 1, min(count, len(members))).round())
    return [members[int(place)] for place in places]


def _colours(workload: Workload, chosen: Sequence[Member]) -> list[int]:
    """Return a colour per line; a tenant has the same colour alone and mixed."""
    if not workload.isolate:
        return list(range(len(chosen)))
    owners = [
        (placed.stream.name, direction, tuple(point.cell.parameters.items()))
        for point, placed, direction in chosen
    ]
    distinct = list(dict.fromkeys(owners))
    return [distinct.index(owner) for owner in owners]


def curve_of(workload: Workload, member: Member, colour: int) -> Curve | None:
    """Return the curve of one line, None without enough I/Os."""
    found = list(histograms_of(member))
    if not found:
        return None
    ends = [log10(float(histogram.counts.sum()) / BEYOND_MIN) for histogram in found]
    place = _places(min(ends))
    middle = np.median([quantiles(histogram, place) for histogram in found], axis=0)
    point = member[0]
    return Curve(
        label=member_label(workload, member),
        colour=colour,
        dashed=point.setting == "alone",
        percent=_percent(place),
        latency_s=tuple(middle.tolist()),
        repetitions=tuple(
            (_percent(own), tuple(quantiles(histogram, own).tolist()))
            for histogram, own in ((h, _places(end)) for h, end in zip(found, ends, strict=True))
        )
        if len(found) > 1
        else (),
    )


def _places(end: float) -> Numbers:
    """Return places on the nines axis from the median to ``end``, at most to 99.999 %."""
    last = min(end, float(nines(np.array([PERCENTILES[-1]]))[0]))
    grid = np.arange(NINES_FIRST, last, NINES_STEP)
    return np.append(grid, last) if grid.size else np.array([last])


def _percent(place: Numbers) -> tuple[float, ...]:
    return tuple((100 * (1 - 10.0**-place)).tolist())


def _describe(curve: Curve) -> str:
    first = quantity("latency_p50", "s", curve.latency_s[0])
    last = quantity("latency_p50", "s", curve.latency_s[-1])
    return f"{curve.label}: {first} at 50 %, {last} at {curve.percent[-1]:.5g} %."


def _data_table(index: Index, workload: Workload, chosen: Sequence[Member]) -> PlainTable:
    prefixes = list(dict.fromkeys(latency_prefix(placed.stream) for _, placed, _ in chosen))
    metrics = [f"{prefix}_p{p:g}" for prefix in prefixes for p in PERCENTILES]
    rows = []
    for member in chosen:
        point, placed, direction = member
        row = [member_label(workload, member)]
        for metric in metrics:
            summary = index.summary(point, placed.stream.name, direction, metric)
            row.append(
                DASH if summary is None else f"{summary_text(summary)} ({summary_detail(summary)})"
            )
        rows.append(tuple(row))
    return PlainTable(
        caption=f"{short(workload.name)}: latency percentiles, median over repetitions",
        head=("line", *(metric_label(metric) for metric in metrics)),
        rows=tuple(rows),
    )
