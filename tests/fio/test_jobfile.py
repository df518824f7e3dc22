import re
from collections.abc import Callable

import msgspec
import pytest

from kvbench.errors import Refused, UsageError
from kvbench.fio.jobfile import escape_path, render, render_fill
from kvbench.fio.sections import (
    LATENCY_LOG_PREFIX,
    WINDOW_LOG_PREFIX,
    WINDOW_MS,
    environment,
    section_seed,
)
from kvbench.plan import Cell
from kvbench.store import layout
from kvbench.units import HUGE_PAGE_BYTES, MIB, TIB
from kvbench.workload import catalog
from kvbench.workload.schema import BlockShare, Timing
from tests.fio.jobs import cells, measured, options
from tests.records import a_stream, a_workload

BYTE_OPTIONS = ("bs", "size", "offset", "offset_increment", "blockalign", "iomem_align")


def one(**stream: object) -> Cell:
    return measured(a_workload(streams=(a_stream(**stream),), sweep=()))[0]


def section(**stream: object) -> dict[str, str]:
    return options(render(one(**stream), "/data/target"))["reads"]


@pytest.mark.parametrize("workload", [w.name for w in catalog.list_workloads()])
def test_the_job_text_is_the_golden_one(workload: str, golden: Callable[[str, str], None]) -> None:
    first = {c.alone: c for c in reversed(measured(catalog.find_workload(workload)))}
    golden(f"{workload}.fio", render(first[None], "/data/target"))


def test_the_ceiling_and_the_fill_are_the_golden_ones(
    golden: Callable[[str, str], None],
) -> None:
    ceiling = cells(catalog.find_workload("lmcache-chunk"))[0]
    assert ceiling.purpose == "ceiling"
    golden("lmcache-chunk-ceiling.fio", render(ceiling, "/data/target"))
    fill = render_fill("/data/target", 5 * MIB + 512, direct=True, engine="io_uring")
    golden("fill.fio", fill)


def test_every_size_is_a_plain_number_of_bytes() -> None:
    for cell in cells(*catalog.list_workloads()):
        for values in options(render(cell, "/data/target")).values():
            assert all(values[o].isdigit() for o in BYTE_OPTIONS if o in values)
            assert re.fullmatch(r"(\d+/\d+:?)*", values.get("bssplit", ""))


def test_the_same_cell_gives_the_same_text_and_another_seed_another_one() -> None:
    cell = one()
    assert render(cell, "/d") == render(cell, "/d")
    assert render(cell, "/d") != render(msgspec.structs.replace(cell, seed=cell.seed + 1), "/d")


def test_sections_have_the_streams_names_groups_and_seeds_of_their_own() -> None:
    cell = next(c for c in measured(catalog.find_workload("three-tenants")) if c.alone is None)
    text = options(render(cell, "/data/target"))
    assert list(text) == ["global", *[p.stream.name for p in cell.placed]]
    tenants = list(text.values())[1:]
    assert all(t["new_group"] == "1" for t in tenants)
    assert len({t["randseed"] for t in tenants}) == len(tenants)
    assert "group_reporting" not in render(cell, "/data/target")


def test_times_are_whole_milliseconds_because_fio_reads_no_fractions() -> None:
    cell = msgspec.structs.replace(one(), timing=Timing(runtime_s=0.6, ramp_s=0.25))
    text = options(render(cell, "/d"))["global"]
    assert (text["runtime"], text["ramp_time"], text["time_based"]) == ("600ms", "250ms", "1")


def test_fio_may_neither_create_nor_delete_the_target() -> None:
    for text in (render(one(), "/d"), render_fill("/d", MIB, direct=True, engine="libaio")):
        values = options(text)["global"]
        assert values["allow_file_create"] == "0"
        assert values["create_on_open"] == "1"
        assert values["unlink"] == "0"
        assert values["thread"] == "1"


@pytest.mark.parametrize(
    ("direction", "pattern", "rw"),
    [
        ("read", "random", "randread"),
        ("write", "random", "randwrite"),
        ("mixed", "random", "randrw"),
        ("read", "sequential", "read"),
        ("write", "sequential", "write"),
        ("mixed", "sequential", "rw"),
    ],
)
def test_direction_and_pattern_choose_rw(direction: str, pattern: str, rw: str) -> None:
    mixed = {"read_percent": 70} if direction == "mixed" else {}
    got = section(direction=direction, pattern=pattern, **mixed)
    assert got["rw"] == rw
    assert got.get("rwmixread") == ("70" if mixed else None)
    assert ("refill_buffers" in got) == (direction != "read")


