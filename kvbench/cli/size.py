"""``kvbench size``: the KV bytes of a model in every unit that storage meets."""

import argparse
from pathlib import Path

from kvbench.cli import output
from kvbench.errors import ExitCode, UsageError
from kvbench.kv.config import from_config
from kvbench.kv.geometry import DTYPES, parse_dtype
from kvbench.kv.models import Model, find_model, load_models
from kvbench.kv.sizes import Sizes, UnitSize, sizes
from kvbench.units import GIB, KIB, MIB, TIB
from kvbench.workload import catalog

DEFAULT_TOKENS = 8192
DIGITS_MAX = 15


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        help="a model by name (kvbench list models); with --config, what to call it",
    )
    parser.add_argument(
        "--tokens",
        default=str(DEFAULT_TOKENS),
        metavar="N",
        help=f"tokens of a sequence (default: {DEFAULT_TOKENS})",
    )
    parser.add_argument(
        "--sequences", default="1", metavar="N", help="how many such sequences (default: 1)"
    )
    parser.add_argument(
        "--dtype", metavar="D", help=f"KV dtype: {', '.join(DTYPES)} (default: the model's own)"
    )
    parser.add_argument(
        "--tp",
        default="1",
        metavar="T",
        help="tensor-parallel ranks; sizes are then those of one rank (default: 1)",
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="a Hugging Face config.json instead of a name"
    )
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the sizes."""
    dtype = parse_dtype(arguments.dtype, where="--dtype") if arguments.dtype is not None else None
    answer = sizes(
        _model(arguments, dtype),
        _count(arguments.tokens, "--tokens"),
        dtype=dtype,
        tp=_count(arguments.tp, "--tp"),
        sequences=_count(arguments.sequences, "--sequences"),
    )
    if arguments.json:
        output.print_json(answer)
    else:
        print("\n".join(_lines(answer)))
    return int(ExitCode.OK)


def _model(arguments: argparse.Namespace, dtype: str | None) -> Model:
    if arguments.config is not None:
        return from_config(arguments.config, name=arguments.model or "", dtype=dtype)
    if arguments.model is None:
        raise UsageError("name a MODEL or give --config FILE", hint="see kvbench list models")
    return find_model(load_models(catalog.data_folder() / "models.toml"), arguments.model)


def _count(text: str, where: str) -> int:
    plain = text.strip().replace(",", "").replace("_", "")
    if not (plain.isascii() and plain.isdigit() and len(plain) <= DIGITS_MAX):
        raise UsageError(f"not a whole number: {text[:40]!r}", where=where)
    return int(plain)


def _lines(answer: Sizes) -> list[str]:
    """Return the answer as text: units, the sequence, what is lost, rows, the source."""
    return [
        _headline(answer),
        "",
        *_unit_table(answer.units),
        "",
        *_sequence(answer),
        "",
        *_lost(answer),
        "",
        *_rows(answer),
        "",
        f"source: {answer.source}",
        *([f"note: {answer.note}"] if answer.note else []),
    ]


def _headline(answer: Sizes) -> str:
    sliding = ""
    if answer.sliding_layers:
        sliding = f", {answer.sliding_layers} of them sliding over {answer.window_tokens:,} tokens"
    ranks = f", one of {answer.tp} tensor-parallel ranks" if answer.tp > 1 else ""
    return f"{answer.model}, {answer.dtype} KV, {answer.layers} layers{sliding}{ranks}"


def _unit_table(units: tuple[UnitSize, ...]) -> list[str]:
    rows = [("unit", "tokens", "layers", "bytes", "", "x 512 B", "x 4 KiB")]
    for unit in units:
        rows.append(
            _unit_row(unit, "all", unit.bytes, (unit.is_multiple_of_512, unit.is_multiple_of_4096))
        )
        multiples = (unit.layer_is_multiple_of_512, unit.layer_is_multiple_of_4096)
        rows.append(_unit_row(unit, "one", unit.layer_bytes, multiples))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if column in (1, 3, 4) else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _unit_row(
    unit: UnitSize, layers: str, size: int, multiples: tuple[bool, bool]
) -> tuple[str, str, str, str, str, str, str]:
    by_512, by_4096 = ("yes" if whole else "no" for whole in multiples)
    return (unit.unit, str(unit.tokens), layers, f"{size:,} B", _binary(size), by_512, by_4096)


def _sequence(answer: Sizes) -> list[str]:
    tokens = f"a sequence of {answer.sequence_tokens:,} tokens"
    lines = [f"{tokens}: {_both(answer.sequence_bytes)}"]
    if answer.sliding_layers:
        lines[0] += " (sliding layers hold their window only)"
        lines.append(
            f"  with every token in every layer: {_both(answer.sequence_without_window_bytes)}"
        )
    ranks = f"  on all {answer.tp} ranks"
    if answer.copies > 1:
        ranks += f", which hold each byte {answer.copies} times"
    if answer.tp > 1:
        lines.append(f"{ranks}: {_both(answer.sequence_all_ranks_bytes)}")
    if answer.sequences > 1:
        lines.append(f"{answer.sequences:,} such sequences: {_both(answer.total_bytes)}")
        if answer.tp > 1:
            lines.append(f"{ranks}: {_both(answer.total_all_ranks_bytes)}")
    return lines


def _lost(answer: Sizes) -> list[str]:
    lines = ["stored in whole units, the partly filled last one leaves empty:"]
    for unit in answer.units[1:]:
        lines.append(
            f"  {unit.unit} of {unit.tokens}: {unit.lost_percent:.2f} % of "
            f"{unit.units_in_sequence:,} (the last holds {unit.tokens_in_last_unit} of "
            f"{unit.tokens} tokens)"
        )
    return lines


def _rows(answer: Sizes) -> list[str]:
    first = answer.rows[0]
    index = f"; its index key of {answer.index_bytes} B is apart" if answer.index_bytes else ""
    lines = [
        f"a sparse read fetches rows of {first.row_bytes:,} B (one token, one layer{index}); "
        "packed back to back one row touches in the mean:"
    ]
    for row in answer.rows:
        lines.append(
            f"  {_binary(row.lba_bytes)} LBAs: {row.lbas_touched:.3f} = {row.bytes_read:,.0f} B, "
            f"read amplification {row.amplification:.2f}x"
        )
    return lines


def _both(size: int) -> str:
    return f"{size:,} B = {_binary(size)}" if size >= KIB else f"{size:,} B"


def _binary(size: int) -> str:
    """Return three decimals from 1 MiB on, so that a whole number is seen to be one."""
    for unit, factor in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB)):
        if size >= factor:
            return f"{size / factor:.3f} {unit}"
    if size >= KIB:
        return f"{size / KIB:.3f}".rstrip("0").rstrip(".") + " KiB"
    return f"{size} B"
