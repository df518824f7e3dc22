"""The tidy table: columns that are documented, and nothing that vanishes."""

import re
from pathlib import Path

from kvbench.measure.model import Finding, MeasuredCell, MeasuredRun
from kvbench.measure.table import COLUMNS, measurements_table, to_csv
from kvbench.metrics import METRICS
from tests.records import a_plan, a_run_record

DOCUMENT = (Path(__file__).resolve().parents[2] / "results" / "README.md").read_text()


def a_run_of_failed_cells() -> MeasuredRun:
    plan = a_plan()
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


def test_every_column_and_every_metric_is_documented() -> None:
    listed = set(re.findall(r"^\| `([a-z0-9_.]+)` \|", DOCUMENT, re.MULTILINE))
    families = {re.sub(r"_p[0-9.]+(?=$|_)", "_p*", name) for name in METRICS}
    documented = {re.sub(r"_p[0-9.]+(?=$|_)", "_p*", name) for name in listed}
    assert set(COLUMNS) <= documented
    assert families <= documented
