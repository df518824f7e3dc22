"""A measured run -> the tidy table of its measurements, and that table as CSV.

pandas is imported where it is used, because verbs that need no table should not wait for it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from kvbench.errors import StoreError
from kvbench.measure.evidence import asked_directions
from kvbench.measure.model import MeasuredCell, MeasuredRun, Measurement
from kvbench.metrics import METRICS

if TYPE_CHECKING:
    import pandas as pd

# column -> pandas dtype; "value" is in "unit", missing where the reason says why
COLUMNS: dict[str, str] = {
    "run_id": "str",
    "cell_id": "str",
    "repetition": "int64",
    "workload": "str",
    "role": "str",
    "purpose": "str",
    "alone": "str",
    "parameters": "str",
    "stream": "str",
    "direction": "str",
    "metric": "str",
    "unit": "str",
    "value": "float64",
    "io_count": "int64",
    "censored": "bool",
    "outcome": "str",
    "findings": "str",
    "reason": "str",
}
KEY = ["cell_id", "stream", "direction", "metric"]


def measurements_table(run: MeasuredRun) -> "pd.DataFrame":
    """Return one row per measurement, of every cell whatever its outcome.

    A cell that measured nothing has a row without a value for the rate of each of its streams,
    with the reason: what vanished must not look like what was never planned.
    """
    import pandas as pd

    rows = [
        {
            "run_id": run.record.run_id,
            "cell_id": cell.cell.cell_id,
            "repetition": cell.cell.repetition,
            "workload": cell.cell.workload,
            "role": cell.cell.role,
            "purpose": cell.cell.purpose,
            "alone": cell.cell.alone or "",
            "parameters": msgspec.json.encode(cell.cell.parameters).decode(),
            "stream": measured.stream,
            "direction": measured.direction,
            "metric": measured.metric,
            "unit": METRICS[measured.metric].unit,
            "value": measured.value,
            "io_count": measured.io_count,
            "censored": measured.censored,
            "outcome": cell.outcome,
            "findings": _found(cell, measured.stream),
            "reason": measured.reason,
        }
        for cell in run.cells
        for measured in cell.measurements or _nothing(cell)
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)
    check_table(table)
    return table


def _found(cell: MeasuredCell, stream: str) -> str:
    """Return the names of the checks that found something about the stream or the whole cell."""
    checks = [f.check for f in cell.findings if f.stream in (None, stream) and f.severity != "note"]
    return ";".join(dict.fromkeys(checks))


def _nothing(cell: MeasuredCell) -> Iterator[Measurement]:
    reason = "; ".join(finding.text for finding in cell.findings) or "nothing was measured"
    for placed in cell.cell.placed:
        for direction in asked_directions(placed.stream):
            yield Measurement(
                stream=placed.stream.name,
                direction=direction,
                metric="iops",
                value=None,
                io_count=0,
                reason=reason,
            )


def check_table(table: "pd.DataFrame") -> None:
    """Assert that ``table`` is what it should be, on writing and on reading.

    Raises:
        StoreError: a wrong column, dtype, unit or metric, or two rows of one measurement.
    """
    if list(table.columns) != list(COLUMNS):
        raise _broken(f"its columns are {', '.join(table.columns)}, not {', '.join(COLUMNS)}")
    for column, dtype in COLUMNS.items():
        if str(table[column].dtype) not in (dtype, "object" if dtype == "str" else dtype):
            raise _broken(f"column {column} is {table[column].dtype}, not {dtype}")
    units = {name: metric.unit for name, metric in METRICS.items()}
    pairs = set(zip(table["metric"], table["unit"], strict=True))
    for metric, unit in sorted(pairs):
        if units.get(metric) != unit:
            raise _broken(f"metric {metric} is in {unit}, not in {units.get(metric, 'any unit')}")
    twice = table[table.duplicated(KEY)]
    if len(twice):
        raise _broken(f"two rows of {' '.join(str(v) for v in twice[KEY].iloc[0])}")


def to_csv(run: MeasuredRun) -> str:
    """Return the table of ``run`` as CSV with a header line."""
    return str(measurements_table(run).to_csv(index=False, lineterminator="\n"))


def _broken(what: str) -> StoreError:
    return StoreError(f"the table of measurements is wrong: {what}", where="measurements")
