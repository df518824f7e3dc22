"""A run second by second: latency and rate from fio's logs, the rest from what was sampled.

Read for the report alone: nothing here decides what a cell is worth.  Times count from the start
of the run's first cell; percentiles of a window stand under the ten-beyond rule as all others do.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kvbench.fio.histogram_log import COLUMNS, FIRST_BIN, bin_values_ns
from kvbench.fio.sections import histogram_window_ms
from kvbench.host.health_model import CellHealth
from kvbench.measure.evidence import asked_directions
from kvbench.measure.logs import read_columns
from kvbench.measure.model import IoDirection
from kvbench.metrics import ios_needed
from kvbench.plan import Cell
from kvbench.stats import histogram
from kvbench.store import layout
from kvbench.store.read import ArchivedCell, RunArchive
from kvbench.units import MS_PER_S, NS_PER_S
from kvbench.workload.schema import Stream, Timing

PERCENTILES = (50.0, 99.0, 99.9)
# fio needs a moment to start and hardly one to end: seen are 0.3 to 0.6 s.
FIO_START_S, FIO_START_S_MAX = 0.4, 2.0
BANDS_PER_DECADE = 8  # a band is a third wider than the one below it
_DIRECTION_CODES: dict[IoDirection, int] = {"read": 0, "write": 1, "trim": 2}


class Window(Struct, frozen=True, kw_only=True):
    """What completed from ``begin_s`` to ``end_s``, seconds since the run's first cell began.

    ``percentiles_s`` goes with ``PERCENTILES``; None where too few completed.  ``spread`` has
    (band, share of the window's I/Os) of the bands of latency that had any: band b reaches from
    ``band_edge_s(b)`` to ``band_edge_s(b + 1)``.
    """

    begin_s: float
    end_s: float
    rate: float  # I/Os or steps per second
    count: int
    percentiles_s: tuple[float | None, ...]
    spread: tuple[tuple[int, float], ...] = ()


def band_edge_s(band: int) -> float:
    """Return where a band of latency begins."""
    return float(10.0 ** (band / BANDS_PER_DECADE - 9))


class StreamTimeline(Struct, frozen=True, kw_only=True):
    """One stream and direction of a cell; ``reason`` says why there are no windows."""

    stream: str
    direction: IoDirection
    what: str  # "I/Os" or "steps": what is counted and timed
    windows: tuple[Window, ...]
    reason: str = ""


class CellTimeline(Struct, frozen=True, kw_only=True):
    """One cell: when it ran, when it measured, and what was seen; ``begin_s`` as in ``Window``."""

    cell: Cell
    begin_s: float
    end_s: float
    streams: tuple[StreamTimeline, ...]
    health: CellHealth | None


class Timeline(Struct, frozen=True, kw_only=True):
    """The cells of a run in the order of time; ``reason`` says why there are none."""

    cells: tuple[CellTimeline, ...]
    reason: str = ""


class _Part(Struct, frozen=True, kw_only=True):
    """What one job counted up to the end of a window of its own."""

    place: int
    begin_ms: float
    end_ms: float
    counts: NDArray[np.int64]


def gather_timeline(archive: RunArchive) -> Timeline:
    """Return a run second by second; a log that cannot be used is a reason of its stream."""
    stamped = [(began, one) for one in archive.cells if (began := _epoch_s(one)) is not None]
    stamped.sort(key=lambda pair: pair[0])
    stamped = [(began, one) for began, one in stamped if one.record.end != "not-run"]
    if not stamped:
        return Timeline(cells=(), reason="no cell was run")
    zero_s = stamped[0][0]
    return Timeline(cells=tuple(_cell(one, began - zero_s) for began, one in stamped))


def _epoch_s(archived: ArchivedCell) -> float | None:
    try:
        return datetime.fromisoformat(archived.record.started_at).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _cell(archived: ArchivedCell, begin_s: float) -> CellTimeline:
    record = archived.record
    end_s = begin_s + max(0.0, record.wall_s)
    timing = record.cell.timing
    start_s = end_s - begin_s - timing.ramp_s - timing.runtime_s
    if not 0 <= start_s <= FIO_START_S_MAX:  # it ended early, or waited for a device that hung
        start_s = FIO_START_S
    measured_s = min(end_s, begin_s + start_s + timing.ramp_s)
    streams: list[StreamTimeline] = []
    if record.cell.purpose != "ceiling":
        streams = list(_streams(archived, measured_s))
    return CellTimeline(
        cell=record.cell,
        begin_s=begin_s,
        end_s=end_s,
        streams=tuple(streams),
        health=record.health,
    )


def _streams(archived: ArchivedCell, zero_s: float) -> Iterator[StreamTimeline]:
    cell = archived.record.cell
    by_kind = {
        "I/Os": {layout.log_job_number(path): path for path in archived.histogram_logs()},
        "steps": {layout.log_job_number(path): path for path in archived.latency_logs()},
    }
    first_job = 1
    for placed in cell.placed:
        stream = placed.stream
        numbers = range(first_job, first_job + stream.jobs)
        first_job += stream.jobs
        what = "steps" if stream.barrier else "I/Os"
        logs = {number: path for number, path in by_kind[what].items() if number in numbers}
        for direction in asked_directions(stream):
            windows: tuple[Window, ...] = ()
            reason = "" if logs else _why_no_log(stream)
            try:
                if logs:
                    parts = _parts(stream, direction, logs, cell.timing)
                    windows = tuple(_windows(parts, zero_s, stream.barrier))
                    reason = "" if windows else "no whole window of time had an I/O"
            except (OSError, ValueError, ArithmeticError, LookupError) as error:
                said = str(error).splitlines()[0] if str(error) else type(error).__name__
                reason = f"a log cannot be used: {said}"
            yield StreamTimeline(
                stream=stream.name, direction=direction, what=what, windows=windows, reason=reason
            )


def _why_no_log(stream: Stream) -> str:
    if stream.shape == "throughput":
        return "it looks for the peak, where the log would cost CPU time"
    if stream.trims or stream.once:
        return "what it does is not timed I/O by I/O"
    return "this run kept no log of it"


def _parts(
    stream: Stream,
    direction: IoDirection,
    logs: Mapping[int, Path],
    timing: Timing,
) -> list[_Part]:
    """Return the windows of all jobs, each with its own counts.

    Raises:
        OSError: a log cannot be read.
        ValueError: it is not such a log.
    """
    window_ms = histogram_window_ms(timing.runtime_s)
    windows = round(timing.runtime_s * MS_PER_S) // window_ms
    parts: list[_Part] = []
    for path in logs.values():
        if stream.barrier:
            entries = read_columns(path, (0, 1))
            parts += _of_steps(entries, stream.queue_depth, window_ms, windows)
            continue
        lines = read_columns(path, range(COLUMNS))
        mine = lines[lines[:, 1] == _DIRECTION_CODES[direction]]
        parts += _of_lines(mine[:, 0], mine[:, FIRST_BIN:], window_ms)
    return parts


def _of_lines(
    times_ms: NDArray[np.int64], counts: NDArray[np.int64], window_ms: int
) -> Iterator[_Part]:
    """Yield one part per window in which lines end; several lines of one are added up."""
    if (np.diff(times_ms) < 0).any() or (counts < 0).any():
        raise ValueError("its lines are not in the order of time")
    places = np.maximum(0, (times_ms - window_ms // 2) // window_ms)
    begin_ms = 0.0
    for place in np.unique(places):
        mine = places == place
        end_ms = float(times_ms[mine][-1])
        if end_ms > begin_ms:
            yield _Part(
                place=int(place),
                begin_ms=begin_ms,
                end_ms=end_ms,
                counts=counts[mine].sum(axis=0),
            )
        begin_ms = end_ms


def _of_steps(
    entries: NDArray[np.int64], depth: int, window_ms: int, windows: int
) -> Iterator[_Part]:
    """Yield one part per whole window from the log of a barrier: of each group its slowest I/O.

    ``counts`` are the steps' times themselves, in ns: they are few and exact.
    """
    whole = entries.shape[0] // depth * depth
    groups = entries[:whole].reshape(-1, depth, 2)
    ends_ms, slowest_ns = groups[:, :, 0].max(axis=1), groups[:, :, 1].max(axis=1)
    places = ends_ms // window_ms
    for place in np.unique(places[places < windows]):
        yield _Part(
            place=int(place),
            begin_ms=float(place * window_ms),
            end_ms=float((place + 1) * window_ms),
            counts=slowest_ns[places == place],
        )


def _windows(parts: Sequence[_Part], zero_s: float, barrier: bool) -> Iterator[Window]:
    """Yield the windows of all jobs together."""
    values_ns = bin_values_ns()
    for place in sorted({part.place for part in parts}):
        mine = [part for part in parts if part.place == place]
        if barrier:
            times, counts = np.unique(np.concatenate([p.counts for p in mine]), return_counts=True)
            values = times.astype(np.float64)
        else:
            values, counts = values_ns, np.sum([p.counts for p in mine], axis=0)
        total = histogram.total(counts)
        yield Window(
            begin_s=zero_s + min(part.begin_ms for part in mine) / MS_PER_S,
            end_s=zero_s + max(part.end_ms for part in mine) / MS_PER_S,
            rate=sum(_rate(part, barrier) for part in mine),
            count=total,
            percentiles_s=tuple(
                histogram.quantile(values, counts, percent / 100) / NS_PER_S
                if total >= ios_needed(percent)
                else None
                for percent in PERCENTILES
            ),
            spread=_spread(values, counts, total),
        )


def _spread(
    values_ns: NDArray[np.float64], counts: NDArray[np.int64], total: int
) -> tuple[tuple[int, float], ...]:
    there = counts > 0
    logs = np.log10(np.maximum(values_ns[there], 1.0))
    bands = np.floor(BANDS_PER_DECADE * logs).astype(np.int64)
    sums = np.bincount(bands, weights=counts[there]) if total else np.zeros(0)
    return tuple((int(band), float(sums[band]) / total) for band in np.flatnonzero(sums))


def _rate(part: _Part, barrier: bool) -> float:
    count = part.counts.size if barrier else int(part.counts.sum())
    return count * MS_PER_S / (part.end_ms - part.begin_ms)
