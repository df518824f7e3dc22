"""Numbers and names as a reader sees them."""

import pytest
from msgspec.structs import replace

from kvbench.measure.model import Summary
from kvbench.metrics import METRICS
from kvbench.report import words
from kvbench.units import GIB, KIB
from tests.report.example import CHUNKS, SPARSE, TENANTS

RATE = Summary(
    point_id="p",
    purpose="measure",
    workload="w",
    role="memory",
    parameters={},
    alone=None,
    stream="s",
    direction="read",
    metric="bandwidth",
    unit="B/s",
    median=3.12e9,
    low=2.9e9,
    high=3.3e9,
    interval="range",
    n=3,
    values=(2.9e9, 3.12e9, 3.3e9),
    io_count=100,
    excluded=0,
    censored=False,
    reason="",
    doubts=(),
)


def test_a_summary_has_its_value_unit_range_and_n() -> None:
    assert words.summary_text(RATE) == "3.12 GB/s"
    assert words.summary_detail(RATE) == f"2.90{words.DASH}3.30, range of n=3"


def test_eight_repetitions_have_a_95_percent_interval() -> None:
    summary = replace(RATE, interval="95 %", n=8)
    assert words.summary_detail(summary) == f"2.90{words.DASH}3.30, 95 % interval, n=8"


def test_one_repetition_has_no_interval() -> None:
    summary = replace(RATE, interval="none", low=None, high=None, n=1)
    assert words.summary_detail(summary) == "n=1, no interval"


def test_an_infinite_interval_is_none() -> None:
    summary = replace(RATE, low=float("-inf"), high=float("inf"))
    assert words.summary_detail(summary) == "n=3, no interval"


def test_repetitions_left_out_are_counted() -> None:
    assert words.summary_detail(replace(RATE, n=2, excluded=1)).endswith("range of n=2 of 3")


def test_a_range_across_units_names_both() -> None:
    assert words.spread("bandwidth", "B/s", 9.8e8, 1e9, 1.1e9).startswith("980 MB/s")


def test_repetitions_without_a_number_are_told() -> None:
    summary = replace(RATE, n=2, reason="1 of 3 repetitions: too few I/Os: 9 of 20 needed")
    assert "range of n=2; 1 of 3 repetitions: too few I/Os" in words.summary_detail(summary)


@pytest.mark.parametrize(
    ("reason", "text", "detail"),
    [
        ("too few I/Os: 9 of 20 needed", "too few I/Os", "9 of 20 needed"),
        ("too few requests: 9 of 20 needed", "too few requests", "9 of 20 needed"),
        (
            "no repetition counts: 3 invalid",
            "no valid cell",
            "no repetition counts: 3 invalid",
        ),
        ("", "not measured", "no reason is given"),
    ],
)
def test_a_missing_number_says_why_and_is_never_zero(reason: str, text: str, detail: str) -> None:
    summary = replace(RATE, median=None, low=None, high=None, n=0, reason=reason)
    assert words.summary_text(summary) == text
    assert words.summary_detail(summary) == detail


def test_a_latency_beyond_what_fio_sees_is_a_lower_bound() -> None:
    summary = replace(
        RATE, metric="latency_p99", unit="s", median=17.11, low=17.11, high=17.11, censored=True
    )
    assert words.summary_text(summary) == "≥ 17.1 s"
    assert "0 s" not in words.summary_detail(summary)


@pytest.mark.parametrize(
    ("metric", "unit", "value", "text"),
    [
        ("iops", "1/s", 19_100.0, "19.1k IOPS"),
        ("latency_p99", "s", 84.2e-6, "84.2 µs"),
        ("request_rate", "1/s", 812.0, "812 requests/s"),
        ("latency_p99_mixed_over_alone", "1", 2.4, "2.40 x"),
        ("host_ceiling_share", "%", 0.03, "0.03 %"),
        ("deadline_hit_share", "%", 99.96, "99.96 %"),
        ("deadline_hit_share", "%", 100.0, "100 %"),
        ("of-another-version", "furlong", 2.0, "2.00 furlong"),
    ],
)
def test_every_quantity_has_its_unit(metric: str, unit: str, value: float, text: str) -> None:
    assert words.quantity(metric, unit, value) == text


