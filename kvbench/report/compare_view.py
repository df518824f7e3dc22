"""A comparison -> CompareView: everything that a reader sees, before any drawing.  Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import isfinite

from kvbench.compare.aspects import ASPECTS
from kvbench.compare.model import Change, Comparison, Difference, Row, Sample, Side
from kvbench.measure.model import MeasuredRun
from kvbench.report.compare_doubts import SharedMarks, share_marks
from kvbench.report.compare_figures import workload_figures
from kvbench.report.compare_method import method_words
from kvbench.report.compare_model import (
    CellView,
    CompareRole,
    CompareView,
    DeviceView,
    DifferenceView,
    NumberRow,
    SideView,
    WinnerView,
    WorkloadView,
)
from kvbench.report.compare_words import (
    aspect_value,
    change_words,
    counted,
    decides_words,
    difference_words,
    letter,
    letters,
    number_words,
    shares_nothing,
    side_name,
    title_words,
    unknown_words,
    value_words,
    verdict_words,
)
from kvbench.report.doubts import collect_marks, list_doubts
from kvbench.report.model import Doubt, Level
from kvbench.report.points import Index, place_in_sweep
from kvbench.report.steady import mark_of_sides, with_mark
from kvbench.report.words import ROLE_WORDS, sentence, short
from kvbench.workload.schema import ROLES, Role, Workload

FIGURES_MAX = 60  # workloads whose figures are drawn
REASONS_MAX = 8
OPEN = ("UNCLEAR", "MISSING", "INCOMPARABLE")


def build(
    comparison: Comparison, runs: Sequence[MeasuredRun], *, figures: bool = True
) -> CompareView:
    """Return what is shown of ``comparison``; ``runs`` are its sides, in order.

    Without ``figures`` nothing is prepared for drawing, which a terminal does not need.
    """
    marks = share_marks(runs, [collect_marks(run) for run in runs])
    sides = [_side(place, side, run) for place, (side, run) in enumerate(_both(comparison, runs))]
    doubts = tuple(_doubts(comparison, runs, marks))
    return CompareView(
        title=title_words(comparison),
        verdict=verdict_words(comparison),
        state=_state(comparison, doubts),
        devices=_devices(comparison, sides),
        doubts=doubts,
        differences=tuple(_difference(difference) for difference in comparison.differences),
        winners=tuple(
            WinnerView(
                role=winner.role,
                winner=None if winner.winner is None else sides[winner.winner],
                text=sentence(winner.text),
            )
            for winner in comparison.winners
        ),
        roles=tuple(_roles(comparison, runs, marks, figures=figures)),
        reasons=tuple(_reasons(comparison)),
        unshared=tuple(
            f"{short(one.workload)}: only in {letters(one.sides)}" for one in comparison.unshared
        ),
        decides=decides_words(comparison),
        method=method_words(comparison),
    )


def _both(
    comparison: Comparison, runs: Sequence[MeasuredRun]
) -> Iterator[tuple[Side, MeasuredRun]]:
    yield from zip(comparison.sides, runs, strict=True)


def _state(comparison: Comparison, doubts: Sequence[Doubt]) -> Level:
    if shares_nothing(comparison) or any(d.effect == "blocks" for d in comparison.differences):
        return "bad"
    decided = any(winner.winner is not None for winner in comparison.winners)
    return "note" if decided and all(doubt.level == "note" for doubt in doubts) else "doubt"


def _side(place: int, side: Side, run: MeasuredRun) -> SideView:
    facts = {fact.name: fact.value for fact in run.record.facts}
    shown = [
        ("run", short(side.run_id)),
        ("label", short(side.label)),
        ("firmware", short(facts.get("device_firmware") or "")),
        ("started", sentence(side.created_at)),
        ("repetitions", str(side.repetitions)),
        ("suite", short(run.record.plan.suite)),
    ]
    return SideView(
        letter=letter(place),
        colour=place,
        name=side_name(side),
        run_id=short(side.run_id),
        facts=tuple((name, value) for name, value in shown if value),
        incomplete=sentence(side.incomplete),
    )


def _devices(comparison: Comparison, sides: Sequence[SideView]) -> tuple[DeviceView, ...]:
    """Return the drives with their runs; a path says nothing, because it moves at a reboot."""
    by_device: dict[str, list[SideView]] = {}
    for side, view in zip(comparison.sides, sides, strict=True):
        by_device.setdefault(side.device, []).append(view)
    return tuple(
        DeviceView(
            name=short(device, 120) or "a drive that tells neither model, serial nor namespace",
            sides=tuple(of_device),
        )
        for device, of_device in by_device.items()
    )


def _difference(difference: Difference) -> DifferenceView:
    return DifferenceView(
        aspect=ASPECTS[difference.aspect][0],
        values=tuple(aspect_value(difference, value) for value in difference.values),
        effect=difference.effect,
        text=difference_words(difference),
    )


def _doubts(
    comparison: Comparison, runs: Sequence[MeasuredRun], marks: SharedMarks
) -> Iterator[Doubt]:
    """Yield what stands against the comparison, worst first."""
    for difference in comparison.differences:
        if difference.effect == "blocks":
            yield Doubt(level="bad", text=f"not comparable: {sentence(difference.text)}")
    for place, side in enumerate(comparison.sides):
        if side.incomplete:
            yield Doubt(level="bad", text=f"run {letter(place)}: {sentence(side.incomplete)}")
    for text in unknown_words(comparison.differences):
        yield Doubt(level="doubt", text=text)
    needed = comparison.decides_from_n
    few = [n for n, s in enumerate(comparison.sides) if needed is None or s.repetitions < needed]
    if few and comparison.tests:
        yield Doubt(level="doubt", text=decides_words(comparison))
    found: dict[tuple[Level, str], list[int]] = {}
    for place, (run, own) in enumerate(zip(runs, marks.marks, strict=True)):
        for doubt in list_doubts(run, own):
            if doubt.mark or doubt.level == "note":
                continue
            if not (comparison.sides[place].incomplete and _end(doubt)):
                found.setdefault((doubt.level, doubt.text), []).append(place)
    levels: tuple[Level, ...] = ("bad", "doubt")
    for level in levels:
        for (own_level, text), places in found.items():
            if own_level == level:
                who = "every run" if len(places) == len(runs) else f"run {letters(places)}"
                yield Doubt(level=level, text=f"{who}: {text}")
        if level == "doubt":
            yield from marks.doubts


def _end(doubt: Doubt) -> bool:
    """Whether a doubt of a run's own report says how it ended, which is told already."""
    return doubt.text.startswith(("the run ", "part of the archive"))


