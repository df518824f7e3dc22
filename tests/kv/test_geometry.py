"""Every published KV size of every model, and what must hold for any geometry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvbench.errors import UsageError
from kvbench.kv.geometry import (
    DTYPE_BYTES,
    TP_MAX,
    Geometry,
    HeadKv,
    LatentKv,
    bytes_per_token,
    check_tp,
    lbas_touched,
    lost_share,
    parse_dtype,
    read_amplification,
    row_bytes,
    sequence_bytes,
    token_layer_bytes,
)
from kvbench.units import GIB, KIB, MIB
from tests.kv.models import MODELS

CONTEXT = 128 * 1024

# model: layers, B/token, then 16, 64, 256, 512 tokens of all layers; one layer of 16, 64, 256
# tokens; 128k tokens with every token in every layer.
EXPECTED: dict[str, tuple[int, int, tuple[int, ...], tuple[int, ...], int]] = {
    "llama-2-7b": (
        32,
        524_288,
        (8 * MIB, 32 * MIB, 128 * MIB, 256 * MIB),
        (256 * KIB, MIB, 4 * MIB),
        64 * GIB,
    ),
    **dict.fromkeys(
        ("llama-3.1-8b", "mistral-7b", "mixtral-8x7b"),
        (
            32,
            131_072,
            (2 * MIB, 8 * MIB, 32 * MIB, 64 * MIB),
            (64 * KIB, 256 * KIB, MIB),
            16 * GIB,
        ),
    ),
    "llama-3.1-70b": (
        80,
        327_680,
        (5 * MIB, 20 * MIB, 80 * MIB, 160 * MIB),
        (64 * KIB, 256 * KIB, MIB),
        40 * GIB,
    ),
    "llama-3.1-405b": (
        126,
        516_096,
        (8_257_536, 33_030_144, 126 * MIB, 252 * MIB),  # 7.875 MiB, 31.5 MiB
        (64 * KIB, 256 * KIB, MIB),
        63 * GIB,
    ),
    "qwen3-8b": (
        36,
        147_456,
        (2_359_296, 9 * MIB, 36 * MIB, 72 * MIB),  # 2.25 MiB
        (64 * KIB, 256 * KIB, MIB),
        18 * GIB,
    ),
    **dict.fromkeys(
        ("qwen2.5-32b", "qwen3-32b"),
        (
            64,
            262_144,
            (4 * MIB, 16 * MIB, 64 * MIB, 128 * MIB),
            (64 * KIB, 256 * KIB, MIB),
            32 * GIB,
        ),
    ),
    "qwen3-30b-a3b": (
        48,
        98_304,
        (1_572_864, 6 * MIB, 24 * MIB, 48 * MIB),  # 1.5 MiB
        (32 * KIB, 128 * KIB, 512 * KIB),
        12 * GIB,
    ),
    "qwen3-235b-a22b": (
        94,
        192_512,
        (3_080_192, 12_320_768, 47 * MIB, 94 * MIB),  # 2.938 MiB, 11.75 MiB
        (32 * KIB, 128 * KIB, 512 * KIB),
        25_232_932_864,  # 23.5 GiB
    ),
    "qwen3-coder-480b-a35b": (
        62,
        253_952,
        (4_063_232, 16_252_928, 62 * MIB, 124 * MIB),  # 3.875 MiB, 15.5 MiB
        (64 * KIB, 256 * KIB, MIB),
        31 * GIB,
    ),
    "mixtral-8x22b": (
        56,
        229_376,
        (3_670_016, 14 * MIB, 56 * MIB, 112 * MIB),  # 3.5 MiB
        (64 * KIB, 256 * KIB, MIB),
        28 * GIB,
    ),
    "phi-4": (
        40,
        204_800,
        (3_276_800, 13_107_200, 50 * MIB, 100 * MIB),  # 3.125 MiB, 12.5 MiB
        (80 * KIB, 320 * KIB, 1_310_720),
        25 * GIB,
    ),
    "glm-4.5": (
        92,
        376_832,
        (6_029_312, 23 * MIB, 92 * MIB, 184 * MIB),  # 5.75 MiB
        (64 * KIB, 256 * KIB, MIB),
        46 * GIB,
    ),
    "gpt-oss-20b": (
        24,
        49_152,
        (768 * KIB, 3 * MIB, 12 * MIB, 24 * MIB),
        (32 * KIB, 128 * KIB, 512 * KIB),
        6 * GIB,
    ),
    "gpt-oss-120b": (
        36,
        73_728,
        (1_179_648, 4_718_592, 18 * MIB, 36 * MIB),  # 1.125 MiB, 4.5 MiB
        (32 * KIB, 128 * KIB, 512 * KIB),
        9 * GIB,
    ),
    "deepseek-v2-lite": (
        27,
        31_104,
        (497_664, 1_990_656, 7_962_624, 15_925_248),  # 486 KiB, 1.898, 7.594, 15.19 MiB
        (18 * KIB, 72 * KIB, 288 * KIB),
        4_076_863_488,  # 3.797 GiB
    ),
    **dict.fromkeys(
        ("deepseek-v3", "deepseek-r1", "kimi-k2"),
        (
            61,
            70_272,
            (1_124_352, 4_497_408, 17_989_632, 35_979_264),  # 1.072, 4.289, 17.16, 34.31 MiB
            (18 * KIB, 72 * KIB, 288 * KIB),
            9_210_691_584,  # 8.578 GiB
        ),
    ),
    "gemma-3-27b": (
        62,
        507_904,
        (8_126_464, 31 * MIB, 124 * MIB, 248 * MIB),  # 7.75 MiB
        (128 * KIB, 512 * KIB, 2 * MIB),
        62 * GIB,
    ),
}


def heads(kv_heads: int = 8, **more: int) -> Geometry:
    return Geometry(layers=4, kv=HeadKv(kv_heads=kv_heads, head_dim=128), **more)


geometries = st.builds(
    Geometry,
    layers=st.integers(1, 200),
    kv=st.one_of(
        st.builds(HeadKv, kv_heads=st.sampled_from((1, 2, 4, 8, 16)), head_dim=st.integers(1, 512)),
        st.builds(
            LatentKv,
            kv_lora_rank=st.integers(1, 2048),
            rope_head_dim=st.integers(1, 256),
            index_bytes=st.integers(0, 256),
        ),
    ),
)
dtypes = st.sampled_from(sorted(DTYPE_BYTES))
splits = st.sampled_from((1, 2, 4, 8, 16, 32))


@pytest.mark.parametrize("name", EXPECTED)
def test_every_model_has_its_published_sizes(name: str) -> None:
    model = MODELS[name]
    shape, dtype = model.geometry, model.dtype
    layers, per_token, units, layer_units, context = EXPECTED[name]
    assert DTYPE_BYTES[dtype] == 2
    assert shape.layers == layers
    assert bytes_per_token(shape, dtype) == per_token
    assert tuple(n * bytes_per_token(shape, dtype) for n in (16, 64, 256, 512)) == units
    assert tuple(n * token_layer_bytes(shape, dtype) for n in (16, 64, 256)) == layer_units
    assert CONTEXT * bytes_per_token(shape, dtype) == context


def test_every_listed_model_but_the_sparse_one_is_checked() -> None:
    assert set(MODELS) - set(EXPECTED) == {"deepseek-v3.2"}
    assert len(EXPECTED) >= 18


def test_fp8_halves_the_cache() -> None:
    for name in EXPECTED:
        shape = MODELS[name].geometry
        assert 2 * bytes_per_token(shape, "fp8") == bytes_per_token(shape, "bf16")


@pytest.mark.parametrize(("dtype", "row"), [("fp8", 656), ("nvfp4", 352), ("bf16", 1152)])
def test_sparse_rows_are_what_the_engine_packs(dtype: str, row: int) -> None:
    shape = MODELS["deepseek-v3.2"].geometry
    assert row_bytes(shape, dtype) == row
    assert bytes_per_token(shape, dtype) == 61 * (row + 132)


def test_a_sparse_model_in_fp8_keeps_48068_bytes_per_token() -> None:
    model = MODELS["deepseek-v3.2"]
    assert bytes_per_token(model.geometry, model.dtype) == 48_068


def test_a_row_of_heads_is_the_k_or_the_v_of_one_token() -> None:
    shape = MODELS["llama-3.1-8b"].geometry
    assert row_bytes(shape, "bf16") == 2048
    assert row_bytes(shape, "fp8") == 1024
    assert row_bytes(shape, "bf16", tp=8) == 256


@pytest.mark.parametrize(
    ("name", "full_layers_per_token", "bytes_held"),
    [
        # full layers x 128k tokens and sliding layers x window, each token and layer once
        ("gpt-oss-20b", 24_576, 12 * 2048 * (CONTEXT + 128)),
        ("gpt-oss-120b", 36_864, 18 * 2048 * (CONTEXT + 128)),
        ("gemma-3-27b", 81_920, 8192 * (10 * CONTEXT + 52 * 1024)),
    ],
)
def test_sliding_layers_hold_their_window_only(
    name: str, full_layers_per_token: int, bytes_held: int
) -> None:
    shape = MODELS[name].geometry
    assert sequence_bytes(shape, CONTEXT, "bf16") == bytes_held
    longer = sequence_bytes(shape, CONTEXT + 1, "bf16")
    assert longer - bytes_held == full_layers_per_token


def test_a_sequence_within_the_window_is_held_whole() -> None:
    shape = MODELS["gpt-oss-20b"].geometry
    assert sequence_bytes(shape, 100, "bf16") == 100 * bytes_per_token(shape, "bf16")


@given(geometries, dtypes, st.integers(1, 1 << 20), st.integers(1, 1 << 20))
def test_bytes_scale_linearly_with_tokens(
    shape: Geometry, dtype: str, first: int, second: int
) -> None:
    together = sequence_bytes(shape, first + second, dtype)
    assert together == sequence_bytes(shape, first, dtype) + sequence_bytes(shape, second, dtype)


@given(geometries, dtypes, splits)
def test_the_parts_of_all_ranks_are_the_whole_or_more(shape: Geometry, dtype: str, tp: int) -> None:
    whole, part = bytes_per_token(shape, dtype), bytes_per_token(shape, dtype, tp)
    assert part * tp >= whole
    assert part <= whole


@given(geometries, dtypes, splits)
def test_a_latent_is_not_divided(shape: Geometry, dtype: str, tp: int) -> None:
    if isinstance(shape.kv, LatentKv):
        assert bytes_per_token(shape, dtype, tp) == bytes_per_token(shape, dtype)


def test_heads_are_divided_exactly_while_there_are_enough() -> None:
    shape = heads(kv_heads=8)
    whole = bytes_per_token(shape, "bf16")
    assert [bytes_per_token(shape, "bf16", tp) for tp in (1, 2, 4, 8)] == [
        whole,
        whole // 2,
        whole // 4,
        whole // 8,
    ]


def test_more_ranks_than_heads_hold_copies() -> None:
    shape = heads(kv_heads=8)
    assert bytes_per_token(shape, "bf16", 16) == bytes_per_token(shape, "bf16", 8)


@pytest.mark.parametrize("tp", [0, -1, 3, 12, TP_MAX + 1])
def test_ranks_that_do_not_divide_are_refused(tp: int) -> None:
    with pytest.raises(UsageError, match=r"ranks do not divide|must be from 1"):
        check_tp(heads(kv_heads=8), tp)


def test_ranks_must_divide_the_query_heads_too() -> None:
    with pytest.raises(UsageError, match="40 query heads"):
        check_tp(heads(kv_heads=8, query_heads=40), 16)
    with pytest.raises(UsageError, match="128 query heads"):
        check_tp(MODELS["deepseek-v3"].geometry, 3)


@pytest.mark.parametrize(
    ("row", "lba", "lbas", "bytes_read", "amplification"),
    [
        (656, 512, 2.250, 1152, 1.76),
        (656, 4096, 1.156, 4736, 7.22),
        (584, 512, 2.125, 1088, 1.86),
        (584, 4096, 1.141, 4672, 8.00),
        (528, 512, 2.000, 1024, 1.94),
        (528, 4096, 1.125, 4608, 8.73),
        (352, 512, 1.625, 832, 2.36),
        (352, 4096, 1.078, 4416, 12.55),
        (1152, 512, 3.000, 1536, 1.33),
        (1152, 4096, 1.250, 5120, 4.44),
    ],
)
def test_packed_rows_touch_the_published_lbas(
    row: int, lba: int, lbas: float, bytes_read: int, amplification: float
) -> None:
    assert round(float(lbas_touched(row, lba)), 3) == lbas
    assert lbas_touched(row, lba) * lba == bytes_read
    assert read_amplification(row, lba) == pytest.approx(amplification, abs=0.005)


@given(st.integers(1, 9000), st.sampled_from((512, 4096)))
def test_the_formula_is_the_mean_over_all_rows(row: int, lba: int) -> None:
    period = lba  # after so many rows the starts repeat
    touched = sum((n * row + row - 1) // lba - (n * row) // lba + 1 for n in range(period))
    assert lbas_touched(row, lba) * period == touched


def test_the_last_unit_of_a_sequence_is_partly_empty() -> None:
    assert lost_share(256, 256) == 0
    assert lost_share(257, 256) == pytest.approx(255 / 512)
    assert lost_share(1, 16) == pytest.approx(15 / 16)


@pytest.mark.parametrize(
    ("text", "name"),
    [("FP16", "fp16"), ("bfloat16", "bf16"), ("torch.float16", "fp16"), ("fp8_e4m3", "fp8")],
)
def test_a_dtype_has_many_spellings(text: str, name: str) -> None:
    assert parse_dtype(text) == name


def test_an_unknown_dtype_is_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"--dtype: unknown dtype 'bf61' \(known: fp32, bf16"):
        parse_dtype("bf61", where="--dtype")


def test_a_model_without_rows_of_a_packed_dtype_is_not_guessed() -> None:
    with pytest.raises(UsageError, match="states no row of nvfp4"):
        bytes_per_token(heads(), "nvfp4")
