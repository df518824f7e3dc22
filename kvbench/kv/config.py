"""A Hugging Face ``config.json`` -> Model, for models that are not listed.  A stranger's file.

Reads what decides the KV bytes and nothing else: layers, KV heads or latent rank, head width,
sliding windows, dtype.  A value that makes no sense is refused; nothing is guessed but what the
format itself leaves out (no ``num_key_value_heads`` means one per query head).
"""

from pathlib import Path

import msgspec

from kvbench import document
from kvbench.errors import UsageError
from kvbench.kv.geometry import DTYPE_BYTES, Geometry, HeadKv, LatentKv, parse_dtype
from kvbench.kv.models import (
    DIM_MAX,
    HEADS_MAX,
    LAYERS_MAX,
    WINDOW_TOKENS_MAX,
    Model,
    check_geometry,
)

CONFIG_BYTES_MAX = 4 * 1024 * 1024
INDEX_SCALE_BYTES = 4  # beside the 8-bit index key of sparse attention (vLLM: 132 for 128)
# Sliding layers to full ones, where the class and not the file says it (transformers defaults).
PATTERN_OF_TYPE = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6}
FULL, SLIDING = "full_attention", "sliding_attention"

Config = dict[str, object]


def from_config(path: Path, *, name: str = "", dtype: str | None = None) -> Model:
    """Return the model that a ``config.json`` describes.

    name: what to call it (default: the file's folder).  dtype: the KV dtype, when the file has
    none or another is wanted.

    Raises:
        UsageError: not such a file, a key is missing, or a value is out of its limits.
    """
    shown = document.printable(str(path))
    outer = _read(path, shown)
    # A multimodal model nests its language model; what only the outer table has (dtype) counts.
    inner = outer.get("text_config")
    config = {**outer, **inner} if isinstance(inner, dict) else outer
    layers = _whole(config, "num_hidden_layers", shown, LAYERS_MAX)
    kv = _kv(config, shown)
    sliding, window = _sliding(config, layers, shown)
    geometry = Geometry(
        layers=layers,
        kv=kv,
        sliding_layers=sliding,
        window_tokens=window,
        query_heads=_optional(config, "num_attention_heads", shown, HEADS_MAX),
    )
    return Model(
        name=name or document.brief(path.resolve().parent.name or path.name),
        dtype=_dtype(config, dtype, shown),
        geometry=check_geometry(geometry, shown),
        source=shown,
        note="read from a config.json; the engine may lay KV out otherwise",
    )


def _read(path: Path, shown: str) -> Config:
    raw = document.read_bytes(path, CONFIG_BYTES_MAX)
    try:
        values = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise UsageError(f"is not JSON: {document.brief(str(error))}", where=shown) from None
    if not isinstance(values, dict):
        raise UsageError("is not a config.json: its top is no object", where=shown)
    return values


def _kv(config: Config, shown: str) -> HeadKv | LatentKv:
    rank = _optional(config, "kv_lora_rank", shown, DIM_MAX)
    if rank is not None:
        rope = _whole(config, "qk_rope_head_dim", shown, DIM_MAX)
        index = _optional(config, "index_head_dim", shown, DIM_MAX)
        return LatentKv(
            kv_lora_rank=rank,
            rope_head_dim=rope,
            index_bytes=index + INDEX_SCALE_BYTES if index else 0,
        )
    heads = _optional(config, "num_key_value_heads", shown, HEADS_MAX)
    if heads is None:
        heads = _whole(config, "num_attention_heads", shown, HEADS_MAX)
    return HeadKv(kv_heads=heads, head_dim=_head_dim(config, shown))


def _head_dim(config: Config, shown: str) -> int:
    stated = _optional(config, "head_dim", shown, DIM_MAX)
    if stated is not None:
        return stated
    if "hidden_size" not in config:
        raise UsageError("has neither head_dim nor hidden_size", where=shown)
    hidden = _whole(config, "hidden_size", shown, DIM_MAX * HEADS_MAX)
    heads = _whole(config, "num_attention_heads", shown, HEADS_MAX)
    if hidden % heads or not 1 <= hidden // heads <= DIM_MAX:
        raise UsageError(
            f"hidden_size {hidden} over {heads} query heads gives no head width", where=shown
        )
    return hidden // heads


def _sliding(config: Config, layers: int, shown: str) -> tuple[int, int | None]:
    """Return the number of sliding layers and their window."""
    types = config.get("layer_types")
    if types is not None:
        count = _sliding_of_types(types, layers, shown)
        return (
            (count, _whole(config, "sliding_window", shown, WINDOW_TOKENS_MAX))
            if count
            else (
                0,
                None,
            )
        )
    window = _optional(config, "sliding_window", shown, WINDOW_TOKENS_MAX)
    # Qwen2 and Qwen3 files carry a window that is off unless use_sliding_window says otherwise;
    # they are known by max_window_layers.
    used = config.get("use_sliding_window", "max_window_layers" not in config)
    if used not in (True, False):
        raise UsageError("must be true or false", where=f"{shown}: use_sliding_window")
    if window is None or not used:
        return 0, None
    count = _sliding_of_pattern(config, layers, shown)
    return count, window if count else None


def _sliding_of_types(types: object, layers: int, shown: str) -> int:
    where = f"{shown}: layer_types"
    if not isinstance(types, list) or len(types) != layers:
        raise UsageError(f"must be a list with one entry for each of {layers} layers", where=where)
    for kind in types:
        if kind not in (FULL, SLIDING):
            raise UsageError(
                f"layers of type {document.brief(repr(kind))} keep another state than KV of "
                "every token, which kvbench cannot size",
                where=where,
                hint=f"known: {FULL}, {SLIDING}",
            )
    return types.count(SLIDING)


def _sliding_of_pattern(config: Config, layers: int, shown: str) -> int:
    if "max_window_layers" in config:
        # The first max_window_layers layers see everything (transformers Qwen2Config).
        return layers - min(layers, _whole(config, "max_window_layers", shown, LAYERS_MAX, low=0))
    every = _optional(config, "sliding_window_pattern", shown, LAYERS_MAX)
    if every is None:
        every = PATTERN_OF_TYPE.get(str(config.get("model_type")))
    return layers - layers // every if every else layers


def _dtype(config: Config, asked: str | None, shown: str) -> str:
    if asked is not None:
        return parse_dtype(asked, where="--dtype")
    for key in ("torch_dtype", "dtype"):
        value = config.get(key)
        if value is None:
            continue
        if not isinstance(value, str):
            raise UsageError("must be text", where=f"{shown}: {key}")
        name = parse_dtype(value, where=f"{shown}: {key}")
        if name in DTYPE_BYTES:
            return name
    raise UsageError("has neither torch_dtype nor dtype", where=shown, hint="give --dtype")


def _optional(config: Config, key: str, shown: str, high: int) -> int | None:
    return None if config.get(key) is None else _whole(config, key, shown, high)


def _whole(config: Config, key: str, shown: str, high: int, *, low: int = 1) -> int:
    value = config.get(key)
    if value is None:
        raise UsageError(f"the key {key!r} is missing", where=shown)
    if isinstance(value, bool) or not isinstance(value, int):
        found = document.brief(repr(value))
        raise UsageError(f"must be a whole number, not {found}", where=f"{shown}: {key}")
    if not low <= value <= high:
        raise UsageError(f"must be from {low} to {high}", where=f"{shown}: {key}")
    return value
