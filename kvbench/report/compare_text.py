"""CompareView -> a comparison for a terminal: plain text, at most 100 columns."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from kvbench.report.columns import as_ascii, cut, pad, width
from kvbench.report.compare_model import (
    CellView,
    CompareRole,
    CompareView,
    NumberRow,
    WorkloadView,
)
from kvbench.report.compare_words import letter
from kvbench.report.words import DASH

COLUMNS = 100
DOUBTS_MAX = 12  # the page has them all
_WIDTHS = (26, 2, 10, 21, 7, 16)  # number, run, value, its spread and n, change, its interval
_HEAD = ("number", "", "value", f"(low{DASH}high, n)", "change", "(interval)", "verdict")
_LEFT = (0, 1, 3, 5)
_EFFECTS = {"blocks": "!!", "allowed": "- ", "noted": "- "}
_LEVELS = {"bad": "!!", "doubt": "! ", "note": "- "}


def render(view: CompareView, *, ascii_only: bool = False) -> str:
    """Return the comparison; with ``ascii_only`` for terminals that show nothing else."""
    text = "\n".join(_lines(view)) + "\n"
    return as_ascii(text) if ascii_only else text


def _lines(view: CompareView) -> Iterator[str]:
    yield from _wrapped(view.verdict)
    yield ""
    yield "WHAT DIFFERS BETWEEN THE RUNS"
    if not view.differences:
        yield "  nothing that is known of them"
    for difference in view.differences:
        said = {"blocks": "must not differ and does: ", "allowed": "", "noted": ""}
        text = f"{said[difference.effect]}{difference.text}"
        yield from _wrapped(text, f"{_EFFECTS[difference.effect]} ", "     ")
    yield ""
    yield from _legend(view)
    for role in view.roles:
        yield from _role(role)
    if any(role.workloads for role in view.roles):
        yield ""
        yield from _wrapped(
            f"value: median over n repetitions; low{DASH}high: the smallest and the largest, from "
            "n=6 on the 95 % interval of the median. change: against A, with its interval."
        )
    yield from _after(view)


def _legend(view: CompareView) -> Iterator[str]:
    for device in view.devices:
        yield cut(device.name, COLUMNS)
        for side in device.sides:
            facts = ", ".join(f"{name} {value}" for name, value in side.facts if value != side.name)
            yield from _wrapped(f"{side.name}: {facts}", f"  {side.letter}  ", "       ")
            if side.incomplete:
                yield from _wrapped(f"incomplete: {side.incomplete}", "  !! ", "       ")


def _role(role: CompareRole) -> Iterator[str]:
    yield ""
    yield f"{role.role.upper()}: {role.counts}" if role.counts else role.role.upper()
    if role.workloads:
        yield _line(_HEAD)
    for workload in role.workloads:
        yield from _workload(workload)
    if role.others:
        yield from _wrapped(role.others)


def _workload(workload: WorkloadView) -> Iterator[str]:
    yield from _wrapped(f"{workload.name} [{workload.evidence}] {workload.summary}")
    if workload.common:
        yield from _wrapped(f"all open numbers here: {workload.common}", "   ", "   ")
    for row in workload.rows:
        yield from _row(row)


def _row(row: NumberRow) -> Iterator[str]:
    """Yield a line per side; the name of the number stands beside the first ones."""
    parameters = row.parameters.removesuffix(", 1 job")
    words = ": ".join(part for part in (parameters, f"{row.stream} {row.metric}") if part)
    names = wrap(words, _WIDTHS[0] - 3) or [""]
    for place in range(max(len(names), len(row.cells))):
        name = names[place] if place < len(names) else ""
        name = f" {name}" if place == 0 else f"   {name}"
        if place < len(row.cells):
            yield _cell(name, letter(place), row.cells[place])
        else:
            yield name


def _cell(name: str, side: str, cell: CellView) -> str:
    if not cell.known:
        missing = cell.value if not cell.sample else f"{cell.value}: {cell.sample}"
        room = sum(_WIDTHS[2:]) + 3
        return f"{pad(name, _WIDTHS[0])} {side:<2} {pad(cut(missing, room), room)} {cell.verdict}"
    n = cell.sample.partition("n=")[2].partition(",")[0]
    spread = f"({cell.spread}, n={n})" if cell.spread else f"(n={n})"
    if width(spread) > _WIDTHS[3]:
        spread = f"({cell.spread} n={n})"
    interval = f"({cell.change_interval.removesuffix(' %')})" if cell.change_interval else ""
    value = cell.value.replace(" requests/s", " req/s")
    texts = (name, side, value, spread, cell.change, interval, cell.verdict)
    return _line(texts)


def _after(view: CompareView) -> Iterator[str]:
    if view.reasons:
        yield ""
        yield "Why primary numbers are open:"
        for reason in view.reasons:
            yield from _wrapped(reason, "- ", "  ")
    if view.decides:
        yield from _wrapped(view.decides)
    if view.winners:
        yield ""
        yield "Winners, role by role:"
        for winner in view.winners:
            who = f"{winner.winner.letter} ({winner.winner.name})" if winner.winner else "none"
            yield from _wrapped(f"{winner.role}: {who}: {winner.text}", "- ", "  ")
    if view.unshared:
        yield ""
        yield "Workloads that not every run has:"
        for text in view.unshared:
            yield from _wrapped(text, "- ", "  ")
    if view.doubts:
        yield ""
        yield "What makes this comparison doubtful, worst first:"
        for doubt in view.doubts[:DOUBTS_MAX]:
            yield from _wrapped(doubt.text, f"{_LEVELS[doubt.level]} ", "   ")
        if len(view.doubts) > DOUBTS_MAX:
            yield f"   and {len(view.doubts) - DOUBTS_MAX} more, in the page of --html"


def _wrapped(text: str, first: str = "", rest: str = "") -> Iterator[str]:
    for line in wrap(text, COLUMNS, initial_indent=first, subsequent_indent=rest):
        yield cut(line, COLUMNS)


def _line(texts: Sequence[str]) -> str:
    *columns, last = texts
    cells = [
        pad(cut(text, size), size, left=place in _LEFT)
        for place, (text, size) in enumerate(zip(columns, _WIDTHS, strict=True))
    ]
    return " ".join([*cells, last]).rstrip()
