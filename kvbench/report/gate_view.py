"""A gate's verdict -> GateView: everything that a reader sees.  Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite, log
from shlex import join

from kvbench.compare.aspects import ASPECTS
from kvbench.compare.model import Change, Difference, Sample, Side
from kvbench.compare.words import key_words
from kvbench.gate.model import Gate, GateRow
from kvbench.gate.words import headline_parts, judged_direction, what_decides
from kvbench.report.compare_words import (
    aspect_value,
    change_words,
    number_words,
    unknown_words,
    value_words,
)
from kvbench.report.doubts import mark_name
from kvbench.report.gate_method import gate_method
from kvbench.report.gate_model import (
    GateDifference,
    GateGroup,
    GateNumber,
    GateSide,
    GateValue,
    GateView,
    RequiredView,
    Strip,
)
from kvbench.report.model import Doubt, Level
from kvbench.report.role_model import Chip
from kvbench.report.words import sentence, short, visible
from kvbench.stats.two_sample import ratio_room

ORDER = ("WORSE", "MISSING", "INCOMPARABLE", "UNCLEAR")  # of what is not PASS, worst first
REACH = 3  # margins that a strip shows to either side of its middle
REACH_WITHOUT = log(1.25)  # what it shows where there is no margin
REASONS_MAX = 8
EFFECTS = {"blocks": "must not differ", "allowed": "may differ", "noted": "told only"}
STATES: dict[str, Level] = {"PASS": "note", "FAIL": "bad"}
KINDS = {"met": "good", "missed": "bad", "cannot say": "open"}


def build(gate: Gate, command: Sequence[str] = ()) -> GateView:
    """Return what is shown of ``gate``; ``command`` is how it was asked for."""
    doubts = _Doubts(gate)
    shown = [(row, _number(row, doubts)) for row in gate.rows]
    open_rows = [pair for pair in shown if pair[0].verdict != "PASS"]
    open_rows.sort(key=lambda pair: ORDER.index(pair[0].verdict))
    name = short(gate.sides[1].name)
    return GateView(
        title=f"kvbench gate: {name} against {short(gate.sides[0].name)}",
        outcome=gate.outcome,
        state=STATES.get(gate.outcome, "doubt"),
        verdict=_verdict(gate),
        counts=_counts(gate),
        next_step=_next_step(gate),
        sides=tuple(
            _side(title, side)
            for title, side in zip(("Baseline", "Candidate"), gate.sides, strict=True)
        ),
        reruns=tuple(short(run) for run in gate.reruns),
        open=_groups(open_rows),
        passed=_groups([pair for pair in shown if pair[0].verdict == "PASS"]),
        required=tuple(
            RequiredView(
                role=row.required.role,
                level=short(row.required.level),
                chip=Chip(text=row.verdict, kind=KINDS[row.verdict]),
                reason=sentence(row.reason),
            )
            for row in gate.required
        ),
        differences=tuple(_differences(gate.differences)),
        doubts=tuple(_all_doubts(gate, doubts)),
        ungated=tuple(
            (short(one.key.workload), short(key_words(one.key), 200), sentence(one.reason))
            for one in gate.ungated
        ),
        reasons=tuple(_reasons(gate)),
        method=gate_method(gate),
        command=visible(join(command)),
        decide=_decide(gate, command),
    )


def _verdict(gate: Gate) -> str:
    return f"{'; '.join(sentence(part) for part in headline_parts(gate))}."


def _numbers(count: int) -> str:
    return f"{count} {'number' if count == 1 else 'numbers'}"


def _counts(gate: Gate) -> tuple[tuple[str, int], ...]:
    counts = Counter(_word(row) for row in gate.rows)
    return tuple((word, counts[word]) for word in (*ORDER, "BETTER", "PASS") if counts[word])


def _word(row: GateRow) -> str:
    return "BETTER" if row.improved else row.verdict


def _next_step(gate: Gate) -> str:
    return " ".join(f"{sentence(line[:1].upper() + line[1:])}." for line in what_decides(gate))


def _decide(gate: Gate, command: Sequence[str]) -> str:
    if not command or not any(row.change.more for row in gate.rows if row.verdict == "UNCLEAR"):
        return ""
    return f"{visible(join(command))} --rerun TARGET"


def _side(title: str, side: Side) -> GateSide:
    facts = (
        ("run", short(side.run_id)),
        ("label", short(side.label)),
        ("drive", short(side.device, 120) or "unknown"),
        ("started", sentence(side.created_at)),
        ("repetitions", str(side.repetitions)),
    )
    return GateSide(
        title=title,
        name=short(side.name),
        facts=tuple((name, value) for name, value in facts if value),
        incomplete=sentence(side.incomplete),
    )


def _groups(rows: Iterable[tuple[GateRow, GateNumber]]) -> tuple[GateGroup, ...]:
    by_workload: dict[str, list[GateNumber]] = {}
    for row, number in rows:
        by_workload.setdefault(row.key.workload, []).append(number)
    return tuple(
        GateGroup(workload=short(name), rows=tuple(own)) for name, own in by_workload.items()
    )


class _Doubts:
    """The distinct doubts of all numbers, each with a mark, in the order of the rows."""

    def __init__(self, gate: Gate) -> None:
        counts = Counter(doubt for row in gate.rows for doubt in dict.fromkeys(row.change.doubts))
        self.counts = counts
        self.marks = {text: mark_name(place) for place, text in enumerate(counts)}

    def of(self, change: Change) -> tuple[str, ...]:
        return tuple(self.marks[text] for text in dict.fromkeys(change.doubts))


def _number(row: GateRow, doubts: _Doubts) -> GateNumber:
    point, stream, metric = number_words(row.key)
    change = row.change
    shift, interval = change_words(change, row.key.metric, row.unit)
    return GateNumber(
        word=_word(row),
        metric=metric,
        stream=stream,
        point=point,
        baseline=_value(row.baseline, row),
        candidate=_value(row.candidate, row),
        change=f"{shift}{_direction(row)}",
        interval=interval,
        margin="" if change.margin is None else f"{100 * change.margin:g} %",
        evidence=f"p={change.p:.2g}" if change.p is not None and row.verdict == "WORSE" else "",
        strip=_strip(change, f"{shift}{_direction(row)}, interval {interval}"),
        raw=change.estimate if change.estimate is not None and isfinite(change.estimate) else None,
        reason=sentence(change.reason),
        needs=_needs(row),
        marks=doubts.of(change),
    )


def _direction(row: GateRow) -> str:
    change, better = row.change, judged_direction(row)
    still = 1.0 if change.kind == "ratio" else 0.0
    if change.estimate is None or better == "neither" or change.estimate == still:
        return ""
    return " worse" if (change.estimate > still) == (better == "lower") else " better"


def _value(sample: Sample | None, row: GateRow) -> GateValue:
    text, spread, count = value_words(sample, row.key.metric, row.unit)
    known = sample is not None and sample.median is not None
    return GateValue(
        text=text,
        detail=", ".join(part for part in (spread, count) if part),
        known=known,
        raw=sample.median
        if sample is not None and sample.median is not None and isfinite(sample.median)
        else None,
        notes="" if sample is None else sentence("; ".join(sample.notes)),
    )


def _needs(row: GateRow) -> str:
    if row.verdict != "UNCLEAR":
        return ""
    if row.change.more is None:
        return "more may not decide it"
    return f"about {row.change.more} more a side"


def _strip(change: Change, words: str) -> Strip | None:
    """Return the change as places on a line, in margins; None where it is no ratio."""
    if change.kind != "ratio" or change.estimate is None or not 0 < change.estimate < float("inf"):
        return None
    if change.margin:
        up, down = (REACH * room for room in ratio_room(change.margin))
    else:
        up = down = REACH_WITHOUT
    low, high = (change.estimate if value is None else value for value in (change.low, change.high))
    return Strip(
        low=_place(low, up, down),
        estimate=_place(change.estimate, up, down),
        high=_place(high, up, down),
        inside=round(50 / REACH, 2) if change.margin else 0.0,
        words=words,
    )


def _place(ratio: float, up: float, down: float) -> float:
    """Return where a ratio stands; each half of the line has the margin of its own direction."""
    if ratio <= 0:
        return 0.0
    if not isfinite(ratio):
        return 100.0
    return round(min(100.0, max(0.0, 50 + 50 * log(ratio) / (up if ratio > 1 else down))), 2)


def _differences(differences: Sequence[Difference]) -> Iterator[GateDifference]:
    order = ("blocks", "allowed", "noted")
    for one in sorted(differences, key=lambda found: order.index(found.effect)):
        first, second = (aspect_value(one, value) for value in one.values)
        yield GateDifference(
            aspect=ASPECTS[one.aspect][0],
            baseline=first,
            candidate=second,
            effect=EFFECTS[one.effect],
            blocks=one.effect == "blocks",
        )


def _all_doubts(gate: Gate, doubts: _Doubts) -> Iterator[Doubt]:
    for difference in gate.differences:
        if difference.effect == "blocks":
            yield Doubt(level="bad", text=sentence(difference.text))
    for title, side in zip(("baseline", "candidate"), gate.sides, strict=True):
        if side.incomplete:
            yield Doubt(level="bad", text=f"the {title} is not whole: {sentence(side.incomplete)}")
        for caveat in side.caveats:
            yield Doubt(level="doubt", text=f"{title}: {sentence(caveat)}")
    for text in unknown_words(gate.differences):
        yield Doubt(level="doubt", text=text)
    for text, count in doubts.counts.items():
        told = f"{sentence(text)} ({_numbers(count)})"
        yield Doubt(level="doubt", text=told, mark=doubts.marks[text])


def _reasons(gate: Gate) -> Iterator[str]:
    found = Counter(row.change.reason for row in gate.rows if row.verdict == "UNCLEAR")
    ordered = found.most_common()
    for reason, count in ordered[:REASONS_MAX]:
        yield f"{count} unclear: {sentence(reason)}"
    rest = sum(count for _, count in ordered[REASONS_MAX:])
    if rest:
        yield f"{rest} more unclear, for {len(ordered) - REASONS_MAX} other reasons"
