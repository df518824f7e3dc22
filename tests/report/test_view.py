"""What a reader sees, as data, before any drawing."""

import numpy as np
import pytest
from msgspec.structs import replace

from kvbench.host.model import Fact
from kvbench.measure.model import Finding, MeasuredCell, MeasuredRun
from kvbench.plan import Scaled
from kvbench.report import text, view
from kvbench.report.curves import CURVES_MAX, quantiles
from kvbench.report.model import BarPanel, CurvePanel, LinePanel, Panel, ReportView, Row, Value
from kvbench.report.tables import COLUMNS_MAX
from kvbench.store.preparation import NOT_PREPARED
from kvbench.units import GIB, KIB
from kvbench.workload.schema import SweepAxis
from tests.report.example import (
    BLOCKS,
    CHUNKS,
    SPARSE,
    STEPS,
    TENANTS,
    all_valid,
    job_texts,
    ladder,
    make_run,
    never_written,
)


def seen(run: MeasuredRun) -> ReportView:
    return view.build(run, job_texts(run))


@pytest.fixture(scope="module")
def report() -> ReportView:
    return seen(make_run())


def rows_of(report: ReportView, workload: str) -> list[Row]:
    return [
        row
        for role in report.roles
        for table in role.tables
        for group in table.groups
        if group.workload == workload
        for row in group.rows
    ]


def value_of(report: ReportView, workload: str, row: int, metric: str) -> Value:
    for role in report.roles:
        for table in role.tables:
            columns = [column.metric for column in table.columns]
            for group in table.groups:
                if group.workload == workload:
                    value = group.rows[row].values[columns.index(metric)]
                    assert value is not None
                    return value
    raise AssertionError(workload)


def test_the_verdict_says_what_was_tested_and_how_it_went(report: ReportView) -> None:
    assert report.verdict == (
        "results/target.bin (file, 4 GiB): suite quick, 5 workloads, 3 repetitions. "
        "78 cells: 64 valid, 12 doubtful, 1 invalid, 1 failed, and 15 of the host's ceiling; "
        "the run is complete."
    )
    assert report.state == "bad"


def test_a_clean_run_is_not_doubtful() -> None:
    report = seen(make_run([BLOCKS], judge=all_valid, repetitions=8))
    (time,) = report.doubts
    assert (time.level, time.text) == (
        "note",
        "no cell ran longer than 1 s: nothing is said of sustained load",
    )
    assert report.alerts == ()
    assert report.problems == ()
    assert report.state == "note"


def test_what_a_measurement_leaves_open_is_said() -> None:
    run = make_run([BLOCKS], judge=all_valid, repetitions=8)
    facts = (
        Fact(name="virtual_machine", value="yes"),
        Fact(name="device_bytes", value=str(256 * GIB)),
    )
    record = replace(run.record, facts=facts)
    texts = [doubt.text for doubt in seen(replace(run, record=record)).doubts]
    assert any(text.startswith("a virtual machine") for text in texts)
    assert any("of the 256 GiB device were touched" in text for text in texts)


def test_doubts_are_worst_first(report: ReportView) -> None:
    levels = [doubt.level for doubt in report.doubts]
    assert levels == sorted(levels, key=["bad", "doubt", "note"].index)
    assert report.doubts[0].text.startswith("failed: 1 cell")


def test_a_buffered_run_is_loudly_page_cache_bound() -> None:
    report = seen(make_run([BLOCKS], direct=False, written="buffered", judge=all_valid))
    assert report.alerts[0].startswith("page-cache-bound")
    assert "page-cache-bound" in report.verdict
    assert report.state == "bad"


def test_another_engine_is_loud() -> None:
    report = seen(make_run([BLOCKS], engine="libaio", judge=all_valid))
    assert any("libaio was used instead of io_uring" in alert for alert in report.alerts)
    assert "engine libaio" in report.verdict


def test_a_device_without_proof_of_a_fill_says_so_beside_every_read() -> None:
    report = seen(
        make_run(
            [ladder()],
            path="/dev/loop7",
            kind="block",
            written="unproven",
            may_write=False,
            judge=never_written,
        )
    )
    assert "(block device, 4 GiB)" in report.verdict
    assert any("ever written" in alert for alert in report.alerts)
    for row in rows_of(report, "iops-ladder"):
        assert all(value is None or value.marks == ("a",) for value in row.values)
    assert [note.mark for note in report.roles[0].tables[0].notes] == ["a"]
    assert report.facts[0].facts[4].known is False


