"""models.toml: what is there, how it is found, and what is refused."""

from pathlib import Path

import pytest

from kvbench.errors import UsageError
from kvbench.kv.models import find_model, load_models
from tests.kv.models import MODELS

GOOD = """format = 1
[[model]]
name = "a"
layers = 2
kv_heads = 2
head_dim = 64
source = "here"
"""


def load(tmp_path: Path, text: str) -> object:
    path = tmp_path / "models.toml"
    path.write_text(text)
    return load_models(path)


def test_every_model_names_its_source_and_knows_its_flops() -> None:
    for model in MODELS.values():
        assert model.source
        assert model.compute is not None, model.name


def test_a_name_is_found_whatever_its_case_and_owner() -> None:
    assert find_model(MODELS, "Qwen/Qwen3-32B").name == "qwen3-32b"
    assert find_model(MODELS, "qwen3-coder-480b").name == "qwen3-coder-480b-a35b"


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"unknown model 'qwen3-23b' \(did you mean 'qwen3-"):
        find_model(MODELS, "qwen3-23b")
    with pytest.raises(UsageError, match=r"'zzz' \(see kvbench list models"):
        find_model(MODELS, "zzz")


def test_a_small_file_loads(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("layers = 2", "layres = 2"), r"model\[1\]: unknown key 'layres' \(did you mean 'layers'"),
        (("layers = 2", ""), "missing required field 'layers'"),
        (("layers = 2", "layers = 0"), r"model\[1\]\.layers: expected 'int' >= 1"),
        (("layers = 2", "layers = 99999"), r"layers: expected 'int' <= 1000"),
        (("layers = 2", "layers = true"), "got 'bool'"),
        (("layers = 2", "layers = 2.5"), "got 'float'"),
        (("layers = 2", 'layers = "2"'), "got 'str'"),
        (("head_dim = 64", ""), "needs kv_heads and head_dim, or kv_lora_rank"),
        (("head_dim = 64", "head_dim = 64\nkv_lora_rank = 512"), "needs kv_heads and head_dim"),
        (("head_dim = 64", "head_dim = 64\nindex_bytes = 1"), "belong to a latent"),
        (("head_dim = 64", "head_dim = 64\nsliding_layers = 3\nwindow_tokens = 8"), "3 sliding"),
        (("head_dim = 64", "head_dim = 64\nsliding_layers = 1"), "belong together"),
        (("head_dim = 64", 'head_dim = 64\ndtype = "bf61"'), r"dtype: unknown dtype 'bf61'"),
        (("head_dim = 64", "head_dim = 64\nactive_parameters = nan"), "must be a finite number"),
        (('name = "a"', 'name = "A b"'), r"name: expected 'str' matching"),
        (('name = "a"', 'name = "a"\nalso = ["a"]'), "'a' stands twice"),
        (("format = 1", "format = 2"), "'format' must be 1"),
        (("format = 1", "format = 1\nmodels = 3"), r"unknown key 'models' \(did you mean 'model'"),
        (("[[model]]", "[model]"), r"needs at least one \[\[model\]\] table"),
        (("[[model]]", "[[model"), "is not TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        load(tmp_path, GOOD.replace(*change))
    assert str(refused.value).startswith(str(tmp_path / "models.toml")[:80])


def test_a_missing_file_and_a_folder_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        load_models(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="cannot be read"):
        load_models(tmp_path)


def test_a_file_of_other_bytes_or_too_many_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        load_models(path)
    path.write_bytes(b"#" * (2 << 20))
    with pytest.raises(UsageError, match="is larger than"):
        load_models(path)
