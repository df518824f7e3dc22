"""A drive's history -> HistoryView: everything that a reader sees, before any drawing.  Pure."""

import hashlib
from collections.abc import Iterator, Sequence
from math import log

import msgspec
from msgspec import Struct

from kvbench.compare.model import Change, Key
from kvbench.gate.history import History, HistoryPoint, HistoryRun, HistorySeries
from kvbench.measure.model import MeasuredRun
from kvbench.report.compare_words import change_words, number_words, value_words
from kvbench.report.history_model import (
    ChangePair,
    ChangeRow,
    HistoryView,
    MetricView,
    RoleTrends,
    RunRow,
    TrendPanel,
    TrendPoint,
    TrendView,
    ValueRow,
    WorkloadTrends,
)
from kvbench.report.model import Level
from kvbench.report.points import place_in_sweep
from kvbench.report.steady import mark_of_runs
from kvbench.report.words import ROLE_WORDS, metric_meaning, sentence, short
from kvbench.workload.schema import ROLES

FIGURES_MAX = 150  # numbers that are drawn; all others keep their table
POINTS_MAX = 2_500  # dots in all drawings of a page, each with the words that it says
ROWS_MAX = 4_000  # values in all tables of a page
ID_DIGITS = 10
ROWS_MIN = 8  # of one number, whatever the number of numbers
RUNS_NAMED_MAX = 4  # runs with a change, in the first line
DOUBTS_MAX = 1  # beside one value; the report of its run has them all
DOUBT_CHARS_MAX = 160
UNKNOWN = "unknown"


class _Room(Struct, frozen=True, kw_only=True):
    """What a page has room for: the names of all numbers, those drawn, rows of each table."""

    ids: dict[int, str]
    drawn: set[int]
    rows: int