def _roles(
    comparison: Comparison,
    runs: Sequence[MeasuredRun],
    marks: SharedMarks,
    *,
    figures: bool,
) -> Iterator[CompareRole]:
    indexes = [Index(run) for run in runs] if figures else []
    names = [side_name(side) for side in comparison.sides]
    mark = mark_of_sides([run.record.condition for run in runs])
    workloads: dict[str, Workload] = {}
    for run in runs:
        for workload in run.record.plan.workloads:
            workloads.setdefault(workload.name, workload)
    numbers = {name: number for number, name in enumerate(workloads, start=1)}
    for role in ROLES:
        rows = [row for row in comparison.rows if row.role == role]
        if not rows:
            continue
        own = list(dict.fromkeys(row.key.workload for row in rows))
        drawn = [
            with_mark(figure, mark)
            for name in (own[:FIGURES_MAX] if figures else ())
            for figure in workload_figures(indexes, names, name, f"compare-{numbers[name]}")
        ]
        primary = [row for row in rows if row.primary]
        others = [row for row in rows if not row.primary]
        yield CompareRole(
            role=role,
            words=ROLE_WORDS[role],
            counts=counted([c.verdict for row in primary for c in row.changes if c is not None]),
            others=_others(role, others),
            workloads=tuple(_tables(primary, workloads, marks)),
            more=tuple(_tables(others, workloads, marks)),
            figures=tuple(drawn),
        )


