"""ReportView -> a summary for a terminal: plain text, at most 100 columns."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from kvbench.report.columns import as_ascii, cut, pad, width
from kvbench.report.model import HeatPanel, ReportView, ResultTable, RoleView, Row, Value
from kvbench.report.readings import reading_lines
from kvbench.report.role_text import role_lines
from kvbench.report.words import DASH

COLUMNS = 100
DOUBTS_MAX = 12  # the page has them all
_WIDTHS = (37, 12, 25, 8, 8, 2, 2)  # parameters, stream, rate, p50, p99, n, marks
_HEAD = ("parameters", "stream", f"rate (low{DASH}high)", "p50", "p99", "n", "")
_LEGEND = (
    f"rate, p50, p99: median over n repetitions. low{DASH}high: the smallest and the largest, from "
    "n=6 on the 95 % interval of the median. Of a request, p50 and p99 are of its slowest I/O, "
    "of several steps the sum."
)
_LEFT = 2  # columns that are aligned to the left; the others hold numbers
_LEVELS = {"bad": "!!", "doubt": "! ", "note": "- "}


def render(view: ReportView, *, ascii_only: bool = False) -> str:
    """Return the summary; with ``ascii_only`` for terminals that show nothing else."""
    text = "\n".join(_lines(view)) + "\n"
    return as_ascii(text) if ascii_only else text


def _lines(view: ReportView) -> Iterator[str]:
    yield from wrap(view.verdict, COLUMNS)
    for alert in view.alerts:
        yield from wrap(f"!! {alert.upper() if len(alert) < 40 else alert}", COLUMNS)
    for fact in (fact for group in view.facts for fact in group.facts):
        if fact.name == "preparation" and fact.value == "holds":
            yield from wrap(f"preparation: {fact.reason}", COLUMNS)
    yield from reading_lines(view.readings, COLUMNS)
    yield from role_lines(view.cards, view.controller, COLUMNS)
    for role in view.roles:
        for table in role.tables:
            yield ""
            yield table.caption.upper()
            yield _line(_HEAD)
            for group in table.groups:
                words = f"{group.workload} [{group.evidence}] {group.summary}"
                yield from (cut(line, COLUMNS) for line in wrap(words, COLUMNS))
                if group.derivation:
                    words = f"size: {group.derivation}"
                    yield from (cut(line, COLUMNS) for line in wrap(words, COLUMNS))
                for row in group.rows:
                    yield from _row(table, row)
        yield from _matrices(role)
    yield from _reload(view)
    if any(role.tables for role in view.roles):
        yield ""
        yield from wrap(_LEGEND, COLUMNS)
    if view.health is not None:
        yield ""
        yield "HEALTH OF THE DEVICE"
        for line in view.health.lines:
            yield from wrap(line, COLUMNS)
    if view.doubts:
        yield ""
        yield "What makes this result doubtful, worst first:"
        for doubt in view.doubts[:DOUBTS_MAX]:
            mark = f"{doubt.mark}: " if doubt.mark else ""
            yield from wrap(
                f"{_LEVELS[doubt.level]} {mark}{doubt.text}", COLUMNS, subsequent_indent="   "
            )
        if len(view.doubts) > DOUBTS_MAX:
            yield f"   and {len(view.doubts) - DOUBTS_MAX} more, in the report"


def _row(table: ResultTable, row: Row) -> Iterator[str]:
    """Yield one line, and more below it when the parameters need them."""
    values = {c.metric: v for c, v in zip(table.columns, row.values, strict=True) if v is not None}
    rate = _first(values, _rate_order(values))
    kind = "request" if "request_p99" in values else "latency"
    shown = (rate, values.get(f"{kind}_p50"), values.get(f"{kind}_p99"))
    marks = sorted({m for value in values.values() for m in value.marks}, key=lambda m: (len(m), m))
    words, setting = row.parameters.removesuffix(", 1 job"), f" {row.setting}"
    if row.setting not in ("", "mixed", "alone"):
        words, setting = f"{row.setting}: {words}", ""  # too long for the column of the stream
    setting = setting.rstrip()
    first, *rest = wrap(words, _WIDTHS[0], initial_indent=" ", subsequent_indent="   ") or [""]
    number, spread = _number(shown[0]), _spread(shown[0])
    below = ""
    if width(number + spread) > _WIDTHS[2]:  # two units in one range: a line of its own
        below, spread = spread.strip(), ""
        rest = rest or [""]
    yield _line(
        (
            first,
            f"{cut(row.stream, _WIDTHS[1] - len(setting))}{setting}",
            f"{number}{spread}",
            *(_number(v) if v and (v.known or "few" in v.text) else DASH for v in shown[1:]),
            _sample(values.values()),
            ",".join(marks),
        )
    )
    for place, more in enumerate(rest):
        yield _line((more, "", "" if place else below, "", "", "", ""))
    yield from _more(table, row, shown, ", ".join(marks) if len(marks) > 1 else "")


def _more(table: ResultTable, row: Row, shown: Sequence[Value | None], marks: str) -> Iterator[str]:
    """Yield what has no column: primary numbers, what the device saw, several marks."""
    parts = [
        f"{column.label} {_number(value)}{_spread(value)}"
        for column, value in zip(table.columns, row.values, strict=True)
        if value is not None and value.primary and not any(value is one for one in shown)
    ]
    parts += [
        f"{column.label} {value.versus}"
        for column, value in zip(table.columns, row.values, strict=True)
        if value is not None and value.versus_primary
    ]
    if row.device:
        parts.append(row.device)
    if marks:
        parts.append(f"doubts {marks}")
    if parts:
        text = "; ".join(parts)
        for line in wrap(text, COLUMNS, initial_indent="   + ", subsequent_indent="     "):
            yield cut(line, COLUMNS)


def _matrices(role: RoleView) -> Iterator[str]:
    """Yield each matrix of victims and aggressors in a line per victim."""
    for figure in role.figures:
        for panel in figure.panels:
            if isinstance(panel, HeatPanel):
                yield ""
                yield from wrap(panel.title, COLUMNS)
                for name, below, cells in panel.rows:
                    beside = (
                        f"{cell.text} beside {column}"
                        for column, cell in zip(panel.columns, cells, strict=True)
                    )
                    words = f"{name} ({below}): {', '.join(beside)}"
                    for line in wrap(words, COLUMNS, initial_indent=" ", subsequent_indent="   "):
                        yield cut(line, COLUMNS)


def _reload(view: ReportView) -> Iterator[str]:
    if view.reload is not None:
        yield ""
        yield "RELOAD OR RECOMPUTE"
        for number, words in enumerate(view.reload.lines):
            first = "- " if number else ""
            for line in wrap(words, COLUMNS, initial_indent=first, subsequent_indent="  "):
                yield cut(line, COLUMNS)


def _rate_order(values: dict[str, Value]) -> Sequence[str]:
    """Return the rates, primary ones first."""
    rates = ("request_rate", "iops", "bandwidth")
    return sorted(rates, key=lambda name: not (name in values and values[name].primary))


def _first(values: dict[str, Value], names: Sequence[str]) -> Value | None:
    return next((values[name] for name in names if name in values), None)


def _number(value: Value | None) -> str:
    if value is None:
        return DASH
    return (
        "too few"
        if value.text.startswith("too few")
        else value.text.replace(" requests/s", " req/s")
    )


def _spread(value: Value | None) -> str:
    """Return `` (low to high)`` of a number that has them."""
    if value is None or not value.known or value.n < 2:
        return ""
    return f" ({value.detail.split(', ', 1)[0]})"


def _sample(values: Iterable[Value]) -> str:
    """Return the n of a row, from the first number that is known."""
    return next((str(value.n) for value in values if value.known), DASH)


def _line(texts: Sequence[str]) -> str:
    cells = [
        pad(cut(text, size), size, left=place < _LEFT)
        for place, (text, size) in enumerate(zip(texts, _WIDTHS, strict=True))
    ]
    return " ".join(cells).rstrip()
