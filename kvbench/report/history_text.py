"""HistoryView -> a drive's history for a terminal: plain text, at most 100 columns."""

from collections.abc import Iterator
from textwrap import wrap

from kvbench.report.columns import as_ascii, cut, pad
from kvbench.report.history_model import HistoryView, MetricView, RunRow, TrendView
from kvbench.report.words import DASH

COLUMNS = 100
CHANGES_MAX = 6  # between two runs
_RUNS = (4, 17, 13, 15, 12, 4, 9, 13)
_RUN_HEAD = ("run", "started (UTC)", "firmware", "label", "suite", "n", "against", "the gate says")


def render(view: HistoryView, *, every_run: bool = False, ascii_only: bool = False) -> str:
    """Return the history; with ``every_run`` each number of each run, else the ends and changes."""
    text = "\n".join(line.rstrip() for line in _lines(view, every_run=every_run)) + "\n"
    return as_ascii(text) if ascii_only else text


def _lines(view: HistoryView, *, every_run: bool) -> Iterator[str]:
    yield from _wrapped(view.verdict)
    yield ""
    yield cut(view.device, COLUMNS)
    yield _cells(_RUN_HEAD, _RUNS)
    for run in view.runs:
        yield from _run(run)
    for mark, texts in (("!", view.apart), ("-", view.left_out)):
        for text in texts:
            yield from _wrapped(text, f"{mark} ", "  ")
    yield ""
    yield "CHANGES THAT THE GATE CALLS, THE NEWEST FIRST"
    if not view.changes:
        yield "  none"
    for pair in view.changes:
        yield f"{pair.where}: {pair.counts}"
        shown = pair.rows if every_run else pair.rows[:CHANGES_MAX]
        for change in shown:
            yield from _wrapped(f"  {change.called:<7}{change.number}", "", " " * 11)
            yield from _wrapped(f"{change.change}: {change.values}", " " * 9, " " * 11)
            if change.doubts and every_run:
                yield from _wrapped(f"doubt: {change.doubts}", " " * 9, " " * 11)
        if len(pair.rows) > len(shown):
            yield f"  and {len(pair.rows) - len(shown)} more (--all shows them)"
    for role in view.roles:
        yield ""
        yield role.role.upper()
        for workload in role.workloads:
            yield from _wrapped(f"{workload.name} [{workload.evidence}]")
            for metric in workload.metrics:
                for trend in metric.trends:
                    lines = _every(metric, trend) if every_run else _ends(metric, trend)
                    yield from lines
    if view.roles:
        yield ""
        yield from _wrapped(
            f"value: median over n repetitions; low{DASH}high: the smallest and the largest, from "
            "n=6 on the 95 % interval of the median. Only what the gate calls is a change."
            + ("" if every_run else " Shown are the oldest and the newest run; --all shows every.")
        )


def _run(run: RunRow) -> Iterator[str]:
    texts = (
        *(str(run.number), run.started, run.firmware, run.label, run.suite),
        *(str(run.repetitions), run.against or "none", run.outcome or "nothing"),
    )
    yield _cells(texts, _RUNS)
    if run.note:
        yield from _wrapped(run.note, "     ", "     ")


def _ends(metric: MetricView, trend: TrendView) -> Iterator[str]:
    """Yield the oldest and the newest value of a number, and its changes."""
    known = [row for row in trend.values if row.known]
    called = ", ".join(f"{row.called} in run {row.number}" for row in trend.values if row.called)
    name = _name(metric, trend)
    yield from _wrapped(f"{name}: {called}" if called else name, " ", "   ")
    ends = known[:1] + known[1:][-1:]
    words = [f"run {row.number} {row.value} ({row.detail})" for row in ends]
    yield from _wrapped("; ".join(words) or "no value", "     ", "     ")


def _every(metric: MetricView, trend: TrendView) -> Iterator[str]:
    yield from _wrapped(_name(metric, trend), " ", "   ")
    for row in trend.values:
        value = row.value if row.known else cut(f"{row.value}: {row.detail}", 60)
        detail = f"({row.detail})" if row.known and row.detail else ""
        words = f"{row.number:>4}  {cut(row.firmware, 12):<12}  {value} {detail}"
        said = " ".join(part for part in (row.verdict, row.change) if part)
        yield from _wrapped(f"{words}  {said}", "", " " * 20, keep=True)
        if row.doubts:
            yield from _wrapped(f"doubt: {row.doubts}", " " * 20, " " * 22)


def _name(metric: MetricView, trend: TrendView) -> str:
    point = trend.point.removesuffix(", 1 job")
    return f"{metric.stream} {metric.metric}{f' ({point})' if point else ''}"


def _cells(texts: tuple[str, ...], widths: tuple[int, ...]) -> str:
    cells = [pad(cut(t, size), size) for t, size in zip(texts, widths, strict=True)]
    return " ".join(cells).rstrip()


def _wrapped(text: str, first: str = "", rest: str = "", *, keep: bool = False) -> Iterator[str]:
    lines = wrap(
        text, COLUMNS, initial_indent=first, subsequent_indent=rest, drop_whitespace=not keep
    )
    for line in lines or [""]:
        yield cut(line, COLUMNS)
