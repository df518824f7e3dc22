"""What the drive told of its health -> sentences, its counters before and after, where time goes.

What was not measured is one sentence per reason, never an empty table.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from kvbench.host.health_model import SessionHealth
from kvbench.measure.model import MeasuredRun
from kvbench.measure.timeline import Timeline
from kvbench.measure.wear import write_amplification
from kvbench.report.counters import counters_table
from kvbench.report.model import HealthView, PlainTable
from kvbench.report.points import Index, directions
from kvbench.report.steady import with_mark
from kvbench.report.timeline import timeline_figure
from kvbench.report.words import (
    load_words,
    quantity,
    sentence,
    short,
    stream_words,
    summary_detail,
    summary_text,
)
from kvbench.units import format_size

_BELOW, _ABOVE = "device_latency_mean", "host_latency_mean"
_SIGNS = {  # of trouble, and what must have been watched to see them
    "throttling": "smart",
    "reset": "state",
    "new media error": "smart",
    "change of its link": "link_speed",
}
KERNEL_ROWS_MAX = 30
_NO_CELL = "no repetition counts"  # then the cells say why
_NAMES = {  # what is watched, and its name in a sentence
    "smart": "SMART",
    "extended": "the OCP page C0h",
    "latency_monitor": "the OCP page C3h",
    "temperature_c": "temperature",
    "temperature_alarm": "its alarm",
    "state": "controller state",
    "link_speed": "PCIe link",
    "kernel_log": "the kernel log",
}


def health_view(run: MeasuredRun, index: Index) -> HealthView | None:
    """Return the section, None where no drive was looked at (an archive of an older version)."""
    sessions = run.health.sessions if run.health is not None else ()
    if not sessions:
        return None
    split = _split(index)
    counters, zero = counters_table(sessions)
    state = (*_watched(run, sessions), *_wear(run, counters is not None))
    return HealthView(
        words=(*state, *zero, *_split_words(run, split)),
        lines=state,
        tables=tuple(table for table in (counters, split) if table is not None),
    )


def with_timeline(
    view: HealthView, run: MeasuredRun, timeline: Timeline, mark: str = ""
) -> HealthView:
    """Return the section with its figure, and what the kernel said.

    ``mark`` stands inside the figure, as in all others of the report.
    """
    bad = frozenset(c.cell.cell_id for c in run.cells if c.outcome in ("invalid", "failed"))
    said = _kernel_table(timeline)
    return replace(
        view,
        tables=(*view.tables, said) if said is not None else view.tables,
        figure=with_mark(timeline_figure(timeline, bad), mark),
    )


def _kernel_table(timeline: Timeline) -> PlainTable | None:
    rows = [
        (short(one.cell.cell_id), f"{one.begin_s + line.at_s:.0f} s", sentence(line.text))
        for one in timeline.cells
        if one.health is not None
        for line in one.health.kernel
    ]
    if not rows:
        return None
    more = f", the first {KERNEL_ROWS_MAX} of {len(rows):,}" if len(rows) > KERNEL_ROWS_MAX else ""
    return PlainTable(
        caption=f"Trouble in the kernel log{more}",
        head=("Cell", "Seen at", "Line"),
        rows=tuple(rows[:KERNEL_ROWS_MAX]),
    )


def _watched(run: MeasuredRun, sessions: tuple[SessionHealth, ...]) -> Iterator[str]:
    """Say what was watched, what was seen, and what was not measured and why."""
    last = sessions[-1]
    checks = Counter(
        finding.check
        for cell in run.cells
        for finding in cell.findings
        if finding.check in ("throttled", "link", "controller", "media-errors", "kernel-log")
    )
    where = short(last.drive or (last.devices[0] if last.devices else "the target"))
    known_log = not any("kernel_log" in session.unknown for session in sessions)
    if checks:
        seen = ", ".join(f"{name.replace('-', ' ')} ({count})" for name, count in checks.items())
        yield f"Cells were spoiled by the state of {where}, by cause: {seen}; see below."
    elif last.drive and known_log and (signs := _watched_signs(run.unwatched)):
        whole = len(signs) == len(_SIGNS)
        listed = f"{', '.join(signs[:-1])} or {signs[-1]}" if len(signs) > 1 else signs[0]
        yield (
            f"{where} {'stayed as it was in every cell' if whole else 'in every cell'}: no "
            f"{listed} was seen, and no trouble with it in the kernel log."
        )
    elif known_log:
        yield f"The kernel log tells of no trouble with {where} in any cell."
    between = [line for session in sessions for line in session.kernel]
    if between:
        yield (
            f"Between cells the kernel log has {len(between):,} lines of trouble, first: "
            f"{sentence(between[0].text)}"
        )
    yield from _not_measured(_unknown(run, sessions))


def _watched_signs(unwatched: Mapping[str, str]) -> list[str]:
    """Return the signs of trouble that were looked for in every cell."""
    return [words for words, needs in _SIGNS.items() if needs not in unwatched]


def _unknown(run: MeasuredRun, sessions: Iterable[SessionHealth]) -> dict[str, str]:
    """Return what was never measured in the run, with a reason."""
    found: dict[str, str] = dict(run.unwatched)
    for session in sessions:
        found |= session.unknown
        told = session.after or session.before
        found |= told.unknown
    return found


def _not_measured(unknown: Mapping[str, str]) -> Iterator[str]:
    """Yield one sentence per reason."""
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for name, reason in unknown.items():
        if name in _NAMES:
            by_reason[reason].append(_NAMES[name])
    for reason, names in by_reason.items():
        listed = ", ".join(dict.fromkeys(names))
        yield f"Not measured: {listed}. The reason: {sentence(reason)}."


def _wear(run: MeasuredRun, is_asked: bool) -> Iterator[str]:
    wear = write_amplification(run.health)
    if wear.value is not None and wear.host_bytes is not None and wear.media_bytes is not None:
        yield (
            f"Write amplification {wear.value:.2f}: {format_size(wear.media_bytes)} reached the "
            f"medium for {format_size(wear.host_bytes)} written by the host, all cells, fills and "
            "other programs together."
        )
    elif is_asked:
        yield f"Write amplification is not measured: {sentence(wear.reason)}."


def _split(index: Index) -> PlainTable | None:
    """Return where the mean latency goes, one row per stream of a point that has it."""
    rows: list[tuple[str, ...]] = []
    for workload in index.run.record.plan.workloads:
        for point in index.points(workload):
            for placed in point.cell.placed:
                for direction in directions(placed.stream):
                    whole, below, above = (
                        index.summary(point, placed.stream.name, direction, metric)
                        for metric in ("latency_mean", _BELOW, _ABOVE)
                    )
                    if below is None or above is None or whole is None:
                        continue
                    if below.median is None or above.median is None or not whole.median:
                        continue
                    load = point.cell.parameters.get("load")
                    what = stream_words(placed.stream, paced=load is not None)
                    if placed.stream.direction == "mixed":
                        what = f"{direction}s of {what}"
                    rows.append(
                        (
                            short(workload.name),
                            f"{what}, {load_words(load)}" if load is not None else what,
                            summary_text(whole),
                            f"{summary_text(below)} ({summary_detail(below)})",
                            f"{summary_text(above)} ({summary_detail(above)})",
                            quantity("", "%", 100 * above.median / (below.median + above.median)),
                        )
                    )
    if not rows:
        return None
    return PlainTable(
        caption="Where the mean latency of an I/O goes",
        head=(
            *("Workload", "Stream", "Mean latency", "From the block layer down"),
            *("Above the block layer", "Share above"),
        ),
        rows=tuple(rows),
    )


def _split_words(run: MeasuredRun, split: PlainTable | None) -> Iterator[str]:
    if split is not None:
        yield (
            "The kernel's block layer times every request (/sys/block/*/stat). What is left of "
            "fio's mean is the host's: system calls, file system, waking up and reaping."
        )
        return
    reasons = Counter(
        s.reason
        for s in run.summaries
        if s.metric == _BELOW and s.median is None and not s.reason.startswith(_NO_CELL)
    )
    if reasons:
        told = sentence(reasons.most_common(1)[0][0] or "no reason is given")
        yield f"Latency is not split between host and device: {told}."
