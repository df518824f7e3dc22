"""What fio does is what the job text says: on the null engine where that is enough."""

import os
import re
import shutil
import zlib
from collections import Counter
from math import sqrt
from pathlib import Path

import msgspec
import pytest

from kvbench.fio.jobfile import render, render_fill
from kvbench.host import probe
from kvbench.plan import Cell, huge_pages_needed
from kvbench.units import KIB, MIB, TIB
from kvbench.workload import catalog
from kvbench.workload.schema import BlockShare, Timing
from tests import direct_io
from tests.fio.jobs import call, cells, did, measured, on_null, options, run
from tests.records import a_stream, a_workload

pytestmark = pytest.mark.fio

EVERY = catalog.workload_names()
BARRIERS = [w.name for w in catalog.list_workloads() if any(s.barrier for s in w.streams)]
SIGMAS = 5  # a share of random draws may lie this many standard deviations from its mean


def one(size_bytes: int = 64 * MIB, **stream: object) -> Cell:
    workload = a_workload(
        streams=(a_stream(**stream),), sweep=(), timing=Timing(runtime_s=0.1, ramp_s=0.0)
    )
    return measured(workload, size_bytes=size_bytes)[0]


def written_file(folder: Path, name: str = "target", size_bytes: int = MIB) -> Path:
    path = folder / name
    path.write_bytes(os.urandom(size_bytes))
    return path


def psync(cell: Cell) -> Cell:
    return msgspec.structs.replace(cell, engine="psync", direct=False)


@pytest.mark.parametrize("name", EVERY)
def test_fio_understands_every_cell_of_the_catalogue(name: str, fio: str, tmp_path: Path) -> None:
    names = []
    for point, cell in {c.point_id: c for c in cells(catalog.find_workload(name))}.items():
        names.append(f"{point}.fio")
        (tmp_path / names[-1]).write_text(render(cell, "/data/a:target"))
    call(fio, tmp_path, "--parse-only", *names)


