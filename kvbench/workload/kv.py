"""The ``[kv]`` table of a workload file: the geometry of a model -> the bytes of one object.

A stream that says ``block_size = "kv"`` or ``chunk_size = "kv"`` takes this size.  The formula is
that of ``kvbench size``; here it is chosen, rounded to what a drive can be asked for, and told.
"""

from functools import cache
from pathlib import Path

from msgspec import Struct

from kvbench import document
from kvbench.errors import UsageError
from kvbench.kv import geometry as g
from kvbench.kv.models import Model, find_model, load_models
from kvbench.units import format_size
from kvbench.workload import rules
from kvbench.workload.folder import MODELS_FILE, data_folder
from kvbench.workload.table import Table

KV = "kv"  # what a size says to be the derived one
KV_KEYS = ("model", "unit", "tokens", "dtype", "tp")
UNITS = ("row", "page", "block", "layer", "chunk", "bucket")
UNIT_TOKENS = {**g.UNIT_TOKENS, "layer": g.UNIT_TOKENS["chunk"], "bucket": g.UNIT_TOKENS["chunk"]}
UNIT_TOKENS_MAX = 1 << 20
# Mooncake closes a bucket at the first of these (docs/source/design/store/ssd-offload.md).
BUCKET_BYTES_MAX, BUCKET_OBJECTS_MAX = 256_000_000, 500
TEXT_MAX = 100


class KvObject(Struct, frozen=True, kw_only=True):
    """The derived size, a multiple of 512 bytes, and one line that says where it is from."""

    size_bytes: int
    derivation: str


class KvChoice(Struct, frozen=True, kw_only=True):
    """What a user chose in the place of what ``[kv]`` tables say; None leaves theirs.

    With another model the file's dtype and ranks are dropped: they were those of its own model.
    """

    model: str | None = None
    dtype: str | None = None
    tp: int | None = None


def read_kv(table: Table, choice: KvChoice | None = None) -> KvObject | None:
    """Return what the ``[kv]`` table of a workload file derives; None where there is no table.

    Raises:
        UsageError: an unknown model, unit or dtype, or ranks that do not divide the heads.
    """
    if KV not in table:
        return None
    entry = table.table(KV)
    entry.allow_only(KV_KEYS)
    if choice is not None:
        entry = _chosen(entry, choice)
    model = _model(entry)
    unit = entry.choice("unit", UNITS, None)
    dtype = model.dtype
    if "dtype" in entry:
        text = entry.text("dtype", limit=TEXT_MAX)
        try:
            dtype = g.parse_dtype(text)
        except UsageError as error:
            raise entry.error("dtype", error.message, document.suggestion(text, g.DTYPES)) from None
    tp = entry.integer("tp", low=1, high=g.TP_MAX) if "tp" in entry else 1
    g.check_tp(model.geometry, tp, where=entry.where("tp"))
    try:
        row = g.row_bytes(model.geometry, dtype, tp)
    except UsageError as error:
        raise entry.error("dtype", error.message, error.hint) from None
    head = f"one {unit} of {model.name} in {dtype}{f' on one of {tp} ranks' if tp > 1 else ''}"
    if unit == "row":
        if "tokens" in entry:
            raise entry.error("tokens", "a row is of one token", "leave it out")
        size, sum_text = row, f"one token in one layer, {_row_text(model, dtype, tp)}"
    else:
        size, sum_text = _tokens(entry, unit, model, dtype, tp)
    return _rounded(f"{head}: {sum_text}", size)


