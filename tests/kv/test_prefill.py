"""Prefill estimates: the table is the estimator's, reading between and beyond it is marked."""

import json
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvbench.errors import UsageError
from kvbench.kv.gpus import Gpu, find_gpu, load_gpus
from kvbench.kv.models import Model
from kvbench.kv.prefill import prefill_flops, prefill_from_rate, prefill_s
from tests.kv.models import FIXTURES, GPUS, MODELS

TABLE: list[dict[str, Any]] = json.loads((FIXTURES / "prefill_table.json").read_text())
H100 = GPUS.gpus["h100"]
LLAMA = MODELS["llama-3.1-8b"]

GOOD = """format = 1
table_source = "here"
peaks_source = "here"
[[gpu]]
name = "g"
title = "G"
peak_flops_bf16 = 1e14
mfu_dense = [0.1, 0.2, 0.3]
mfu_mixture = [0.1, 0.2, 0.3]
prefill = [{ model = "m", tp = 1, weights = "bf16", ttft_ms = { 2048 = 1.0, 8192 = 5.0 } }]
"""


def named(row: dict[str, Any]) -> tuple[Gpu, Model, str]:
    """Return the GPU, model and weights that a row of the estimator's file is about."""
    name = row["model"].split("/")[1].lower().removeprefix("meta-")
    base = name.removesuffix("-fp8").removesuffix("-instruct")
    weights = "fp8" if base != name or base.startswith("deepseek") else "bf16"
    return GPUS.gpus[row["system"].removesuffix("_sxm")], MODELS[base], weights


def test_the_data_file_holds_the_whole_table_and_nothing_else() -> None:
    kept = {
        (gpu.name, row.model, row.tp, row.weights): {int(n): ms for n, ms in row.ttft_ms.items()}
        for gpu in GPUS.gpus.values()
        for row in gpu.prefill
    }
    given = {
        (gpu.name, model.name, row["tp"], weights): {
            int(n): ms for n, ms in row.get("ttft_ms", {}).items()
        }
        for row in TABLE
        for gpu, model, weights in [named(row)]
    }
    assert kept == given


def test_every_row_is_about_a_listed_model() -> None:
    for gpu in GPUS.gpus.values():
        for row in gpu.prefill:
            assert {row.model, *row.also} <= set(MODELS)


@pytest.mark.parametrize("row", [row for row in TABLE if "err" not in row])
def test_a_point_of_the_table_is_given_as_it_is(row: dict[str, Any]) -> None:
    gpu, model, weights = named(row)
    for tokens, ms in row["ttft_ms"].items():
        found = prefill_s(
            model, gpu, row["tp"], int(tokens), weights="fp8" if weights == "fp8" else "bf16"
        )
        assert found.basis == "table"
        assert found.seconds == pytest.approx(ms / 1000)
        assert found.is_estimate
        assert "estimate" in found.note


def test_between_two_points_the_time_is_straight_on_logarithmic_axes() -> None:
    found = prefill_s(LLAMA, H100, 1, 4096)
    assert found.basis == "interpolated"
    assert found.seconds == pytest.approx((0.0435 * 0.1997) ** 0.5)  # 4096 is halfway in logs


@given(st.integers(1024, 262_143))
def test_a_longer_prompt_never_takes_less(tokens: int) -> None:
    for name, tp in (("llama-3.1-8b", 1), ("deepseek-v3", 8), ("llama-2-7b", 1)):
        model = MODELS[name]
        shorter, longer = (prefill_s(model, H100, tp, n).seconds for n in (tokens, tokens + 1))
        assert shorter < longer


@pytest.mark.parametrize("tokens", [1024, 2047, 131_073, 262_144])
def test_beyond_the_table_is_said(tokens: int) -> None:
    found = prefill_s(LLAMA, H100, 1, tokens)
    assert found.basis == "extrapolated"
    assert "beyond the table, which covers 2048 to 131072 tokens" in found.note


@pytest.mark.parametrize("tokens", [1, 1023, 262_145, 10**9])
def test_far_beyond_the_table_is_refused(tokens: int) -> None:
    with pytest.raises(UsageError, match="is too far beyond"):
        prefill_s(LLAMA, H100, 1, tokens)


def test_what_the_table_lacks_comes_from_the_formula_with_its_range() -> None:
    found = prefill_s(MODELS["llama-2-7b"], H100, 1, 8192)
    assert found.basis == "formula"
    assert found.low_s < found.seconds < found.high_s
    assert "rough estimate" in found.note
    assert "not in the table" in found.note
    assert prefill_s(LLAMA, H100, 2, 8192).basis == "formula"


def test_the_formula_implies_the_published_utilisation() -> None:
    table = prefill_s(LLAMA, H100, 1, 8192).seconds
    assert prefill_flops(LLAMA, 8192) / (table * 989e12) == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize("name", GPUS.gpus)
