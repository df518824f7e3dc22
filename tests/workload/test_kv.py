"""A model's geometry in a workload file: the right size, told, or one sentence of refusal."""

import json
from pathlib import Path

import pytest

from kvbench.errors import ExitCode, UsageError
from kvbench.workload.kv import KvChoice
from kvbench.workload.load import load_workload
from kvbench.workload.schema import Workload
from tests.workload.files import READS, TOP, load, write
from tests.workload.test_hostile_files import HOSTILE

BLOCK = READS.replace('"4KiB"', '"kv"')


def kv_load(folder: Path, kv: str, stream: str = BLOCK) -> Workload:
    return load_workload(write(folder, f"{TOP}[kv]\n{kv}\n{stream}\n"))


@pytest.mark.parametrize(
    ("kv", "size_bytes"),
    [
        ("model = 'llama-3.1-8b'\nunit = 'block'", 2 * 1024**2),
        ("model = 'meta-llama/Llama-3.1-8B'\nunit = 'page'", 8 * 1024**2),
        ("model = 'llama-3.1-8b'\nunit = 'chunk'", 32 * 1024**2),
        ("model = 'llama-3.1-8b'\nunit = 'chunk'\ntp = 4", 8 * 1024**2),
        ("model = 'llama-3.1-8b'\nunit = 'chunk'\ndtype = 'fp8_e4m3'", 16 * 1024**2),
        ("model = 'llama-3.1-8b'\nunit = 'layer'", 1024**2),
        ("model = 'llama-3.1-8b'\nunit = 'layer'\ntokens = 16", 64 * 1024),
        ("model = 'llama-3.1-8b'\nunit = 'row'", 2048),
        ("model = 'llama-3.1-8b'\nunit = 'bucket'", 7 * 32 * 1024**2),
        ("model = 'deepseek-v3'\nunit = 'block'", 1_124_352),
        ("model = 'deepseek-v3'\nunit = 'block'\ntp = 8", 1_124_352),  # every rank holds all
        ("model = 'deepseek-v3'\nunit = 'row'", 1536),  # 1,152 B are not whole blocks
        ("model = 'deepseek-v3.2'\nunit = 'row'\ndtype = 'fp8'", 1024),  # 656 B
    ],
)
def test_a_stream_takes_the_size_of_an_object(tmp_path: Path, kv: str, size_bytes: int) -> None:
    workload = kv_load(tmp_path, kv)
    assert workload.streams[0].max_block_bytes == size_bytes
    assert f"{size_bytes} B" in workload.derivation


def test_the_derivation_is_one_line_with_every_factor(tmp_path: Path) -> None:
    heads = kv_load(tmp_path, "model = 'llama-3.1-8b'\nunit = 'block'\ntp = 2")
    assert heads.derivation == (
        "one block of llama-3.1-8b in bf16 on one of 2 ranks: 16 tokens x 32 layers x "
        "2 (K and V) x 4 KV heads x 128 x 2 B = 1048576 B (1 MiB)"
    )
    latent = kv_load(tmp_path, "model = 'deepseek-v3.2'\nunit = 'row'\ndtype = 'fp8'")
    assert latent.derivation == (
        "one row of deepseek-v3.2 in fp8: one token in one layer, a latent row of 656 B "
        "= 656 B (656 B), rounded up to 1024 B: whole blocks of 512 B"
    )


def test_a_chunk_may_be_derived_and_its_blocks_stated(tmp_path: Path) -> None:
    stream = READS.replace('"4KiB"', '"1MiB"\nchunk_size = "kv"').replace('"random"', '"chunk"')
    workload = kv_load(tmp_path, "model = 'llama-3.1-8b'\nunit = 'chunk'", stream)
    assert workload.streams[0].chunk_bytes == 32 * 1024**2
    other = kv_load(tmp_path, "model = 'deepseek-v3'\nunit = 'chunk'", stream)
    assert other.streams[0].chunk_bytes == 18 * 1024**2
    assert other.derivation.endswith("rounded up to 18874368 B: whole blocks of 1 MiB")


def test_a_derived_size_is_the_same_workload_as_a_stated_one(tmp_path: Path) -> None:
    derived = kv_load(tmp_path, "model = 'llama-3.1-8b'\nunit = 'layer'\ntokens = 1")
    assert derived.digest == load(tmp_path).digest
    assert load(tmp_path).derivation == ""