def with_kv(stream: Table, kv: KvObject | None) -> tuple[Table, str]:
    """Return a stream's table with the derived size in the place of ``"kv"``.

    A chunk becomes a whole number of the stream's blocks; the second value tells where that made
    it larger, "" where it did not.

    Raises:
        UsageError: a size is ``"kv"`` and the file has no ``[kv]`` table.
    """
    asked = [key for key in ("block_size", "chunk_size") if stream.values.get(key) == KV]
    if not asked:
        return stream, ""
    if kv is None:
        raise stream.error(asked[0], 'the size "kv" needs a [kv] table with model and unit')
    sizes = dict.fromkeys(asked, kv.size_bytes)
    told = ""
    if asked == ["chunk_size"] and "block_size" in stream:
        block = stream.size("block_size", low=rules.BLOCK_MIN, high=rules.BLOCK_MAX)
        whole = -(-kv.size_bytes // block) * block
        if whole != kv.size_bytes:
            sizes["chunk_size"] = whole
            told = f"; rounded up to {whole} B: whole blocks of {format_size(block)}"
    return Table(stream.values | sizes, stream.file, stream.path), told


def uses_kv(streams: list[Table]) -> bool:
    """Return whether any stream takes the derived size."""
    return any(KV in (s.values.get("block_size"), s.values.get("chunk_size")) for s in streams)


def _chosen(entry: Table, choice: KvChoice) -> Table:
    values = dict(entry.values)
    if choice.model is not None:
        values = {k: v for k, v in values.items() if k not in ("dtype", "tp")}
    chosen = {"model": choice.model, "dtype": choice.dtype, "tp": choice.tp}
    values |= {key: value for key, value in chosen.items() if value is not None}
    return Table(values, entry.file, entry.path)


@cache
def _models(path: Path) -> dict[str, Model]:
    return load_models(path)


def _model(entry: Table) -> Model:
    name = entry.text("model", limit=TEXT_MAX)
    models = _models(data_folder() / MODELS_FILE)
    try:
        return find_model(models, name)
    except UsageError as error:
        near = document.nearest(name.rsplit("/", 1)[-1].lower(), models)
        raise entry.error("model", error.message, near or "see kvbench list models") from None


def _tokens(entry: Table, unit: str, model: Model, dtype: str, tp: int) -> tuple[int, str]:
    """Return the bytes of a unit of several tokens, and the product that they are."""
    tokens = UNIT_TOKENS[unit]
    if "tokens" in entry:
        tokens = entry.integer("tokens", low=1, high=UNIT_TOKENS_MAX)
    layers = 1 if unit == "layer" else model.geometry.layers
    size = tokens * layers * g.token_layer_bytes(model.geometry, dtype, tp)
    factors = [f"{tokens} tokens", "1 layer" if layers == 1 else f"{layers} layers"]
    kv = model.geometry.kv
    row = _row_text(model, dtype, tp)
    if isinstance(kv, g.HeadKv):
        factors.append(f"2 (K and V) x {row}")
    else:
        factors.append(f"({row} and {kv.index_bytes} B of index)" if kv.index_bytes else row)
    text = " x ".join(factors)
    if unit != "bucket":
        return size, text
    count = min(BUCKET_BYTES_MAX // size, BUCKET_OBJECTS_MAX)
    if count == 0:
        raise entry.error(
            "unit", f"an object of {size} bytes does not fit into a bucket", "lower tokens"
        )
    return count * size, f"{count} objects, all that fit into 256 MB, of {text}"


def _row_text(model: Model, dtype: str, tp: int) -> str:
    """Return what a row is: of K or of V where there are heads, else the latent."""
    kv, row = model.geometry.kv, g.row_bytes(model.geometry, dtype, tp)
    if isinstance(kv, g.HeadKv):
        heads = g.kv_heads_per_rank(kv.kv_heads, tp)
        return f"{heads} KV heads x {kv.head_dim} x {g.DTYPE_BYTES[dtype]} B"
    if dtype in kv.row_bytes:
        return f"a latent row of {row} B"
    return f"a latent of ({kv.kv_lora_rank} + {kv.rope_head_dim}) x {g.DTYPE_BYTES[dtype]} B"


def _rounded(text: str, size: int) -> KvObject:
    grain = rules.BLOCK_GRAIN
    blocks = -(-size // grain)
    whole = blocks * grain
    told = f"{text} = {size} B ({format_size(size)})"
    if whole != size:
        told += f", rounded up to {whole} B: whole blocks of {grain} B"
    return KvObject(size_bytes=whole, derivation=told)