def test_parameters_are_in_words() -> None:
    parameters = {"block_size": 4 * KIB, "queue_depth": 32, "jobs": 2}
    assert words.parameter_words(parameters) == "4 KiB, depth 32, 2 jobs"
    assert words.parameter_words({"reload.jobs": 1}) == "reload 1 job"
    assert words.parameter_words({"span_percent": 0.1}) == "in 0.1 % of the target"
    assert words.stream_words(SPARSE.streams[0]) == (
        "4 KiB random reads, 32 per request, barrier, 1 job"
    )
    assert words.stream_words(TENANTS.streams[0]) == (
        "4 KiB random reads, open loop 2,000 IOPS, depth up to 64, in 50 % of the target, 1 job"
    )
    assert words.stream_words(CHUNKS.streams[0]) == (
        "1 MiB reads and writes in random 32 MiB chunks, 70 % reads, depth 4, 1 job"
    )
    durable = replace(CHUNKS.streams[0], write_policy="fsync", fsync_every=8, zipf_theta=0.9)
    assert words.stream_words(durable).endswith("zipf 0.9, fsync every 8")
    huge = replace(SPARSE.streams[0], buffers="huge")
    assert words.stream_words(huge).endswith("1 job, huge-page buffers")


def test_pairs_loads_and_spans_are_in_words() -> None:
    assert words.parameter_words({"victim": "rows", "aggressor": "writer"}) == "rows beside writer"
    assert words.parameter_words({"load": "30 %"}) == "30 % of the peak"
    assert words.parameter_words({"load": "peak"}) == "peak"
    assert words.parameter_words({"load": "search 2"}) == "search 2"
    assert words.parameter_words({"span_size": GIB, "queue_depth": 1}) == "in 1 GiB, depth 1"
    assert words.parameter_words({"writer.pause": 0.25}) == "writer pause 250 ms"


def test_steps_deadlines_and_the_page_cache_are_in_words() -> None:
    stream = replace(
        SPARSE.streams[0], queue_depth=4, request_steps=8, deadline_s=0.5, buffered=True
    )
    assert words.stream_words(stream) == (
        "4 KiB random reads, 8 steps of 4 per request, one after the other, 1 job, "
        "deadline 500 ms, through the page cache"
    )
    computed = replace(stream, queue_depth=1, compute_s=20e-6, prefetch_steps=2, buffered=False)
    assert "20.0 µs of computing per step, 2 steps ahead" in words.stream_words(computed)


@pytest.mark.parametrize("metric", list(METRICS))
def test_every_metric_has_a_heading_that_a_person_wrote(metric: str) -> None:
    assert "_" not in words.metric_label(metric)
    assert words.metric_label(metric)[0].isupper() or words.metric_label(metric).startswith("p")


def test_hidden_and_reordering_characters_become_visible() -> None:
    assert words.visible("a\x1b[31m\x00\x7f") == "a⟨U+001B⟩[31m⟨U+0000⟩⟨U+007F⟩"
    assert words.visible("abc\u202egnp.exe") == "abc⟨U+202E⟩gnp.exe"
    assert words.visible("a\nb") == "a⟨U+000A⟩b"
    assert words.visible("a\u200bb") == "a⟨U+200B⟩b"
    assert words.visible("a" + "\u0301" * 4).count("⟨U+0301⟩") == 2
    assert words.visible("naïve 測試") == "naïve 測試"


def test_lines_and_tabs_of_a_job_text_stay() -> None:
    assert words.visible_lines("[a]\r\nbs=1\tx\x1b\n") == "[a]\nbs=1\tx⟨U+001B⟩\n"


def test_a_long_name_is_cut_in_its_middle() -> None:
    short = words.short("a" * 5000 + "z" * 5000)
    assert len(short) == words.NAME_CHARS_MAX
    assert short.startswith("aaa")
    assert short.endswith("zzz")
    assert words.short("plain") == "plain"


def test_microseconds_of_stored_texts_have_the_sign_of_the_pages_and_names_keep_theirs() -> None:
    assert words.micro("wakes in 133 us (C6), 84.2 us.") == "wakes in 133 µs (C6), 84.2 µs."
    assert words.micro("about us; 5 users; 5us") == "about us; 5 users; 5us"
    assert words.sentence("p99 of 84.2 us is too long") == "p99 of 84.2 µs is too long"
    assert words.short("job 5 us") == "job 5 us"
    assert words.parameter_words({"pause": 1e-5}) == "pause 10.0 µs"
