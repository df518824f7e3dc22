from pathlib import Path

import pytest

from kvbench.errors import ExitCode, UsageError
from kvbench.workload.load import load_suite, load_workload
from kvbench.workload.schema import BlockShare
from tests.workload.files import READS, TOP, load, write

SECOND = """
[[stream]]
name = "writer"
direction = "write"
pattern = "sequential"
block_size = "1MiB"
"""


def refusal(path: Path) -> UsageError:
    with pytest.raises(UsageError) as caught:
        load_workload(path)
    assert caught.value.exit_code == ExitCode.USAGE
    return caught.value


def test_the_smallest_workload_gets_the_documented_defaults(tmp_path: Path) -> None:
    workload = load(tmp_path)
    stream = workload.streams[0]
    assert workload.name == "sample"
    assert (workload.timing.runtime_s, workload.timing.ramp_s) == (1.0, 0.2)
    assert stream.block_mix == (BlockShare(size_bytes=4096, percent=100),)
    assert (stream.queue_depth, stream.jobs, stream.rate_iops, stream.barrier) == (
        1,
        1,
        None,
        False,
    )
    assert (stream.span_start_percent, stream.span_percent) == (0.0, 100.0)
    assert workload.sweep == ()


def test_every_key_reaches_its_field(tmp_path: Path) -> None:
    text = f"""{TOP}cannot_express = "much"
isolate = true
[timing]
runtime = "500ms"
ramp = 0
[[stream]]
name = "reads"
direction = "mixed"
pattern = "random"
block_mix = [{{ size = "4KiB", percent = 75 }}, {{ size = 65536, percent = 25 }}]
read_percent = 70
queue_depth = 64
jobs = 2
rate_iops = 2000
zipf_theta = 0.9
span_start_percent = 10
span_percent = 50.5
write_policy = "fsync"
fsync_every = 8
buffers = "huge"
[[stream]]
name = "chunks"
direction = "read"
pattern = "chunk"
block_size = "1MiB"
chunk_size = "32MiB"
queue_depth = 32
barrier = true
"""
    workload = load_workload(write(tmp_path, text))
    mixed, chunks = workload.streams
    assert [(s.size_bytes, s.percent) for s in mixed.block_mix] == [(4096, 75), (65536, 25)]
    assert (mixed.read_percent, mixed.rate_iops, mixed.zipf_theta) == (70, 2000.0, 0.9)
    assert (mixed.span_start_percent, mixed.span_percent) == (10.0, 50.5)
    assert (mixed.write_policy, mixed.fsync_every) == ("fsync", 8)
    assert (mixed.buffers, chunks.buffers) == ("huge", "scattered")
    assert (chunks.chunk_bytes, chunks.barrier) == (32 * 1024**2, True)
    assert workload.isolate
    assert workload.cannot_express == "much"
    assert (workload.timing.runtime_s, workload.timing.ramp_s) == (0.5, 0.0)