def test_an_interrupted_run_says_how_far_it_came() -> None:
    report = seen(make_run([BLOCKS], end="interrupted", cells_done=6))
    assert "the run was interrupted (stopped by Ctrl-C); 6 of 16 cells were stored" in (
        report.verdict
    )
    assert report.problems[-1].outcome == "not stored"
    assert len(report.problems[-1].cells) == 10


def test_a_point_that_was_never_run_is_shown_as_not_run() -> None:
    report = seen(make_run([BLOCKS], end="interrupted", cells_done=5))
    texts = [value_of(report, "block-reload", row, "bandwidth").text for row in range(4)]
    assert texts.count("not run") == 3


def test_a_killed_run_has_no_end() -> None:
    assert "the run has no end" in seen(make_run([BLOCKS], end=None, cells_done=6)).verdict


def test_a_run_that_calls_itself_complete_and_is_not_is_told() -> None:
    assert (
        "says that it is complete, but only 9 of 16"
        in seen(make_run([BLOCKS], cells_done=9)).verdict
    )


def test_damage_is_the_first_doubt() -> None:
    report = seen(make_run([BLOCKS], damage=("cells/0003/cell.json: is damaged: truncated",)))
    assert "could not be read: cells/0003/cell.json" in report.doubts[0].text
    assert any("damaged: 1 part" in alert for alert in report.alerts)


def test_a_skipped_workload_is_told_with_its_reason() -> None:
    report = seen(make_run([BLOCKS, CHUNKS], kind="block", may_write=False))
    assert any("chunk-write was not run: it writes" in doubt.text for doubt in report.doubts)


def test_few_repetitions_are_told_and_enough_are_not() -> None:
    assert any("3 repetitions give a range" in d.text for d in seen(make_run([BLOCKS])).doubts)
    eight = seen(make_run([BLOCKS], repetitions=8))
    assert not any("repetitions give" in d.text for d in eight.doubts)
    assert "95 % interval, n=8" in value_of(eight, "block-reload", 0, "bandwidth").detail


def test_unknown_facts_are_unknown_with_their_reason_and_never_zero() -> None:
    facts = (
        Fact(name="device_model", value=None, reason="the device does not tell"),
        Fact(name="memory_bytes", value=str(8 * 1024**3)),
    )
    target, host = seen(make_run([BLOCKS], facts=facts)).facts
    model = next(fact for fact in target.facts if fact.name == "device model")
    assert (model.value, model.known) == ("unknown", False)
    assert model.reason == "the device does not tell"
    assert ("memory size", "8 GiB") in {(fact.name, fact.value) for fact in host.facts}


def test_projected_workloads_have_a_table_of_their_own(report: ReportView) -> None:
    for role in report.roles:
        for table in role.tables:
            kinds = {group.evidence == "projected" for group in table.groups}
            assert kinds == {table.projected}


def test_primary_metrics_have_columns_and_are_marked(report: ReportView) -> None:
    value = value_of(report, "iops-ladder", 0, "latency_p99")
    assert value.primary
    assert not value_of(report, "iops-ladder", 0, "latency_p50").primary
    assert value.text.endswith("µs")
    assert value.detail.endswith("range of n=3")


def test_doubts_stand_beside_the_numbers_that_they_concern(report: ReportView) -> None:
    for row in rows_of(report, "iops-ladder"):
        expected = ("a",) if "depth 64" in row.parameters else ()
        assert {value.marks for value in row.values if value is not None} == {expected}


def test_a_doubt_that_a_summary_counted_keeps_its_mark() -> None:
    run = make_run([ladder()])
    counted = tuple(
        replace(s, doubts=tuple(f"{text} (1 of 3 repetitions)" for text in s.doubts))
        for s in run.summaries
    )
    report = seen(replace(run, summaries=counted))
    assert [doubt.mark for doubt in report.doubts if doubt.mark] == ["a"]
    assert value_of(report, "iops-ladder", 6, "iops").marks == ("a",)


