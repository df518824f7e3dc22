"""A run second by second -> one figure: latency, rate, the device, temperature, errors.  Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal

from kvbench.host.model import DeviceCounters
from kvbench.measure.timeline import PERCENTILES, Timeline, Window, band_edge_s
from kvbench.metrics import percentile_name
from kvbench.report.model import Figure
from kvbench.report.timeline_hover import strips_of
from kvbench.report.timeline_model import (
    Band,
    HeatStrip,
    TimeAxis,
    TimeLine,
    TimelinePanel,
    TimeMark,
)
from kvbench.report.timeline_table import (
    Drawn,
    ends,
    numbers,
    range_words,
    time_words,
    windows_of,
)
from kvbench.report.words import sentence
from kvbench.units import SECTOR_BYTES

FIGURE_ID = "timeline"
WINDOWS_DRAWN_MAX = 3000
MARKS_MAX = 60
SHARE_DRAWN_MIN = 1e-3  # of the I/Os of a window; a fainter strip could hardly be seen
_Piece = tuple[tuple[float, ...], tuple[float, ...]]
_READS, _WRITES, _GREY, _HEAT = 0, 1, 6, 3


def timeline_figure(timeline: Timeline, bad: frozenset[str]) -> Figure | None:
    """Return the figure of a run, None when it has nothing over time to show.

    Args:
        timeline: the cells in the order of time.
        bad: the ids of cells that are invalid or failed.
    """
    cells = [Drawn(cell, cell.cell.cell_id in bad) for cell in timeline.cells]
    axes = [axis for axis in (_latency(cells), _rates(cells), _device(cells), _heat(cells)) if axis]
    if not axes:
        return None
    end_s = max(drawn.cell.end_s for drawn in cells)
    marks = tuple(_marks(cells))
    return Figure(
        figure_id=FIGURE_ID,
        title="The run over time",
        question="Was the device the same from beginning to end?",
        how_to_read=_how_to_read(cells, marks),
        panels=(
            TimelinePanel(
                title="The run over time",
                description=_description(cells, end_s, marks),
                end_s=end_s,
                axes=tuple(axes),
                bands=tuple(_bands(cells)),
                marks=marks[:MARKS_MAX],
                strips=strips_of(cells),
            ),
        ),
        table=numbers(cells),
    )


def _latency(cells: Sequence[Drawn]) -> TimeAxis | None:
    per_point = 1 + len(windows_of(cells)) // WINDOWS_DRAWN_MAX
    lines = []
    for place, percent in enumerate(PERCENTILES):
        pieces = []
        for drawn in cells:
            for stream in drawn.cell.streams:
                pieces += list(_known(_thinned(stream.windows, per_point), place))
        if pieces:
            lines.append(
                TimeLine(
                    label=percentile_name(percent), colour=place, steps=False, pieces=tuple(pieces)
                )
            )
    if not lines:
        return None
    heat = [
        HeatStrip(
            begin_s=window.begin_s,
            end_s=window.end_s,
            low=band_edge_s(band),
            high=band_edge_s(band + 1),
            share=share,
        )
        for drawn in cells
        for stream in drawn.cell.streams
        for window in _thinned(stream.windows, per_point)
        for band, share in window.spread
        if share >= SHARE_DRAWN_MIN
    ]
    return TimeAxis(label="Latency", unit="s", scale="log", lines=tuple(lines), heat=tuple(heat))


def _known(windows: Sequence[Window], place: int) -> Iterator[_Piece]:
    """Yield stretches of windows that have a percentile."""
    return _stretches(
        ((window.begin_s + window.end_s) / 2, window.percentiles_s[place]) for window in windows
    )


def _stretches(points: Iterable[tuple[float, float | None]]) -> Iterator[_Piece]:
    """Yield the stretches of points that have a value."""
    at: list[float] = []
    values: list[float] = []
    for place, value in points:
        if value is not None:
            at.append(place)
            values.append(value)
        elif at:
            yield tuple(at), tuple(values)
            at, values = [], []
    if at:
        yield tuple(at), tuple(values)


def _thinned(windows: Sequence[Window], count: int) -> list[Window]:
    """Return neighbours as one, with their worst percentiles, so that no peak is lost."""
    if count == 1:
        return list(windows)
    return [_joined(windows[at : at + count]) for at in range(0, len(windows), count)]


def _joined(group: Sequence[Window]) -> Window:
    seconds = [one.end_s - one.begin_s for one in group]
    return Window(
        begin_s=group[0].begin_s,
        end_s=group[-1].end_s,
        rate=sum(w.rate * s for w, s in zip(group, seconds, strict=True)) / sum(seconds),
        count=sum(one.count for one in group),
        percentiles_s=tuple(
            max((v for v in column if v is not None), default=None)
            for column in zip(*(one.percentiles_s for one in group), strict=True)
        ),
        spread=_joined_spread(group),
    )


def _joined_spread(group: Sequence[Window]) -> tuple[tuple[int, float], ...]:
    total = sum(one.count for one in group)
    counts: dict[int, float] = {}
    for one in group:
        for band, share in one.spread:
            counts[band] = counts.get(band, 0.0) + share * one.count
    return tuple((band, counts[band] / total) for band in sorted(counts)) if total else ()


def _rates(cells: Sequence[Drawn]) -> TimeAxis | None:
    per_point = 1 + len(windows_of(cells)) // WINDOWS_DRAWN_MAX
    pieces = [
        (
            (*(w.begin_s for w in windows), windows[-1].end_s),
            tuple(w.rate for w in windows),
        )
        for drawn in cells
        for stream in drawn.cell.streams
        if (windows := _thinned(stream.windows, per_point))
    ]
    lines = []
    if pieces:
        lines.append(
            TimeLine(label="I/Os or steps, by fio", colour=0, steps=True, pieces=tuple(pieces))
        )
    requests = _counted(cells, lambda c: c.read_ios + c.write_ios)
    if requests:
        lines.append(
            TimeLine(label="requests, by the device", colour=_GREY, steps=True, pieces=requests)
        )
    if not lines:
        return None
    return TimeAxis(label="Per second", unit="1/s", scale="zero", lines=tuple(lines))


def _device(cells: Sequence[Drawn]) -> TimeAxis | None:
    lines = []
    for label, colour, count in (
        ("read", _READS, lambda c: c.read_sectors * SECTOR_BYTES),
        ("written", _WRITES, lambda c: c.write_sectors * SECTOR_BYTES),
    ):
        pieces = _counted(cells, count)
        if pieces:
            lines.append(TimeLine(label=label, colour=colour, steps=True, pieces=pieces))
    return TimeAxis(label="Device", unit="B/s", scale="zero", lines=tuple(lines)) if lines else None


def _counted(cells: Sequence[Drawn], count: Callable[[DeviceCounters], int]) -> tuple[_Piece, ...]:
    """Return rates from the counters of the device, between two samples of a cell."""
    pieces = []
    for drawn in cells:
        if drawn.cell.cell.purpose == "ceiling":
            continue
        seen = [(at, count(s.counters)) for at, s in drawn.samples if s.counters is not None]
        steps = [(a, b) for a, b in pairwise(seen) if b[0] > a[0]]
        if steps:
            borders = (steps[0][0][0], *(b[0] for _, b in steps))
            pieces.append((borders, tuple(max(0, b[1] - a[1]) / (b[0] - a[0]) for a, b in steps)))
    return tuple(pieces)


def _heat(cells: Sequence[Drawn]) -> TimeAxis | None:
    pieces = []
    for drawn in cells:
        pieces += list(_stretches((at, s.temperature_c) for at, s in drawn.samples))
    if not pieces:
        return None
    line = TimeLine(label="temperature", colour=_HEAT, steps=False, pieces=tuple(pieces))
    return TimeAxis(label="Temperature", unit="C", scale="free", lines=(line,))


def _bands(cells: Iterable[Drawn]) -> Iterator[Band]:
    for drawn in cells:
        level: Literal["bad", "ceiling"] | None = "bad" if drawn.bad else None
        if level is None and drawn.cell.cell.purpose == "ceiling":
            level = "ceiling"
        if level is not None:
            yield Band(begin_s=drawn.cell.begin_s, end_s=drawn.cell.end_s, level=level)


def _marks(cells: Iterable[Drawn]) -> Iterator[TimeMark]:
    """Yield one mark per moment at which the kernel told of trouble."""
    for drawn in cells:
        health = drawn.cell.health
        told = {line.at_s: line.text for line in reversed(health.kernel)} if health else {}
        for at_s in sorted(told):
            yield TimeMark(at_s=drawn.cell.begin_s + at_s, label=sentence(told[at_s]))


def _how_to_read(cells: Sequence[Drawn], marks: Sequence[TimeMark]) -> str:
    parts = []
    if any(value is not None for w in windows_of(cells) for value in w.percentiles_s):
        parts.append(
            "Percentiles of each second (of a quarter of a short cell) of the completion latency, "
            "from the end of an I/O's submission on; behind a barrier, of a step. Grey behind them "
            "is where the I/Os lie, darker where there are more (from 0.1 % of a window on)."
        )
    if any(drawn.bad for drawn in cells):
        parts.append("Orange stretches are cells that are invalid or failed.")
    if any(drawn.cell.cell.purpose == "ceiling" for drawn in cells):
        parts.append("Grey stretches are the host's ceilings, which do not touch the device.")
    if marks:
        parts.append("Orange lines are trouble in the kernel log.")
    if len(windows_of(cells)) > WINDOWS_DRAWN_MAX:
        parts.append("Neighbouring windows are drawn as one, with the worst of their percentiles.")
    return " ".join(parts)


def _description(cells: Sequence[Drawn], end_s: float, marks: Sequence[TimeMark]) -> str:
    """Return the figure in words and numbers."""
    parts = [f"{len(cells)} cells in {end_s:.0f} s"]
    for place, percent in enumerate(PERCENTILES):
        values = [v for w in windows_of(cells) if (v := w.percentiles_s[place]) is not None]
        if values:
            parts.append(
                f"{percentile_name(percent)} {range_words([time_words(v) for v in ends(values)])}"
            )
    heats = [s.temperature_c for d in cells for _, s in d.samples if s.temperature_c is not None]
    if heats:
        parts.append(f"temperature {range_words([f'{c:.0f} C' for c in ends(heats)])}")
    parts.append(f"{len(marks)} moments of trouble in the kernel log")
    return "; ".join(parts)