@pytest.mark.parametrize(
    ("stream", "key", "says"),
    [
        ("queue_dept = 4", "stream[1]", "unknown key 'queue_dept' (did you mean 'queue_depth'?)"),
        ("filename = '/etc/passwd'", "stream[1]", "unknown key 'filename'"),
        ("exec_prerun = 'id'", "stream[1]", "unknown key 'exec_prerun'"),
        ("ioengine = 'external:/x.so'", "stream[1]", "unknown key 'ioengine'"),
        ("queue_depth = 3", "stream[1].queue_depth", "power of two, not 3"),
        ("queue_depth = 2048", "stream[1].queue_depth", "from 1 to 1024, not 2048"),
        ("queue_depth = true", "stream[1].queue_depth", "a whole number, not true"),
        ("queue_depth = '4'", "stream[1].queue_depth", "a whole number, not '4'"),
        ("queue_depth = 4.0", "stream[1].queue_depth", "a whole number, not 4.0"),
        ("jobs = 65", "stream[1].jobs", "from 1 to 64, not 65"),
        ("jobs = 0", "stream[1].jobs", "from 1 to 64, not 0"),
        ("jobs = [1]", "stream[1].jobs", "a whole number, not a list"),
        ("buffers = 'pinned'", "stream[1].buffers", "one of scattered, contiguous, huge"),
        ("rate_iops = 0", "stream[1].rate_iops", "from 1 to 100000000, not 0"),
        ("rate_iops = 62.5", "stream[1].rate_iops", "a whole number, not 62.5"),
        ("rate_iops = 5\njobs = 2", "stream[1].rate_iops", "whole number of I/Os per second"),
        ("rate_iops = 5\nshape = 'throughput'", "stream[1].shape", "contradict"),
        ("barrier = 1", "stream[1].barrier", "true or false, not 1"),
        ("barrier = true", "stream[1].barrier", "needs a queue_depth or request_steps above 1"),
        ("barrier = true\nqueue_depth = 4", "stream[1].barrier", "needs timing.ramp = 0"),
        ("barrier = true\nqueue_depth = 4\nrate_iops = 4", "stream[1].barrier", "a closed loop"),
        ("zipf_theta = 1", "stream[1].zipf_theta", "must not be exactly 1"),
        ("zipf_theta = 0", "stream[1].zipf_theta", "from 0.01 to 5, not 0"),
        ("zipf_theta = nan", "stream[1].zipf_theta", "from 0.01 to 5, not nan"),
        ("span_percent = 101", "stream[1].span_percent", "from 0.01 to 100, not 101"),
        ("span_percent = inf", "stream[1].span_percent", "from 0.01 to 100, not inf"),
        ("span_start_percent = 60\nspan_percent = 50", "stream[1].span_percent", "ends beyond"),
        ("chunk_size = '1MiB'", "stream[1].chunk_size", "need each other"),
        ("read_percent = 50", "stream[1].read_percent", "need each other"),
        ("fsync_every = 4", "stream[1].fsync_every", "need each other"),
        ("write_policy = 'dsync'", "stream[1].write_policy", "'dsync' needs writes"),
        ("shape = 'throughputs'", "stream[1].shape", "did you mean 'throughput'?"),
        ("block_mix = []", "stream[1].block_size", "either block_size or block_mix"),
        ("name = 'twice'", "", "Cannot overwrite a value"),
    ],
)
def test_a_wrong_value_is_refused_with_file_key_and_what_is_allowed(
    tmp_path: Path, stream: str, key: str, says: str
) -> None:
    error = refusal(write(tmp_path, f"{TOP}{READS}{stream}\n"))
    assert error.where.startswith(str(tmp_path / "sample.toml"))
    assert error.where.endswith(key)
    assert says in str(error)


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        ('block_size = "4KiB"', 'block_size = "4K"', "block_size", "not a size: '4K'"),
        ('block_size = "4KiB"', "block_size = 4000", "block_size", "not a multiple of 512"),
        ('block_size = "4KiB"', "block_size = 256", "block_size", "from 512 to"),
        ('block_size = "4KiB"', 'block_size = "1GiB"', "block_size", "from 512 to"),
        ('block_size = "4KiB"', "block_size = -1", "block_size", "cannot be negative"),
        ('block_size = "4KiB"', f'block_size = "{"9" * 5000}"', "block_size", "is not a size"),
        ('block_size = "4KiB"', "block_size = 1979-05-27", "block_size", "must be a size"),
        ('direction = "read"', 'direction = "reed"', "direction", "did you mean 'read'?"),
        ('direction = "read"', "", "", "'direction' is missing"),
        ('pattern = "random"', "pattern = 1", "pattern", "one of random, sequential, chunk, not 1"),
        ('pattern = "random"', 'pattern = "chunk"', "chunk_size", "need each other"),
        ('name = "reads"', 'name = "global"', "name", "cannot be called 'global'"),
        ('name = "reads"', 'name = "globalreads"', "name", "cannot be called"),
        ('name = "reads"', 'name = "Reads"', "name", "not an allowed name"),
        ('name = "reads"', 'name = "a:b"', "name", "not an allowed name"),
        ('name = "reads"', 'name = "a]b"', "name", "not an allowed name"),
        ('name = "reads"', 'name = "../b"', "name", "not an allowed name"),
        ('name = "reads"', 'name = "a\\nexec_prerun=id"', "name", "one line of plain text"),
        ("format = 1", "format = 2", "format", "must be 1, not 2"),
        ("format = 1", "format = true", "format", "must be 1, not true"),
        ("format = 1", "", "", "'format' is missing"),
        ('role = "memory"', 'role = "memorie"', "role", "did you mean 'memory'?"),
        ('evidence = "probe"', 'evidence = "proof"', "evidence", "did you mean 'probe'?"),
        ('summary = "a test"', 'summary = ""', "summary", "must not be empty"),
        ('summary = "a test"', f'summary = "{"x" * 201}"', "summary", "at most 200 characters"),
        ('summary = "a test"', 'summary = "a\\u202Eb"', "summary", "one line of plain text"),
        ('summary = "a test"', 'summary = "a\\u0000b"', "summary", "one line of plain text"),
        ('source = "a test"', "", "", "'source' is missing"),
        ('["reads.iops"]', "[]", "primary", "from 1 to 16 entries, not 0"),
        ('["reads.iops"]', '["reads.iop"]', "primary[1]", "did you mean 'iops'?"),
        ('["reads.iops"]', '["read.iops"]', "primary[1]", "did you mean 'reads'?"),
        ('["reads.iops"]', '["reads.request_p50"]', "primary[1]", "needs a stream with barrier"),
        ('["reads.iops"]', '["reads.iops_mixed_over_alone"]', "primary[1]", "needs isolate"),
        ('["reads.iops"]', "'reads.iops'", "primary", "must be a list"),
        ("format = 1", "format = 1\nisolate = true", "isolate", "at least two streams"),
        ("format = 1", "format = 1\ntiming = 5", "timing", "must be a table, not 5"),
        ("format = 1", "format = 1\ntiming.runtime = 0.05", "timing.runtime", "from 0.1 to 86400"),
        ("format = 1", "format = 1\ntiming.ramp = 'soon'", "timing.ramp", "not a duration"),
        ("format = 1", "format = 1\ntiming.runtim = 1", "timing", "did you mean 'runtime'?"),
        ("[[stream]]", "[stream]", "stream", "must be a list, not a table"),
    ],
)
def test_a_wrong_key_of_the_file_is_refused(
    tmp_path: Path, old: str, new: str, key: str, says: str
) -> None:
    text = TOP + READS
    assert old in text
    error = refusal(write(tmp_path, text.replace(old, new, 1)))
    assert error.where.endswith(key)
    assert says in str(error)