@pytest.mark.parametrize("mixture", [False, True])
def test_utilisation_is_what_the_rows_of_the_gpu_imply(name: str, mixture: bool) -> None:
    gpu = GPUS.gpus[name]
    implied = []
    for row in gpu.prefill:
        model = MODELS[row.model]
        assert model.compute is not None
        peak = gpu.peak_flops_fp8 if row.weights == "fp8" else gpu.peak_flops_bf16
        if model.compute.mixture == mixture and peak is not None:
            implied += [prefill_flops(model, n) / (s * peak * row.tp) for n, s in row.points]
    stated = gpu.mfu_mixture if mixture else gpu.mfu_dense
    assert stated == pytest.approx((min(implied), median(implied), max(implied)), abs=0.0006)


def test_the_range_of_the_formula_holds_every_row_of_the_table() -> None:
    for gpu in GPUS.gpus.values():
        for row in gpu.prefill:
            model = MODELS[row.model]
            for tokens, seconds in row.points:
                bare = msgspec.structs.replace(gpu, prefill=())
                found = prefill_s(model, bare, row.tp, tokens, weights=row.weights)
                assert found.low_s * 0.98 <= seconds <= found.high_s * 1.02


def test_fp8_weights_on_a_gpu_without_fp8_are_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match="no fp8 units"):
        prefill_s(MODELS["deepseek-v3"], GPUS.gpus["a100"], 8, 8192)


def test_the_same_architecture_reads_the_same_row() -> None:
    one, other = (prefill_s(MODELS[n], H100, 8, 8192) for n in ("deepseek-v3", "deepseek-r1"))
    assert one.seconds == other.seconds


def test_weights_choose_the_row() -> None:
    model = MODELS["llama-3.1-70b"]
    assert prefill_s(model, H100, 4, 8192).seconds == pytest.approx(0.5768)
    assert prefill_s(model, H100, 4, 8192, weights="fp8").seconds == pytest.approx(0.3945)
    # The only row of this model is FP8: it stands, and the note says so.
    assert "fp8 weights" in prefill_s(MODELS["qwen3-235b-a22b"], H100, 8, 8192).note


def test_a_users_own_rate_is_no_estimate() -> None:
    found = prefill_from_rate(8192, 4096)
    assert (found.seconds, found.is_estimate) == (2.0, False)
    for rate in (0, -1, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="tokens per second"):
            prefill_from_rate(8192, rate)


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one token"):
        prefill_s(LLAMA, H100, 1, 0)


def test_sliding_layers_cost_no_square() -> None:
    model = MODELS["gemma-3-27b"]
    assert model.compute is not None
    n, window, width = 131_072, 1024, 2 * 32 * 256
    by_hand = (
        2 * 27e9 * n + 10 * width * n * n / 2 + 52 * width * (window**2 / 2 + (n - window) * window)
    )
    assert prefill_flops(model, n) == pytest.approx(by_hand)


def test_a_gpu_is_found_by_its_spellings() -> None:
    assert find_gpu(GPUS, "H100_SXM").name == "h100"
    with pytest.raises(UsageError, match=r"unknown GPU 'h10' \(did you mean"):
        find_gpu(GPUS, "h10")
    with pytest.raises(UsageError, match="known: a100, h100, h200, b200"):
        find_gpu(GPUS, "tpu")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("ttft_ms = { 2048 = 1.0, 8192 = 5.0 }", 'missing = ""'), "either ttft_ms or missing"),
        (("2048 = 1.0", "x = 1.0"), r"gpu\[1\]\.prefill\[1\]: not a number of tokens: 'x'"),
        (("2048 = 1.0", "2048 = 9.0"), "rising times"),
        (("2048 = 1.0, ", ""), "two points or more"),
        (("2048 = 1.0", "2048 = -1.0"), "expected 'float' > 0"),
        (("2048 = 1.0", "2048 = nan"), "expected 'float'|rising times"),
        (("[0.1, 0.2, 0.3]", "[0.3, 0.2, 0.1]"), "in this order"),
        (("[0.1, 0.2, 0.3]", "[0.1, 0.2, 3.0]"), "<= 1"),
        (("peak_flops_bf16 = 1e14", "peak_flops_bf16 = nan"), "finite number"),
        (("peak_flops_bf16", "peak_flop_bf16"), r"did you mean 'peak_flops_bf16'"),
        (("table_source", "table_sauce"), r"unknown key 'table_sauce' \(did you mean"),
        (('table_source = "here"', "table_source = 1"), "must be text"),
        (('title = "G"', 'title = "G"\nalso = ["g"]'), "stands twice"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    path = tmp_path / "gpus.toml"
    path.write_text(GOOD)
    load_gpus(path)
    path.write_text(GOOD.replace(*change, 1))
    with pytest.raises(UsageError, match=message):
        load_gpus(path)
