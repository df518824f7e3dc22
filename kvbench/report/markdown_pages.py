"""Views -> Markdown for a pull request: the verdict, then the primary numbers.  Pure."""

from collections.abc import Iterator, Mapping, Sequence

from kvbench.compare.words import key_words
from kvbench.gate.model import Gate, GateRow, RowVerdict
from kvbench.report.compare_model import CellView, CompareView, NumberRow
from kvbench.report.compare_words import change_words, number_words, value_words
from kvbench.report.markdown import escaped, joined, table
from kvbench.report.model import Doubt, ReportView, Row, RowGroup, Value
from kvbench.report.words import DASH

LEVELS = {"bad": "**serious**", "doubt": "doubt", "note": "note"}
ORDER: tuple[RowVerdict, ...] = ("WORSE", "MISSING", "INCOMPARABLE", "UNCLEAR", "PASS")
DOUBTS_MAX = 20


def of_report(view: ReportView) -> str:
    """Return the report of one run."""
    return joined(_report(view))


def of_comparison(view: CompareView) -> str:
    """Return a comparison."""
    return joined(_comparison(view))


def of_gate(gate: Gate) -> str:
    """Return a gate; what passes is folded."""
    return joined(_gate(gate))


def of_error(message: str) -> str:
    """Return what stands in the place of a verdict that could not be given."""
    return f"**No verdict**: {escaped(message)}\n"


def _report(view: ReportView) -> Iterator[str]:
    yield f"**{escaped(view.verdict)}**"
    yield ""
    for alert in view.alerts:
        yield f"> **{escaped(alert)}**"
        yield ""
    for role in view.role_verdicts:
        yield f"- {escaped(role.role)}: **{escaped(role.chip.text)}**: {escaped(role.words)}"
    if view.role_verdicts:
        yield ""
    for role_view in view.roles:
        for result in role_view.tables:
            yield f"#### {escaped(result.caption)}"
            yield ""
            labels = [column.label for column in result.columns]
            rows = [
                cells
                for group in result.groups
                for row in group.rows
                for cells in _values(group, row, labels)
            ]
            yield from table(
                ("workload", "point", "number", "median", "interval, n", "doubts"), rows
            )
            yield ""
    yield from _doubts(view.doubts)


