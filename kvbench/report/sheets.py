"""A measured run -> the sheets of a workbook.  Pure.

Numbers of one unit share a sheet, so that the unit stands in the head and a column can be computed
with.  They are in the units of the tidy table: seconds, bytes, 1/s.
"""

from collections.abc import Iterator, Sequence

from kvbench.measure.model import MeasuredRun, Summary
from kvbench.report.model import ReportView
from kvbench.report.words import parameter_words
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
    facts = tuple((fact.name, fact.value, fact.reason) for fact in run.record.facts)
    cell_names = ("cell", "repetition", "workload", "purpose", "point", "outcome", "findings")
    return [
        Sheet(name="run", columns=texts("what", "value"), rows=tuple(about)),
        Sheet(name="doubts", columns=texts("level", "mark", "doubt"), rows=doubts),
        *_numbers(run),
        Sheet(name="cells", columns=texts(*cell_names), rows=cells),
        Sheet(name="facts", columns=texts("fact", "value", "why it is not known"), rows=facts),
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
        rows = tuple(
            (
                *(one.workload, one.role, _point(one.parameters, one.alone)),
                *(one.stream, one.direction, one.metric),
                workloads[one.workload].evidence if one.workload in workloads else None,
                *(one.purpose, yes(is_primary(one))),
                *(one.median, one.low, one.high, one.interval, one.n),
                *(one.excluded, one.io_count, yes(one.censored)),
                *("; ".join(one.doubts), one.reason),
                *_padded(one.values, count),
            )
            for one in own
        )
        yield Sheet(name=name, columns=columns, rows=rows)


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