@pytest.mark.parametrize("name", EVERY)
def test_sizes_places_and_order_are_those_of_the_file(name: str, fio: str, tmp_path: Path) -> None:
    every = measured(catalog.find_workload(name), runtime_s=1.0)
    for cell in {places(cell): cell for cell in every if not cell.alone}.values():
        got = did(fio, cell, tmp_path, ios=400)  # two chunks at least
        for placed in cell.placed:
            stream, ios = placed.stream, got[placed.stream.name]
            assert len(ios) >= min(256, placed.size_bytes // stream.unit_bytes)
            asked = {"mixed": {"read", "write"}}.get(stream.direction, {stream.direction})
            assert {direction for direction, _, _ in ios} == asked
            assert_sizes([length for _, _, length in ios], stream.block_mix)
            start = placed.offset_bytes
            offsets = [offset - start for _, offset, _ in ios]
            assert min(offsets) >= 0
            assert all(at - start + length <= placed.size_bytes for _, at, length in ios)
            grain = stream.align_bytes or stream.min_block_bytes
            assert all(offset % grain == 0 for offset in offsets)
            if stream.pattern == "sequential":
                places_there = placed.size_bytes // stream.unit_bytes
                want = [n % places_there * stream.unit_bytes for n in range(len(ios))]
                assert offsets == want
            if stream.pattern == "random" and len(ios) >= 256:
                assert_spread(offsets, placed.size_bytes, skewed=(stream.zipf_theta or 0) > 0.5)
            if stream.chunk_bytes is not None:
                assert_chunks(offsets, stream.chunk_bytes, stream.max_block_bytes)


def assert_sizes(lengths: list[int], mix: tuple[BlockShare, ...]) -> None:
    """Each size of the mix, no other one, and each as often as it was asked for."""
    n = len(lengths)
    got = Counter(lengths)
    assert set(got) == {share.size_bytes for share in mix}
    for share in mix:
        p = share.percent / 100
        assert abs(got[share.size_bytes] / n - p) <= SIGMAS * sqrt(p * (1 - p) / n)


def places(cell: Cell) -> bytes:
    """Equal where only depth or jobs differ, which ``did`` sets to 1 anyway."""
    streams = [p.stream for p in cell.placed]
    depth = {} if any(s.barrier for s in streams) else {"queue_depth": 1}
    return msgspec.json.encode(on_null(cell, jobs=1, **depth).placed)


def assert_spread(offsets: list[int], size_bytes: int, *, skewed: bool) -> None:
    """Over the whole span, and only where it is asked for some places much more than others."""
    eighths = Counter(offset * 8 // size_bytes for offset in offsets)
    assert len(eighths) == 8
    most = Counter(offsets).most_common(1)[0][1]
    # 2 MiB places in 1 GiB are drawn 0.8 times in 400: hardly any of them 8 times
    assert most > 8 if skewed else most <= 8


def assert_chunks(offsets: list[int], chunk: int, block: int) -> None:
    """Chunk after chunk, each from its start to its end; several different ones."""
    each = chunk // block
    whole = len(offsets) // each * each
    starts = offsets[0:whole:each]
    assert all(start % chunk == 0 for start in starts)
    assert len(set(starts)) > 1
    for number, start in enumerate(starts):
        inside = offsets[number * each : (number + 1) * each]
        assert inside == [start + n * block for n in range(each)]


@pytest.mark.parametrize("name", BARRIERS)
def test_a_barrier_submits_and_reaps_whole_batches(name: str, fio: str, tmp_path: Path) -> None:
    cell = measured(catalog.find_workload(name), runtime_s=0.1)[0]
    # a cell of the null engine keeps no log: this one has those of the cell that measures
    logs = re.findall(r"^(?:write_lat_log|log_|per_job_logs).*\n", render(cell, "/d"), re.MULTILINE)
    text = render(on_null(cell, jobs=1), "/data/target") + "".join(logs)
    document = run(fio, text, tmp_path)
    depth = cell.placed[0].stream.queue_depth
    job = document["jobs"][0]
    for key in ("iodepth_submit", "iodepth_complete"):
        # the end of the runtime may cut the last batch in two
        # fio counts no batches of the null engine at depth 1, where there is nothing to batch
        if depth > 1:
            assert job[key][str(depth)] > 99, (key, job[key])
    log = (tmp_path / "latency_lat.1.log").read_text().splitlines()
    assert len(log) == job["read"]["total_ios"]


def test_a_mix_of_sizes_and_directions_comes_out_as_asked(fio: str, tmp_path: Path) -> None:
    mix = (BlockShare(size_bytes=4096, percent=60), BlockShare(size_bytes=64 * KIB, percent=40))
    cell = one(direction="mixed", read_percent=70, block_mix=mix)
    ios = did(fio, cell, tmp_path, ios=8000)["reads"]
    n = len(ios)
    for share, got in (
        (0.7, sum(direction == "read" for direction, _, _ in ios) / n),
        (0.6, sum(length == 4096 for _, _, length in ios) / n),
    ):
        # fio corrects the mix of directions as it goes, so it is nearer than chance
        assert abs(got - share) <= SIGMAS * sqrt(share * (1 - share) / n) + 0.01
    assert all(offset % 4096 == 0 for _, offset, _ in ios)


def test_zipf_prefers_some_blocks_and_uniform_does_not(fio: str, tmp_path: Path) -> None:
    most = {}
    for theta in (None, 1.2):
        ios = did(fio, one(zipf_theta=theta), tmp_path, ios=4000)["reads"]
        most[theta] = Counter(offset for _, offset, _ in ios).most_common(1)[0][1]
    assert most[None] < 20
    assert most[1.2] > 200


def test_one_seed_gives_one_order_and_another_seed_another(fio: str, tmp_path: Path) -> None:
    cell = one()
    first = did(fio, cell, tmp_path)["reads"]
    again = did(fio, cell, tmp_path)["reads"]
    other = did(fio, msgspec.structs.replace(cell, seed=cell.seed + 1), tmp_path)["reads"]
    assert first == again
    assert first[:50] != other[:50]


def test_jobs_of_a_stream_and_streams_of_a_cell_draw_different_offsets(
    fio: str, tmp_path: Path
) -> None:
    workload = a_workload(
        streams=(a_stream(name="a", jobs=2), a_stream(name="b", jobs=2)),
        sweep=(),
        primary=("a.iops",),
    )
    cell = on_null(measured(workload, runtime_s=0.1)[0])
    text = render(cell, "/data/target")
    logs = "write_lat_log=did\nlog_offset=1\nper_job_logs=1\nnumber_ios=50\n"
    run(fio, text.replace("new_group=1\n", f"new_group=1\n{logs}"), tmp_path)
    seen = {
        tuple(line.split(",")[4].strip() for line in path.read_text().splitlines()[:20])
        for path in tmp_path.glob("did_lat.*.log")
    }
    assert len(seen) == 4


ALL_512 = (BlockShare(size_bytes=512, percent=100),)
ALL_4096 = (BlockShare(size_bytes=4096, percent=100),)
HALF_OF_EACH = (BlockShare(size_bytes=512, percent=50), BlockShare(size_bytes=4096, percent=50))
CHUNKS = {
    "pattern": "chunk",
    "chunk_bytes": 4 * MIB,
    "block_mix": (BlockShare(size_bytes=MIB, percent=100),),
}


@pytest.mark.parametrize(
    ("size_bytes", "unit", "modulus", "stream"),
    [
        (64 * TIB, 4096, 4, {"block_mix": ALL_4096}),
        (16 * TIB, 512, 8, {"block_mix": ALL_512}),
        (16 * TIB, 512, 8, {"block_mix": HALF_OF_EACH}),
        (64 * TIB, 4096, 4, {"block_mix": ALL_4096, "zipf_theta": 0.9}),
        (16 * TIB, 4096, 2, {"block_mix": ALL_4096}),  # 2^32 blocks, the first size beyond
        (8 * TIB, 4096, 2, {"block_mix": ALL_4096}),
        (16384 * TIB, 4 * MIB, 4, CHUNKS),
    ],
)
def test_offsets_reach_every_part_of_a_huge_target(
    size_bytes: int,
    unit: int,
    modulus: int,
    stream: dict[str, object],
    fio: str,
    tmp_path: Path,
) -> None:
    cell = one(size_bytes=size_bytes, **stream)
    ios = {offset // unit for _, offset, _ in did(fio, cell, tmp_path, ios=20_000)["reads"]}
    counts = Counter(place % modulus for place in ios)
    mean = len(ios) / modulus
    assert len(counts) == modulus
    assert all(abs(count - mean) < SIGMAS * sqrt(mean) for count in counts.values())


def test_a_paced_stream_keeps_its_rate_over_jobs_and_directions(fio: str, tmp_path: Path) -> None:
    cell = one(direction="mixed", read_percent=75, rate_iops=4000.0, jobs=2, queue_depth=64)
    cell = msgspec.structs.replace(on_null(cell), timing=Timing(runtime_s=1.0, ramp_s=0.0))
    jobs = run(fio, render(cell, "/data/target"), tmp_path)["jobs"]
    assert len(jobs) == 2
    for direction, rate in (("read", 3000), ("write", 1000)):
        total = sum(job[direction]["total_ios"] for job in jobs)
        assert abs(total - rate) < SIGMAS * sqrt(rate) + 0.05 * rate


def test_rows_of_the_output_tell_streams_apart_by_group(fio: str, tmp_path: Path) -> None:
    workload = a_workload(
        streams=(a_stream(name="a", jobs=2), a_stream(name="b")), sweep=(), primary=("a.iops",)
    )
    cell = on_null(measured(workload, runtime_s=0.1)[0])
    jobs = run(fio, render(cell, "/data/target"), tmp_path)["jobs"]
    assert [(job["jobname"], job["groupid"]) for job in jobs] == [("a", 0), ("a", 0), ("b", 1)]


def test_the_ceiling_touches_no_file(fio: str, tmp_path: Path) -> None:
    for cell in cells(
        catalog.find_workload("lmcache-chunk"), catalog.find_workload("chunk-write-read")
    ):
        if cell.purpose != "ceiling":
            continue
        short = msgspec.structs.replace(cell, timing=Timing(runtime_s=0.1, ramp_s=0.0))
        document = run(fio, render(short, str(tmp_path / "target")), tmp_path)
        assert all(job["error"] == 0 for job in document["jobs"])
        assert [path.name for path in tmp_path.iterdir()] == ["job.fio"]


@pytest.mark.parametrize(
    "name",
    [
        "usb-0:0",
        "a::b",
        ":a",
        "a:",
        "a\\b",
        "a\\:b",
        "a\\",
        "a b",
        'a"b',
        "a'b",
        "100%",
        "a[b]",
        "[global]",
        "a=b",
        "a,b",
        "a|b`id`",
        "é日",
    ],
)
def test_an_odd_name_leads_to_this_one_file(name: str, fio: str, tmp_path: Path) -> None:
    target = written_file(tmp_path, name)
    before = target.read_bytes()
    cell = psync(one(size_bytes=MIB, direction="write", queue_depth=1))
    document = run(fio, render(cell, str(target)), tmp_path)
    assert document["jobs"][0]["write"]["total_ios"] > 0
    others = {path.name for path in tmp_path.iterdir() if not path.name.endswith(".log")}
    assert others == {name, "job.fio"}
    assert target.read_bytes() != before
    assert target.stat().st_size == MIB


def test_a_folder_named_after_a_time_is_no_list_of_files(fio: str, tmp_path: Path) -> None:
    folder = tmp_path / "run-2026-11-29T12:30:00"
    folder.mkdir()
    target = written_file(folder)
    document = run(fio, render(psync(one(MIB, queue_depth=1)), str(target)), tmp_path)
    assert document["jobs"][0]["read"]["total_ios"] > 0
    assert [path.name for path in folder.iterdir()] == ["target"]


def test_fio_does_not_delete_a_file_that_is_too_short(fio: str, tmp_path: Path) -> None:
    target = written_file(tmp_path)
    inode, content = target.stat().st_ino, target.read_bytes()
    with pytest.raises(AssertionError, match="Input/output error"):  # a read beyond the end
        run(fio, render(psync(one(queue_depth=1)), str(target)), tmp_path)
    assert (target.stat().st_ino, target.read_bytes()) == (inode, content)
    run(fio, render(psync(one(queue_depth=1, direction="write")), str(target)), tmp_path)
    assert target.stat().st_ino == inode


def test_fio_does_not_create_a_target_that_is_missing(fio: str, tmp_path: Path) -> None:
    for text in (
        render(psync(one(MIB, queue_depth=1)), str(tmp_path / "none")),
        render_fill(str(tmp_path / "none"), MIB, direct=False, engine="psync"),
    ):
        with pytest.raises(AssertionError, match="err=2/file"):  # ENOENT; fio cuts long lines
            run(fio, text, tmp_path)
        assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(("engine", "depth"), [("io_uring", 4), ("libaio", 4), ("psync", 1)])
def test_a_real_file_is_read_with_blocks_of_exactly_the_asked_size(
    engine: str, depth: int, fio: str, tmp_path: Path
) -> None:
    target = written_file(tmp_path, size_bytes=8 * MIB)
    cell = one(8 * MIB, queue_depth=depth, shape="throughput")
    cell = msgspec.structs.replace(cell, engine=engine, direct=direct_io.works(target))
    try:
        document = run(fio, render(cell, str(target)), tmp_path)
    except AssertionError as failed:
        if "engine" in str(failed) or "not permitted" in str(failed):
            pytest.skip(f"{engine} cannot be used here")
        raise
    job = document["jobs"][0]
    read = job["read"]
    assert job["error"] == 0
    assert read["io_bytes"] == read["total_ios"] * 4096
    assert 80 <= read["runtime"] < 300
    assert sum(read["lat_ns"]["bins"].values()) == read["total_ios"]
    assert sum(read["clat_ns"]["bins"].values()) == read["total_ios"]


@pytest.mark.parametrize(("jobs", "depth"), [(1, 1), (2, 4)])
def test_huge_buffers_fit_into_the_pages_that_a_plan_counts(
    jobs: int, depth: int, fio: str, tmp_path: Path
) -> None:
    target = written_file(tmp_path, size_bytes=32 * MIB)
    mix = (BlockShare(size_bytes=2 * MIB, percent=100),)
    cell = one(32 * MIB, queue_depth=depth, jobs=jobs, buffers="huge", block_mix=mix)
    cell = msgspec.structs.replace(cell, direct=direct_io.works(target))
    needed = huge_pages_needed(p.stream for p in cell.placed)
    if probe.huge_pages_free() < needed:
        pytest.skip(f"needs {needed} free huge pages")
    rows = run(fio, render(cell, str(target)), tmp_path)["jobs"]
    assert [row["error"] for row in rows] == [0] * jobs
    assert all(row["read"]["total_ios"] > 0 for row in rows)


@pytest.mark.parametrize("policy", ["plain", "dsync", "fsync"])
def test_write_policies_do_what_they_say(policy: str, fio: str, tmp_path: Path) -> None:
    target = written_file(tmp_path)
    every = 4 if policy == "fsync" else None
    stream = {"direction": "write", "write_policy": policy, "fsync_every": every}
    cell = psync(one(MIB, queue_depth=1, **stream))
    job = run(fio, render(cell, str(target)), tmp_path)["jobs"][0]
    flushes = job["sync"]["total_ios"]
    writes = job["write"]["total_ios"]
    assert writes > 0
    assert flushes == 0 if policy != "fsync" else abs(flushes - writes / 4) <= 2


@pytest.mark.parametrize(("direct", "engine"), [(False, "psync"), (True, "io_uring")])
def test_a_fill_writes_every_block_with_data_that_nothing_compresses(
    direct: bool, engine: str, fio: str, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    size = 3 * MIB + 1024
    with target.open("wb") as file:
        file.truncate(size)
    if direct and not direct_io.works(target):
        pytest.skip("the test folder's file system has no O_DIRECT")
    inode = target.stat().st_ino
    run(fio, render_fill(str(target), size, direct=direct, engine=engine), tmp_path)
    data = target.read_bytes()
    assert (target.stat().st_ino, len(data)) == (inode, size)
    blocks = [data[at : at + 512] for at in range(0, size, 512)]
    assert len(set(blocks)) == len(blocks)
    # Seen: 0.970 to 1.000.  Of 64 bits fio draws 61, so 0.953 is the least that can be.
    assert len(zlib.compress(data)) > 0.95 * size
    second = tmp_path / "second"
    shutil.copyfile(target, second)
    run(fio, render_fill(str(second), size, direct=direct, engine=engine), tmp_path)
    assert second.read_bytes()[:MIB] != data[:MIB]


def test_the_unit_of_every_size_is_bytes_in_fios_own_eyes(fio: str, tmp_path: Path) -> None:
    cell = on_null(measured(catalog.find_workload("vllm-block"), runtime_s=0.1)[0])
    asked = options(render(cell, "/data/target"))["load"]
    got = run(fio, render(cell, "/data/target"), tmp_path)["jobs"][0]
    assert got["read"]["io_bytes"] == got["read"]["total_ios"] * int(asked["bs"])
    assert int(asked["bs"]) == 2 * MIB