@pytest.mark.parametrize(
    ("kv", "key", "says"),
    [
        ("model = 'lama-3.1-8b'\nunit = 'row'", "kv.model", "did you mean 'llama-3.1-8b'?"),
        ("model = 'zzz'\nunit = 'row'", "kv.model", "see kvbench list models"),
        ("model = 5\nunit = 'row'", "kv.model", "must be text, not 5"),
        ("model = 'llama-3.1-8b'", "sample.toml: kv", "the key 'unit' is missing"),
        ("unit = 'row'", "sample.toml: kv", "the key 'model' is missing"),
        ("model = 'llama-3.1-8b'\nunit = 'blok'", "kv.unit", "did you mean 'block'?"),
        ("model = 'llama-3.1-8b'\nunit = 'row'\ndtype = 'fp9'", "kv.dtype", "unknown dtype 'fp9'"),
        ("model = 'llama-3.1-8b'\nunit = 'row'\ndtype = 'nvfp4'", "kv.dtype", "states no row"),
        ("model = 'llama-3.1-8b'\nunit = 'row'\ntp = 3", "kv.tp", "3 ranks do not divide"),
        ("model = 'llama-3.1-8b'\nunit = 'row'\ntp = 0", "kv.tp", "from 1 to 1024"),
        ("model = 'llama-3.1-8b'\nunit = 'row'\ntokens = 2", "kv.tokens", "of one token"),
        ("model = 'llama-3.1-8b'\nunit = 'block'\ntokens = 0", "kv.tokens", "from 1 to 1048576"),
        ("model = 'llama-3.1-8b'\nunit = 'block'\nlayers = 2", "kv", "unknown key 'layers'"),
        (
            "model = 'llama-2-7b'\nunit = 'bucket'\ntokens = 4096",
            "kv.unit",
            "not fit into a bucket",
        ),
        ("model = 'llama-2-7b'\nunit = 'chunk'\ntokens = 4096", "block_size", "268435456 bytes"),
    ],
)
def test_a_wrong_table_is_refused_in_one_sentence(
    tmp_path: Path, kv: str, key: str, says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        kv_load(tmp_path, kv)
    assert caught.value.exit_code == ExitCode.USAGE
    assert key in str(caught.value)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_size_without_a_table_and_a_table_without_a_size_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a \\[kv\\] table"):
        load_workload(write(tmp_path, f"{TOP}{BLOCK}"))
    with pytest.raises(UsageError, match="no stream uses it"):
        kv_load(tmp_path, "model = 'llama-3.1-8b'\nunit = 'block'", READS)


@pytest.mark.parametrize("key", ["model", "unit", "dtype"])
@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_words_are_refused_in_one_line(tmp_path: Path, key: str, value: str) -> None:
    table = {"model": "llama-3.1-8b", "unit": "block", "dtype": "bf16"} | {key: value}
    lines = "\n".join(f"{name} = {json.dumps(text)}" for name, text in table.items())
    with pytest.raises(UsageError) as caught:
        kv_load(tmp_path, lines)
    assert str(caught.value).isprintable()


def test_another_model_takes_the_place_of_the_file_and_of_its_dtype_and_ranks(
    tmp_path: Path,
) -> None:
    text = TOP + READS.replace('"4KiB"', '"kv"')
    path = write(tmp_path, f"{text}[kv]\nmodel = 'llama-3.1-70b'\nunit = 'chunk'\ntp = 4\n")
    assert load_workload(path).streams[0].max_block_bytes == 20 * 1024**2
    other = load_workload(path, KvChoice(model="llama-3.1-8b"))
    assert other.streams[0].max_block_bytes == 32 * 1024**2
    split = load_workload(path, KvChoice(model="llama-3.1-8b", tp=2, dtype="fp8"))
    assert split.streams[0].max_block_bytes == 8 * 1024**2
    assert len({w.digest for w in (load_workload(path), other, split)}) == 3


def test_a_file_without_kv_is_the_same_for_every_model(tmp_path: Path) -> None:
    path = write(tmp_path, TOP + READS)
    assert load_workload(path, KvChoice(model="llama-2-7b")) == load_workload(path)


def test_a_model_with_which_a_file_no_longer_works_is_named(tmp_path: Path) -> None:
    kv = "[kv]\nmodel = 'llama-3.1-8b'\nunit = 'chunk'\ntokens = 4096\n"
    path = write(tmp_path, TOP + READS.replace('"4KiB"', '"kv"') + kv)
    with pytest.raises(UsageError) as caught:
        load_workload(path, KvChoice(model="llama-2-7b"))
    assert "with the sizes of llama-2-7b" in str(caught.value)
    assert caught.value.where.endswith("block_size")
