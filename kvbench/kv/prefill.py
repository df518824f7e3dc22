"""GPU, model and prompt length -> seconds of prefill.  Pure; every figure is an estimate.

Two sources, never mixed up: a table (``gpus.toml``, an estimator's output) read between its
points, and a FLOPs formula for what the table lacks.  A ``Prefill`` carries which one it is.
"""

from itertools import pairwise
from math import exp, log
from typing import Literal

from msgspec import Struct

from kvbench.errors import UsageError
from kvbench.kv.gpus import Gpu, PrefillRow
from kvbench.kv.models import Model, Weights

Basis = Literal["table", "interpolated", "extrapolated", "formula", "given"]

EXTRAPOLATION_MAX = 2.0  # times beyond the table's ends; farther is refused, not guessed


class Prefill(Struct, frozen=True, kw_only=True):
    """The time to compute a prompt's KV cache, and what kind of number it is.

    ``low_s`` and ``high_s`` are the formula's range; for the table they equal ``seconds``.
    """

    seconds: float
    low_s: float
    high_s: float
    basis: Basis
    note: str

    @property
    def is_estimate(self) -> bool:
        """Whether nobody measured it."""
        return self.basis != "given"


def prefill_s(
    model: Model, gpu: Gpu, tp: int, tokens: int, *, weights: Weights | None = None
) -> Prefill:
    """Return the time to prefill ``tokens`` on ``tp`` GPUs.

    The table's row of this model, tensor-parallel size and weights (by default the model's own,
    else whichever the table has) is read between its points on logarithmic axes; up to twice
    beyond its ends the slope of the last two points goes on and the note says so.  Without a row
    the FLOPs formula stands in.

    Raises:
        UsageError: farther beyond the table, or nothing known to compute with.
    """
    if tokens < 1:
        raise UsageError(f"a prompt has at least one token, not {tokens}")
    row = _row(model, gpu, tp, weights)
    if row is None or not row.points:
        absent = f"{model.name} with tp {tp} is not in the table"
        why = f"the table has no figure: {row.missing}" if row else absent
        return _formula(model, gpu, tp, tokens, weights, why)
    return _read(row, tokens, f"{model.name} on {gpu.name}, tp {tp}")


def prefill_from_rate(tokens: int, tokens_per_s: float) -> Prefill:
    """Return the time by a user's own figure.

    Raises:
        UsageError: the rate is not a positive number.
    """
    if not 0 < tokens_per_s < float("inf"):
        raise UsageError(f"tokens per second must be above 0, not {tokens_per_s}")
    seconds = tokens / tokens_per_s
    return Prefill(
        seconds=seconds,
        low_s=seconds,
        high_s=seconds,
        basis="given",
        note=f"given: {tokens_per_s:g} tokens/s at every length",
    )


def prefill_flops(model: Model, tokens: int) -> float:
    """Return the FLOPs of a prefill: two per active parameter and token, and causal attention.

    Attention multiplies each token with those before it (within the window in sliding layers):
    ``2 * query_heads * (qk width + pv width)`` FLOPs per pair and layer.  After Mooncake
    (FAST'25) Eq. 1, with half of the square because attention is causal.  Sparse attention does
    less than this.

    Raises:
        UsageError: the model states no parameters.
    """
    compute, geometry = model.compute, model.geometry
    if compute is None:
        raise UsageError(
            f"nothing is known about the FLOPs of {model.name}",
            hint="give your own figure in tokens per second",
        )
    window = min(tokens, geometry.window_tokens or tokens)
    # Token i of a sliding layer meets min(i, window) tokens.
    windowed = window * window / 2 + (tokens - window) * window
    pairs = geometry.full_layers * tokens * tokens / 2 + geometry.sliding_layers * windowed
    attention = 2 * compute.query_heads * compute.head_dims * pairs
    return 2 * compute.active_parameters * tokens + attention


def _row(model: Model, gpu: Gpu, tp: int, weights: Weights | None) -> PrefillRow | None:
    rows = [r for r in gpu.prefill if model.name in (r.model, *r.also) and r.tp == tp]
    wanted = weights or (model.compute.weights if model.compute else "bf16")
    for row in rows:
        if row.weights == wanted:
            return row
    others = [row for row in rows if row.points and weights is None]
    return others[0] if others else None


def _read(row: PrefillRow, tokens: int, what: str) -> Prefill:
    """Read one row at ``tokens``, straight between neighbours on logarithmic axes."""
    points = row.points
    first, last = points[0][0], points[-1][0]
    if not first / EXTRAPOLATION_MAX <= tokens <= last * EXTRAPOLATION_MAX:
        raise UsageError(
            f"the table of {what} covers {first} to {last} tokens; {tokens} is too far beyond",
            hint="give your own figure in tokens per second",
        )
    pair = next(
        ((low, high) for low, high in pairwise(points) if tokens <= high[0]), tuple(points[-2:])
    )
    (n0, t0), (n1, t1) = pair
    seconds = t0 * exp(log(t1 / t0) * log(tokens / n0) / log(n1 / n0))
    basis: Basis = "interpolated"
    note = f"estimate: table of {what}, {row.weights} weights"
    if tokens in dict(points):
        seconds, basis = dict(points)[tokens], "table"
    elif not first < tokens < last:
        basis = "extrapolated"
        note += f"; beyond the table, which covers {first} to {last} tokens"
    return Prefill(seconds=seconds, low_s=seconds, high_s=seconds, basis=basis, note=note)


def _formula(
    model: Model, gpu: Gpu, tp: int, tokens: int, weights: Weights | None, why: str
) -> Prefill:
    flops = prefill_flops(model, tokens)
    compute = model.compute
    assert compute is not None  # noqa: S101 - prefill_flops has refused it
    kind = weights or compute.weights
    peak = gpu.peak_flops_fp8 if kind == "fp8" else gpu.peak_flops_bf16
    if peak is None:
        raise UsageError(
            f"{model.name} has {kind} weights and {gpu.name} no {kind} units ({why})",
            hint="give your own figure in tokens per second",
        )
    low, median, high = gpu.mfu_mixture if compute.mixture else gpu.mfu_dense
    ideal_s = flops / (peak * tp)
    return Prefill(
        seconds=ideal_s / median,
        low_s=ideal_s / high,
        high_s=ideal_s / low,
        basis="formula",
        note=f"rough estimate: FLOPs formula at {median:.0%} of the {kind} peak "
        f"({low:.0%} to {high:.0%} in the table's rows), because {why}",
    )
