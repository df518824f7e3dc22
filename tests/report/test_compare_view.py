"""What is shown of a comparison, apart from any drawing."""

import csv
import io
import json

import pytest
from msgspec.structs import replace

from kvbench.compare.model import Difference
from kvbench.host.model import Written
from kvbench.report import compare_csv
from kvbench.report.compare_doubts import share_marks
from kvbench.report.compare_model import CompareView
from kvbench.report.compare_words import letter, unknown_words, verdict_words
from kvbench.report.doubts import Marks
from kvbench.report.model import CurvePanel, Doubt, LinePanel
from tests.report.example import BLOCKS, NEW, ladder
from tests.report.sides import MANY, SMALL, compared, drive, view_of


@pytest.fixture(scope="module")
def view() -> CompareView:
    return view_of([drive("alpha", jitter=1), drive("beta", slower=0.7, jitter=2)])


def test_letters_go_on_after_z() -> None:
    assert [letter(n) for n in (0, 25, 26, 27, 702)] == ["A", "Z", "AA", "AB", "AAA"]


def test_the_verdict_names_the_winner_of_each_role(view: CompareView) -> None:
    assert view.verdict == "memory: B (beta) is best; performance: B (beta) is best."
    assert [(w.role, w.winner and w.winner.letter) for w in view.winners] == [
        ("memory", "B"),
        ("performance", "B"),
    ]
    assert view.state == "note"


def test_the_headline_cannot_say_who_is_best_by_reads_never_proven_written() -> None:
    written = Written(state="unproven", reason="no record of a fill")
    runs = [drive("alpha", jitter=1), drive("beta", slower=0.7, jitter=2)]
    view = view_of([replace(r, record=replace(r.record, written=written)) for r in runs])
    why = "cannot say: on A, B the reads were of blocks never proven written"
    assert view.verdict == f"memory: {why}; performance: {why}."
    assert {(winner.winner, winner.text) for winner in view.winners} == {(None, why)}
    assert view.state == "doubt"


def test_only_the_first_side_has_no_verdict(view: CompareView) -> None:
    for role in view.roles:
        for workload in role.workloads:
            for row in workload.rows:
                assert [bool(cell.verdict) for cell in row.cells] == [False, True]
                assert row.cells[1].verdict == "BETTER"
                assert row.cells[1].change.endswith(" %")
                assert " to " in row.cells[1].change_interval


def test_numbers_stand_along_the_sweep_and_primary_ones_apart(view: CompareView) -> None:
    memory = view.roles[0]
    (table,) = memory.workloads
    assert [row.parameters for row in table.rows[::2]] == [
        f"512 B, depth {depth}, 1 job" for depth in (1, 4, 16, 64)
    ]
    assert {row.metric for row in table.rows} == {"IOPS", "p99 latency"}
    assert {row.metric for row in memory.more[0].rows} >= {"Bandwidth", "p50 latency"}
    assert "BETTER" in memory.others


def test_runs_of_one_drive_stand_under_one_heading_whatever_its_path() -> None:
    runs = [drive("a", serial="S1"), drive("b", serial="S2"), drive("c", serial="S1")]
    plan = replace(runs[2].record.plan.target, path="/dev/elsewhere")
    moved = replace(runs[2].record, plan=replace(runs[2].record.plan, target=plan))
    view = view_of([runs[0], runs[1], replace(runs[2], record=moved)])
    assert [(d.name, [s.letter for s in d.sides]) for d in view.devices] == [
        ("ACME 9000 S1", ["A", "C"]),
        ("ACME 9000 S2", ["B"]),
    ]
    assert "elsewhere" not in repr(view)
    assert [side.letter for side in view.sides] == ["A", "B", "C"]


def test_what_must_not_differ_comes_first_and_nothing_is_concluded() -> None:
    view = view_of([drive("a"), drive("b", slower=0.5, kernel="6.9.0")])
    assert view.differences[0].aspect == "kernel"
    assert view.differences[0].effect == "blocks"
    assert view.differences[0].text == "kernel: 6.1.0 (A), 6.9.0 (B)"
    assert view.verdict.startswith("INCOMPARABLE: kernel must not differ and does")
    assert view.state == "bad"
    assert view.doubts[0].level == "bad"
    verdicts = {c.verdict for r in view.roles for w in r.workloads for n in w.rows for c in n.cells}
    assert verdicts == {"", "INCOMPARABLE"}


