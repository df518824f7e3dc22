"""A comparison as CSV: one row per number and side, with columns that stay."""

import csv
import io

import msgspec

from kvbench.compare.model import Change, Comparison, Sample
from kvbench.report.compare_words import letter

COLUMNS = (
    *("workload", "role", "parameters", "alone", "stream", "direction", "metric", "unit"),
    *("primary", "side", "run_id", "device", "value", "low", "high", "interval", "n", "excluded"),
    *("change", "estimate", "estimate_low", "estimate_high", "p", "margin", "verdict", "reason"),
    "doubts",
)


def to_csv(comparison: Comparison) -> str:
    """Return the table with a header line; an empty field is "not known", never 0.

    ``change`` is "ratio" (``estimate`` is this run over the first) or "difference" (this run less
    the first, in ``unit``).
    """
    buffer = io.StringIO()
    table = csv.writer(buffer, lineterminator="\n")
    table.writerow(COLUMNS)
    for row in comparison.rows:
        key = row.key
        number = (
            *(key.workload, row.role, msgspec.json.encode(key.parameters).decode()),
            *(key.alone or "", key.stream, key.direction, key.metric, row.unit),
            str(row.primary),
        )
        for place, side in enumerate(comparison.sides):
            table.writerow(
                (
                    *(*number, letter(place), side.run_id, side.device),
                    *_sample(row.samples[place]),
                    *_change(row.changes[place], row.samples[place]),
                )
            )
    return buffer.getvalue()


def _sample(sample: Sample | None) -> tuple[object, ...]:
    if sample is None:
        return ("", "", "", "none", 0, "")
    values = (_number(sample.median), _number(sample.low), _number(sample.high))
    return (*values, sample.interval, sample.n, sample.excluded)


def _change(change: Change | None, sample: Sample | None) -> tuple[object, ...]:
    if change is None:  # the first run: what is against it are its own doubts
        reason = "" if sample is None else sample.reason
        doubts = () if sample is None else sample.doubts
        return ("", "", "", "", "", "", "", reason, "; ".join(doubts))
    return (
        change.kind if change.estimate is not None else "",
        *(_number(value) for value in (change.estimate, change.low, change.high)),
        *(_number(change.p), _number(change.margin)),
        *(change.verdict, change.reason, "; ".join(change.doubts)),
    )


def _number(value: float | None) -> str:
    return "" if value is None else repr(float(value))
