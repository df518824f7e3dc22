"""The tidy table: columns that are documented, and nothing that vanishes."""

import re
from pathlib import Path
from typing import get_args

from kvbench.measure.model import Finding, IoDirection, MeasuredCell, MeasuredRun
from kvbench.measure.table import COLUMNS, measurements_table, to_csv
from kvbench.metrics import METRICS
from kvbench.plan import Plan
from tests.records import a_plan, a_run_record, a_stream, a_workload

DOCUMENT = (Path(__file__).resolve().parents[2] / "results" / "README.md").read_text()


def a_run_of_failed_cells(plan: Plan | None = None) -> MeasuredRun:
    plan = plan or a_plan()
    broken = Finding(check="output", severity="invalid", text="fio wrote nothing")
    cells = tuple(
        MeasuredCell(
            cell=cell, outcome="failed", findings=(broken,), measurements=(), histograms=()
        )
        for cell in plan.cells
    )
    return MeasuredRun(record=a_run_record(plan), end=None, cells=cells, summaries=(), damage=())


def test_a_cell_that_measured_nothing_keeps_its_place_with_the_reason() -> None:
    run = a_run_of_failed_cells()
    table = measurements_table(run)
    assert list(table["cell_id"]) == [cell.cell.cell_id for cell in run.cells]
    assert table["value"].isna().all()
    assert set(table["reason"]) == {"fio wrote nothing"}
    assert set(table["outcome"]) == {"failed"}
    assert to_csv(run).count("fio wrote nothing") == len(run.cells)


def test_a_failed_cell_that_only_trims_has_a_row_as_well() -> None:
    streams = (a_stream(name="drop", direction="trim", queue_depth=1),)
    plan = a_plan(a_workload(streams=streams, sweep=(), primary=()))
    table = measurements_table(a_run_of_failed_cells(plan))
    assert len(table) == len(plan.cells) > 0
    assert set(table["direction"]) == {"trim"}


def test_every_column_and_every_metric_is_documented() -> None:
    listed = set(re.findall(r"^\| `([a-z0-9_.]+)` \|", DOCUMENT, re.MULTILINE))
    families = {re.sub(r"_p[0-9.]+(?=$|_)", "_p*", name) for name in METRICS}
    documented = {re.sub(r"_p[0-9.]+(?=$|_)", "_p*", name) for name in listed}
    assert set(COLUMNS) <= documented
    assert families <= documented


def test_every_direction_of_a_row_is_documented() -> None:
    (row,) = re.findall(r"^\| `direction` \| (.*) \|$", DOCUMENT, re.MULTILINE)
    assert set(re.findall(r"\w+", row)) - {"or"} == set(get_args(IoDirection))


def test_every_unit_is_documented() -> None:
    (row,) = re.findall(r"^\| `unit` \| (.*) \|$", DOCUMENT, re.MULTILINE)
    named = {word.strip() for word in re.split(r",|or", row.replace(" for a plain ratio", ""))}
    assert {metric.unit for metric in METRICS.values()} <= named
