"""What a pointer finds on the timeline: one strip per window, across all of its axes.  Pure.

There are at most ``STRIPS_MAX`` of them, as a strip narrower than a pixel is found by nobody:
where there are more windows, neighbours say their ranges together.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kvbench.measure.timeline import PERCENTILES, Window
from kvbench.metrics import percentile_name
from kvbench.report.timeline_model import TimeStrip
from kvbench.report.timeline_table import Drawn, ends, range_words, time_words
from kvbench.report.words import DASH, quantity, sentence, short

STRIPS_MAX = 300

_Floats = NDArray[np.float64]


class _Seen(Struct, frozen=True, eq=False):
    """One cell with what was sampled beside it: times, requests so far, times and degrees."""

    drawn: Drawn
    counted: tuple[_Floats, _Floats]
    heats: tuple[_Floats, _Floats]


class _Strip(Struct, frozen=True, eq=False):
    """Windows of one stretch of time, with the name of what did them."""

    begin_s: float
    end_s: float
    cells: tuple[_Seen, ...]
    windows: tuple[tuple[str, Window], ...]


def strips_of(cells: Sequence[Drawn]) -> tuple[TimeStrip, ...]:
    """Return the strips of a run, in the order of time."""
    strips = [strip for drawn in cells for strip in _strips(_seen(drawn))]
    together = -(-len(strips) // STRIPS_MAX) if strips else 1
    groups = [strips[at : at + together] for at in range(0, len(strips), together)]
    return tuple(_said(_joined(group)) for group in groups)


def _seen(drawn: Drawn) -> _Seen:
    counters = [(at, s.counters) for at, s in drawn.samples]
    counted = [(at, float(c.read_ios + c.write_ios)) for at, c in counters if c is not None]
    heats = [(at, s.temperature_c) for at, s in drawn.samples if s.temperature_c is not None]
    return _Seen(drawn, _columns(counted), _columns(heats))


def _columns(pairs: Sequence[tuple[float, float]]) -> tuple[_Floats, _Floats]:
    both = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _strips(seen: _Seen) -> Iterator[_Strip]:
    """Yield a strip per window of the stream that has most, one for a cell without windows."""
    cell = seen.drawn.cell
    most = max((stream.windows for stream in cell.streams), key=len, default=())
    if not most:
        yield _Strip(cell.begin_s, cell.end_s, (seen,), ())
        return
    named = []
    for stream in cell.streams:
        twice = sum(other.stream == stream.stream for other in cell.streams) > 1
        name = short(stream.stream, 24) + (f" {stream.direction}s" if twice else "")
        named += [(name, window, stream.what) for window in stream.windows]
    for one in most:
        within = tuple(
            (f"{name}, {what}", window)
            for name, window, what in named
            if one.begin_s <= (window.begin_s + window.end_s) / 2 < one.end_s
        )
        yield _Strip(one.begin_s, one.end_s, (seen,), within)


def _joined(group: Sequence[_Strip]) -> _Strip:
    if len(group) == 1:
        return group[0]
    cells = {id(seen): seen for strip in group for seen in strip.cells}
    return _Strip(
        group[0].begin_s,
        group[-1].end_s,
        tuple(cells.values()),
        tuple(one for strip in group for one in strip.windows),
    )


def _said(strip: _Strip) -> TimeStrip:
    lines = [f"{strip.begin_s:.1f}{DASH}{strip.end_s:.1f} s: {_cells_words(strip)}"]
    several = len(strip.cells) > 1
    names = ["all streams"] if several and strip.windows else []
    for name in names or list(dict.fromkeys(name for name, _ in strip.windows)):
        lines.append(f"{name}: {_numbers([w for n, w in strip.windows if several or n == name])}")
    if not strip.windows and not several:
        reasons = (sentence(s.reason) for s in strip.cells[0].drawn.cell.streams if s.reason)
        reason = next(reasons, "")
        lines += [f"latency over time not kept: {reason}"] if reason else []
    lines += _beside(strip)
    return TimeStrip(begin_s=strip.begin_s, end_s=strip.end_s, text="\n".join(lines))


def _cells_words(strip: _Strip) -> str:
    first, last = (strip.cells[place].drawn.cell.cell for place in (0, -1))
    if len(strip.cells) > 1:
        ids = f"{short(first.cell_id, 12)} to {short(last.cell_id, 12)}"
        return f"{len(strip.cells)} cells, {ids}"
    ceiling = " (the host's ceiling)" if first.purpose == "ceiling" else ""
    return f"cell {short(first.cell_id, 12)}, {short(first.workload, 40)}{ceiling}"


def _numbers(windows: Sequence[Window]) -> str:
    parts = []
    for place, percent in enumerate(PERCENTILES):
        values = [v for w in windows if (v := w.percentiles_s[place]) is not None]
        words = range_words([time_words(value) for value in ends(values)])
        parts.append(f"{percentile_name(percent)} {words if values else 'too few'}")
    rates = range_words([quantity("rate", "1/s", r) for r in ends([w.rate for w in windows])])
    return f"{', '.join(parts)}; {rates}/s"


def _beside(strip: _Strip) -> Iterator[str]:
    """Yield what the device did and how hot it was."""
    if len(strip.cells) == 1 and len(strip.cells[0].counted[0]) > 1:
        at, total = strip.cells[0].counted
        first, last = np.interp([strip.begin_s, strip.end_s], at, total)
        rate = max(0.0, float(last - first)) / max(1e-9, strip.end_s - strip.begin_s)
        yield f"device: {quantity('rate', '1/s', rate)} requests/s"
    heats = [heat for seen in strip.cells for heat in _heats(seen, strip)]
    if heats:
        yield f"temperature: {range_words([f'{heat:.0f} C' for heat in ends(heats)])}"


def _heats(seen: _Seen, strip: _Strip) -> list[float]:
    """Return the temperatures inside the strip, else the one that was taken nearest to it."""
    at, heats = seen.heats
    if not len(at):
        return []
    within = heats[(at >= strip.begin_s) & (at <= strip.end_s)]
    middle = (strip.begin_s + strip.end_s) / 2
    chosen = within if len(within) else heats[[np.argmin(np.abs(at - middle))]]
    return [float(heat) for heat in chosen]
