"""HistoryView -> Markdown for a pull request: the verdict, the changes, then each number.  Pure."""

from collections.abc import Iterator, Sequence

from kvbench.report.history_model import HistoryView, MetricView, TrendView, ValueRow
from kvbench.report.markdown import escaped, joined, table
from kvbench.report.words import DASH

_RUNS = ("run", "started (UTC)", "firmware", "label", "suite", "n", "held against", "the gate says")
_CHANGES = ("verdict", "number", "change", "median", "doubts")
_NUMBERS = ("workload", "number", "oldest run", "newest run", "called")


def of_history(view: HistoryView) -> str:
    """Return a drive's history; of each number its oldest and newest value."""
    return joined(_history(view))


def _history(view: HistoryView) -> Iterator[str]:
    yield f"**{escaped(view.verdict)}**"
    yield ""
    yield escaped(view.device)
    yield ""
    yield "#### Changes that the gate calls, the newest first"
    yield ""
    if not view.changes:
        yield "None."
        yield ""
    for pair in view.changes:
        yield f"{escaped(pair.where)}: **{escaped(pair.counts)}**"
        yield ""
        rows = [
            (
                f"**{change.called}**",
                escaped(change.number),
                escaped(change.change),
                escaped(change.values),
                escaped(change.doubts),
            )
            for change in pair.rows
        ]
        yield from table(_CHANGES, rows)
        yield ""
    yield "#### Runs, the oldest first"
    yield ""
    yield from table(_RUNS, _run_rows(view))
    yield ""
    for run in view.runs:
        if run.note:
            yield f"- run {run.number}: {escaped(run.note)}"
    for text in (*view.apart, *view.left_out):
        yield f"- {escaped(text)}"
    for role in view.roles:
        yield ""
        yield f"#### {escaped(role.role)}"
        yield ""
        numbers = [
            (escaped(workload.name), *_number(metric, trend))
            for workload in role.workloads
            for metric in workload.metrics
            for trend in metric.trends
        ]
        yield from table(_NUMBERS, numbers)


def _run_rows(view: HistoryView) -> Iterator[Sequence[str]]:
    for run in view.runs:
        texts = (run.started, run.firmware, run.label, run.suite)
        yield (
            str(run.number),
            *(escaped(text) for text in texts),
            str(run.repetitions),
            run.against or "none",
            run.outcome or "nothing",
        )


def _number(metric: MetricView, trend: TrendView) -> tuple[str, ...]:
    point = f" ({escaped(trend.point)})" if trend.point else ""
    known = [row for row in trend.values if row.known]
    newest = _value(known[-1]) if len(known) > 1 else DASH
    called = ", ".join(f"{row.called} in run {row.number}" for row in trend.values if row.called)
    return (
        f"{escaped(metric.stream)} {escaped(metric.metric)}{point}",
        _value(known[0]) if known else "*no value*",
        newest,
        called,
    )


def _value(row: ValueRow) -> str:
    detail = f" ({escaped(row.detail)})" if row.detail else ""
    doubt = f" doubt: {escaped(row.doubts)}" if row.doubts else ""
    return f"run {row.number}: {escaped(row.value)}{detail}{doubt}"
