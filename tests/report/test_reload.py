"""Reload or recompute in the report."""

from typing import cast

import pytest
from msgspec.structs import replace

from kvbench.cli.breakeven_subject import Asked, subject_of_report
from kvbench.errors import UsageError
from kvbench.measure.model import MeasuredRun
from kvbench.report import html, text, view
from kvbench.report.model import LinePanel, ReloadView
from kvbench.report.reload import LINES_MAX, NOTHING, reload_view
from tests.report.example import BLOCKS, MATRIX, SPARSE, STEPS, TENANTS, all_valid, make_run
from tests.report.page import Page


@pytest.fixture(scope="module")
def run() -> MeasuredRun:
    return make_run([BLOCKS, TENANTS, STEPS, MATRIX, SPARSE], judge=all_valid)


def asked(
    run: MeasuredRun,
    model: str | None = None,
    gpu: str | None = None,
    ttft_ms: str | None = None,
) -> ReloadView:
    found = reload_view(
        run, subject_of_report(Asked(model=model, gpu=gpu, ttft_ms=ttft_ms), run.record.command)
    )
    assert found is not None
    return found


def panel_of(found: ReloadView) -> LinePanel:
    assert found.figure is not None
    (panel,) = found.figure.panels
    return cast("LinePanel", panel)


def test_recompute_is_a_line_and_reloads_have_a_band_up_to_their_p99(run: MeasuredRun) -> None:
    recompute, *reloads = panel_of(asked(run)).series
    assert recompute.label == "recompute (estimate)"
    assert recompute.x == tuple(1024.0 * 2**n for n in range(8))
    assert 1 <= len(reloads) <= LINES_MAX
    for one in reloads:
        assert all(high >= median for high, median in zip(one.high, one.median, strict=False))
    assert any(one.high for one in reloads)


def test_software_is_drawn_before_probes_and_the_table_has_all(run: MeasuredRun) -> None:
    found = asked(run)
    assert not any("matrix" in one.label for one in panel_of(found).series)
    (table,) = found.tables
    assert any("neighbour-matrix blocks, 8 in flight, alone" in row[0] for row in table.rows)
    assert len(table.rows) > LINES_MAX


def test_a_request_of_several_steps_weighs_all_of_them(run: MeasuredRun) -> None:
    (table,) = asked(run).tables
    row = next(row for row in table.rows if row[0].startswith("layer-pipeline"))
    assert row[1].startswith("32 MiB = 256 tokens")


def test_where_the_winner_changes_is_marked_and_told(run: MeasuredRun) -> None:
    found = asked(run)
    (rule,) = panel_of(found).rules
    tokens = f"{rule.value:,.0f}"
    assert rule.short_label == f"from {tokens}"
    words = f"at the mean reloading wins from {tokens} tokens on"
    told = next(line for line in found.lines if words in line)
    first, _, second = told.partition("at the ends of its range: from ")[2].partition(" on, from ")
    ends = [int(end.partition(" on")[0].replace(",", "")) for end in (first, second)]
    assert ends[0] < rule.value < ends[1]
    assert any("at the ends of its range" in cell for row in found.tables[0].rows for cell in row)
    assert "ends of its range" not in panel_of(found).description


def test_the_numbers_behind_the_figure_have_the_bandwidth_needed(run: MeasuredRun) -> None:
    found = asked(run, model="llama-3.1-8b", gpu="h100")
    assert found.figure is not None
    row = next(row for row in found.figure.table.rows if row[0] == "8,192")
    assert row[4].startswith("5.3") or row[4].startswith("5.4")
    assert row[4].endswith("GB/s")


def test_the_terminal_names_the_source_of_the_time_to_compute_as_the_page_does(
    run: MeasuredRun,
) -> None:
    found = asked(run, model="llama-3.1-8b", gpu="h100")
    for words in (found.words, found.lines):
        assert any(line.startswith("Recompute: estimate: table of llama-3.1-8b") for line in words)
        assert any(line.startswith("Recompute: the table is of aiconf") for line in words)


def test_the_fact_for_the_first_screen_is_what_a_drawn_reload_comes_to(run: MeasuredRun) -> None:
    found = asked(run, model="llama-3.1-8b", gpu="h100")
    subject, answer = found.fact.split("; ", 1)
    assert subject.startswith("llama-3.1-8b with bf16 KV")
    assert "at the mean reloading wins" in answer
    assert answer in found.lines


def test_a_reload_that_is_doubted_says_so_in_its_row_and_its_line(run: MeasuredRun) -> None:
    why = "unstable: the repetitions differ by a factor of 2 or more"
    doubted = replace(run, summaries=tuple(replace(s, doubts=(why,)) for s in run.summaries))
    found = asked(doubted)
    (table,) = found.tables
    place = table.head.index("doubts")
    assert all(why[:40] in row[place] for row in table.rows)
    assert "GB/s (doubtful); at the mean" in found.fact


def test_users_are_told_when_a_budget_is_given(run: MeasuredRun) -> None:
    assert not any("users" in name for name in asked(run).tables[0].head)
    found = asked(run, ttft_ms="2000")
    assert [name for name in found.tables[0].head if "users" in name] == [
        "users at 8k",
        "users at 32k",
        "users at 128k",
    ]
    assert any("within 2.00 s" in words for words in found.words)


def test_the_formula_is_marked_as_a_range(run: MeasuredRun) -> None:
    recompute = panel_of(asked(run, model="mistral-7b")).series[0]
    assert recompute.low
    assert all(low < high for low, high in zip(recompute.low, recompute.high, strict=True))


@pytest.mark.parametrize(
    ("command", "model", "tp"),
    [
        (("kvbench", "run", "x"), "llama-3.1-8b", 1),
        (("kvbench", "run", "x", "--model", "qwen3-32b"), "qwen3-32b", 1),
        (("kvbench", "run", "x", "--model=deepseek-v3"), "deepseek-v3", 8),
        (("kvbench", "run", "x", "--model", "nobody"), "llama-3.1-8b", 1),
    ],
)
def test_the_model_is_that_of_the_run(command: tuple[str, ...], model: str, tp: int) -> None:
    subject = subject_of_report(Asked(), command)
    assert (subject.model, subject.gpu, subject.tp) == (model, "h100", tp)
    assert subject.chosen


def test_a_wrong_name_of_the_reader_is_refused() -> None:
    with pytest.raises(UsageError, match="did you mean"):
        subject_of_report(Asked(model="lama-3.1-8b"), ())


def test_without_a_reload_there_is_one_sentence_and_no_figure() -> None:
    run = make_run([SPARSE], judge=all_valid)
    found = asked(run)
    assert found.words == (NOTHING,)
    assert found.figure is None
    subject = subject_of_report(Asked(), ())
    page = html.render(view.build(run, {}, None, subject))
    assert NOTHING.partition(":")[0] in page
    assert 'id="reload-or-recompute"' not in page


def test_the_page_and_the_terminal_have_the_section(run: MeasuredRun) -> None:
    report = view.build(run, {}, None, subject_of_report(Asked(), ()))
    page = Page(html.render(report))
    assert page.problems == []
    assert any(a.get("id") == "reload-or-recompute" for a in page.named("figure"))
    shown = text.render(report, ascii_only=True)
    assert "RELOAD OR RECOMPUTE" in shown
    assert shown.isascii()
    assert max(map(len, shown.splitlines())) <= text.COLUMNS
