"""Keys that say what a request is, where I/Os start, and what is beside them."""

from pathlib import Path

import pytest

from kvbench.errors import UsageError
from kvbench.workload.load import load_workload
from kvbench.workload.schema import Load, Workload
from tests.workload.files import READS, TOP, load, write

BARRIER = "barrier = true\n"
TRIMS = READS.replace('"read"', '"trim"').replace('"random"', '"sequential"') + "rate_iops = 4\n"
NO_RAMP = "[timing]\nramp = 0\n"
LOAD = "[load]\npercent = [10, 90]\nqueue_depth = 64\nlatency_limit = '1ms'\n"


def steps(folder: Path, lines: str) -> Workload:
    return load(folder, stream=BARRIER + lines, more=NO_RAMP)


def test_sixteen_steps_of_depth_one_are_a_request(tmp_path: Path) -> None:
    stream = steps(tmp_path, "request_steps = 16\ndeadline = '3s'").streams[0]
    assert (stream.queue_depth, stream.request_steps, stream.deadline_s) == (1, 16, 3.0)


def test_what_the_gpu_computes_is_said_per_step(tmp_path: Path) -> None:
    lines = "request_steps = 32\ncompute_per_step = '1.36ms'\nprefetch_steps = 4"
    stream = steps(tmp_path, lines).streams[0]
    assert stream.compute_s == pytest.approx(0.00136)
    assert stream.prefetch_steps == 4


def test_a_mix_may_start_at_finer_places_than_its_blocks(tmp_path: Path) -> None:
    mix = 'block_mix = [{ size = "512B", percent = 50 }, { size = "1KiB", percent = 50 }]'
    text = TOP + READS.replace('block_size = "4KiB"', mix) + "align = 512\npayload = 656\n"
    stream = load_workload(write(tmp_path, text)).streams[0]
    assert (stream.align_bytes, stream.payload_bytes) == (512, 656)


def test_a_mix_is_of_multiples_of_its_smallest_size_as_fio_cuts_others(tmp_path: Path) -> None:
    mix = 'block_mix = [{ size = "1KiB", percent = 75 }, { size = 1536, percent = 25 }]'
    text = TOP + READS.replace('block_size = "4KiB"', mix)
    with pytest.raises(UsageError, match="1536 bytes is not a multiple of the smallest size"):
        load_workload(write(tmp_path, text))


def test_a_stride_is_what_one_position_covers(tmp_path: Path) -> None:
    text = TOP + READS.replace('"random"', '"sequential"') + "stride = '32MiB'\n"
    with pytest.raises(UsageError, match=r"stride: needs timing\.ramp = 0"):
        load_workload(write(tmp_path, text))
    text += NO_RAMP
    stream = load_workload(write(tmp_path, text)).streams[0]
    assert stream.unit_bytes == 32 * 1024**2


def test_a_stream_may_pause_trim_or_go_through_the_cache(tmp_path: Path) -> None:
    paused = load(tmp_path, stream="burst_ios = 8\npause = '250ms'").streams[0]
    assert (paused.burst_ios, paused.pause_s) == (8, 0.25)
    assert load(tmp_path, stream="buffered = true").streams[0].buffered
    trim = load_workload(write(tmp_path, TOP + TRIMS)).streams[0]
    assert trim.trims
    assert trim.changes
    assert not trim.reads
    assert not trim.writes


def test_a_load_curve_is_part_of_the_digest(tmp_path: Path) -> None:
    curve = load(tmp_path, more=LOAD)
    assert curve.load == Load(percents=(10, 90), queue_depth=64, limit_s=0.001)
    longer = load(tmp_path, more=LOAD + "search_steps = 3\n")
    assert len({curve.digest, longer.digest, load(tmp_path).digest}) == 3


def test_new_keys_leave_the_digests_of_files_without_them(tmp_path: Path) -> None:
    stated = load(tmp_path, stream="buffered = false\nrequest_steps = 1")
    assert stated.digest == load(tmp_path).digest


def test_victims_and_aggressors_make_a_matrix(tmp_path: Path) -> None:
    assert load_workload(write(tmp_path, sided("victim", "aggressor"))).matrix
    assert not load(tmp_path).matrix


