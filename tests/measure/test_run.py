"""Cells of a whole run: ceilings, tenants, summaries, the table, and what is damaged."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pandas as pd
import pytest

from kvbench.errors import StoreError
from kvbench.measure.ceiling import host_ceilings, with_ceiling
from kvbench.measure.model import (
    Finding,
    MeasuredCell,
    MeasuredRun,
    Measurement,
    Outcome,
)
from kvbench.measure.run import measure_cell, measure_run
from kvbench.measure.summarise import DRIFT, OUTLIER, summarise, with_lacking
from kvbench.measure.table import COLUMNS, check_table, measurements_table, to_csv
from kvbench.measure.tenants import with_tenants
from kvbench.plan import Cell, Plan
from kvbench.store.read import RunArchive
from tests import records
from tests.measure.builders import archive, launch, recorded


def number(metric: str, value: float | None, stream: str = "reads", why: str = "") -> Measurement:
    return Measurement(
        stream=stream, direction="read", metric=metric, value=value, io_count=100, reason=why
    )


def measured(
    cell: Cell, *measurements: Measurement, outcome: Outcome = "valid", doubt: str = ""
) -> MeasuredCell:
    findings = (Finding(check="host-bound", severity="doubt", text=doubt),) if doubt else ()
    return MeasuredCell(
        cell=cell,
        outcome=outcome,
        findings=findings,
        measurements=measurements,
        histograms=(),
    )


def isolated_plan(repetitions: int = 1) -> Plan:
    workload = records.a_workload(
        streams=(records.a_stream(name="fetch"), records.a_stream(name="reload")),
        sweep=(),
        isolate=True,
    )
    return records.a_plan(workload, repetitions=repetitions)


def run_of(plan: Plan, cells: Sequence[MeasuredCell]) -> MeasuredRun:
    return MeasuredRun(
        record=records.a_run_record(plan),
        end=None,
        cells=tuple(cells),
        summaries=summarise(plan, cells),
        damage=(),
    )


def with_rate(
    plan: Plan, rates: dict[str, float], outcome: Outcome = "valid"
) -> list[MeasuredCell]:
    """Every cell of ``plan`` with one rate per purpose."""
    return [
        measured(cell, number("iops", rates[cell.purpose]), outcome=outcome) for cell in plan.cells
    ]


@pytest.mark.parametrize(("rate", "outcome"), [(650.0, "valid"), (700.0, "doubtful")])
def test_a_cell_near_the_hosts_ceiling_is_doubted(rate: float, outcome: Outcome) -> None:
    cells = with_rate(records.a_plan(), {"ceiling": 1000.0, "measure": rate})
    ceilings = host_ceilings(cells)
    found = [with_ceiling(cell, ceilings) for cell in cells]
    for cell in found:
        if cell.cell.purpose == "ceiling":
            assert len(cell.measurements) == 1
            continue
        assert cell.outcome == outcome
        assert cell.measurements[-1].metric == "host_ceiling_share"
        assert cell.measurements[-1].value == pytest.approx(rate / 10)


def test_without_a_ceiling_the_share_has_a_reason() -> None:
    cells = with_rate(records.a_plan(), {"ceiling": 1000.0, "measure": 1.0}, outcome="failed")
    cell = with_ceiling(cells[-1], host_ceilings(cells))
    assert cell.measurements[-1].value is None
    assert "not known" in cell.measurements[-1].reason
    assert cell.outcome == "failed"


def test_a_paced_cell_has_no_ceiling() -> None:
    paced = records.a_workload(streams=(records.a_stream(rate_iops=100.0),))
    (cell, *_) = with_rate(records.a_plan(paced), {"measure": 100.0})
    assert with_ceiling(cell, {}) is cell


def tenants(
    alone_outcome: Outcome = "valid", alone_p99: float | None = 0.001
) -> dict[str, Measurement]:
    """The ratios of stream "fetch" in a mixed cell with p99 3 ms and 500 I/Os per second."""
    cells = []
    for cell in isolated_plan().cells:
        if cell.alone is None:
            values = [("latency_p99", 0.003), ("iops", 500.0)]
            outcome: Outcome = "valid"
        else:
            values = [("latency_p99", alone_p99 or 0.0), ("iops", 1000.0)]
            outcome = alone_outcome
        numbers = [number(metric, value, "fetch") for metric, value in values]
        if cell.alone and alone_p99 is None:
            numbers[0] = number("latency_p99", None, "fetch", "too few I/Os")
        cells.append(measured(cell, *numbers, outcome=outcome))
    found = with_tenants(cells, ["small-reads"])
    (mixed,) = [c for c in found if c.cell.alone is None and c.cell.purpose == "measure"]
    assert {len(c.measurements) for c in found if c is not mixed} == {2}
    return {m.metric: m for m in mixed.measurements}


def test_a_tenant_is_compared_with_itself_alone() -> None:
    found = tenants()
    assert found["latency_p99_mixed_over_alone"].value == pytest.approx(3.0)
    assert found["iops_mixed_over_alone"].value == pytest.approx(0.5)


def test_a_ratio_needs_both_cells_and_both_numbers() -> None:
    broken = tenants(alone_outcome="invalid")["iops_mixed_over_alone"]
    assert (broken.value, broken.reason) == (
        None,
        "the cell that measured the stream alone is invalid",
    )
    missing = tenants(alone_p99=None)["latency_p99_mixed_over_alone"]
    assert (missing.value, missing.reason) == (None, "alone: too few I/Os")


def test_a_summary_is_over_the_repetitions_that_count() -> None:
    plan = records.a_plan(repetitions=8)
    cells = []
    for cell in plan.cells:
        outcome: Outcome = "invalid" if cell.repetition == 8 else "valid"
        doubt = "near the ceiling" if cell.repetition == 2 else ""
        rate = 1e9 if cell.repetition == 8 else float(cell.repetition)
        cells.append(measured(cell, number("iops", rate), outcome=outcome, doubt=doubt))
    first = next(s for s in summarise(plan, cells) if s.purpose == "measure")
    assert (first.median, first.low, first.high, first.n) == (4.0, 1.0, 7.0, 7)
    assert first.interval == "95 %"
    assert list(first.values) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert first.excluded == 1
    assert first.io_count == 700
    assert first.unit == "1/s"
    assert first.doubts == (
        "near the ceiling (1 of 7 repetitions)",
        "unstable: the repetitions differ by a factor of 2 or more",
        DRIFT,
    )


def test_an_odd_repetition_is_told_and_counts() -> None:
    plan = records.a_plan(repetitions=5)
    rates = {1: 100.0, 2: 101.0, 3: 60.0, 4: 100.0, 5: 99.0}
    cells = [measured(c, number("iops", rates.get(c.repetition, 1.0))) for c in plan.cells]
    first = next(s for s in summarise(plan, cells) if s.purpose == "measure")
    assert first.doubts == (OUTLIER,)
    assert (first.n, first.low) == (5, 60.0)


def test_repetitions_that_agree_are_not_called_unstable() -> None:
    plan = records.a_plan(repetitions=3)
    rates = {1: 100.0, 2: 150.0, 3: 199.0}
    cells = [
        measured(
            cell,
            number("iops", rates.get(cell.repetition, 1.0)),
            number("depth_mean", float(cell.repetition**4)),
        )
        for cell in plan.cells
    ]
    assert all(not summary.doubts for summary in summarise(plan, cells))


def test_summaries_stand_in_the_plans_order_and_not_in_that_of_the_shuffle() -> None:
    plan = records.a_plan(
        records.a_workload(name="b", digest="b"), isolated_plan().workloads[0], repetitions=3
    )
    cells = [measured(cell, number("iops", 1.0)) for cell in reversed(plan.cells)]
    order = [
        (s.workload, s.parameters.get("queue_depth"), s.alone)
        for s in summarise(plan, cells)
        if s.purpose == "measure"
    ]
    assert order == [
        ("b", 1, None),
        ("b", 4, None),
        ("small-reads", None, None),
        ("small-reads", None, "fetch"),
        ("small-reads", None, "reload"),
    ]


def test_a_point_that_never_counted_is_still_told() -> None:
    plan = records.a_plan(repetitions=2)
    cells = [measured(cell, outcome="failed") for cell in plan.cells]
    for summary in summarise(plan, cells):
        assert (summary.metric, summary.median, summary.n) == ("iops", None, 0)
        assert summary.reason.startswith("no repetition counts:")
        assert summary.interval == "none"
    assert {s.excluded for s in summarise(plan, cells) if s.purpose == "measure"} == {2}


def test_a_percentile_that_one_repetition_lacks_has_no_summary() -> None:
    plan = records.a_plan(repetitions=3)
    cells = [
        measured(
            cell,
            number("latency_p99", None, why="too few I/Os")
            if cell.repetition == 1
            else number("latency_p99", 0.5),
        )
        for cell in plan.cells
    ]
    found = next(s for s in summarise(plan, cells) if s.purpose == "measure")
    assert (found.n, found.median) == (0, None)
    assert found.reason == "too few I/Os (in 1 of 3 repetitions)"


def test_a_number_that_one_repetition_does_not_even_have_is_missed() -> None:
    plan = records.a_plan(repetitions=3)
    cells = [
        measured(
            cell,
            number("iops", 5.0),
            *(() if cell.repetition == 2 else (number("request_rate", 1.0),)),
        )
        for cell in plan.cells
    ]
    cells = list(with_lacking(cells))
    found = {s.metric: s for s in summarise(plan, cells) if s.purpose == "measure"}
    assert (found["iops"].n, found["iops"].reason) == (3, "")
    lacks = found["request_rate"]
    assert (lacks.n, lacks.median) == (0, None)
    assert lacks.reason == "the cell did not give this number (in 1 of 3 repetitions)"


@pytest.mark.parametrize(
    ("share", "count", "doubt"),
    [
        (100.0, 5, "few requests: 15 of 15 in all repetitions tell of a share of 78 to 100 %"),
        (50.0, 100, "few requests: 150 of 300 in all repetitions tell of a share of 44 to 56 %"),
        (100.0, 50, None),
        (99.0, 1000, None),
    ],
)
def test_a_share_of_few_requests_is_doubted(share: float, count: int, doubt: str | None) -> None:
    plan = records.a_plan(repetitions=3)
    one = msgspec.structs.replace(number("deadline_hit_share", share), io_count=count)
    found = next(s for s in summarise(plan, [measured(c, one) for c in plan.cells]) if s.n == 3)
    assert found.median == share
    assert found.doubts == ((doubt,) if doubt else ())


def table_run() -> MeasuredRun:
    plan = records.a_plan()
    cells = [
        measured(c, number("iops", 5.0), number("latency_p99", None, why='too few, "really"'))
        for c in plan.cells
    ]
    return run_of(plan, cells)


def test_the_table_is_tidy_and_says_its_units() -> None:
    run = table_run()
    table = measurements_table(run)
    assert list(table.columns) == list(COLUMNS)
    assert len(table) == 2 * len(run.cells)
    assert set(zip(table["metric"], table["unit"], strict=True)) == {
        ("iops", "1/s"),
        ("latency_p99", "s"),
    }
    assert table["value"].isna().sum() == len(run.cells)
    assert msgspec.json.decode(table["parameters"].iloc[-1]) == run.cells[-1].cell.parameters


def test_the_csv_reads_back_as_the_same_table(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(to_csv(table_run()))
    table = pd.read_csv(path, dtype=COLUMNS, keep_default_na=False, na_values={"value": [""]})
    check_table(table)
    assert table["value"].isna().sum() == len(table) / 2


def test_an_empty_run_has_a_table_without_rows() -> None:
    table = measurements_table(run_of(records.a_plan(), []))
    assert len(table) == 0
    assert to_csv(run_of(records.a_plan(), [])).startswith("run_id,cell_id,repetition")


def test_a_table_that_is_not_one_is_refused() -> None:
    table = measurements_table(table_run())
    with pytest.raises(StoreError, match="columns"):
        check_table(table.drop(columns="unit"))
    with pytest.raises(StoreError, match="metric iops is in GB/s"):
        check_table(table.assign(unit="GB/s"))
    with pytest.raises(StoreError, match="two rows of"):
        check_table(pd.concat([table, table.iloc[:1]]))
    with pytest.raises(StoreError, match="io_count is float64"):
        check_table(table.astype({"io_count": "float64"}))


def test_cells_that_cannot_be_read_fail_and_the_others_stay(tmp_path: Path) -> None:
    plan = records.a_plan(repetitions=1)
    texts = ["", "{", recorded("21-sqpoll-clat-bogus/plain.json"), "garbage\n{}\n"]
    stored = [
        archive(tmp_path, launch(cell, text), text)
        for cell, text in zip(plan.cells, texts, strict=False)
    ]
    found = measure_run(
        RunArchive(
            folder=tmp_path,
            record=records.a_run_record(plan),
            end=None,
            cells=tuple(stored),
            damage=("cell 9 is damaged",),
        )
    )
    assert {cell.outcome for cell in found.cells} == {"failed"}
    assert all(cell.findings for cell in found.cells)
    assert found.damage == ("cell 9 is damaged",)


def test_an_output_that_cannot_be_opened_is_a_finding(tmp_path: Path) -> None:
    cell = records.a_plan().cells[0]
    stored = archive(tmp_path, launch(cell), "")
    (stored.folder / "fio.json").unlink()
    (stored.folder / "fio.json").mkdir()
    found = measure_cell(stored, records.a_run_record())
    assert found.outcome == "failed"
    assert "cannot be read" in found.findings[-1].text