def build(history: History, runs: Sequence[MeasuredRun], *, figures: bool = True) -> HistoryView:
    """Return what is shown of ``history``.

    Args:
        history: the drive.
        runs: its runs, in order.
        figures: without them nothing is prepared for drawing, which a terminal does not need.
    """
    series = _ordered(history, runs)
    ids = {id(one): _figure_id(one.key) for one in series}
    # What changed is drawn first, where there is no room for all.
    wanted = sorted(series, key=lambda one: not any(point.called for point in one.points))
    count = min(FIGURES_MAX, POINTS_MAX // max(1, len(history.runs))) if figures else 0
    drawn = {id(one) for one in wanted[:count]}
    rows = max(ROWS_MIN, ROWS_MAX // max(1, len(series))) if figures else len(history.runs)
    return HistoryView(
        title=f"kvbench history: {_device(history)}",
        verdict=_verdict(history),
        state=_state(history),
        device=_device(history),
        runs=tuple(_run(history, place) for place in range(len(history.runs))),
        apart=tuple(_apart(history)),
        left_out=tuple(f"{short(one.run_id)}: {sentence(one.reason)}" for one in history.left_out),
        changes=tuple(_changes(history, series, ids)),
        roles=tuple(_roles(history, series, _Room(ids=ids, drawn=drawn, rows=rows))),
        undrawn=len(series) - len(drawn) if figures else 0,
        method=_method(history),
    )


def _figure_id(key: Key) -> str:
    """Return a name that a number keeps, whatever else the runs have."""
    digest = hashlib.sha256(msgspec.json.encode(key, order="sorted")).hexdigest()
    return f"trend-{digest[:ID_DIGITS]}"


def _ordered(history: History, runs: Sequence[MeasuredRun]) -> list[HistorySeries]:
    """Return the numbers as the newest plan that has them puts them: along the sweep."""
    workloads = {w.name: w for run in runs for w in run.record.plan.workloads}
    names = list(workloads)

    def place(series: HistorySeries) -> tuple[object, ...]:
        key, workload = series.key, workloads[series.key.workload]
        name = f"{key.stream}.{key.metric}"
        primary = (
            workload.primary.index(name) if name in workload.primary else len(workload.primary)
        )
        sweep = place_in_sweep(workload, key.parameters, key.alone)
        return (names.index(key.workload), primary, key.stream, key.metric, sweep)

    return sorted(history.series, key=place)


def _device(history: History) -> str:
    return short(history.device or history.serial, 120)


def _verdict(history: History) -> str:
    """Return how many changes there are over how many runs, in one sentence or two."""
    counts = list(_called_by_run(history))
    if len(counts) > RUNS_NAMED_MAX:
        counts = [*counts[-RUNS_NAMED_MAX:], f"and in {len(counts) - RUNS_NAMED_MAX} earlier runs"]
    runs = len(history.runs)
    held = sum(run.against is not None for run in history.runs)
    over = f"{runs} runs" if runs > 1 else "1 run"
    revisions = list(dict.fromkeys(_firmware(run) for run in history.runs))
    shown = ", ".join(revisions[:6]) + (", ..." if len(revisions) > 6 else "")
    over += f" on firmware {shown}"
    if not history.series:
        return f"{over}: not one primary number has a value."
    if not held:
        why = "there is no other to hold it against" if runs == 1 else "no two may be compared"
        return f"{over}: {why}, so no change can be called."
    numbers = f"{len(history.series)} {'number' if len(history.series) == 1 else 'numbers'}"
    what = f"changes called {'; '.join(counts)}" if counts else "no change is called"
    alone = runs - 1 - held
    rest = ""
    if alone:
        rest = f" {alone} {'run' if alone == 1 else 'runs'} may be held against no earlier one."
    return f"{over}, {numbers}: {what}.{rest}"


def _called_by_run(history: History) -> Iterator[str]:
    """Yield ``in run 4 (FW2): 12 worse, 1 better`` for each run with a change."""
    for place, run in enumerate(history.runs):
        called = [p.called for series in history.series for p in series.points if p.run == place]
        counts = _counted(called)
        if counts:
            yield f"in run {place + 1} ({_firmware(run)}): {counts}"


def _state(history: History) -> Level:
    called = {point.called for series in history.series for point in series.points}
    if called & {"WORSE", "MISSING"}:
        return "bad"
    whole = all(run.against is not None for run in history.runs[1:])
    return "note" if whole and len(history.runs) > 1 and history.series else "doubt"


def _firmware(run: HistoryRun) -> str:
    return short(run.firmware, 24) if run.firmware else UNKNOWN


def _run(history: History, place: int) -> RunRow:
    run = history.runs[place]
    side = run.side
    notes = [f"incomplete: {side.incomplete}"] if side.incomplete else []
    notes += side.caveats
    return RunRow(
        number=place + 1,
        run_id=short(side.run_id),
        started=sentence(side.created_at[:16].replace("T", " ")),
        firmware=_firmware(run),
        new_firmware=place > 0 and run.firmware != history.runs[place - 1].firmware,
        label=short(side.label, 40),
        suite=short(run.suite, 24),
        repetitions=side.repetitions,
        against="" if run.against is None else f"run {run.against + 1}",
        outcome=run.outcome or "",
        note=sentence("; ".join(notes)),
    )


def _apart(history: History) -> Iterator[str]:
    for place, run in enumerate(history.runs):
        if run.apart:
            held = (
                "it begins a line of its own"
                if run.against is None
                else f"it is held against run {run.against + 1}"
            )
            why = sentence(run.apart)
            yield f"run {place + 1} is not held against run {place}, as {why}; {held}"


def _changes(
    history: History, series: Sequence[HistorySeries], ids: dict[int, str]
) -> Iterator[ChangePair]:
    """Yield the changes run by run, the newest first; what is worse first, and the largest."""
    for place in reversed(range(len(history.runs))):
        found = [
            (point, one)
            for one in series
            for point in one.points
            if point.run == place and point.called
        ]
        found.sort(key=lambda pair: (pair[0].called == "BETTER", -_size(pair[0].change)))
        for against in sorted({_held(history, point) for point, _ in found}, reverse=True):
            mine = [pair for pair in found if _held(history, pair[0]) == against]
            ends = [f"run {end + 1} ({_firmware(history.runs[end])})" for end in (against, place)]
            steps = ", in steps that are no change each" if mine[0][0].since is not None else ""
            yield ChangePair(
                where=" to ".join(ends) + steps,
                counts=_counted([point.called for point, _ in mine]),
                rows=tuple(_change_row(one, point, ids[id(one)]) for point, one in mine),
            )


def _held(history: History, point: HistoryPoint) -> int:
    """Return the place of the run against which a change was called."""
    if point.since is not None:
        return point.since
    return history.runs[point.run].against or 0


def _size(change: Change | None) -> float:
    """Return how large a change is, whichever way it went."""
    if change is None or change.estimate is None or change.kind != "ratio":
        return 0.0
    return abs(log(change.estimate)) if change.estimate > 0 else 0.0


def _change_row(series: HistorySeries, point: HistoryPoint, figure_id: str) -> ChangeRow:
    held = point.against if point.since is None else point.since
    before = next((p for p in series.points if p.run == held), None)
    new, _, _ = value_words(point.sample, series.key.metric, series.unit)
    old, _, _ = value_words(before.sample if before else None, series.key.metric, series.unit)
    return ChangeRow(
        called=point.called,
        number=_number(series),
        values=f"{old} to {new}",
        change=_change(series, point),
        figure_id=figure_id,
        doubts=_doubts(point.change.doubts if point.change else ()),
    )


def _counted(called: Sequence[str]) -> str:
    return ", ".join(
        f"{called.count(word)} {word.lower()}"
        for word in ("WORSE", "MISSING", "BETTER")
        if word in called
    )


def _number(series: HistorySeries) -> str:
    parameters, stream, metric = number_words(series.key)
    point = f" ({parameters})" if parameters else ""
    return f"{short(series.key.workload)}: {stream} {metric}{point}"


def _change(series: HistorySeries, point: HistoryPoint) -> str:
    if point.change is None:
        return ""
    change, interval = change_words(point.change, series.key.metric, series.unit)
    return f"{change} ({interval})" if interval else change


def _doubts(texts: Sequence[str]) -> str:
    shown = [short(text, DOUBT_CHARS_MAX) for text in texts[:DOUBTS_MAX]]
    if len(texts) > DOUBTS_MAX:
        shown.append(f"and {len(texts) - DOUBTS_MAX} more")
    return "; ".join(shown)


def _roles(history: History, series: Sequence[HistorySeries], room: _Room) -> Iterator[RoleTrends]:
    for role in ROLES:
        own = [one for one in series if one.role == role]
        names = dict.fromkeys(series.key.workload for series in own)
        if names:
            yield RoleTrends(
                role=role,
                words=ROLE_WORDS[role],
                workloads=tuple(
                    _workload(history, [s for s in own if s.key.workload == name], room)
                    for name in names
                ),
            )


def _workload(history: History, own: Sequence[HistorySeries], room: _Room) -> WorkloadTrends:
    groups: dict[tuple[str, str], list[HistorySeries]] = {}
    for series in own:
        _, stream, metric = number_words(series.key)
        groups.setdefault((stream, metric), []).append(series)
    return WorkloadTrends(
        name=short(own[0].key.workload),
        evidence=own[0].evidence,
        metrics=tuple(
            MetricView(
                stream=stream,
                metric=metric,
                meaning=metric_meaning(of_group[0].key.metric),
                trends=tuple(_trend(history, series, room) for series in of_group),
            )
            for (stream, metric), of_group in groups.items()
        ),
    )


def _trend(history: History, series: HistorySeries, room: _Room) -> TrendView:
    shown = _in_room(series.points, room.rows)
    return TrendView(
        figure_id=room.ids[id(series)],
        point=number_words(series.key)[0],
        values=tuple(_value(history, series, point) for point in shown),
        panel=_panel(history, series) if id(series) in room.drawn else None,
        unshown=len(series.points) - len(shown),
    )


def _in_room(points: Sequence[HistoryPoint], rows: int) -> list[HistoryPoint]:
    """Return the points that a table shows, in their order.

    The first and the newest, what changed and what it was held against, then the newer ones.
    """
    if len(points) <= rows:
        return list(points)
    called = [point for point in points if point.called][-((rows - 2) // 2) :]
    kept = {point.run for point in (points[0], points[-1], *called)}
    held = (point.against if point.since is None else point.since for point in called)
    kept |= {place for place in held if place is not None}
    for point in reversed(points):
        if len(kept) == rows:
            break
        kept.add(point.run)
    return [point for point in points if point.run in kept]


def _value(history: History, series: HistorySeries, point: HistoryPoint) -> ValueRow:
    value, spread, count = value_words(point.sample, series.key.metric, series.unit)
    verdict = ""
    if point.verdict is not None and point.against is not None:
        held = point.against if point.since is None else point.since
        verdict = f"{point.called or point.verdict} against run {held + 1}"
    return ValueRow(
        number=point.run + 1,
        firmware=_firmware(history.runs[point.run]),
        value=value,
        detail=", ".join(part for part in (spread, count) if part),
        known=point.sample.median is not None,
        verdict=verdict,
        change=_change(series, point),
        called=point.called,
        doubts=_doubts((*point.sample.doubts, *point.sample.notes)),
    )


def _says(history: History, series: HistorySeries, point: HistoryPoint) -> str:
    value, spread, count = value_words(point.sample, series.key.metric, series.unit)
    detail = ", ".join(part for part in (spread, count) if part)
    run = f"run {point.run + 1} {_firmware(history.runs[point.run])}".rstrip()
    called = f"\n{point.called} {_change(series, point)}" if point.called else ""
    if point.since is not None:
        called += f" since run {point.since + 1}"
    return f"{run}\n{value} ({detail}){called}"


def _panel(history: History, series: HistorySeries) -> TrendPanel:
    """Return the drawing; points are joined only where the gate held one against the other."""
    known = {point.run for point in series.points if point.sample.median is not None}
    points = []
    for point in series.points:
        sample = point.sample
        if sample.median is None:
            continue
        joined = point.against if point.against in known else None
        if point.verdict in ("INCOMPARABLE", "MISSING"):
            joined = None
        change = point.change
        shift = (
            change_words(change, series.key.metric, series.unit)[0]
            if change is not None and point.called
            else ""
        )
        points.append(
            TrendPoint(
                run=point.run + 1,
                median=sample.median,
                low=sample.low if sample.interval != "none" else None,
                high=sample.high if sample.interval != "none" else None,
                doubted=bool(sample.doubts),
                joined=None if joined is None else joined + 1,
                called=point.called,
                change=shift,
                says=_says(history, series, point),
            )
        )
    firmware: list[tuple[int, str]] = []  # nothing where no run knows it
    for place, run in enumerate(history.runs):
        if not any(one.firmware for one in history.runs):
            break
        if not firmware or firmware[-1][1] != _firmware(run):
            firmware.append((place + 1, _firmware(run)))
    return TrendPanel(
        title=_number(series),
        description=_description(history, series),
        metric=series.key.metric,
        unit=series.unit,
        runs=len(history.runs),
        points=tuple(points),
        missing=tuple(p.run + 1 for p in series.points if p.sample.median is None),
        firmware=tuple(firmware),
        mark=mark_of_runs({p.run + 1: history.runs[p.run].condition for p in series.points}),
    )


def _description(history: History, series: HistorySeries) -> str:
    """Return what the drawing shows for who cannot see it; the table beside it has every value."""
    metric, unit = series.key.metric, series.unit
    known = [point for point in series.points if point.sample.median is not None]
    words = f"{_number(series)} over {len(known)} runs."
    if known:
        first, last = (value_words(p.sample, metric, unit)[0] for p in (known[0], known[-1]))
        words += f" Run {known[0].run + 1}: {first}; run {known[-1].run + 1}: {last}."
    for point in series.points:
        if point.called:
            firmware = _firmware(history.runs[point.run])
            words += f" {point.called} in run {point.run + 1} ({firmware}): "
            words += f"{_change(series, point)}."
    return words


def _method(history: History) -> tuple[tuple[str, str], ...]:
    percent = f"{100 * history.confidence:g} %"
    return (
        (
            "The drive",
            "It is known by its serial, and two namespaces or partitions of it are two targets; "
            "without a serial by its world-wide name; a file by inode, file system and the CPU of "
            "its machine. A path or a slot says nothing. A run that was stored redacted is found "
            "by the form that the serial has there.",
        ),
        (
            "What is held against what",
            "Each run is held against the latest earlier run that does not differ in what the "
            f"policy {short(history.policy)} says must not differ: drive, namespace, format, link, "
            "preparation, plan, fio, kernel. Only such pairs are joined by a line. Firmware and "
            "label may differ. So that small steps do not add up unseen, each number is also held "
            "against the run in which it last changed, or the first of its line.",
        ),
        (
            "WORSE, BETTER, MISSING",
            f"What kvbench gate says of the pair: beyond the margin of the metric, and at "
            f"{percent} confidence after correction for all primary numbers of the pair; or gone. "
            "A run that is held against two others has half the error for each. Nothing else is "
            "marked, however the line looks.",
        ),
        (
            "Many pairs",
            "Each run is a gate of its own. Of 100 runs of an unchanged drive, up to 5 are called "
            "worse in some number, if the repetitions of two runs differ no more than those of "
            "one. Runs on other days may differ by more than their repetitions tell: how much, "
            "the line itself shows.",
        ),
        (
            "Value",
            "The median over the repetitions that count, with their range, or from 6 on the 95 % "
            "interval of the median. The axes do not start at zero.",
        ),
    )