@pytest.mark.parametrize(
    ("stream", "says"),
    [
        ("direction = 'mixed'\nread_percent = 50", '"chunk" needs a single direction'),
        ("direction = 'read'\nzipf_theta = 0.9", 'needs pattern = "random"'),
    ],
)
def test_what_fio_cannot_do_with_chunks_is_refused(tmp_path: Path, stream: str, says: str) -> None:
    chunk = "[[stream]]\nname='reads'\npattern='chunk'\nblock_size='1MiB'\nchunk_size='4MiB'\n"
    assert says in str(refusal(write(tmp_path, TOP + chunk + stream)))


def test_a_chunk_is_a_whole_number_of_blocks_of_one_size(tmp_path: Path) -> None:
    base = f"{TOP}[[stream]]\nname='reads'\npattern='chunk'\ndirection='read'\nchunk_size='4MiB'\n"
    assert "not a multiple of the block" in str(
        refusal(write(tmp_path, f"{base}block_size = '3MiB'"))
    )
    mix = "block_mix = [{size='1MiB', percent=50}, {size='2MiB', percent=50}]"
    assert "one block size" in str(refusal(write(tmp_path, base + mix)))


@pytest.mark.parametrize(
    ("mix", "says"),
    [
        ("[{size='4KiB', percent=60}]", "add up to 60"),
        ("[{size='4KiB', percent=50}, {size=4096, percent=50}]", "the same size twice"),
        ("[{size='4KiB', percent=0}]", "block_mix[1].percent"),
        ("[{size='4KiB', percents=1}]", "did you mean 'percent'?"),
        ("[4096]", "block_mix[1]: must be a table"),
    ],
)
def test_a_wrong_block_mix_is_refused(tmp_path: Path, mix: str, says: str) -> None:
    text = (TOP + READS).replace('block_size = "4KiB"', f"block_mix = {mix}")
    assert says in str(refusal(write(tmp_path, text)))