def test_a_chunk_is_aligned_and_read_block_by_block() -> None:
    got = section(
        pattern="chunk",
        chunk_bytes=4 * MIB,
        block_mix=(BlockShare(size_bytes=MIB, percent=100),),
    )
    assert (got["rw"], got["bs"], got["blockalign"]) == ("randread:4", "1048576", "4194304")
    assert int(got["size"]) % (4 * MIB) == 0


def test_a_mix_is_a_split_and_no_single_size() -> None:
    mix = (BlockShare(size_bytes=4096, percent=60), BlockShare(size_bytes=65536, percent=40))
    got = section(block_mix=mix)
    assert got["bssplit"] == "4096/60:65536/40"
    assert "bs" not in got


def test_jobs_that_read_in_order_share_the_span_out() -> None:
    got = section(pattern="sequential", jobs=4)
    assert got["offset_increment"] == got["size"]
    assert int(got["size"]) * 4 <= 2048 * MIB
    assert "offset_increment" not in section(pattern="sequential")
    assert "offset_increment" not in section(pattern="random", jobs=4)


def test_a_rate_is_shared_by_jobs_and_directions() -> None:
    got = section(rate_iops=1000.0, jobs=2)
    assert (got["rate_iops"], got["rate_process"]) == ("500", "poisson")
    mixed = section(rate_iops=1000.0, jobs=2, direction="mixed", read_percent=70)
    assert mixed["rate_iops"] == "350,150"


def test_a_barrier_submits_and_reaps_whole_batches_and_logs_them() -> None:
    got = section(barrier=True, queue_depth=32)
    batch = ("iodepth", "iodepth_batch_submit", "iodepth_batch_complete_min")
    assert {got[name] for name in (*batch, "iodepth_batch_complete_max")} == {"32"}
    assert got["write_lat_log"] == LATENCY_LOG_PREFIX == layout.LATENCY_LOG_PREFIX
    assert "write_lat_log" not in section()


def test_an_open_loop_logs_windows_of_time() -> None:
    got = section(rate_iops=1000.0)
    assert got["write_lat_log"] == WINDOW_LOG_PREFIX == layout.WINDOW_LOG_PREFIX
    assert got["log_avg_msec"] == str(WINDOW_MS)
    ceiling = msgspec.structs.replace(one(rate_iops=1000.0), purpose="ceiling", engine="null")
    assert "write_lat_log" not in render(ceiling, "/data/target")


def test_huge_buffers_are_asked_for_by_the_stream_and_others_by_nobody() -> None:
    got = section(buffers="huge")
    assert (got["iomem"], got["hugepage-size"]) == ("mmaphuge", str(HUGE_PAGE_BYTES))
    assert not {"iomem", "hugepage-size"} & set(section())
    assert options(render(one(), "/data/target"))["global"]["iomem"] == "malloc"


def test_the_throughput_shape_registers_and_batches_only_where_the_engine_can() -> None:
    cell = one(shape="throughput", queue_depth=32)
    both = ("fixedbufs", "registerfiles")
    for engine, batched, registered in (
        ("io_uring", True, True),
        ("libaio", True, False),
        ("null", True, False),
        ("psync", False, False),
    ):
        purpose = "ceiling" if engine == "null" else "measure"
        changed = msgspec.structs.replace(cell, engine=engine, purpose=purpose)
        text = render(changed, "/data/target")
        got = options(text)["reads"]
        assert ("iodepth_batch_submit" in got) == batched
        assert all((name in got) == registered for name in both)


def test_the_null_engine_is_given_no_file() -> None:
    ceiling = cells(a_workload())[0]
    assert options(render(ceiling, "/data/target"))["global"]["ioengine"] == "null"
    assert "filename" not in render(ceiling, "/data/target")


