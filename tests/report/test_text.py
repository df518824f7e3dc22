"""The summary for a terminal."""

import re
import unicodedata

import pytest
from msgspec.structs import replace

from kvbench.report import text, view
from tests.report.example import BLOCKS, LOAD, SPARSE, job_texts, make_run, renamed


def width(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


@pytest.fixture(scope="module")
def summary() -> str:
    run = make_run()
    return text.render(view.build(run, job_texts(run)))


def test_the_first_line_is_the_verdict(summary: str) -> None:
    assert summary.splitlines()[0].startswith("results/target.bin (file, 4 GiB): suite quick")


def test_no_line_is_wider_than_a_hundred_columns(summary: str) -> None:
    assert max(width(line) for line in summary.splitlines()) <= text.COLUMNS


def test_each_role_has_a_table_with_rate_latency_and_n(summary: str) -> None:
    lines = summary.splitlines()
    for role in ("MEMORY", "PERFORMANCE", "CAPACITY"):
        assert f"{role}: MEASURED RESULTS" in lines
    row = next(line for line in lines if "512 B random reads, depth 64" in line)
    assert re.search(r"IOPS \([\d.]+k?.[\d.]+k?\)", row), "the rate has its range beside it"

    assert row.split()[-2:] == ["3", "a"]
    assert any("too few" in line for line in lines)


def test_projected_workloads_have_a_table_of_their_own(summary: str) -> None:
    assert "MEMORY: PROJECTED WORKLOADS" in summary
    assert summary.index("PROJECTED WORKLOADS") < summary.index("sparse-fetch [projected]")


def test_doubts_follow_worst_first(summary: str) -> None:
    doubts = summary[summary.index("What makes this result doubtful") :]
    assert doubts.index("!! failed") < doubts.index("a: host bound") < doubts.index("- ")


def test_long_parameters_and_several_doubts_are_whole() -> None:
    assert LOAD.load is not None
    wide = replace(LOAD, load=replace(LOAD.load, queue_depth=16, jobs=16))
    run = make_run([wide])
    summaries = tuple(
        replace(one, doubts=("overloaded: it was", "stalled: it was"))
        if one.parameters.get("load") == "90 %"
        else one
        for one in run.summaries
    )
    report = view.build(replace(run, summaries=summaries), {})
    lines = text.render(report).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(" 90 % of the peak"))
    row = lines[start : start + 5]
    assert "reads, open loop, depth up to 16," in row[1]
    assert "…" not in "".join(line[:37] for line in row)
    assert any("doubts b, c" in line for line in row), row


def test_requests_are_named_as_such() -> None:
    run = make_run([SPARSE])
    assert "req/s" in text.render(view.build(run, {}))


def test_ascii_only_is_ascii() -> None:
    run = make_run([renamed(BLOCKS, "測試 µ\u202e", "s測")])
    shown = text.render(view.build(run, {}), ascii_only=True)
    assert shown.isascii()
    assert "us" in shown or "ms" in shown


def test_hostile_names_break_no_line() -> None:
    run = make_run(
        [renamed(BLOCKS, "\x1b[31m" + "測" * 10_000, "t" * 10_000)], path="/" + "p" * 9000
    )
    shown = text.render(view.build(run, {}))
    assert "\x1b" not in shown
    assert max(width(line) for line in shown.splitlines()) <= text.COLUMNS


def test_what_must_be_read_first_comes_before_any_number() -> None:
    run = make_run([BLOCKS], direct=False, written="buffered", engine="libaio")
    shown = text.render(view.build(run, {}))
    assert shown.index("!! page-cache-bound") < shown.index("PERFORMANCE")
    assert shown.index("libaio was used") < shown.index("PERFORMANCE")