def test_every_point_of_a_sweep_is_checked_not_only_the_base(tmp_path: Path) -> None:
    text = (
        f"{TOP}{READS}[sweep]\nqueue_depth = [1, 2]\njobs = [1, 2]\nblock_size = ['4KiB', 5120]\n"
    )
    load_workload(write(tmp_path, text))
    error = refusal(write(tmp_path, text.replace("[1, 2]", "[1, 3]", 1)))
    assert error.where.endswith("stream[1].queue_depth")
    assert "queue_depth = 3" in error.message
    error = refusal(write(tmp_path, text.replace("5120", "5000")))
    assert error.where.endswith("stream[1].block_size")


@pytest.mark.parametrize(
    ("sweep", "says"),
    [
        ("depth = [1]", "cannot be swept"),
        ("queue_dept = [1]", "did you mean 'queue_depth'?"),
        ("queue_depth = 1", "must be a list"),
        ("queue_depth = []", "must be a list of 1 to 1000 values"),
        ("queue_depth = [1, 1]", "the same value twice"),
        ("queue_depth = [1, 'x']", "sweep.queue_depth[2]"),
        ("other.queue_depth = [1]", "there is no stream 'other'"),
        ("queue_depth = [1]\nreads.queue_depth = [2]", "is swept twice"),
        ("direction = ['read']", "cannot be swept"),
        (f"jobs = {list(range(1, 65))}\nrate_iops = {list(range(64, 64 * 65, 64))}", "4096 points"),
    ],
)
def test_a_wrong_sweep_is_refused(tmp_path: Path, sweep: str, says: str) -> None:
    assert says in str(refusal(write(tmp_path, f"{TOP}{READS}[sweep]\n{sweep}\n")))


def test_a_sweep_names_its_stream_where_there_are_several(tmp_path: Path) -> None:
    sweep = "[sweep]\nqueue_depth = [1, 2]\n"
    error = refusal(write(tmp_path, TOP + READS + SECOND + sweep))
    assert "write reads.queue_depth" in error.hint
    for spelling in ("reads.queue_depth", '"reads.queue_depth"'):
        text = f"{TOP}{READS}{SECOND}[sweep]\n{spelling} = [1, 2]\n"
        axis = load_workload(write(tmp_path, text)).sweep[0]
        assert (axis.stream, axis.field, axis.values) == ("reads", "queue_depth", (1, 2))