def test_excluded_repetitions_are_counted(report: ReportView) -> None:
    assert value_of(report, "block-reload", 2, "bandwidth").detail.endswith("n=2 of 3")


def test_tenants_have_rows_mixed_and_alone_and_their_ratio(report: ReportView) -> None:
    rows = rows_of(report, "three-tenants")
    assert [row.setting for row in rows] == ["mixed"] * 3 + ["alone"] * 3
    assert value_of(report, "three-tenants", 0, "latency_p99").versus == "2.40 x alone"
    assert value_of(report, "three-tenants", 3, "latency_p99").versus == ""


def test_a_mixed_stream_has_a_row_per_direction(report: ReportView) -> None:
    streams = [row.stream for row in rows_of(report, "chunk-write")]
    assert streams == ["chunks, reads", "chunks, writes"]
    assert value_of(report, "chunk-write", 1, "latency_p99").text == "≥ 17.1 s"


def test_too_few_ios_are_said_in_words() -> None:
    value = value_of(seen(make_run()), "block-reload", 0, "latency_p99")
    assert value.text == "too few I/Os"
    assert value.detail.endswith("of 1,000 needed")
    assert not value.known


def test_problems_name_every_cell_with_its_reason(report: ReportView) -> None:
    outcomes = [problem.outcome for problem in report.problems]
    assert outcomes[:2] == ["failed", "invalid"]
    assert sum(len(problem.cells) for problem in report.problems) == 14
    assert "asked for 1.0 s, fio measured 0.4 s" in report.problems[1].reasons[0]


def test_every_cell_has_a_row_and_its_exact_job_text(report: ReportView) -> None:
    run = make_run()
    texts = job_texts(run)
    shown = {job.cell_id: job.text for group in report.jobs for job in group.jobs}
    assert shown == texts
    assert [cell.cell_id for cell in report.cells] == [c.cell_id for c in run.record.plan.cells]


def test_a_missing_job_text_is_none() -> None:
    report = view.build(make_run([BLOCKS]), {})
    assert {job.text for group in report.jobs for job in group.jobs} == {None}


def test_the_command_is_exact_and_quoted() -> None:
    report = seen(make_run([BLOCKS], path="/dev/a file; rm", may_write=True))
    assert report.command == "kvbench run '/dev/a file; rm' --suite quick"
    assert ("seed of the plan", "7") in {(fact.name, fact.value) for fact in report.repeat}


def test_the_method_says_only_what_applies() -> None:
    terms = {term for term, _ in seen(make_run()).method}
    assert {"Throughput shape", "Request time", "Open loop", "Tenants"} <= terms
    plain = {term for term, _ in seen(make_run([BLOCKS])).method}
    assert not {"Throughput shape", "Request time", "Open loop", "Tenants"} & plain


def panels(report: ReportView) -> list[Panel]:
    return [p for role in report.roles for figure in role.figures for p in figure.panels]


def test_curves_end_where_ten_ios_lie_beyond() -> None:
    run = make_run([SPARSE], judge=all_valid)
    histograms = [h for c in run.cells for h in c.histograms if h.what == "request"]
    (panel,) = [p for p in panels(seen(run)) if isinstance(p, CurvePanel)]
    (curve,) = panel.curves
    least = min(int(h.counts.sum()) for h in histograms)
    assert curve.percent[-1] == pytest.approx(100 * (1 - 10 / least))
    assert curve.percent[0] == pytest.approx(50.0)
    assert len(curve.repetitions) == 3
    assert len(curve.percent) <= 200
    assert list(curve.latency_s) == sorted(curve.latency_s)


def test_a_curve_agrees_with_the_nearest_rank() -> None:
    (histogram,) = [
        h for h in make_run([BLOCKS], repetitions=1).cells[-1].histograms if h.what == "latency"
    ]
    samples = np.repeat(histogram.latency_s, histogram.counts)
    rank = int(np.ceil(0.9 * samples.size)) - 1
    assert quantiles(histogram, np.array([1.0]))[0] == np.sort(samples)[rank]


def test_a_barrier_is_drawn_as_request_times() -> None:
    (panel,) = [p for p in panels(seen(make_run([SPARSE]))) if isinstance(p, CurvePanel)]
    assert panel.y_label == "request time (log scale)"
    assert "requests" in panel.x_label


