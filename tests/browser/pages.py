"""Every kind of page, of made-up runs: as they should be, and as hostile as an archive may be."""

from collections.abc import Callable

from msgspec.structs import replace

from kvbench.compare.policy import RequiredLevel, find_policy
from kvbench.gate.decide import decide
from kvbench.gate.history import history_of
from kvbench.measure.model import MeasuredRun
from kvbench.measure.roles import Judgement
from kvbench.measure.timeline import CellTimeline, StreamTimeline, Timeline, Window
from kvbench.report import (
    compare_html,
    gate_html,
    gate_view,
    history_html,
    history_view,
    html,
    view,
)
from kvbench.report.health import with_timeline
from kvbench.report.model import HealthView
from kvbench.store.preparation import Condition
from tests.report.example import (
    ALL,
    BLOCKS,
    LOAD,
    MATRIX,
    job_texts,
    ladder,
    make_run,
    renamed,
)
from tests.report.sides import drive, view_of

UNSTEADY = Condition(state="holds", text="it did not settle", steady="not steady")
MARKED = (ladder(sizes=(512,), jobs=(1,)),)
KINDS = ("report", "comparison", "gate", "history")
MARKUP = (
    "<script>window.hostile = 1</script>\"'><img src=x onerror='window.hostile = 1'>"
    "</style></title></svg></table></details>]]>--> {{ 7 * 7 }} <b>bold</b>"
)
CONTROL = "\u202egnp.\u2066\u200f\x1b[31m\x00\x07\r\n\ttail"
RIGHT_TO_LEFT = "\u05d0\u05d1\u05d2 \u0627\u0644\u0642\u0631\u0635 (1)"
HOSTILE = f"{MARKUP}{CONTROL}{RIGHT_TO_LEFT}"
LONG = "n" * 10_000  # a name without a place to break a line


def make_pages() -> dict[str, str]:
    """Return name -> page."""
    makers: dict[str, Callable[[], str]] = {
        "report": _report,
        "timeline": _timeline,
        "comparison": _comparison,
        "gate": _gate,
        "history": _history,
        "report-hostile": _hostile_report,
        "report-long": _long_report,
        "comparison-hostile": lambda: compare_html.render(view_of(_hostile_drives())),
        "gate-hostile": lambda: _gate_of(*_hostile_drives()),
        "history-hostile": lambda: _history_of(_hostile_drives(serial="S1")),
    }
    return {name: make() for name, make in makers.items()}


def _report() -> str:
    run = make_run((*ALL, LOAD, MATRIX))
    return html.render(view.build(run, job_texts(run)))


def _timeline() -> str:
    """Return the page of a run that was watched second by second, on a device not steady."""
    run = make_run((*MARKED, BLOCKS))
    run = replace(run, record=replace(run.record, condition=UNSTEADY))
    shown = view.build(run, job_texts(run))
    watched = HealthView(words=("The drive was watched.",), lines=(), tables=())
    cells = [cell.cell for cell in run.cells if cell.cell.purpose == "measure"]
    over_time = Timeline(
        cells=tuple(
            CellTimeline(
                cell=cell,
                begin_s=5.0 * place,
                end_s=5.0 * place + 5.0,
                streams=(
                    StreamTimeline(
                        stream=cell.placed[0].stream.name,
                        direction="read",
                        what="I/Os",
                        windows=tuple(_second(5.0 * place + second) for second in range(5)),
                    ),
                ),
                health=None,
            )
            for place, cell in enumerate(cells)
        )
    )
    return html.render(replace(shown, health=with_timeline(watched, run, over_time, shown.mark)))


def _second(begin_s: float) -> Window:
    p50 = 1e-4 * (1 + begin_s % 7)
    return Window(
        begin_s=begin_s,
        end_s=begin_s + 1,
        rate=1e4 / (1 + begin_s % 7),
        count=10_000,
        percentiles_s=(p50, 3 * p50, 9 * p50),
    )


def _drives() -> list[MeasuredRun]:
    workloads = (ladder(), BLOCKS, LOAD)
    return [
        drive("alpha", jitter=1, serial="S1", workloads=workloads),
        drive("beta", slower=0.7, jitter=2, serial="S1", firmware="FW2", workloads=workloads),
        drive("gamma", slower=1.4, jitter=3, serial="S1", firmware="FW2", workloads=workloads),
    ]


def _comparison() -> str:
    return compare_html.render(view_of(_drives()))


def _gate() -> str:
    first, _, slower = _drives()
    return _gate_of(first, slower)


def _gate_of(baseline: MeasuredRun, candidate: MeasuredRun, *_: MeasuredRun) -> str:
    policy = replace(
        find_policy(None, "gate"), require=(RequiredLevel(role="memory", level="steady-tail"),)
    )
    gate = decide(baseline, candidate, policy, Judgement())
    return gate_html.render(gate_view.build(gate, ("kvbench", "gate", "alpha", HOSTILE)))


def _history() -> str:
    return _history_of(_drives())


def _history_of(runs: list[MeasuredRun]) -> str:
    dated = [
        replace(run, record=replace(run.record, created_at=f"2026-03-{day:02d}T10:00:00+00:00"))
        for day, run in enumerate(runs, start=1)
    ]
    found = history_of(dated, find_policy(None, "gate"), serial="S1", left_out=())
    return history_html.render(history_view.build(found, dated))


def _hostile_report() -> str:
    run = make_run(
        [renamed(ladder(), HOSTILE, f"s{MARKUP}"), renamed(BLOCKS, RIGHT_TO_LEFT, "\u202etxt")],
        path=f"/dev/{HOSTILE}",
        damage=(HOSTILE,),
        caveats=(HOSTILE, RIGHT_TO_LEFT),
        label=HOSTILE,
    )
    jobs = dict.fromkeys(job_texts(run), f"[global]\n{HOSTILE}\n")
    return html.render(view.build(run, jobs))


def _long_report() -> str:
    run = make_run(
        [renamed(BLOCKS, LONG, "t" * 10_000)],
        path=f"/{LONG}",
        label=LONG,
        caveats=(LONG,),
        damage=(LONG,),
    )
    jobs = dict.fromkeys(job_texts(run), f"[{LONG}]\nfilename=/{LONG}\n")
    return html.render(view.build(run, jobs))


def _hostile_drives(serial: str | None = None) -> list[MeasuredRun]:
    own = (renamed(ladder(sizes=(512,), jobs=(1,)), HOSTILE, f"s{MARKUP}"), BLOCKS)
    runs = [
        drive("a", label=HOSTILE, model=HOSTILE, firmware=HOSTILE, workloads=own, serial=serial),
        drive("b", label=LONG, model=LONG, kernel=HOSTILE, workloads=own, serial=serial),
        drive("c", label=RIGHT_TO_LEFT, firmware=CONTROL, model=None, workloads=own, serial=serial),
    ]
    record = replace(runs[1].record, run_id=HOSTILE, caveats=(HOSTILE,))
    runs[1] = replace(runs[1], record=record)
    return runs
