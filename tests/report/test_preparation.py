"""What a reader sees of a preparation, as data and as a page."""

from msgspec.structs import replace

from kvbench.report import html, text, view
from kvbench.report.model import LinePanel
from kvbench.report.preparation import preparation_view, round_words
from kvbench.store.preparation import NOT_PREPARED, Condition, FillPass, Preparation
from tests.report.example import BLOCKS, job_texts, make_run
from tests.store.test_preparation import metric, stamp

LATENCY = replace(
    metric("not steady"),
    metric="latency_p99.9",
    unit="s",
    values=(0.001, None, 0.002, 0.002, 0.002, 0.002, 0.003),
    first_round=3,
    mean=0.0022,
    range_share=0.4545,
    slope_share=0.3636,
)
FILL = FillPass(
    pattern="random",
    block_bytes=16384,
    written_bytes=1 << 30,
    device_written_bytes=None,
    wall_s=2.0,
)
MADE: Preparation = replace(stamp(), metrics=(metric("steady"), LATENCY), fills=(FILL,))


def test_each_metric_has_its_mean_its_window_and_the_limits() -> None:
    facts = dict(preparation_view(MADE).facts)
    assert facts["p99.9 latency"] == (
        "mean 2.20 ms of rounds 3 to 7, not steady, range 45.5 % (limit 20), "
        "slope +36.4 % (limit 10)"
    )
    assert facts["state"].startswith("prepared but did not become steady: 7 rounds of 60.0 s")
    assert facts["fill 1"].endswith("(537 MB/s), not counted by the device")


def test_a_round_without_a_value_is_no_point_and_no_zero() -> None:
    figure = preparation_view(MADE).figure
    assert figure is not None
    tail = figure.panels[1]
    assert isinstance(tail, LinePanel)
    assert tail.series[0].x == (1, 3, 4, 5, 6, 7)
    assert tail.series[1].x == (3, 7)  # the window
    assert figure.table.rows[1] == ("2", "1.00 IOPS", "no value")
    assert figure.table.rows[6] == ("7", "no value", "3.00 ms")


def test_one_round_is_no_figure() -> None:
    lonely = replace(metric("too few rounds"), values=(5.0,), mean=None)
    seen = preparation_view(replace(MADE, metrics=(lonely,)))
    assert seen.figure is None
    assert dict(seen.facts)["IOPS"] == "1 of 5 rounds"


def test_a_round_is_told_in_one_line() -> None:
    assert round_words(7, (LATENCY,)).startswith("round 7: p99.9 latency 3.00 ms (not steady, ")


def test_the_page_of_a_preparation_shows_hostile_words_as_text() -> None:
    purge = replace(MADE.purge, text="<script>x</script>‮")
    run = make_run([BLOCKS])
    shown = view.build(run, job_texts(run), preparation=replace(MADE, purge=purge))
    page = html.render(shown)
    assert "<script>x" not in page
    assert "&lt;script&gt;x" in page
    assert page.count("<svg") > html.render(view.build(run, job_texts(run))).count("<svg")


def summary_of(condition: Condition | None) -> list[str]:
    """The first lines of the terminal summary of a run on a device in this condition."""
    run = make_run()
    run = replace(run, record=replace(run.record, condition=condition))
    return text.render(view.build(run, job_texts(run))).splitlines()[:12]


def test_the_terminal_summary_says_in_a_line_that_the_preparation_holds() -> None:
    held = Condition(
        state="holds", text="it was prepared at noon (run r1)", covered=True, steady="steady"
    )
    lines = [line for line in summary_of(held) if "prepared at noon" in line]
    assert lines == ["preparation: it was prepared at noon (run r1)"]


def test_a_preparation_that_does_not_hold_is_an_alert_and_no_line_of_its_own() -> None:
    for state in ("broken", "unknown"):
        gone = Condition(state=state, text="it was prepared; 4 MiB were written since")
        lines = [line for line in summary_of(gone) if "4 MiB were written since" in line]
        assert lines, state
        assert all(not line.startswith("preparation:") for line in lines)
        assert any(line.startswith("!!") for line in lines)


def test_a_file_and_a_device_without_a_record_have_no_line_about_it() -> None:
    for condition in (None, NOT_PREPARED):
        assert not any(line.startswith("preparation:") for line in summary_of(condition))