def test_a_large_sweep_draws_whole_ladders_and_says_how_many() -> None:
    report = seen(make_run([ladder((512, 1 * KIB, 2 * KIB, 4 * KIB), (1, 2, 4))]))
    figures = report.roles[0].figures
    (curves,) = [p for f in figures for p in f.panels if isinstance(p, CurvePanel)]
    assert len(curves.curves) == CURVES_MAX
    assert "8 of 48 lines are drawn" in figures[-1].how_to_read
    assert "8 of 12 lines are drawn" in figures[0].how_to_read


OVERRUN = "overloaded: offered 9k/s, achieved 5k/s"


def overrun(cell: MeasuredCell) -> MeasuredCell:
    """Return a cell whose lookups, mixed with others, have no percentiles."""
    if cell.cell.alone is not None:
        return cell
    lost = tuple(
        replace(m, value=None, reason=OVERRUN)
        if m.stream == "lookup" and m.metric.startswith("latency_p")
        else m
        for m in cell.measurements
    )
    return replace(cell, measurements=lost)


def test_no_curve_is_drawn_of_repetitions_whose_percentiles_do_not_count() -> None:
    run = make_run([TENANTS], judge=all_valid)
    whole, lost = (
        next(f for f in seen(one).roles[0].figures if "percentiles" in f.title)
        for one in (run, replace(run, cells=tuple(overrun(cell) for cell in run.cells)))
    )
    before, after = (
        [curve.label for p in figure.panels if isinstance(p, CurvePanel) for curve in p.curves]
        for figure in (whole, lost)
    )
    assert set(before) - set(after) == {"lookup, mixed"}
    assert "Not drawn: lookup, mixed (overloaded)." in lost.how_to_read
    assert "Not drawn" not in whole.how_to_read


def test_one_overloaded_repetition_is_no_part_of_its_curve() -> None:
    run = make_run([TENANTS], judge=all_valid)
    cells = tuple(overrun(cell) if cell.cell.repetition == 2 else cell for cell in run.cells)
    figures = seen(replace(run, cells=cells)).roles[0].figures
    figure = next(f for f in figures if "percentiles" in f.title)
    curves = [c for p in figure.panels if isinstance(p, CurvePanel) for c in p.curves]
    drawn = {curve.label: len(curve.repetitions) for curve in curves}
    assert drawn["lookup, mixed"] == 2
    assert drawn["lookup, alone"] == 3
    assert "lookup, mixed (1 of 3 repetitions: overloaded)" in figure.how_to_read


def test_too_few_ios_draw_no_curve() -> None:
    run = make_run([BLOCKS])
    cells = tuple(
        replace(
            cell,
            histograms=tuple(
                replace(h, latency_s=h.latency_s[:1], counts=np.array([19]))
                for h in cell.histograms
            ),
        )
        for cell in run.cells
    )
    found = panels(seen(replace(run, cells=cells)))
    assert not any(isinstance(panel, CurvePanel) for panel in found)


def test_depth_is_drawn_with_every_repetition_as_a_dot(report: ReportView) -> None:
    rate, latency = [p for p in panels(report) if isinstance(p, LinePanel)][:2]
    assert rate.from_zero
    assert not latency.from_zero
    assert [series.label for series in rate.series] == [
        "512 B, 1 job",
        "512 B, 2 jobs",
        "4 KiB, 1 job",
        "4 KiB, 2 jobs",
    ]
    assert rate.series[0].x == (1.0, 4.0, 16.0, 64.0)
    assert len(rate.series[0].dots) == 12


def test_a_workload_that_asks_for_bandwidth_is_drawn_as_bandwidth(report: ReportView) -> None:
    assert any(p.unit == "B/s" for p in panels(report) if isinstance(p, LinePanel))


def test_one_depth_is_never_a_plot() -> None:
    axis = replace(BLOCKS.sweep[0], values=(4,))
    found = panels(seen(make_run([replace(BLOCKS, sweep=(axis,))])))
    assert not any(isinstance(panel, LinePanel) for panel in found)


def test_tenants_are_drawn_alone_and_mixed(report: ReportView) -> None:
    latency, rate = [p for p in panels(report) if isinstance(p, BarPanel)]
    assert [group.label for group in latency.groups] == ["lookup", "reload", "writer"]
    assert [bar.label for bar in latency.groups[0].bars] == ["alone", "mixed"]
    assert all(len(bar.dots) == 3 for group in rate.groups for bar in group.bars)


