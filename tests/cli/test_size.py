"""``kvbench size`` and ``kvbench list models|gpus``: what a user sees."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kvbench.cli.main import main
from kvbench.errors import ExitCode
from kvbench.units import GIB

Command = Callable[..., str]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*argv: str) -> str:
        assert main(list(argv)) == ExitCode.OK
        return capsys.readouterr().out

    return run


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*argv: str) -> str:
        assert main(list(argv)) == ExitCode.USAGE
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return captured.err

    return run


def test_llama_2_7b_at_4096_tokens_is_2_gib(said: Command) -> None:
    text = said("size", "llama-2-7b", "--tokens", "4096", "--dtype", "FP16")
    assert "a sequence of 4,096 tokens: 2,147,483,648 B = 2.000 GiB" in text


@pytest.mark.parametrize("name", ["qwen2.5-32b", "qwen3-32b"])
def test_a_qwen_32b_at_32768_tokens_is_8_gib_and_eight_are_64(said: Command, name: str) -> None:
    text = said("size", name, "--tokens", "32768", "--dtype", "fp16", "--sequences", "8")
    assert "= 8.000 GiB" in text
    assert "8 such sequences: 68,719,476,736 B = 64.000 GiB" in text
    answer = json.loads(said("size", name, "--tokens", "32768", "--sequences", "8", "--json"))
    assert (answer["sequence_bytes"], answer["total_bytes"]) == (8 * GIB, 64 * GIB)


def test_deepseek_v3_has_a_block_that_is_no_multiple_of_4_kib(said: Command) -> None:
    answer = json.loads(said("size", "deepseek-v3", "--json"))
    assert answer["bytes_per_token"] == 70_272
    assert answer["block_bytes"] == 1_124_352
    block = next(unit for unit in answer["units"] if unit["unit"] == "block")
    assert (block["is_multiple_of_512"], block["is_multiple_of_4096"]) == (True, False)
    line = next(line for line in said("size", "deepseek-v3").splitlines() if "1,124,352 B" in line)
    assert line.split()[-2:] == ["yes", "no"]
    assert "70,272 B" in said("size", "deepseek-v3")


def test_every_unit_is_given_with_one_layer_of_it(said: Command) -> None:
    answer = json.loads(said("size", "llama-3.1-8b", "--json"))
    units = {unit["unit"]: (unit["tokens"], unit["layer_bytes"]) for unit in answer["units"]}
    assert units == {
        "token": (1, 4096),
        "block": (16, 65_536),
        "page": (64, 262_144),
        "chunk": (256, 1_048_576),
    }
    assert (answer["page_bytes"], answer["chunk_bytes"]) == (8 << 20, 32 << 20)


def test_the_last_units_lost_share_is_said(said: Command) -> None:
    text = said("size", "llama-3.1-8b", "--tokens", "257")
    assert "chunk of 256: 49.80 % of 2 (the last holds 1 of 256 tokens)" in text
    answer = json.loads(said("size", "llama-3.1-8b", "--tokens", "257", "--json"))
    assert answer["units"][3]["lost_percent"] == pytest.approx(100 * 255 / 512)


def test_rows_of_a_sparse_model_show_their_read_amplification(said: Command) -> None:
    text = said("size", "deepseek-v3.2", "--dtype", "fp8")
    assert "512 B LBAs: 2.250 = 1,152 B, read amplification 1.76x" in text
    assert "4 KiB LBAs: 1.156 = 4,736 B, read amplification 7.22x" in text
    rows = json.loads(said("size", "deepseek-v3.2", "--dtype", "nvfp4", "--json"))["rows"]
    assert [round(row["amplification"], 2) for row in rows] == [2.36, 12.55]


def test_a_sliding_model_says_both_sizes(said: Command) -> None:
    text = said("size", "gpt-oss-20b", "--tokens", "131072")
    assert "12 of them sliding over 128 tokens" in text
    assert "3,224,371,200 B = 3.003 GiB (sliding layers hold their window only)" in text
    assert "with every token in every layer: 6,442,450,944 B = 6.000 GiB" in text


def test_tensor_parallel_ranks_divide_heads_and_copy_a_latent(said: Command) -> None:
    heads = json.loads(said("size", "llama-3.1-70b", "--tp", "8", "--json"))
    assert (heads["bytes_per_token"], heads["copies"]) == (40_960, 1)
    latent = json.loads(said("size", "deepseek-v3", "--tp", "8", "--json"))
    assert (latent["bytes_per_token"], latent["copies"]) == (70_272, 8)
    assert "which hold each byte 8 times" in said("size", "deepseek-v3", "--tp", "8")
    assert "on all 8 ranks: " in said("size", "llama-3.1-70b", "--tp", "8")


def test_sizes_in_json_are_plain_integers(said: Command) -> None:
    answer = json.loads(said("size", "gemma-3-27b", "--tp", "2", "--json"))
    for key, value in answer.items():
        if key.endswith("_bytes"):
            assert isinstance(value, int), key


def test_a_config_file_stands_for_a_name(said: Command, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "hidden_size": 4096,
                "torch_dtype": "bfloat16",
            }
        )
    )
    answer = json.loads(said("size", "--config", str(config), "--json"))
    assert answer["bytes_per_token"] == 131_072
    assert answer["source"].endswith("config.json")
    assert "mine, bf16 KV" in said("size", "mine", "--config", str(config))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("lama-2-7b",), "unknown model 'lama-2-7b' (did you mean 'llama-2-7b'?"),
        ((), "name a MODEL or give --config FILE"),
        (("llama-2-7b", "--dtype", "fp17"), "--dtype: unknown dtype 'fp17'"),
        (("llama-2-7b", "--dtype", ""), "--dtype: unknown dtype ''"),
        (("llama-2-7b", "--dtype", "nvfp4"), "states no row of nvfp4"),
        (("llama-2-7b", "--tp", "3"), "--tp: 3 ranks do not divide the 32 query heads"),
        (("llama-2-7b", "--tp", "0"), "--tp: tensor parallelism must be from 1"),
        (("llama-2-7b", "--tokens", "0"), "--tokens: must be from 1"),
        (("llama-2-7b", "--tokens", "-1"), "--tokens: not a whole number: '-1'"),
        (("llama-2-7b", "--tokens", "1e6"), "--tokens: not a whole number"),
        (("llama-2-7b", "--tokens", "9" * 5000), "--tokens: not a whole number"),
        (("llama-2-7b", "--sequences", "0"), "--sequences: must be from 1"),
        (("--config", "/nonexistent/config.json"), "there is no such file"),
        (("a\nb",), "unknown model 'a?b'"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    refused: Command, argv: tuple[str, ...], message: str
) -> None:
    assert message in refused("size", *argv)


def test_models_and_gpus_are_listed(said: Command) -> None:
    models = json.loads(said("list", "models", "--json"))["models"]
    assert len(models) >= 18
    by_name = {model["name"]: model["bytes_per_token"] for model in models}
    assert by_name["deepseek-v3"] == 70_272
    assert "MLA 512+64" in said("list", "models")
    assert "estimated rows" in said("list", "gpus")
    assert [g["name"] for g in json.loads(said("list", "gpus", "--json"))["gpus"]] == [
        "a100",
        "h100",
        "h200",
        "b200",
    ]


def test_the_tables_are_no_workloads(said: Command) -> None:
    names = {row["name"] for row in json.loads(said("list", "workloads", "--json"))["workloads"]}
    assert names.isdisjoint({"models", "gpus"})