def test_a_reason_that_all_share_is_said_once() -> None:
    view = view_of([drive("a", repetitions=3), drive("b", repetitions=3, jitter=1)])
    for role in view.roles:
        for workload in role.workloads:
            assert "3 repetitions cannot show a difference" in workload.common
            said = [cell.reason for row in workload.rows for cell in row.cells]
            assert not any("cannot show" in reason for reason in said)
    assert "A has 3, B has 3" in view.decides
    assert any("must stay UNCLEAR" in doubt.text for doubt in view.doubts)
    assert view.reasons[0].startswith("16 UNCLEAR: 3 and 3 repetitions")


def test_an_incomplete_run_is_told_first() -> None:
    view = view_of([drive("a"), drive("b", cells_done=20)])
    assert view.doubts[0].text.startswith("run B: ")
    assert "cells are missing" in view.doubts[0].text
    assert view.sides[1].incomplete


def test_what_one_run_lacks_is_missing_and_its_workload_is_listed() -> None:
    view = view_of([drive("a", workloads=SMALL[:1]), drive("b", workloads=SMALL)])
    assert view.unshared == ("block-reload: only in B",)
    assert [role.role for role in view.roles] == ["memory"]  # what one run alone has is no row
    view = view_of(
        [drive("a", workloads=SMALL[:1]), drive("b", workloads=SMALL), drive("c", workloads=SMALL)]
    )
    performance = view.roles[1]
    assert performance.counts == "16 MISSING"
    first = performance.workloads[0].rows[0].cells
    assert (first[0].value, first[0].known, first[1].known) == ("not in this run", False, True)


def test_runs_that_share_nothing_are_inconclusive() -> None:
    comparison = compared([drive("a", workloads=SMALL[:1]), drive("b", workloads=SMALL[1:])])
    assert verdict_words(comparison).startswith("INCONCLUSIVE: the runs share no number")


def test_a_side_keeps_its_colour_and_a_panel_at_most_eight_lines() -> None:
    runs = [drive(f"d{n}", jitter=n, workloads=(ladder(), BLOCKS), repetitions=3) for n in range(8)]
    figures = [figure for role in view_of(runs).roles for figure in role.figures]
    panels = [panel for figure in figures for panel in figure.panels]
    assert any(isinstance(panel, LinePanel) for panel in panels)
    assert any(isinstance(panel, CurvePanel) for panel in panels)
    for panel in panels:
        lines = panel.series if isinstance(panel, LinePanel) else ()
        curves = panel.curves if isinstance(panel, CurvePanel) else ()
        drawn = [(line.label, line.colour) for line in lines]
        drawn += [(curve.label, curve.colour) for curve in curves]
        assert 0 < len(drawn) <= 8
        for label, colour in drawn:
            assert label.startswith(f"{letter(colour)}: ")
    ids = [figure.figure_id for figure in figures]
    assert len(ids) == len(set(ids))


def test_curves_over_load_and_span_lie_over_each_other_with_every_repetition() -> None:
    runs = [drive(n, jitter=k, workloads=NEW) for k, n in enumerate(("a", "b"))]
    figures = [figure for role in view_of(runs).roles for figure in role.figures]
    load = next(f for f in figures if "offered load" in f.title)
    (panel,) = load.panels
    assert isinstance(panel, LinePanel)
    assert {line.label for line in panel.series} >= {"A: p99", "B: p99"}
    assert all(len(line.dots) > len(line.x) for line in panel.series)
    names = " ".join(rule.short_label for rule in panel.rules if rule.axis == "x")
    assert "A usable" in names
    assert "B usable" in names
    assert sum(rule.axis == "y" for rule in panel.rules) == 1
    assert any("span" in figure.title for figure in figures)