def test_tenants_with_too_few_ios_for_a_p99_are_drawn_at_their_median() -> None:
    run = make_run([TENANTS])
    few = tuple(
        replace(s, median=None, values=(), reason="too few I/Os: 1 of 1,000 needed")
        if s.metric == "latency_p99"
        else s
        for s in run.summaries
    )
    (latency, _) = [p for p in panels(seen(replace(run, summaries=few))) if isinstance(p, BarPanel)]
    assert {group.metric for group in latency.groups} == {"latency_p50"}


def test_tenants_that_trim_or_pause_are_drawn_like_the_others() -> None:
    lookup, reload, writer = TENANTS.streams
    streams = (
        lookup,
        replace(writer, name="bursts", direction="write", burst_ios=16, pause_s=0.1),
        replace(reload, name="deletes", direction="trim"),
    )
    workload = replace(TENANTS, streams=streams, primary=("lookup.latency_p99", "deletes.iops"))
    report = seen(make_run([workload], judge=all_valid))
    latency, rate = [p for p in panels(report) if isinstance(p, BarPanel)]
    assert [group.label for group in latency.groups] == ["lookup", "bursts", "deletes"]
    assert [group.metric for group in rate.groups] == ["iops", "iops", "iops"]
    rows = rows_of(report, "three-tenants")
    assert "256 KiB trims in random 32 MiB chunks" in rows[2].parameters
    assert "bursts of 16, pause 100 ms" in rows[1].parameters


def test_workloads_that_share_little_have_tables_of_their_own() -> None:
    report = seen(make_run([BLOCKS, STEPS], judge=all_valid))
    captions = [table.caption for table in report.roles[0].tables]
    assert captions == [
        "Performance: measured results, single I/Os",
        "Performance: measured results, requests beside computing",
    ]
    for table in report.roles[0].tables:
        assert len([c for c in table.columns if not c.narrow]) <= COLUMNS_MAX


def test_a_large_io_is_shown_with_what_the_device_saw_of_it() -> None:
    report = seen(make_run([STEPS], judge=all_valid))
    assert {row.device for row in rows_of(report, "layer-pipeline")} == {
        "device: 2.10 requests per I/O, 512 KiB in the mean"
    }
    (group,) = report.roles[0].tables[0].groups
    assert group.derivation.startswith("one layer of llama-3.1-8b")
    assert "+ p50 stall 4.00 ms" in text.render(report)


def test_what_was_made_smaller_is_told() -> None:
    run = make_run([BLOCKS])
    scaled = (Scaled(workload="block-reload", text="32 jobs became 8"),)
    plan = replace(run.record.plan, scaled=scaled)
    report = seen(replace(run, record=replace(run.record, plan=plan)))
    assert any(
        d.text == "workload block-reload was fitted to the target: 32 jobs became 8"
        for d in report.doubts
    )


def test_a_metric_whose_name_has_a_dot_keeps_its_column() -> None:
    workload = replace(BLOCKS, primary=("blocks.latency_p99.9",))
    (table,) = seen(make_run([workload], judge=all_valid)).roles[0].tables
    assert "latency_p99.9" in [column.metric for column in table.columns]
    assert not any(column.metric.startswith("9") for column in table.columns)


def test_every_figure_has_a_question_a_description_and_its_numbers(report: ReportView) -> None:
    for role in report.roles:
        for figure in role.figures:
            assert figure.question.endswith("?")
            assert figure.table.rows
            assert all(panel.description for panel in figure.panels)


def test_cells_of_a_workload_that_the_plan_lacks_are_told() -> None:
    run = make_run([BLOCKS, CHUNKS])
    plan = replace(run.record.plan, workloads=(BLOCKS,))
    report = seen(replace(run, record=replace(run.record, plan=plan)))
    assert any("left out: chunk-write" in doubt.text for doubt in report.doubts)


def test_a_run_without_any_cell_is_a_report() -> None:
    report = seen(make_run(end="interrupted", cells_done=0))
    assert "0 of 93 cells were stored" in report.verdict
    assert all(not role.figures for role in report.roles)