def _values(group: RowGroup, row: Row, labels: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the primary numbers of a row."""
    point = ", ".join(part for part in (row.setting, row.parameters) if part)
    for label, value in zip(labels, row.values, strict=True):
        if value is None:
            continue
        name = f"{escaped(row.stream)} {escaped(label)}"
        first = (escaped(group.workload), escaped(point), name)
        if value.primary:
            yield (*first, _number(value), escaped(value.detail), _marks(value.marks))
        if value.versus_primary:
            yield (*first, escaped(value.versus), escaped(value.versus_detail), _marks(value.marks))


def _number(value: Value) -> str:
    text = escaped(value.text)
    return f"**{text}**" if value.known else f"*{text}*"


def _marks(marks: Sequence[str]) -> str:
    return ", ".join(escaped(mark) for mark in marks)


def _doubts(doubts: Sequence[Doubt]) -> Iterator[str]:
    if not doubts:
        yield "Nothing was found that makes this doubtful."
        return
    yield "What makes this doubtful, worst first:"
    yield ""
    for doubt in doubts[:DOUBTS_MAX]:
        mark = f" {escaped(doubt.mark)}" if doubt.mark else ""
        yield f"- {LEVELS[doubt.level]}{mark}: {escaped(doubt.text)}"
    if len(doubts) > DOUBTS_MAX:
        yield f"- and {len(doubts) - DOUBTS_MAX} more"


def _comparison(view: CompareView) -> Iterator[str]:
    yield f"**{escaped(view.verdict)}**"
    yield ""
    for side in view.sides:
        facts = ", ".join(f"{name} {escaped(value)}" for name, value in side.facts)
        incomplete = f"; **incomplete: {escaped(side.incomplete)}**" if side.incomplete else ""
        yield f"- {side.letter}: {escaped(side.name)} ({facts}){incomplete}"
    yield ""
    for difference in view.differences:
        must = "**must not differ**: " if difference.effect == "blocks" else ""
        yield f"- {must}{escaped(difference.text)}"
    if view.differences:
        yield ""
    letters = [side.letter for side in view.sides]
    for role in view.roles:
        yield f"#### {escaped(role.role)}{f': {escaped(role.counts)}' if role.counts else ''}"
        yield ""
        head = ("workload", "number", *letters[:1], *(f"{one} against A" for one in letters[1:]))
        rows = [
            (escaped(workload.name), _name(row), *(_side(cell) for cell in row.cells))
            for workload in role.workloads
            for row in workload.rows
        ]
        if rows:
            yield from table(head, rows)
            yield ""
        if role.others:
            yield escaped(role.others)
            yield ""
    if view.reasons:
        yield "Why primary numbers are open:"
        yield ""
        for reason in view.reasons:
            yield f"- {escaped(reason)}"
        yield ""
    if view.decides:
        yield escaped(view.decides)
        yield ""
    yield from _doubts(view.doubts)


def _name(row: NumberRow) -> str:
    point = f" ({escaped(row.parameters)})" if row.parameters else ""
    margin = f", {escaped(row.margin)}" if row.margin else ""
    return f"{escaped(row.stream)} {escaped(row.metric)}{point}{margin}"


def _side(cell: CellView) -> str:
    if not cell.known:
        why = f": {escaped(cell.sample)}" if cell.sample else ""
        text = f"*{escaped(cell.value)}*{why}"
    else:
        inside = ", ".join(escaped(part) for part in (cell.spread, cell.sample) if part)
        text = f"{escaped(cell.value)} ({inside})"
    if cell.marks:
        text += f" doubt {_marks(cell.marks)}"
    if cell.notes:
        text += f"; {escaped(cell.notes)}"
    if cell.verdict:
        interval = f" ({escaped(cell.change_interval)})" if cell.change_interval else ""
        change = f" {escaped(cell.change)}{interval}" if cell.change else ""
        text += f"<br>**{cell.verdict}**{change}"
    if cell.reason:
        text += f"<br>{escaped(cell.reason)}"
    return text


def _gate(gate: Gate) -> Iterator[str]:
    reasons = "; ".join(gate.reasons)
    passed = sum(row.verdict == "PASS" for row in gate.rows)
    told = reasons or f"{passed} of {len(gate.rows)} numbers not worse by more than the margin"
    told = "; ".join([told, *gate.doubts])
    yield f"**{gate.outcome}**: {escaped(told)}"
    yield ""
    for title, side in zip(("baseline", "candidate"), gate.sides, strict=True):
        label = f' "{escaped(side.label)}"' if side.label else ""
        device = escaped(side.device) or "drive unknown"
        more = f" and {len(gate.reruns)} reruns" if title == "candidate" and gate.reruns else ""
        yield f"- {title}: {escaped(side.run_id)}{label}, {device}, n={side.repetitions}{more}"
    for difference in gate.differences:
        must = "**must not differ**: " if difference.effect == "blocks" else ""
        yield f"- {must}{escaped(difference.text)}"
    yield ""
    by_verdict: Mapping[RowVerdict, list[GateRow]] = {
        verdict: [row for row in gate.rows if row.verdict == verdict] for verdict in ORDER
    }
    told_rows = [row for verdict in ORDER[:-1] for row in by_verdict[verdict]]
    if told_rows:
        yield from table(_GATE_HEAD, (_gate_row(row) for row in told_rows))
        yield ""
    for required in gate.required:
        name = f"{required.required.role}/{required.required.level}"
        yield f"- required {escaped(name)}: **{required.verdict}**: {escaped(required.reason)}"
    passing = sorted(by_verdict["PASS"], key=lambda row: not row.improved)
    if passing:
        better = sum(row.improved for row in passing)
        yield f"<details><summary>{len(passing)} PASS, {better} of them BETTER</summary>"
        yield ""
        yield from table(_GATE_HEAD, (_gate_row(row) for row in passing))
        yield ""
        yield "</details>"
        yield ""
    for one in gate.ungated:
        name = escaped(f"{one.key.workload}: {key_words(one.key)}")
        yield f"- not gated: {name}: {escaped(one.reason)}"
    yield (
        f"Policy {escaped(gate.policy)}, {100 * gate.confidence:g} % over {len(gate.rows)} numbers "
        "(Holm)."
    )


_GATE_HEAD = ("verdict", "workload", "number", "baseline", "candidate", "change", "why, doubts")


def _gate_row(row: GateRow) -> tuple[str, ...]:
    parameters, stream, metric = number_words(row.key)
    point = f" ({escaped(parameters)})" if parameters else ""
    change, interval = change_words(row.change, row.key.metric, row.unit)
    shift = escaped(change) or DASH
    if interval:
        shift += f" ({escaped(interval)})"
    if row.change.margin is not None:
        shift += f", margin {100 * row.change.margin:g} %"
    if row.change.p is not None and row.verdict == "WORSE":
        shift += f", p={row.change.p:.2g}"
    why = [escaped(row.change.reason)] if row.change.reason else []
    why += [f"doubt: {escaped(doubt)}" for doubt in row.change.doubts]
    return (
        f"**{'BETTER' if row.improved else row.verdict}**",
        escaped(row.key.workload),
        f"{escaped(stream)} {escaped(metric)}{point}",
        *(_sample_words(row, place) for place in (0, 1)),
        shift,
        "<br>".join(why),
    )


def _sample_words(row: GateRow, place: int) -> str:
    sample = (row.baseline, row.candidate)[place]
    value, spread, count = value_words(sample, row.key.metric, row.unit)
    inside = ", ".join(escaped(part) for part in (spread, count) if part)
    return f"{escaped(value)} ({inside})" if inside else escaped(value)
