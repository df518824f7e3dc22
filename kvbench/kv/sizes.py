"""A model, a sequence and a split -> every size that storage meets.  Pure; the ``size`` verb."""

from msgspec import Struct

from kvbench.errors import UsageError
from kvbench.kv import geometry as g
from kvbench.kv.models import Model

LBA_BYTES = (512, 4096)
SEQUENCES_MAX = 1_000_000_000


class UnitSize(Struct, frozen=True, kw_only=True):
    """One unit of tokens on one rank: all layers together, and one layer of it.

    ``lost_percent`` is the share of the sequence's stored bytes that its partly filled last unit
    leaves empty.
    """

    unit: str
    tokens: int
    bytes: int
    layer_bytes: int
    is_multiple_of_512: bool
    is_multiple_of_4096: bool
    layer_is_multiple_of_512: bool
    layer_is_multiple_of_4096: bool
    units_in_sequence: int
    tokens_in_last_unit: int
    lost_percent: float


class RowRead(Struct, frozen=True, kw_only=True):
    """What the read of one row costs when rows lie back to back."""

    row_bytes: int
    lba_bytes: int
    lbas_touched: float
    bytes_read: float
    amplification: float


class Sizes(Struct, frozen=True, kw_only=True):
    """The sizes of a model's KV cache; per rank unless a name says ``all_ranks``.

    ``sequence_bytes`` counts in sliding layers their window only;
    ``sequence_without_window_bytes`` counts every token in every layer.  ``copies`` is how often
    the ranks together hold each byte: a latent, and heads fewer than the ranks, are replicated.
    """

    model: str
    dtype: str
    tp: int
    copies: int
    layers: int
    sliding_layers: int
    window_tokens: int | None
    bytes_per_token: int
    block_bytes: int
    page_bytes: int
    chunk_bytes: int
    sequence_tokens: int
    sequence_bytes: int
    sequence_without_window_bytes: int
    sequence_all_ranks_bytes: int
    sequences: int
    total_bytes: int
    total_all_ranks_bytes: int
    units: tuple[UnitSize, ...]
    rows: tuple[RowRead, ...]
    index_bytes: int
    source: str
    note: str


def sizes(
    model: Model, tokens: int, *, dtype: str | None = None, tp: int = 1, sequences: int = 1
) -> Sizes:
    """Return the sizes of ``sequences`` sequences of ``tokens`` tokens each.

    Raises:
        UsageError: a number out of its range, ranks that do not divide the heads, or a dtype that
            the model states no row of.
    """
    if not 1 <= tokens <= g.TOKENS_MAX:
        raise UsageError(f"must be from 1 to {g.TOKENS_MAX}, not {tokens}", where="--tokens")
    if not 1 <= sequences <= SEQUENCES_MAX:
        raise UsageError(f"must be from 1 to {SEQUENCES_MAX}, not {sequences}", where="--sequences")
    shape, dtype = model.geometry, dtype or model.dtype
    units = {unit: _unit(shape, unit, tokens, dtype, tp) for unit in g.UNIT_TOKENS}
    sequence = g.sequence_bytes(shape, tokens, dtype, tp)
    row = g.row_bytes(shape, dtype, tp)
    return Sizes(
        model=model.name,
        dtype=dtype,
        tp=tp,
        copies=tp * units["token"].bytes // g.bytes_per_token(shape, dtype),
        layers=shape.layers,
        sliding_layers=shape.sliding_layers,
        window_tokens=shape.window_tokens,
        bytes_per_token=units["token"].bytes,
        block_bytes=units["block"].bytes,
        page_bytes=units["page"].bytes,
        chunk_bytes=units["chunk"].bytes,
        sequence_tokens=tokens,
        sequence_bytes=sequence,
        sequence_without_window_bytes=tokens * units["token"].bytes,
        sequence_all_ranks_bytes=sequence * tp,
        sequences=sequences,
        total_bytes=sequence * sequences,
        total_all_ranks_bytes=sequence * tp * sequences,
        units=tuple(units.values()),
        rows=tuple(_row(row, lba) for lba in LBA_BYTES),
        index_bytes=shape.kv.index_bytes if isinstance(shape.kv, g.LatentKv) else 0,
        source=model.source,
        note=model.note,
    )


def _unit(shape: g.Geometry, unit: str, tokens: int, dtype: str, tp: int) -> UnitSize:
    of_unit = g.UNIT_TOKENS[unit]
    layer = of_unit * g.token_layer_bytes(shape, dtype, tp)
    size = of_unit * g.bytes_per_token(shape, dtype, tp)
    count = -(-tokens // of_unit)
    return UnitSize(
        unit=unit,
        tokens=of_unit,
        bytes=size,
        layer_bytes=layer,
        is_multiple_of_512=size % 512 == 0,
        is_multiple_of_4096=size % 4096 == 0,
        layer_is_multiple_of_512=layer % 512 == 0,
        layer_is_multiple_of_4096=layer % 4096 == 0,
        units_in_sequence=count,
        tokens_in_last_unit=tokens - (count - 1) * of_unit,
        lost_percent=100 * g.lost_share(tokens, of_unit),
    )


def _row(row: int, lba: int) -> RowRead:
    touched = g.lbas_touched(row, lba)
    return RowRead(
        row_bytes=row,
        lba_bytes=lba,
        lbas_touched=float(touched),
        bytes_read=float(touched * lba),
        amplification=g.read_amplification(row, lba),
    )
