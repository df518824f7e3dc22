"""A measured run -> the sheets of a workbook.  Pure.

Numbers of one unit share a sheet, so that the unit stands in the head and a column can be computed
with.  They are in the units of the tidy table: seconds, bytes, 1/s.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from kvbench.host.model import Fact
from kvbench.measure.model import MeasuredRun, Summary
from kvbench.report.model import ReportView
from kvbench.report.words import SIZES, parameter_words
from kvbench.report.workbook import Plain, Sheet, SheetColumn
from kvbench.workload.schema import SweepValue

SHEETS = {  # unit -> the sheet of its numbers
    "s": "times",
    "1/s": "rates",
    "B/s": "bandwidths",
    "B": "sizes",
    "%": "shares",
    "1": "ratios",
}
VALUES_MAX = 32  # repetitions with a column of their own
FACT_UNITS = {"_bytes": "B", "_kib": "KiB", "_us": "us"}
COUNTS = frozenset(  # facts that are numbers without a unit; a serial of digits is none
    (
        *("cpus_online", "numa_nodes", "cgroup_cpus", "huge_pages_free", "open_files_max"),
        *("nr_requests", "max_segments", "rotational", "io_uring_disabled", "device_nsid"),
        *("device_queues", "device_poll_queues", "device_numa_node", "device_in_flight"),
        *("device_read_only", "device_io_poll", "device_users"),
    )
)
_INTEGER = re.compile(r"\d{1,15}", re.ASCII)  # what a spreadsheet keeps to the last digit
NUMBER = ("workload", "role", "point", "stream", "direction", "metric")


def of_report(view: ReportView, run: MeasuredRun) -> list[Sheet]:
    """Return what was tested, the numbers by unit, the cells, the facts."""
    about: list[tuple[str, Plain]] = [("verdict", view.verdict)]
    about += [("alert", alert) for alert in view.alerts]
    about += [(f"role {one.role}", f"{one.chip.text}: {one.words}") for one in view.role_verdicts]
    about += [(one.name, one.value) for one in view.repeat]
    doubts = tuple((doubt.level, doubt.mark, doubt.text) for doubt in view.doubts)
    cells = tuple(
        (
            *(cell.cell.cell_id, cell.cell.repetition, cell.cell.workload, cell.cell.purpose),
            *(_point(cell.cell.parameters, cell.cell.alone), cell.outcome),
            "; ".join(finding.text for finding in cell.findings),
        )
        for cell in run.cells
    )
    facts = tuple((fact.name, *_fact(fact), fact.reason) for fact in run.record.facts)
    fact_names = ("fact", "value", "unit", "why it is not known")
    cell_names = ("cell", "repetition", "workload", "purpose", "point", "outcome", "findings")
    return [
        Sheet(name="run", columns=texts("what", "value"), rows=tuple(about)),
        Sheet(name="doubts", columns=texts("level", "mark", "doubt"), rows=doubts),
        *_numbers(run),
        Sheet(name="cells", columns=texts(*cell_names), rows=cells),
        Sheet(name="facts", columns=texts(*fact_names), rows=facts),
    ]


def _numbers(run: MeasuredRun) -> Iterator[Sheet]:
    """Yield a sheet per unit: what was measured first, primary numbers first; ceilings last."""
    workloads = {workload.name: workload for workload in run.record.plan.workloads}
    order = ("measure", "search", "ceiling")

    def is_primary(summary: Summary) -> bool:
        workload = workloads.get(summary.workload)
        name = f"{summary.stream}.{summary.metric}"
        return workload is not None and name in workload.primary and summary.purpose != "ceiling"

    for unit, name in SHEETS.items():
        own = sorted(
            (summary for summary in run.summaries if summary.unit == unit),
            key=lambda summary: (order.index(summary.purpose), not is_primary(summary)),
        )
        if not own:
            continue
        count = min(VALUES_MAX, max(len(summary.values) for summary in own))
        columns = (
            *texts(*NUMBER, "evidence", "purpose", "primary"),
            *in_unit(unit, "median", "low", "high"),
            *texts("interval", "n", "excluded", "I/Os", "at least", "doubts", "reason"),
            *in_unit(unit, *(f"value {n}" for n in range(1, count + 1))),
        )
        rows = [
            (
                one.parameters,
                (
                    *(one.workload, one.role, _point(one.parameters, one.alone)),
                    *(one.stream, one.direction, one.metric),
                    workloads[one.workload].evidence if one.workload in workloads else None,
                    *(one.purpose, yes(is_primary(one))),
                    *(one.median, one.low, one.high, one.interval, one.n),
                    *(one.excluded, one.io_count, yes(one.censored)),
                    *("; ".join(one.doubts), one.reason),
                    *_padded(one.values, count),
                ),
            )
            for one in own
        ]
        yield with_parameters(name, columns, rows)


def with_parameters(
    name: str,
    columns: Sequence[SheetColumn],
    rows: Sequence[tuple[Mapping[str, SweepValue], tuple[Plain, ...]]],
) -> Sheet:
    """Return a sheet whose point is there in words and, behind them, a column a parameter.

    ``columns`` begin with ``NUMBER``; each row comes with the parameters of its point.
    """
    names = list(dict.fromkeys(key for parameters, _ in rows for key in parameters))
    behind = NUMBER.index("point") + 1
    own = [SheetColumn(name=key, unit=_parameter_unit(key)) for key in names]
    return Sheet(
        name=name,
        columns=(*columns[:behind], *own, *columns[behind:]),
        rows=tuple(
            (*row[:behind], *(parameters.get(key) for key in names), *row[behind:])
            for parameters, row in rows
        ),
    )


def _parameter_unit(key: str) -> str:
    return "B" if key.rpartition(".")[2] in SIZES else ""


def _fact(fact: Fact) -> tuple[Plain, str]:
    """Return the value of a fact, as a number where it counts or measures, and its unit."""
    unit = next((unit for end, unit in FACT_UNITS.items() if fact.name.endswith(end)), "")
    if (unit or fact.name in COUNTS) and _INTEGER.fullmatch(fact.value or ""):
        return int(fact.value or ""), unit
    return fact.value, ""


def _point(parameters: dict[str, SweepValue], alone: str | None) -> str:
    words = parameter_words(parameters)
    return f"{words}, {alone} alone".removeprefix(", ") if alone is not None else words


def _padded(values: Sequence[float], count: int) -> tuple[Plain, ...]:
    return (*values[:count], *(None,) * (count - len(values)))


def texts(*names: str) -> tuple[SheetColumn, ...]:
    """Return columns of texts or counts."""
    return tuple(SheetColumn(name=name) for name in names)


def in_unit(unit: str, *names: str) -> tuple[SheetColumn, ...]:
    """Return columns of numbers in a unit."""
    return tuple(SheetColumn(name=name, unit=unit) for name in names)


def yes(is_so: bool) -> str:
    """Return what stands for a truth value."""
    return "yes" if is_so else "no"