def _others(role: Role, rows: Sequence[Row]) -> str:
    """Return how many of the numbers that nobody asked for differ, "" for none."""
    verdicts = [c.verdict for row in rows for c in row.changes if c is not None]
    words = counted([verdict for verdict in verdicts if verdict in ("BETTER", "WORSE")])
    return f"Of the {len(verdicts)} other comparisons in {role}: {words}." if words else ""


def _tables(
    rows: Sequence[Row], workloads: dict[str, Workload], marks: SharedMarks
) -> Iterator[WorkloadView]:
    by_workload: dict[str, list[Row]] = {}
    for row in rows:
        by_workload.setdefault(row.key.workload, []).append(row)
    for name, own in by_workload.items():
        workload = workloads[name]
        common = _common(own)
        yield WorkloadView(
            name=short(name),
            evidence=workload.evidence,
            summary=sentence(workload.summary),
            common=common,
            rows=tuple(
                _row(row, common, marks)
                for row in sorted(own, key=lambda row: _order(row, workload))
            ),
        )


def _order(row: Row, workload: Workload) -> tuple[object, ...]:
    """Return where a number stands: along the sweep, the mix before its parts, primary first."""
    key = row.key
    name = f"{key.stream}.{key.metric}"
    primary = workload.primary.index(name) if name in workload.primary else len(workload.primary)
    return (key.alone is not None, place_in_sweep(workload, key.parameters, key.alone), primary)


def _common(rows: Sequence[Row]) -> str:
    """Return the reason that all open numbers share, where there are several; else ""."""
    found = [c.reason for row in rows for c in row.changes if c is not None and c.verdict in OPEN]
    return sentence(found[0]) if len(found) > 1 and len(set(found)) == 1 else ""


def _row(row: Row, common: str, marks: SharedMarks) -> NumberRow:
    parameters, stream, metric = number_words(row.key)
    margin = next((c.margin for c in row.changes if c is not None and c.margin is not None), None)
    return NumberRow(
        parameters=parameters,
        stream=stream,
        metric=metric,
        margin="" if margin is None else f"margin {100 * margin:g} %",
        cells=tuple(
            _cell(place, row, sample, change, common, marks)
            for place, (sample, change) in enumerate(zip(row.samples, row.changes, strict=True))
        ),
    )


def _cell(
    place: int,
    row: Row,
    sample: Sample | None,
    change: Change | None,
    common: str,
    marks: SharedMarks,
) -> CellView:
    value, spread, count = value_words(sample, row.key.metric, row.unit)
    shift, interval = ("", "") if change is None else change_words(change, row.key.metric, row.unit)
    reason = "" if change is None else sentence(change.reason)
    whole = all(one is not None and one.values for one in (row.samples[0], sample))
    if reason == common or not whole:
        reason = ""  # said above the rows, or where the two values would stand
    if change is not None and change.more:
        more = f"about {change.more} more repetitions would decide"
        reason = f"{reason}; {more}" if reason else more
    return CellView(
        value=value,
        spread=spread,
        sample=count,
        known=sample is not None and sample.median is not None,
        raw=None
        if sample is None or sample.median is None or not isfinite(sample.median)
        else sample.median,
        change=shift,
        change_interval=interval,
        verdict="" if change is None else change.verdict,
        reason=reason,
        notes="" if sample is None else sentence("; ".join(sample.notes)),
        marks=() if sample is None else marks.of(place, sample.doubts),
    )


def _reasons(comparison: Comparison) -> Iterator[str]:
    """Yield why primary numbers are open, the most frequent reason first."""
    found = Counter(
        (change.verdict, change.reason)
        for row in comparison.rows
        if row.primary
        for change in row.changes
        if change is not None and change.verdict in OPEN
    )
    ordered = found.most_common()
    for (verdict, reason), count in ordered[:REASONS_MAX]:
        yield f"{count} {verdict}: {sentence(reason)}"
    rest = sum(count for _, count in ordered[REASONS_MAX:])
    if rest:
        yield f"{rest} more, for {len(ordered) - REASONS_MAX} other reasons"