@pytest.mark.parametrize(
    ("size_bytes", "block", "generator"),
    [
        (2**32 * 4096 - 4096, 4096, "tausworthe"),
        (2**32 * 4096, 4096, "tausworthe64"),
        (2 * TIB, 512, "tausworthe64"),
        (2 * TIB - MIB, 512, "tausworthe"),
    ],
)
def test_more_than_32_bits_of_blocks_get_the_64_bit_generator(
    size_bytes: int, block: int, generator: str
) -> None:
    cell = one(block_mix=(BlockShare(size_bytes=block, percent=100),))
    placed = (msgspec.structs.replace(cell.placed[0], size_bytes=size_bytes),)
    text = render(msgspec.structs.replace(cell, placed=placed), "/d")
    assert options(text)["reads"]["random_generator"] == generator


def test_write_policies_become_sync_and_fsync() -> None:
    plain = section(direction="write")
    assert (plain["sync"], plain["fsync"]) == ("none", "0")
    dsync = section(direction="write", write_policy="dsync")
    assert (dsync["sync"], dsync["fsync"]) == ("dsync", "0")
    flushed = section(direction="write", write_policy="fsync", fsync_every=8)
    assert (flushed["sync"], flushed["fsync"]) == ("none", "8")


@pytest.mark.parametrize("direct", [True, False])
def test_a_fill_covers_every_byte_once(direct: bool) -> None:
    text = options(render_fill("/d", 3 * MIB + 1024, direct=direct, engine="psync"))
    assert text["global"]["direct"] == str(int(direct))
    assert text["global"]["iodepth"] == "1"
    assert text["global"]["time_based"] == "0"
    assert (text["fill"]["offset"], text["fill"]["size"]) == ("0", "3145728")
    rest = text["fill-rest"]
    assert (rest["offset"], rest["size"], rest["bs"]) == ("3145728", "1024", "1024")
    assert "fill-rest" not in options(render_fill("/d", MIB, direct=True, engine="io_uring"))
    assert "fill" not in options(render_fill("/d", 512, direct=True, engine="io_uring"))


@pytest.mark.parametrize("size_bytes", [0, -512, 513])
def test_a_fill_of_an_odd_size_is_refused(size_bytes: int) -> None:
    with pytest.raises(UsageError, match="cannot fill"):
        render_fill("/d", size_bytes, direct=True, engine="io_uring")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "-",
        "/a;b",
        "/a#b",
        "/a${HOME}b",
        "/a$b",
        "/a\nexec_prerun=id",
        "/a\x01b",
        "/a\tb",
        "/a ",
        " /a",
        "/a\udcff",
        "/" + "x" * 3000,
    ],
)
def test_a_path_that_a_job_file_cannot_carry_is_refused(path: str) -> None:
    with pytest.raises(Refused) as caught:
        render(one(), path)
    assert "\n" not in str(caught.value)
    with pytest.raises(Refused):
        render_fill(path, MIB, direct=True, engine="io_uring")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/dev/disk/by-path/pci-0000:01:00.0", "/dev/disk/by-path/pci-0000\\:01\\:00.0"),
        ("/a\\b", "/a\\b"),
        ("/a\\:b", "/a\\\\:b"),
        ("/a b", "/a b"),
        ("/dev/nvme0n1", "/dev/nvme0n1"),
    ],
)
def test_only_colons_are_escaped(path: str, value: str) -> None:
    assert escape_path(path) == value


def test_seeds_of_streams_are_apart_and_in_fios_range() -> None:
    seeds = {section_seed(seed, name) for seed in range(1, 200) for name in ("a", "b", "c")}
    assert len(seeds) == 199 * 3
    assert all(1 <= seed <= 2**31 for seed in seeds)


def test_jobs_that_share_the_page_cache_have_parts_of_their_own() -> None:
    cached = section(buffered=True, jobs=4, queue_depth=1)
    assert (cached["offset_increment"], cached["size"]) == (str(512 * MIB), str(512 * MIB))
    assert "offset_increment" not in section(buffered=True, queue_depth=1)
    assert "offset_increment" not in section(jobs=4)


def test_only_contiguous_buffers_change_the_environment_of_fio() -> None:
    assert environment(one(buffers="contiguous")) == {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    assert environment(one(buffers="scattered")) == {}
    assert environment(one(buffers="huge")) == {}
