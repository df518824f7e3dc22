"""A model, a GPU and a split, as a user or a run names them -> the subject of the question.

``breakeven`` and ``report`` ask the same question; only the report has an answer when nobody
names a model.
"""

from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kvbench.document import found
from kvbench.errors import UsageError
from kvbench.kv.config import from_config
from kvbench.kv.geometry import bytes_per_token, check_tp, parse_dtype, sequence_bytes
from kvbench.kv.gpus import Gpu, find_gpu, load_gpus
from kvbench.kv.models import Model, find_model, load_models
from kvbench.kv.prefill import Prefill, prefill_from_rate, prefill_s
from kvbench.units import MS_PER_S
from kvbench.workload import catalog

if TYPE_CHECKING:  # numpy stands behind it, and a wrong name is told without waiting for it
    from kvbench.report.breakeven import Subject

DEFAULT_MODEL, DEFAULT_GPU = "llama-3.1-8b", "h100"
PROBE_TOKENS = 1024  # a length that every table and the formula reach, if they know the model
NUMBER_CHARS_MAX = 30
NUMBER_MAX = 1e12  # far beyond any sense, and far below what arithmetic cannot hold
TP_DIGITS_MAX = 6


class Asked(Struct, frozen=True, kw_only=True):
    """What was named, as text; None is what nobody named."""

    model: str | None = None
    config: Path | None = None
    gpu: str | None = None
    tp: str | None = None
    dtype: str | None = None
    overhead_ms: str | None = None
    ttft_ms: str | None = None
    prefill_tok_s: str | None = None


def subject_of(asked: Asked, chosen: str = "") -> "Subject":
    """Return the subject that ``asked`` names; ``chosen`` says who chose it.

    Raises:
        UsageError: an unknown name, a number out of its range, or nothing to recompute with.
    """
    dtype = None if asked.dtype is None else parse_dtype(asked.dtype, where="--dtype")
    model = _model(asked, dtype)
    dtype = dtype or model.dtype
    tp = 1 if asked.tp is None else _tp(asked.tp)
    check_tp(model.geometry, tp)
    per_token = bytes_per_token(model.geometry, dtype)
    gpu, prefill, source = _prefill(asked, model, tp)
    overhead_s, ttft_s = 0.0, None
    if asked.overhead_ms is not None:
        overhead_s = _milliseconds(asked.overhead_ms, "--overhead-ms", zero=True)
    if asked.ttft_ms is not None:
        ttft_s = _milliseconds(asked.ttft_ms, "--ttft-ms", zero=False)
    prefill(PROBE_TOKENS)  # a model that nothing is known about is refused here

    from kvbench.measure.breakeven import Question
    from kvbench.report.breakeven import Subject

    return Subject(
        model=model.name,
        gpu=gpu.name if gpu else None,
        tp=tp,
        dtype=dtype,
        bytes_per_token=per_token,
        question=Question(
            kv_bytes=lambda tokens: sequence_bytes(model.geometry, tokens, dtype),
            prefill=prefill,
            overhead_s=overhead_s,
            ttft_s=ttft_s,
        ),
        chosen=chosen,
        source=source,
    )


def subject_of_report(asked: Asked, command: Sequence[str]) -> "Subject":
    """Return the subject of a report: what the user names, else what the run was made for.

    Without a number of ranks it is the smallest one that the GPU's table has the model with.

    Args:
        asked: what the user of the report names.
        command: the command that made the run.

    Raises:
        UsageError: what the user names is wrong; what the run names is left when it is.
    """
    if asked.model is not None:
        return subject_of(_with_ranks(asked))
    of_run = option_of(command, "--model")
    if of_run is not None:
        try:
            mine = replace(asked, model=of_run)
            return subject_of(_with_ranks(mine), "The run was made for this model.")
        except UsageError:
            if asked.tp is not None or asked.gpu is not None:
                raise
    return subject_of(
        _with_ranks(replace(asked, model=DEFAULT_MODEL)),
        "It stands for others: `kvbench report RUN --model M --gpu G` asks for yours.",
    )


def option_of(command: Sequence[str], option: str) -> str | None:
    """Return the last value of ``option`` in a command, None when it has none."""
    value = None
    for place, word in enumerate(command):
        if word == option and place + 1 < len(command):
            value = command[place + 1]
        elif word.startswith(f"{option}="):
            value = word.removeprefix(f"{option}=")
    return value


def _with_ranks(asked: Asked) -> Asked:
    """Return ``asked`` with a GPU, and with ranks that its table has the model with."""
    asked = replace(asked, gpu=asked.gpu or DEFAULT_GPU)
    if asked.tp is not None:
        return asked
    model = _model(asked, None)
    gpu = find_gpu(load_gpus(catalog.data_folder() / "gpus.toml"), asked.gpu or DEFAULT_GPU)
    known = [r.tp for r in gpu.prefill if model.name in (r.model, *r.also) and r.points]
    return replace(asked, tp=str(min(known, default=1)))


def _model(asked: Asked, dtype: str | None) -> Model:
    if asked.model is not None and asked.config is not None:
        raise UsageError("give --model or --config, not both")
    if asked.config is not None:
        return from_config(asked.config, dtype=dtype)
    if asked.model is None:
        raise UsageError(
            "name a model with --model, or give --config FILE", hint="see kvbench list models"
        )
    return find_model(load_models(catalog.data_folder() / "models.toml"), asked.model)


def _prefill(
    asked: Asked, model: Model, tp: int
) -> tuple[Gpu | None, Callable[[int], Prefill], str]:
    """Return the GPU, which a user's own figure does not need, seconds by tokens, and whose."""
    gpu, source = None, ""
    if asked.gpu is not None:
        gpus = load_gpus(catalog.data_folder() / "gpus.toml")
        gpu, source = find_gpu(gpus, asked.gpu), gpus.table_source
    if asked.prefill_tok_s is not None:
        rate = _number(asked.prefill_tok_s, "--prefill-tok-s", zero=False)
        return gpu, lambda tokens: prefill_from_rate(tokens, rate), ""
    if gpu is None:
        raise UsageError(
            "name a GPU with --gpu, or give --prefill-tok-s", hint="see kvbench list gpus"
        )
    chosen = gpu
    return gpu, lambda tokens: prefill_s(model, chosen, tp, tokens), source


def _tp(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= TP_DIGITS_MAX):
        raise UsageError(f"not a whole number: {found(text)}", where="--tp")
    return int(text)


def _milliseconds(text: str, where: str, *, zero: bool) -> float:
    return _number(text, where, zero=zero) / MS_PER_S


def _number(text: str, where: str, *, zero: bool) -> float:
    """Return a finite number above 0, or also 0."""
    try:
        value = float(text) if len(text) <= NUMBER_CHARS_MAX else float("nan")
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise UsageError(f"not a number: {found(text)}", where=where)
    if value < 0 or (value == 0 and not zero):
        least = "0 or more" if zero else "above 0"
        raise UsageError(f"must be {least}, not {found(text)}", where=where)
    if value > NUMBER_MAX:
        raise UsageError(f"must be at most {NUMBER_MAX:g}, not {found(text)}", where=where)
    return value
