"""A Hugging Face config.json: the usual shapes are read, hostile ones are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from kvbench.errors import UsageError
from kvbench.kv.config import from_config
from kvbench.kv.geometry import HeadKv, LatentKv, bytes_per_token, sequence_bytes
from kvbench.kv.models import Model
from tests.kv.models import MODELS

GQA: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "torch_dtype": "bfloat16",
}
MLA: dict[str, Any] = {
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "hidden_size": 7168,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "dtype": "bfloat16",
}


def read(tmp_path: Path, config: object, dtype: str | None = None) -> Model:
    path = tmp_path / "config.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return from_config(path, dtype=dtype)


def without(config: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in keys}


def sliding(tmp_path: Path, **keys: object) -> tuple[int, int | None]:
    shape = read(tmp_path, GQA | keys).geometry
    return shape.sliding_layers, shape.window_tokens


def test_grouped_heads_are_read(tmp_path: Path) -> None:
    model = read(tmp_path, GQA)
    assert model.geometry.kv == HeadKv(kv_heads=8, head_dim=128)
    assert bytes_per_token(model.geometry, model.dtype) == 131_072
    assert model.name == tmp_path.name


def test_without_kv_heads_every_query_head_has_its_own(tmp_path: Path) -> None:
    model = read(tmp_path, without(GQA, "num_key_value_heads"))
    assert model.geometry.kv == HeadKv(kv_heads=32, head_dim=128)


def test_a_stated_head_width_wins_over_the_hidden_size(tmp_path: Path) -> None:
    model = read(tmp_path, GQA | {"head_dim": 64})
    assert model.geometry.kv == HeadKv(kv_heads=8, head_dim=64)


def test_a_latent_is_read_though_the_file_names_kv_heads(tmp_path: Path) -> None:
    model = read(tmp_path, MLA)
    assert model.geometry == MODELS["deepseek-v3"].geometry
    assert bytes_per_token(model.geometry, model.dtype) == 70_272


def test_the_index_of_sparse_attention_is_kept_beside_the_row(tmp_path: Path) -> None:
    kv = read(tmp_path, MLA | {"index_head_dim": 128}).geometry.kv
    assert isinstance(kv, LatentKv)
    assert kv.index_bytes == 132


def test_a_nested_text_config_is_the_model(tmp_path: Path) -> None:
    nested = {"dtype": "float16", "text_config": without(GQA, "torch_dtype")}
    model = read(tmp_path, nested)
    assert model.dtype == "fp16"
    assert model.geometry.layers == 32


def test_layer_types_are_counted(tmp_path: Path) -> None:
    types = ["sliding_attention", "full_attention"] * 16
    assert sliding(tmp_path, layer_types=types, sliding_window=128) == (16, 128)
    full = ["full_attention"] * 32
    assert sliding(tmp_path, layer_types=full, sliding_window=128) == (0, None)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"sliding_window": 4096}, (32, 4096)),  # Mistral 0.1: every layer
        ({"sliding_window": None}, (0, None)),
        # Qwen: a window is written but off
        ({"sliding_window": 4096, "use_sliding_window": False, "max_window_layers": 28}, (0, None)),
        ({"sliding_window": 4096, "max_window_layers": 28}, (0, None)),
        ({"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 28}, (4, 4096)),
        ({"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 40}, (0, None)),
        ({"sliding_window": 1024, "sliding_window_pattern": 6}, (27, 1024)),
        ({"sliding_window": 1024, "model_type": "gemma3_text"}, (27, 1024)),
        ({"sliding_window": 4096, "model_type": "gemma2"}, (16, 4096)),
    ],
)
def test_every_way_to_write_a_window(
    tmp_path: Path, keys: dict[str, Any], expected: tuple[int, int | None]
) -> None:
    assert sliding(tmp_path, **keys) == expected


def test_the_listed_gemma_agrees_with_its_config(tmp_path: Path) -> None:
    text = {
        "model_type": "gemma3_text",
        "num_hidden_layers": 62,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 128,
        "sliding_window": 1024,
    }
    model = read(tmp_path, {"torch_dtype": "bfloat16", "text_config": text})
    assert model.geometry == MODELS["gemma-3-27b"].geometry
    assert sequence_bytes(model.geometry, 131_072, "bf16") == 8192 * (10 * 131_072 + 52 * 1024)


def test_a_dtype_that_is_asked_for_wins(tmp_path: Path) -> None:
    assert read(tmp_path, GQA, dtype="fp8").dtype == "fp8"
    assert read(tmp_path, without(GQA, "torch_dtype"), dtype="fp16").dtype == "fp16"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (without(GQA, "num_hidden_layers"), "the key 'num_hidden_layers' is missing"),
        (without(GQA, "num_key_value_heads", "num_attention_heads"), "'num_attention_heads' is mi"),
        (without(GQA, "hidden_size"), "has neither head_dim nor hidden_size"),
        (without(GQA, "torch_dtype"), r"has neither torch_dtype nor dtype \(give --dtype\)"),
        (without(MLA, "qk_rope_head_dim"), "the key 'qk_rope_head_dim' is missing"),
        (GQA | {"num_hidden_layers": -1}, "num_hidden_layers: must be from 1 to"),
        (GQA | {"num_hidden_layers": 10**40}, "num_hidden_layers: must be"),
        (GQA | {"num_hidden_layers": "32"}, "must be a whole number, not '32'"),
        (GQA | {"num_hidden_layers": True}, "must be a whole number, not True"),
        (GQA | {"num_hidden_layers": 32.5}, "must be a whole number, not 32.5"),
        (GQA | {"num_key_value_heads": 0}, "num_key_value_heads: must be from 1"),
        (GQA | {"num_key_value_heads": [8]}, r"must be a whole number, not \[8\]"),
        (GQA | {"hidden_size": 4097}, "gives no head width"),
        (GQA | {"head_dim": 1 << 40}, "head_dim: must be from 1"),
        (GQA | {"torch_dtype": "float17"}, "torch_dtype: unknown dtype 'float17'"),
        (GQA | {"torch_dtype": 16}, "torch_dtype: must be text"),
        (GQA | {"torch_dtype": "nvfp4"}, "has neither torch_dtype nor dtype"),
        (GQA | {"sliding_window": -5}, "sliding_window: must be from 1"),
        (GQA | {"sliding_window": 8, "use_sliding_window": "yes"}, "must be true or false"),
        (GQA | {"layer_types": ["full_attention"]}, "one entry for each of 32 layers"),
        (GQA | {"layer_types": ["linear_attention"] * 32}, "'linear_attention' keep another state"),
        (GQA | {"layer_types": [["x"]] * 32}, "keep another state"),
        (GQA | {"layer_types": ["sliding_attention"] * 32}, "'sliding_window' is missing"),
        ([], "its top is no object"),
        ("{", "is not JSON"),
        ('{"num_hidden_layers": NaN}', "is not JSON"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(tmp_path: Path, config: object, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        read(tmp_path, config)
    assert "\n" not in str(refused.value)


def test_a_missing_or_binary_config_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        from_config(tmp_path / "none.json")
    path = tmp_path / "config.json"
    path.write_bytes(b"\x00\xff\xfe" * 100)
    with pytest.raises(UsageError, match="is not JSON"):
        from_config(path)
