"""Gate -> one screen of text whose first line is the verdict.  Pure."""

from collections import Counter
from collections.abc import Iterator
from textwrap import wrap

from kvbench.compare.words import change_words, key_words, sample_words
from kvbench.document import printable
from kvbench.gate.model import Gate, GateRow, RowVerdict
from kvbench.gate.words import headline_parts, judged_direction, what_decides

WIDTH = 100
ROWS_MAX: dict[RowVerdict, int] = {"WORSE": 6, "MISSING": 4, "INCOMPARABLE": 2, "UNCLEAR": 4}
BETTER_MAX = 3
DOUBTS_MAX = 1
REASONS_MAX = 3
DIFFERENCES_MAX = 6


def render(gate: Gate, *, every_row: bool = False) -> str:
    """Return the summary, which fits one screen; with ``every_row`` all numbers and all doubts."""
    lines = [*_wrapped(_first_line(gate), 2), *_sides(gate, every_row=every_row), ""]
    for verdict, most in ROWS_MAX.items():
        rows = [row for row in gate.rows if row.verdict == verdict]
        shown = rows if every_row else rows[:most]
        for row in shown:
            lines += _row(row, every_row=every_row)
        if len(rows) > len(shown):
            lines.append(f"{'':<13}and {len(rows) - len(shown)} more {verdict} (--all shows them)")
    improved = [row for row in gate.rows if row.improved]
    passing = [row for row in gate.rows if row.verdict == "PASS"]
    for row in passing if every_row else improved[:BETTER_MAX]:
        lines += _row(row, every_row=every_row)
    for required in gate.required:
        name = f"{required.required.role}/{required.required.level}"
        lines += _wrapped(f"{required.verdict.upper():<13}{name}: {required.reason}", 13)
    if every_row:
        lines += ungated_lines(gate)
    lines += _notes(gate)
    return "\n".join(line.rstrip() for line in lines)


def _first_line(gate: Gate) -> str:
    counts = [
        f"{sum(row.verdict == verdict for row in gate.rows)} {verdict}"
        for verdict in ("PASS", *ROWS_MAX)
        if any(row.verdict == verdict for row in gate.rows)
    ]
    line = f"{gate.outcome}: {'; '.join(headline_parts(gate))}"
    return line if len(counts) < 2 or len(line) > 60 else f"{line} ({', '.join(counts)})"


def _sides(gate: Gate, *, every_row: bool) -> Iterator[str]:
    for title, side in zip(("baseline ", "candidate"), gate.sides, strict=True):
        device = side.device or "drive unknown"
        label = f' "{side.label}"' if side.label else ""
        text = f"{title}  {side.run_id}{label}, {device}, n={side.repetitions}"
        if title == "candidate" and gate.reruns:
            text += f" and {len(gate.reruns)} reruns"
        yield _cut(text)
    known = [d for d in gate.differences if d.effect != "noted" or d.aspect == "file"]
    for difference in known[: None if every_row else DIFFERENCES_MAX]:
        yield from _wrapped(f"differs    {difference.text}", 11)
    unknown = [d.text for d in gate.differences if d.effect == "noted" and None in d.values]
    for name in gate.reruns if every_row else ():
        yield _cut(f"rerun      {name}")
    if unknown and every_row:
        for text in unknown:
            yield from _wrapped(f"unknown    {text}", 11)
    elif unknown:
        names = ", ".join(text.partition(":")[0] for text in unknown)
        yield from _wrapped(f"unknown    whether these are the same: {names}", 11)


def _cut(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= WIDTH else f"{shown[: WIDTH - 3]}..."


def _row(row: GateRow, *, every_row: bool) -> Iterator[str]:
    word = "BETTER" if row.improved else row.verdict
    yield from _wrapped(f"{word:<13}{row.key.workload}: {key_words(row.key)}", 15)
    values = (
        f"{sample_words(row.baseline, row.unit)} -> {sample_words(row.candidate, row.unit)}"
        if row.baseline is not None and row.candidate is not None
        else ""
    )
    changed = change_words(row.change, row.unit, judged_direction(row))
    if row.change.more is not None and row.verdict == "UNCLEAR":
        changed += f", about {row.change.more} more repetitions a side"
    p = "" if row.change.p is None or row.verdict != "WORSE" else f", p={row.change.p:.2g}"
    changed = f"{changed}{p}" if changed else ""
    brief = row.verdict == "UNCLEAR" and not every_row
    for text in (changed or row.change.reason,) if brief else (values, changed, row.change.reason):
        if text:
            yield from _wrapped(f"{'':<13}{text}", 13)
    doubts = row.change.doubts if every_row else row.change.doubts[:DOUBTS_MAX]
    for doubt in () if brief or (row.verdict == "PASS" and not every_row) else doubts:
        yield from _wrapped(f"{'':<13}doubt: {doubt}", 15)


def _notes(gate: Gate) -> Iterator[str]:
    yield ""
    n = gate.decides_from_n
    needs = "" if n is None else f"; WORSE needs {n} repetitions a side or more"
    looks = (
        ""
        if gate.looks == 1
        else f", look {gate.looks}: half the error for what was measured again"
    )
    yield from _wrapped(
        f"policy {gate.policy}, {100 * gate.confidence:g} % over {_numbers(len(gate.rows))} "
        f"(Holm){looks}{needs}",
        2,
    )
    reasons = Counter(row.change.reason for row in gate.rows if row.verdict == "UNCLEAR")
    for reason, count in reasons.most_common(REASONS_MAX):
        yield from _wrapped(f"{count} unclear: {reason}", 2)
    for line in what_decides(gate):
        yield from _wrapped(line, 2)
    if gate.ungated:
        yield f"not gated, as neither run has a value: {_numbers(len(gate.ungated))} (--all)"


def _numbers(count: int) -> str:
    return f"{count} {'number' if count == 1 else 'numbers'}"


def ungated_lines(gate: Gate) -> Iterator[str]:
    """Yield the numbers that are not gated, with the reason."""
    for one in gate.ungated:
        yield from _wrapped(
            f"{'NOT GATED':<13}{one.key.workload}: {key_words(one.key)}: {one.reason}", 15
        )


def _wrapped(text: str, indent: int) -> list[str]:
    bare = text.lstrip()
    first = " " * (len(text) - len(bare))
    return wrap(printable(bare), WIDTH, initial_indent=first, subsequent_indent=" " * indent)
