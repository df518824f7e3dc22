"""A drive's history as CSV: one row per number and run, with columns that stay."""

import csv
import io

import msgspec

from kvbench.gate.history import History

COLUMNS = (
    *("workload", "role", "evidence", "parameters", "stream", "direction", "metric", "unit"),
    *("run", "run_id", "created_at", "firmware", "value", "low", "high", "interval", "n"),
    *("excluded", "against", "verdict", "called", "since", "change", "estimate", "estimate_low"),
    *("estimate_high", "p", "margin", "reason", "doubts"),
)


def to_csv(history: History) -> str:
    """Return the table with a header line; an empty field is "not known", never 0.

    ``run`` and ``against`` count from 1.  ``change`` is "ratio" or "difference", as in the table
    of a comparison.
    """
    buffer = io.StringIO()
    table = csv.writer(buffer, lineterminator="\n")
    table.writerow(COLUMNS)
    for series in history.series:
        key = series.key
        number = (
            *(key.workload, series.role, series.evidence),
            *(msgspec.json.encode(key.parameters).decode(), key.stream, key.direction),
            *(key.metric, series.unit),
        )
        for point in series.points:
            run, sample, change = history.runs[point.run], point.sample, point.change
            kind = change.kind if change is not None and change.estimate is not None else ""
            estimates = (
                ("", "", "", "", "")
                if change is None
                else tuple(
                    _number(value)
                    for value in (
                        *(change.estimate, change.low, change.high),
                        *(change.p, change.margin),
                    )
                )
            )
            table.writerow(
                (
                    *number,
                    *(point.run + 1, run.side.run_id, run.side.created_at, run.firmware or ""),
                    *(_number(sample.median), _number(sample.low), _number(sample.high)),
                    *(sample.interval, sample.n, sample.excluded),
                    "" if point.against is None else point.against + 1,
                    *(point.verdict or "", point.called),
                    "" if point.since is None else point.since + 1,
                    *(kind, *estimates),
                    sample.reason or (change.reason if change is not None else ""),
                    "; ".join(sample.doubts),
                )
            )
    return buffer.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None else repr(float(value))
