"""A drive's history -> the sheets of a workbook.  Pure."""

from collections.abc import Iterator

from kvbench.gate.history import History, HistoryPoint, HistorySeries
from kvbench.report.compare_sheets import (
    by_unit,
    change_columns,
    change_values,
    number_values,
    sample_columns,
    sample_values,
)
from kvbench.report.sheets import NUMBER, texts
from kvbench.report.workbook import Plain, Sheet, SheetColumn


def of_history(history: History, verdict: str) -> list[Sheet]:
    """Return the verdict, the runs, what is left out, and a row per number and run by unit."""
    about: tuple[tuple[Plain, ...], ...] = (
        ("verdict", verdict, None),
        ("drive", history.device or history.serial, None),
        ("policy", history.policy, None),
        ("confidence", 100 * history.confidence, "%"),
    )
    runs = tuple(
        (
            *(place + 1, run.side.run_id, run.side.label, run.side.created_at, run.firmware),
            *(run.suite, run.side.repetitions, _from_one(run.against), run.outcome, run.apart),
            run.side.incomplete,
        )
        for place, run in enumerate(history.runs)
    )
    names = ("run", "run id", "label", "started", "firmware", "suite", "repetitions", "against")
    numbers = [
        (series.unit, series.key, (*_point(history, series, point), *_measured(point)))
        for series in history.series
        for point in series.points
    ]
    return [
        Sheet(name="history", columns=texts("what", "value", "unit"), rows=about),
        Sheet(name="runs", columns=texts(*names, "outcome", "apart", "incomplete"), rows=runs),
        Sheet(
            name="left out",
            columns=texts("run id", "reason"),
            rows=tuple((one.run_id, one.reason) for one in history.left_out),
        ),
        *by_unit(numbers, lambda unit: tuple(_columns(unit))),
    ]


def _columns(unit: str) -> Iterator[SheetColumn]:
    yield from texts(*NUMBER, "evidence", "run", "run id", "started", "firmware")
    yield from sample_columns("value", unit)
    yield from texts("against", "called", "since")
    yield from change_columns("", unit)


def _point(history: History, series: HistorySeries, point: HistoryPoint) -> tuple[Plain, ...]:
    run = history.runs[point.run]
    return (
        *(*number_values(series.key, series.role), series.evidence, point.run + 1),
        *(run.side.run_id, run.side.created_at, run.firmware),
    )


def _measured(point: HistoryPoint) -> tuple[Plain, ...]:
    return (
        *sample_values(point.sample),
        *(_from_one(point.against), point.called, _from_one(point.since)),
        *change_values(point.change),
    )


def _from_one(place: int | None) -> int | None:
    return None if place is None else place + 1