@pytest.mark.parametrize("state", ["broken", "unknown", "holds"])
def test_a_device_that_is_not_steady_is_told_before_any_number(state: str) -> None:
    condition = replace(NOT_PREPARED, state=state, text="<written> since", steady="not steady")
    run = make_run()
    run = replace(run, record=replace(run.record, condition=condition))
    assert any("<written> since" in alert for alert in seen(run).alerts)


def test_a_steady_device_and_one_without_a_record_raise_no_alert_of_their_own() -> None:
    steady = replace(NOT_PREPARED, state="holds", covered=True, steady="steady")
    for condition in (steady, NOT_PREPARED, None):
        run = make_run()
        run = replace(run, record=replace(run.record, condition=condition))
        assert not any("steady state" in alert for alert in seen(run).alerts)


def test_a_cell_has_one_place_to_link_to_whatever_an_archive_calls_it() -> None:
    run = make_run([BLOCKS], judge=never_written)
    cells = list(run.record.plan.cells)
    cells[1] = replace(cells[1], cell_id='"><b>')
    cells[2] = replace(cells[2], cell_id=cells[0].cell_id)
    plan = replace(run.record.plan, cells=tuple(cells))
    found = view.build(replace(run, record=replace(run.record, plan=plan)), {})
    anchors = [cell.anchor for cell in found.cells]
    assert anchors[:3] == [f"cell-{cells[0].cell_id}", "cell-at-2", ""]
    assert anchors.count(anchors[0]) == 1
    assert all(set(problem.anchors) <= {*anchors, ""} for problem in found.problems)
    assert all(len(problem.anchors) == len(problem.cells) for problem in found.problems)


def test_a_value_carries_the_number_that_it_is_sorted_by() -> None:
    found = view.build(make_run([BLOCKS]), {})
    values = [
        value
        for role in found.roles
        for table in role.tables
        for group in table.groups
        for row in group.rows
        for value in row.values
        if value is not None
    ]
    assert any(value.raw is not None and value.raw < 1 for value in values)  # seconds
    assert all((value.raw is not None) == value.known for value in values)


def test_a_ceiling_that_is_not_known_is_a_note_and_no_number_of_the_device() -> None:
    run = make_run(judge=all_valid)
    finding = Finding(check="runtime", severity="invalid", text="ran 0.7 s")
    first = replace(run.cells[0], outcome="invalid", findings=(finding,))
    first = replace(first, cell=replace(first.cell, purpose="ceiling"))
    doubts = seen(replace(run, cells=(first, *run.cells[1:]))).doubts
    assert not [doubt for doubt in doubts if doubt.level == "bad"]
    (note,) = [doubt.text for doubt in doubts if "ceilings are not known" in doubt.text]
    assert "ran 0.7 s" in note


def test_a_span_that_the_target_cut_short_is_shown_beside_the_one_that_was_asked() -> None:
    (stream,) = BLOCKS.streams
    asked = replace(BLOCKS, streams=(replace(stream, span_limit_bytes=64 * GIB),))
    (table,) = view.build(make_run((asked,)), {}).roles[0].tables
    texts = {row.parameters for row in table.groups[0].rows}
    assert len(texts) == 4
    assert all("in 4 GiB (asked for 64 GiB)" in text for text in texts)

    fits = replace(BLOCKS, streams=(replace(stream, span_limit_bytes=2 * GIB),))
    (table,) = view.build(make_run((fits,)), {}).roles[0].tables
    assert all("in 2 GiB, " in row.parameters for row in table.groups[0].rows)


def test_the_last_point_of_a_sweep_of_spans_that_was_cut_says_so() -> None:
    def spans(*sizes: int) -> list[str]:
        sweep = (SweepAxis(stream="blocks", field="span_size", values=sizes),)
        run = make_run((replace(BLOCKS, sweep=sweep),), judge=all_valid)
        (table,) = view.build(run, {}).roles[0].tables
        return [row.parameters for row in table.groups[0].rows]

    assert spans(GIB, 64 * GIB)[1].endswith("in 4 GiB, 1 job, all that the target has")
    assert "all that the target has" not in spans(GIB, 64 * GIB)[0]
    assert not any("all that the target has" in text for text in spans(GIB, 2 * GIB))