def test_streams_taken_together_have_limits_too(tmp_path: Path) -> None:
    assert "two streams are called" in str(refusal(write(tmp_path, TOP + READS + READS)))
    many = "".join(SECOND.replace("writer", f"w{n}") for n in range(16))
    assert "from 1 to 16 entries" in str(refusal(write(tmp_path, TOP + READS + many)))
    busy = "".join(SECOND.replace("writer", f"w{n}") + "jobs = 64\n" for n in range(5))
    assert "at most 256" in str(refusal(write(tmp_path, TOP + READS + busy)))
    large = READS.replace("4KiB", "256MiB") + "queue_depth = 64\n"
    assert "of memory, at most 4 GiB" in str(refusal(write(tmp_path, TOP + large)))


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"format = = 1\n", "line 1"),
        (b'format = 1\nsummary = "x\n', "line 2"),
        (b"format = 1\nsummary = '\xff'\n", "is not UTF-8 text (byte 22)"),
        (b"format = 1\n#" + b"x" * 2**20, "is larger than 1048576 bytes"),
        (b"x = " + b"[" * 5000, "usable TOML"),
        (b"x = " + b"9" * 5000, "usable TOML"),
        (b"", "'format' is missing"),
    ],
)
def test_a_file_that_is_no_workload_at_all_is_refused_in_one_sentence(
    tmp_path: Path, raw: bytes, says: str
) -> None:
    path = tmp_path / "sample.toml"
    path.write_bytes(raw)
    error = refusal(path)
    assert says in str(error)
    assert "\n" not in str(error)


def test_a_missing_file_a_folder_and_an_odd_name_are_refused(tmp_path: Path) -> None:
    assert "no such file" in str(refusal(tmp_path / "none.toml"))
    assert "is a folder" in str(refusal(tmp_path))
    assert "name is not allowed" in str(refusal(write(tmp_path, TOP + READS, "A b.toml")))


def test_windows_line_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "sample.toml"
    path.write_bytes((TOP + READS).replace("\n", "\r\n").encode())
    assert load_workload(path).name == "sample"


def test_the_digest_follows_the_io_and_no_text(tmp_path: Path) -> None:
    base = load(tmp_path).digest
    assert base == "886c4409839051c2"
    renamed = TOP.replace('"a test"', '"other words"').replace("memory", "capacity")
    assert load_workload(write(tmp_path, renamed + READS, "other.toml")).digest == base
    others = {
        load(tmp_path, stream="queue_depth = 2").digest,
        load(tmp_path, stream="shape = 'throughput'").digest,
        load(tmp_path, stream="buffers = 'huge'").digest,
        load(tmp_path, more="[timing]\nruntime = 2").digest,
        load(tmp_path, more="[sweep]\nqueue_depth = [1]").digest,
        load(tmp_path, more=SECOND).digest,
        load(tmp_path, top="isolate = true", more=SECOND).digest,
    }
    assert len(others) == 7
    assert base not in others
    assert load(tmp_path, stream="buffers = 'scattered'").digest == base


def test_the_order_of_the_sweeps_keys_does_not_change_the_digest(tmp_path: Path) -> None:
    one = load(tmp_path, more="[sweep]\nqueue_depth = [1, 2]\njobs = [1]")
    two = load(tmp_path, more="[sweep]\njobs = [1]\nqueue_depth = [1, 2]")
    assert one.digest == two.digest


def test_a_suite_is_a_list_of_names_with_repetitions(tmp_path: Path) -> None:
    text = "format = 1\nsummary = 'two'\nworkloads = ['a', 'b-c']\nrepetitions = 3\n"
    suite = load_suite(write(tmp_path, text, "two.toml"))
    assert (suite.name, suite.workloads, suite.repetitions) == ("two", ("a", "b-c"), 3)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("'b'", "'../b'", "workloads[2]: not an allowed name"),
        ("'b'", "'a'", "names 'a' twice"),
        ("'b'", "5", "workloads[2]: must be text, not 5"),
        ("repetitions = 3", "repetitions = 0", "from 1 to 1000"),
        ("repetitions = 3", "repetition = 3", "did you mean 'repetitions'?"),
    ],
)
def test_a_wrong_suite_is_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    text = "format = 1\nsummary = 'two'\nworkloads = ['a', 'b']\nrepetitions = 3\n"
    with pytest.raises(UsageError) as caught:
        load_suite(write(tmp_path, text.replace(old, new), "two.toml"))
    assert says in str(caught.value)