def test_percentile_curves_have_a_line_per_run_and_their_numbers_below() -> None:
    view = view_of([drive("a", workloads=MANY), drive("b", workloads=MANY, slower=2)])
    figure = next(f for f in view.roles[0].figures if "percentiles" in f.title)
    assert len(figure.panels) == 2
    for panel in figure.panels:
        assert isinstance(panel, CurvePanel)
        assert [curve.label for curve in panel.curves] == ["A: a", "B: b"]
        first, second = panel.curves
        assert second.latency_s[0] == pytest.approx(2 * first.latency_s[0])
        assert len(first.repetitions) == 8
    assert len(figure.table.rows) == 4


def test_the_csv_has_a_row_per_number_and_run_with_documented_columns() -> None:
    runs = [drive("a", jitter=1), drive("b", slower=0.7, jitter=2)]
    comparison = compared(runs)
    rows = list(csv.DictReader(io.StringIO(compare_csv.to_csv(comparison))))
    assert tuple(rows[0]) == compare_csv.COLUMNS
    assert len(rows) == 2 * len(comparison.rows)
    pair = [r for r in rows if r["metric"] == "iops" and r["workload"] == "iops-ladder"][:2]
    a, b = pair
    assert (a["side"], b["side"], a["verdict"], b["verdict"]) == ("A", "B", "", "BETTER")
    assert (a["estimate"], b["change"], b["unit"], b["primary"]) == ("", "ratio", "1/s", "True")
    assert float(b["estimate_low"]) < float(b["estimate"]) < float(b["estimate_high"])
    assert float(b["p"]) < 0.05
    assert json.loads(a["parameters"]).keys() == {"block_size", "queue_depth", "jobs"}
    assert a["device"] == "ACME 9000 S-a"


def test_an_empty_field_is_not_known_never_zero() -> None:
    comparison = compared([drive("a", workloads=SMALL[:1]), drive("b", workloads=SMALL)])
    rows = list(csv.DictReader(io.StringIO(compare_csv.to_csv(comparison))))
    lacking = [row for row in rows if row["side"] == "B" and row["value"] == ""]
    assert lacking
    for row in lacking:
        assert row["verdict"] in ("UNCLEAR", "MISSING")
        assert row["estimate"] == row["p"] == ""
        assert row["reason"]


def test_what_runs_share_has_one_mark_and_says_whose_it_is() -> None:
    runs = [drive(name, workloads=MANY, jitter=n) for n, name in enumerate("abc")]
    plain = drive("d", workloads=SMALL, jitter=4)
    every, some = (view_of(own) for own in (runs, [*runs, plain]))
    for view, who in ((every, "every run: "), (some, "runs A, B, C: ")):
        (shared,) = [doubt for doubt in view.doubts if doubt.mark]
        assert shared.mark == "a"
        assert shared.text.startswith(f"{who}overloaded")
    marks = {
        cell.marks
        for role in every.roles
        for workload in role.workloads
        for row in workload.rows
        for cell in row.cells
    }
    assert marks == {(), ("a",)}


def test_different_words_of_one_check_stay_under_one_mark() -> None:
    runs = [drive(name, workloads=SMALL) for name in "ab"]
    doubts = [
        Doubt(level="doubt", text=f"unstable ({n} cells): differ by {n}", mark="a") for n in (1, 2)
    ]
    own = [Marks({f"differ by {n}": "a"}, (doubt,)) for n, doubt in enumerate(doubts, start=1)]
    shared = share_marks(runs, own)
    (doubt,) = shared.doubts
    assert doubt.text == (
        "run A: unstable (1 cells): differ by 1; run B: unstable (2 cells): differ by 2"
    )
    assert shared.of(0, ["differ by 1"]) == shared.of(1, ["differ by 2"]) == ("a",)
    assert shared.of(0, ["differ by 2"]) == ()


def test_what_no_run_knows_is_one_doubt() -> None:
    unknown = [
        Difference(
            aspect=name, values=(None, None), effect="noted", text=f"{name}: no run knows it"
        )
        for name in ("namespace", "capacity", "pcie_link")
    ]
    half = Difference(aspect="kernel", values=("6.1", None), effect="noted", text="kernel: B")
    told = list(unknown_words([*unknown, half]))
    assert told == [
        "no run knows these, so nobody can say that they are the same: namespace, "
        "capacity (bytes), PCIe link",
        "kernel: B",
    ]
    assert list(unknown_words(unknown[:1])) == ["namespace: no run knows it"]
