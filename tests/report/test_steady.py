"""A figure says by itself that its device was not steady, wherever it is shown."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from msgspec.structs import replace

from kvbench.compare.policy import find_policy
from kvbench.gate.history import history_of
from kvbench.measure.model import MeasuredRun
from kvbench.measure.timeline import CellTimeline, StreamTimeline, Timeline, Window
from kvbench.report.figures import draw
from kvbench.report.health import with_timeline
from kvbench.report.history_html import render as render_history
from kvbench.report.history_view import build as build_history
from kvbench.report.html import drawings, figures_of, render
from kvbench.report.model import CurvePanel, HealthView, HeatPanel, ReportView
from kvbench.report.png import draw_png
from kvbench.report.steady import mark_of_runs, mark_of_sides, state_mark, steady_mark
from kvbench.report.view import build
from kvbench.store.preparation import NOT_PREPARED, Condition
from tests.report.example import BLOCKS, TENANTS, ladder, make_run
from tests.report.sides import drive, view_of
from tests.report.test_preparation import MADE

FEW = (ladder(sizes=(512,), jobs=(1,)), BLOCKS, TENANTS)
STEADY = Condition(state="holds", text="it was prepared", steady="steady")
UNSTEADY = Condition(state="holds", text="it did not become steady", steady="not steady")
BROKEN = Condition(state="broken", text="2 GiB were written since", steady="steady")
UNKNOWN = Condition(state="unknown", text="nobody can tell", steady="steady")


def of(run: MeasuredRun, condition: Condition | None) -> MeasuredRun:
    return replace(run, record=replace(run.record, condition=condition))


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (None, ""),
        (STEADY, ""),
        (UNSTEADY, "not steady"),
        (replace(UNSTEADY, steady="too few rounds"), "too few rounds to be steady"),
        (BROKEN, "not steady: changed since it was prepared"),
        (UNKNOWN, "not known to be steady"),
        (NOT_PREPARED, "not prepared to steady state"),
    ],
)
def test_a_run_is_marked_unless_its_target_is_a_file_or_still_steady(
    condition: Condition | None, words: str
) -> None:
    assert steady_mark(condition) == words


def test_a_preparation_that_did_not_settle_marks_its_own_rounds() -> None:
    assert (state_mark("steady"), state_mark("not steady")) == ("", "not steady")


def test_sides_are_named_by_their_letters_and_runs_by_their_numbers() -> None:
    assert mark_of_sides([UNSTEADY, STEADY, UNSTEADY, UNKNOWN]) == (
        "A, C: not steady; D: not known to be steady"
    )
    assert mark_of_sides([UNSTEADY, UNSTEADY]) == "all runs: not steady"
    assert mark_of_sides([STEADY, None]) == ""
    assert mark_of_runs({2: STEADY, 5: UNSTEADY}) == "run 5: not steady"
    assert mark_of_runs({2: None, 5: None}) == ""


def test_every_drawing_of_a_report_says_that_the_device_is_not_steady() -> None:
    figures = figures_of(build(of(make_run(FEW), UNSTEADY), {}))

    assert len(figures) >= 3
    for figure in figures:
        assert {panel.mark for panel in figure.panels} == {"not steady"}
        for panel, drawn in zip(figure.panels, drawings(figure), strict=True):
            if not isinstance(panel, HeatPanel):  # a table of the page, with the mark above it
                marks = [e.text for e in svg(drawn).iter("text") if _is_mark(e)]
                assert marks == ["not steady"]


def svg(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - we drew it ourselves


def test_the_timeline_and_all_figures_of_a_preparation_carry_how_it_ended() -> None:
    kept = build(of(make_run(FEW), None), {}, preparation=MADE)
    assert kept.mark == "not steady"
    assert {p.mark for figure in figures_of(kept) for p in figure.panels} == {"not steady"}

    watched = HealthView(words=(), lines=(), tables=())
    cell = CellTimeline(
        cell=make_run(FEW).record.plan.cells[0],
        begin_s=0.0,
        end_s=2.0,
        streams=(
            StreamTimeline(
                stream="reads",
                direction="read",
                what="I/Os",
                windows=(
                    Window(
                        begin_s=0.0, end_s=1.0, rate=9.0, count=9, percentiles_s=(1e-4, None, None)
                    ),
                ),
            ),
        ),
        health=None,
    )
    timed = with_timeline(watched, make_run(FEW), Timeline(cells=(cell,)), kept.mark)
    assert timed.figure is not None
    assert [panel.mark for panel in timed.figure.panels] == ["not steady"]


def _is_mark(element: ET.Element) -> bool:
    return element.get("class") == "steady-mark"


def test_the_mark_has_room_of_its_own_above_the_drawing() -> None:
    panel = _first_curves(build(of(make_run(FEW), None), {}))
    bare = svg(draw(panel, "x"))
    marked = svg(draw(replace(panel, mark="not steady"), "x"))
    long = svg(draw(replace(panel, mark="not steady; " * 20), "x"))

    tops = [float(one.attrib["viewBox"].split()[1]) for one in (bare, marked, long)]
    ends = [sum(float(n) for n in one.attrib["viewBox"].split()[1::2]) for one in (bare, marked)]
    assert tops[0] == 0 > tops[1] > tops[2]
    assert ends[0] == pytest.approx(ends[1])
    for element in filter(_is_mark, long.iter()):
        assert tops[2] < float(element.attrib["y"]) < 0


def _first_curves(view: ReportView) -> CurvePanel:
    panels = [p for f in figures_of(view) for p in f.panels]
    return next(panel for panel in panels if isinstance(panel, CurvePanel))


def test_a_png_carries_the_mark_too() -> None:
    panel = _first_curves(build(of(make_run(FEW), None), {}))

    assert b"not steady" not in draw_png(panel, "")
    assert b"not steady" in draw_png(replace(panel, mark="not steady"), "")


def test_a_page_of_a_steady_device_or_of_a_file_has_no_mark() -> None:
    for condition in (None, STEADY):
        assert 'class="steady-mark"' not in render(build(of(make_run(FEW), condition), {}))


def test_figures_of_a_comparison_say_which_side_is_not_steady() -> None:
    view = view_of([of(drive("one"), STEADY), of(drive("two"), BROKEN)])

    panels = [p for role in view.roles for figure in role.figures for p in figure.panels]
    assert panels
    assert {p.mark for p in panels} == {"B: not steady: changed since it was prepared"}


def test_trends_of_a_history_say_which_runs_are_not_steady() -> None:
    runs = [of(drive("one", serial="S"), UNSTEADY), of(drive("two", serial="S", jitter=1), STEADY)]
    history = history_of(runs, find_policy(None, "gate"), serial="S")

    page = render_history(build_history(history, runs))

    trends = page.count('class="plot"')
    assert trends > 0
    assert page.count(">run 1: not steady</text>") == trends


def test_the_mark_is_not_drawn_by_two_files() -> None:
    folder = Path("kvbench/report")
    users = [p.name for p in folder.glob("*.py") if '"not steady' in p.read_text(encoding="utf-8")]
    assert users == ["steady.py"]
