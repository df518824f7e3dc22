"""``models.toml`` -> models by name.  A new model is one table in that file and no code."""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from kvbench import document
from kvbench.errors import UsageError
from kvbench.kv import entries
from kvbench.kv.geometry import DTYPES, Geometry, HeadKv, LatentKv, parse_dtype

LAYERS_MAX = 1000
HEADS_MAX = 4096
DIM_MAX = 65536
WINDOW_TOKENS_MAX = 1 << 31

Name = Annotated[str, Meta(pattern=entries.NAME_PATTERN)]
Layers = Annotated[int, Meta(ge=1, le=LAYERS_MAX)]
Heads = Annotated[int, Meta(ge=1, le=HEADS_MAX)]
Dim = Annotated[int, Meta(ge=1, le=DIM_MAX)]
Window = Annotated[int, Meta(ge=1, le=WINDOW_TOKENS_MAX)]
Line = Annotated[str, Meta(min_length=1, max_length=400)]
Weights = Literal["bf16", "fp8"]


class Compute(Struct, frozen=True, kw_only=True):
    """What a prefill costs: the numbers of the FLOPs formula.

    ``head_dims`` is the sum of the widths of a query head in QK^T and in PV.
    """

    active_parameters: float
    query_heads: int
    head_dims: int
    weights: Weights
    mixture: bool  # a mixture of experts: far fewer FLOPs per byte moved


class Model(Struct, frozen=True, kw_only=True):
    """One model.  ``compute`` is None when nothing is known about its FLOPs."""

    name: str
    dtype: str
    geometry: Geometry
    source: str
    note: str = ""
    also: tuple[str, ...] = ()
    compute: Compute | None = None


class _Entry(Struct, frozen=True, kw_only=True):
    """One ``[[model]]`` table as it is written."""

    name: Name
    layers: Layers
    source: Line
    dtype: str = "bf16"
    note: Annotated[str, Meta(max_length=400)] = ""
    also: tuple[Name, ...] = ()
    kv_heads: Heads | None = None
    head_dim: Dim | None = None
    kv_lora_rank: Dim | None = None
    rope_head_dim: Dim | None = None
    row_bytes: dict[str, Dim] = {}
    index_bytes: Annotated[int, Meta(ge=0, le=DIM_MAX)] = 0
    sliding_layers: Annotated[int, Meta(ge=0, le=LAYERS_MAX)] = 0
    window_tokens: Window | None = None
    query_heads: Heads | None = None
    active_parameters: Annotated[float, Meta(ge=1e6, le=1e14)] | None = None
    qk_head_dim: Dim | None = None
    v_head_dim: Dim | None = None
    weights: Weights = "bf16"
    mixture: bool = False


def load_models(path: Path) -> dict[str, Model]:
    """Return the models of ``path`` by name, in the file's order.

    Raises:
        UsageError: the file or an entry is wrong, or a name stands twice.
    """
    shown = document.printable(str(path))
    values = document.read_toml(path)
    document.allow_only(values, ("format", "model"), shown)
    models: dict[str, Model] = {}
    taken: set[str] = set()
    for number, table in enumerate(entries.tables(values, "model", shown), start=1):
        where = f"{shown}: model[{number}]"
        model = _model(entries.record(table, _Entry, where), where)
        for name in (model.name, *model.also):
            if name in taken:
                raise UsageError(f"the name {name!r} stands twice", where=where)
            taken.add(name)
        models[model.name] = model
    return models


def find_model(models: dict[str, Model], name: str) -> Model:
    """Return a model by its name; the case and a leading owner (``Qwen/``) do not matter.

    Raises:
        UsageError: there is none of this name.
    """
    asked = name.rsplit("/", 1)[-1].lower()
    names = {alias: model for model in models.values() for alias in (model.name, *model.also)}
    if asked in names:
        return names[asked]
    near = document.nearest(asked, names)
    raise UsageError(
        f"unknown model {document.brief(name)!r}",
        hint=f"{near} see kvbench list models, or give a config.json with --config".lstrip(),
    )


def check_geometry(geometry: Geometry, where: str) -> Geometry:
    """Return ``geometry`` when its sliding layers make sense.

    Raises:
        UsageError: more sliding layers than layers, or sliding layers without a window.
    """
    if geometry.sliding_layers > geometry.layers:
        raise UsageError(
            f"has {geometry.sliding_layers} sliding layers of {geometry.layers} layers",
            where=where,
        )
    if bool(geometry.sliding_layers) != (geometry.window_tokens is not None):
        raise UsageError("sliding_layers and window_tokens belong together", where=where)
    return geometry


def _model(entry: _Entry, where: str) -> Model:
    geometry = Geometry(
        layers=entry.layers,
        kv=_kv(entry, where),
        sliding_layers=entry.sliding_layers,
        window_tokens=entry.window_tokens,
        query_heads=entry.query_heads,
    )
    return Model(
        name=entry.name,
        dtype=parse_dtype(entry.dtype, where=f"{where}.dtype"),
        geometry=check_geometry(geometry, where),
        source=entry.source,
        note=entry.note,
        also=entry.also,
        compute=_compute(entry),
    )


def _kv(entry: _Entry, where: str) -> HeadKv | LatentKv:
    heads = (entry.kv_heads, entry.head_dim)
    latent = (entry.kv_lora_rank, entry.rope_head_dim)
    for dtype in entry.row_bytes:
        if dtype not in DTYPES:
            parse_dtype(dtype, where=f"{where}.row_bytes")
            raise UsageError(f"write {parse_dtype(dtype)}", where=f"{where}.row_bytes")
    match (*heads, *latent):
        case (int(kv_heads), int(head_dim), None, None):
            if entry.row_bytes or entry.index_bytes:
                raise UsageError("row_bytes and index_bytes belong to a latent", where=where)
            return HeadKv(kv_heads=kv_heads, head_dim=head_dim)
        case (None, None, int(rank), int(rope)):
            return LatentKv(
                kv_lora_rank=rank,
                rope_head_dim=rope,
                row_bytes=entry.row_bytes,
                index_bytes=entry.index_bytes,
            )
        case _:
            raise UsageError(
                "needs kv_heads and head_dim, or kv_lora_rank and rope_head_dim", where=where
            )


def _compute(entry: _Entry) -> Compute | None:
    qk, v = entry.qk_head_dim or entry.head_dim, entry.v_head_dim or entry.head_dim
    if entry.active_parameters is None or entry.query_heads is None or qk is None or v is None:
        return None
    return Compute(
        active_parameters=entry.active_parameters,
        query_heads=entry.query_heads,
        head_dims=qk + v,
        weights=entry.weights,
        mixture=entry.mixture,
    )
