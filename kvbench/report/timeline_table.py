"""A run second by second as a table: the numbers behind the timeline.  Pure."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct

from kvbench.host.health_model import HealthSample
from kvbench.measure.timeline import PERCENTILES, CellTimeline, StreamTimeline, Window
from kvbench.metrics import percentile_name
from kvbench.report.model import PlainTable
from kvbench.report.words import DASH, quantity, sentence, short

WINDOW_ROWS_MAX = 300  # more windows than that: one row per cell, with ranges
_HEAD = (
    *("Cell", "Workload", "Stream", "Time", "Rate"),
    *(percentile_name(p) for p in PERCENTILES),
    *("Device requests", "Temperature"),
)


class Drawn(Struct, frozen=True):
    """One cell on the common time, with its outcome."""

    cell: CellTimeline
    bad: bool

    @property
    def samples(self) -> list[tuple[float, HealthSample]]:
        """The samples and when they were taken."""
        health = self.cell.health
        return [(self.cell.begin_s + s.at_s, s) for s in health.samples] if health else []


def windows_of(cells: Iterable[Drawn]) -> list[Window]:
    """Return the windows of all streams of all cells."""
    return [w for drawn in cells for stream in drawn.cell.streams for w in stream.windows]


def numbers(cells: Sequence[Drawn]) -> PlainTable:
    """Return a row per window, or per stream of a cell where those would be too many."""
    each = len(windows_of(cells)) <= WINDOW_ROWS_MAX
    rows: list[tuple[str, ...]] = []
    for drawn in cells:
        for stream in drawn.cell.streams:
            rows += _rows(drawn, stream, each=each)
    what = "one row per window" if each else "one row per cell and stream, with ranges over time"
    return PlainTable(caption=f"The run over time, {what}", head=_HEAD, rows=tuple(rows))


def _rows(drawn: Drawn, stream: StreamTimeline, *, each: bool) -> Iterator[tuple[str, ...]]:
    cell = drawn.cell.cell
    many = len([one for one in drawn.cell.streams if one.stream == stream.stream]) > 1
    name = f"{short(stream.stream)}, {stream.direction}s" if many else short(stream.stream)
    first = (short(cell.cell_id), short(cell.workload), name)
    if not stream.windows:
        missing = (f"not kept: {sentence(stream.reason)}", *[DASH] * len(PERCENTILES))
        begin_s, end_s = drawn.cell.begin_s, drawn.cell.end_s
        yield (*first, _span(begin_s, end_s), *missing, *_beside(drawn, begin_s, end_s))
        return
    for group in [[w] for w in stream.windows] if each else [list(stream.windows)]:
        begin_s, end_s = group[0].begin_s, group[-1].end_s
        percentiles = (
            range_words([time_words(v) for v in ends([p for p in column if p is not None])])
            or "too few"
            for column in zip(*(w.percentiles_s for w in group), strict=True)
        )
        unit = "steps/s" if stream.what == "steps" else "/s"
        rate = range_words([quantity("rate", "1/s", r) for r in ends([w.rate for w in group])])
        yield (
            *(*first, _span(begin_s, end_s), f"{rate} {unit}".replace(" /s", "/s")),
            *percentiles,
            *_beside(drawn, begin_s, end_s),
        )


def _beside(drawn: Drawn, begin_s: float, end_s: float) -> tuple[str, str]:
    """Return the requests per second that the device counted, and the temperature."""
    counted = [
        (at, s.counters.read_ios + s.counters.write_ios)
        for at, s in drawn.samples
        if s.counters is not None
    ]
    requests = DASH
    if len(counted) > 1 and end_s > begin_s:
        at, total = zip(*counted, strict=True)
        first, last = np.interp([begin_s, end_s], at, total)
        requests = f"{quantity('rate', '1/s', max(0.0, float(last - first) / (end_s - begin_s)))}/s"
    heats = [(at, s.temperature_c) for at, s in drawn.samples if s.temperature_c is not None]
    if not heats:
        return requests, DASH
    within = [c for at, c in heats if begin_s <= at <= end_s]
    middle = (begin_s + end_s) / 2
    nearest = min(heats, key=lambda pair: abs(pair[0] - middle))[1]
    return requests, range_words([f"{c:.0f} C" for c in ends(within or [nearest])])


def ends(values: Sequence[float]) -> list[float]:
    """Return the smallest and the largest of several, none of none."""
    return [min(values), max(values)] if values else []


def range_words(texts: Sequence[str]) -> str:
    """Return ``a-b``, or ``a`` where both are the same."""
    return DASH.join(dict.fromkeys(texts))


def time_words(value: float) -> str:
    """Return a latency with its unit."""
    return quantity("latency_p50", "s", value)


def _span(begin_s: float, end_s: float) -> str:
    return f"{begin_s:.1f}{DASH}{end_s:.1f} s"
