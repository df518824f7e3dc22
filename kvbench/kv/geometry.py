"""Model geometry -> bytes of KV cache.  Pure; the formula stands once, here.

Heads (MHA, GQA, MQA) keep a K and a V vector per KV head: ``2 * kv_heads * head_dim`` elements
per token and layer.  A latent (MLA) is one vector of ``kv_lora_rank + rope_head_dim`` elements,
without the factor two, and every tensor-parallel rank holds all of it.  Layers with a sliding
window need only the last ``window_tokens`` tokens of a sequence.

Sources: vLLM ``v1/kv_cache_interface.py`` (page bytes, MLA spec), mlcommons/storage
``kv_cache/models.py``, vLLM ``v1/offloading/config.py`` (sliding layers).
"""

from fractions import Fraction
from math import gcd

from msgspec import Struct

from kvbench.errors import UsageError

UNIT_TOKENS: dict[str, int] = {"token": 1, "block": 16, "page": 64, "chunk": 256}
DTYPE_BYTES: dict[str, int] = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
PACKED_DTYPES = ("nvfp4",)  # only as a row whose bytes the model states, scales included
DTYPES: tuple[str, ...] = (*DTYPE_BYTES, *PACKED_DTYPES)
DTYPE_SPELLINGS: dict[str, str] = {
    "float32": "fp32",
    "float": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}
TP_MAX = 1024
TOKENS_MAX = 1 << 40


class HeadKv(Struct, frozen=True, kw_only=True):
    """K and V vectors of ``kv_heads`` heads."""

    kv_heads: int
    head_dim: int


class LatentKv(Struct, frozen=True, kw_only=True):
    """One compressed vector per token and layer (MLA).

    ``row_bytes`` states the bytes of a row for dtypes where an engine packs scales or mixed
    precision into it; ``index_bytes`` is the key that sparse attention searches, beside the row.
    """

    kv_lora_rank: int
    rope_head_dim: int
    row_bytes: dict[str, int] = {}
    index_bytes: int = 0


class Geometry(Struct, frozen=True, kw_only=True):
    """What decides the KV bytes of a model; all its layers have the same shape.

    ``sliding_layers`` of the ``layers`` see only the last ``window_tokens`` tokens.
    ``query_heads`` only limits tensor parallelism; None is "not known".
    """

    layers: int
    kv: HeadKv | LatentKv
    sliding_layers: int = 0
    window_tokens: int | None = None
    query_heads: int | None = None

    @property
    def full_layers(self) -> int:
        """Layers that see the whole sequence."""
        return self.layers - self.sliding_layers


def parse_dtype(text: str, *, where: str = "") -> str:
    """Return the dtype's own name from any usual spelling, whatever its case.

    Raises:
        UsageError: not a dtype.
    """
    name = text.strip().lower().removeprefix("torch.")
    name = DTYPE_SPELLINGS.get(name, name)
    if name not in DTYPES:
        raise UsageError(
            f"unknown dtype {text[:40]!r}", where=where, hint=f"known: {', '.join(DTYPES)}"
        )
    return name


def check_tp(geometry: Geometry, tp: int, *, where: str = "--tp") -> None:
    """Refuse a tensor-parallel size that the heads cannot be split into.

    Raises:
        UsageError: it divides neither the query heads nor fits the KV heads.
    """
    if not 1 <= tp <= TP_MAX:
        raise UsageError(f"tensor parallelism must be from 1 to {TP_MAX}, not {tp}", where=where)
    if geometry.query_heads is not None and geometry.query_heads % tp:
        raise UsageError(
            f"{tp} ranks do not divide the {geometry.query_heads} query heads", where=where
        )
    if isinstance(geometry.kv, HeadKv):
        heads = geometry.kv.kv_heads
        if heads % tp and tp % heads:
            raise UsageError(f"{tp} ranks do not divide the {heads} KV heads", where=where)


def kv_heads_per_rank(kv_heads: int, tp: int) -> int:
    """Return the KV heads of one rank: divided, and at least one (more ranks hold copies)."""
    return max(1, kv_heads // tp)


def token_layer_bytes(geometry: Geometry, dtype: str, tp: int = 1) -> int:
    """Return the bytes that one rank keeps of one token in one layer.

    Raises:
        UsageError: the ranks do not divide the heads, or the model states no row of this dtype.
    """
    check_tp(geometry, tp)
    if isinstance(geometry.kv, HeadKv):
        return 2 * row_bytes(geometry, dtype, tp)
    return row_bytes(geometry, dtype, tp) + geometry.kv.index_bytes


def row_bytes(geometry: Geometry, dtype: str, tp: int = 1) -> int:
    """Return the bytes of the smallest thing that a sparse read fetches.

    That is one token in one layer: its K (or its V) for heads, its latent row for MLA.
    """
    kv = geometry.kv
    if isinstance(kv, LatentKv) and dtype in kv.row_bytes:
        return kv.row_bytes[dtype]
    if dtype not in DTYPE_BYTES:
        raise UsageError(
            f"this model states no row of {dtype}, so its bytes are not known",
            where="--dtype",
            hint=f"known: {', '.join(DTYPE_BYTES)}",
        )
    if isinstance(kv, HeadKv):
        return kv_heads_per_rank(kv.kv_heads, tp) * kv.head_dim * DTYPE_BYTES[dtype]
    return (kv.kv_lora_rank + kv.rope_head_dim) * DTYPE_BYTES[dtype]


def bytes_per_token(geometry: Geometry, dtype: str, tp: int = 1) -> int:
    """Return the bytes that one rank keeps of one token, all layers."""
    return geometry.layers * token_layer_bytes(geometry, dtype, tp)


def sequence_bytes(geometry: Geometry, tokens: int, dtype: str, tp: int = 1) -> int:
    """Return the bytes that one rank needs of a sequence: sliding layers hold their window only."""
    held = geometry.full_layers * tokens
    if geometry.sliding_layers:
        held += geometry.sliding_layers * min(tokens, geometry.window_tokens or tokens)
    return held * token_layer_bytes(geometry, dtype, tp)


def lost_share(tokens: int, unit_tokens: int) -> float:
    """Return the share of the stored bytes that the partly filled last unit leaves empty."""
    stored = -(-tokens // unit_tokens) * unit_tokens
    return 1 - tokens / stored


def lbas_touched(row: int, lba: int) -> Fraction:
    """Return the expected LBAs that a read of one row touches, rows packed back to back.

    row, lba: bytes.  Rows start at every multiple of ``gcd(row, lba)`` inside an LBA equally
    often, so a row covers ``(row + lba - gcd) / lba`` of them in the mean: 656 B touch 2.25 LBAs
    of 512 B.
    """
    return Fraction(row + lba - gcd(row, lba), lba)


def read_amplification(row: int, lba: int) -> float:
    """Return the bytes that the device must read per byte of a packed row."""
    return float(lbas_touched(row, lba) * lba / row)