@pytest.mark.parametrize(
    ("lines", "key", "says"),
    [
        ("request_steps = 4", "request_steps", "needs barrier = true"),
        ("deadline = 1", "deadline", "needs barrier = true"),
        ("request_steps = 0", "request_steps", "from 1 to 4096"),
        (
            "barrier = true\nqueue_depth = 2\ncompute_per_step = 1",
            "compute_per_step",
            "needs request_steps",
        ),
        ("prefetch_steps = 2", "prefetch_steps", "needs compute_per_step"),
        ("align = 100", "align", "from 512"),
        ("align = 4097", "align", "not a multiple of 512"),
        ("align = 512", "align", "finer than the smallest block"),
        ("stride = '1MiB'", "stride", 'needs pattern = "sequential"'),
        ("payload = 5000", "payload", "more than the mean I/O"),
        ("burst_ios = 4", "burst_ios", "need each other"),
        ("pause = 1", "burst_ios", "need each other"),
        ("pause = '0s'\nburst_ios = 4", "pause", "from 1e-06"),
        ("pause = true\nburst_ios = 4", "pause", "must be a duration"),
        ("burst_ios = 4\npause = 1\nrate_iops = 5", "burst_ios", "needs a closed loop"),
        ("burst_ios = 4\npause = 1\nshape = 'throughput'", "burst_ios", 'shape = "latency"'),
        ("buffered = true\nqueue_depth = 2", "buffered", "needs a queue_depth of 1"),
        ("buffered = true\nrate_iops = 2", "buffered", "needs a closed loop"),
        ("buffered = true\nbuffers = 'huge'", "buffered", "scattered"),
        ("buffered = 1", "buffered", "must be true or false"),
        ("span_size = 1", "span_size", "from 512"),
        ("side = 'victims'", "side", "did you mean 'victim'?"),
        ("side = 'victim'", "side", "needs every stream"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, lines: str, key: str, says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, stream=lines, more=NO_RAMP)
    assert caught.value.where.endswith(key)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "line", ["queue_depth = 2", "buffered = true", "payload = 512", "shape = 'throughput'"]
)
def test_a_trim_is_one_range_after_the_other(tmp_path: Path, line: str) -> None:
    text = f"{TOP}{TRIMS}{line}\n"
    with pytest.raises(UsageError):
        load_workload(write(tmp_path, text))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (LOAD.replace("[10, 90]", "[90, 10]"), "must go up"),
        (LOAD.replace("[10, 90]", "[10, 10]"), "must go up"),
        (LOAD.replace("[10, 90]", "[]"), "must have from 1"),
        (LOAD.replace("[10, 90]", "[100]"), "from 1 to 99"),
        (LOAD.replace("= 64", "= 100"), "must be a power of two"),
        (LOAD.replace("latency_limit = '1ms'", ""), "'latency_limit' is missing"),
        (LOAD + "percentile = 95\n", "must be one of 50, 90, 99"),
        (LOAD + "search_steps = 9\n", "from 0 to 8"),
        (LOAD + "limit = 1\n", "unknown key"),
    ],
)
def test_a_load_curve_that_says_nothing_clear_is_refused(
    tmp_path: Path, more: str, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        load(tmp_path, more=more)


@pytest.mark.parametrize("stream", ["rate_iops = 5", "buffered = true", "burst_ios = 2\npause = 1"])
def test_a_load_curve_is_of_one_plain_closed_loop(tmp_path: Path, stream: str) -> None:
    with pytest.raises(UsageError, match="load: needs"):
        load(tmp_path, stream=stream, more=LOAD)


@pytest.mark.parametrize(
    ("metric", "says"),
    [
        ("request_p50", "barrier = true"),
        ("step_p50", "request_steps above 1"),
        ("stall_p50", "compute_per_step"),
        ("deadline_hit_share", "a deadline"),
        ("usable_iops", r"a \[load\] table"),
        ("read_amplification", "a payload"),
        ("jain_index", "isolate = true, or sides"),
        ("latency_p99.9_mixed_over_alone", "isolate = true, or sides"),
        ("iops_over_4kib", "block_size with 4KiB"),
        ("iops_over_fewer_jobs", "a sweep of jobs"),
        ("latency_over_smallest_span", "a sweep of span_size"),
        ("span_knee", "a sweep of span_size"),
    ],
)
def test_a_primary_metric_needs_what_gives_it(tmp_path: Path, metric: str, says: str) -> None:
    text = (TOP + READS).replace("reads.iops", f"reads.{metric}")
    with pytest.raises(UsageError, match=says):
        load_workload(write(tmp_path, text))


def test_a_primary_metric_with_a_point_in_its_name_is_found(tmp_path: Path) -> None:
    text = TOP.replace("reads.iops", "a.latency_p99.9_mixed_over_alone")
    assert load_workload(write(tmp_path, text + sided("victim", "aggressor", top=""))).primary


def sided(*sides: str, top: str = TOP.replace("reads.", "a.")) -> str:
    """A file with one stream per side, called a, b, ..."""
    streams = [
        READS.replace('"reads"', f'"{name}"') + f"side = '{side}'\n"
        for name, side in zip("abcdef", sides, strict=False)
    ]
    return top + "".join(streams)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (sided("victim", "victim"), "at least one of each"),
        (sided("victim", "aggressor") + "[sweep]\na.queue_depth = [1, 2]\n", "no place"),
        ("isolate = true\n" + sided("victim", "aggressor"), "goes without saying"),
    ],
)
def test_a_matrix_is_of_pairs_and_nothing_else(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_workload(write(tmp_path, text))


def test_the_same_span_twice_is_refused_and_pauses_can_be_swept(tmp_path: Path) -> None:
    swept = load(
        tmp_path,
        stream="burst_ios = 2\npause = 1",
        more="[sweep]\npause = ['1s', '250ms']\nspan_size = ['1MiB', '1GiB']\n",
    )
    assert [axis.values for axis in swept.sweep] == [(1.0, 0.25), (1024**2, 1024**3)]
    with pytest.raises(UsageError, match="same value twice"):
        load(tmp_path, more="[sweep]\nspan_size = ['1MiB', 1048576]\n")
