"""``kvbench breakeven``: from which context on this drive reloads a KV cache faster than a GPU."""

import argparse
import sys
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from kvbench.cli import output
from kvbench.document import brief, found, printable, suggestion
from kvbench.errors import ExitCode, UsageError
from kvbench.kv.geometry import bytes_per_token, check_tp, parse_dtype, sequence_bytes
from kvbench.kv.gpus import Gpu, find_gpu, load_gpus
from kvbench.kv.models import Model, find_model, load_models
from kvbench.kv.prefill import Prefill, prefill_from_rate, prefill_s
from kvbench.store.read import find_run, read_run
from kvbench.units import MS_PER_S
from kvbench.workload import catalog

if TYPE_CHECKING:
    from kvbench.measure.model import MeasuredRun
    from kvbench.measure.reload import Reloads

NUMBER_CHARS_MAX = 30
NUMBER_MAX = 1e12  # far beyond any sense, and far below what arithmetic cannot hold
TP_DIGITS_MAX = 6
REASONS_SHOWN = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("run", metavar="RUN", help="a run's id, its folder, or 'latest'")
    parser.add_argument(
        "--model", required=True, metavar="M", help="a model by name (kvbench list models)"
    )
    parser.add_argument("--gpu", metavar="G", help="a GPU by name (kvbench list gpus)")
    parser.add_argument(
        "--tp",
        default="1",
        metavar="T",
        help="GPUs that compute together; sizes are those of all of them (default: 1)",
    )
    parser.add_argument("--dtype", metavar="D", help="KV dtype (default: the model's own)")
    parser.add_argument(
        "--overhead-ms",
        default="0",
        metavar="X",
        help="what a reload takes beside its reads: scheduling, copying (default: 0)",
    )
    parser.add_argument(
        "--ttft-ms", metavar="Y", help="also tell how many users may reload at once within this"
    )
    parser.add_argument(
        "--prefill-tok-s",
        metavar="R",
        help="your own figure in tokens per second, instead of the table and the formula",
    )
    parser.add_argument(
        "--workload",
        metavar="W",
        help="use this workload of the run only (default: all that read blocks or chunks)",
    )
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="the results store"
    )
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Measure the archive, compare, print."""
    model = find_model(load_models(catalog.data_folder() / "models.toml"), arguments.model)
    dtype = model.dtype
    if arguments.dtype is not None:
        dtype = parse_dtype(arguments.dtype, where="--dtype")
    tp = _tp(arguments.tp)
    check_tp(model.geometry, tp)
    per_token = bytes_per_token(model.geometry, dtype)
    gpu, prefill = _prefill(arguments, model, tp)
    overhead_s = _milliseconds(arguments.overhead_ms, "--overhead-ms", zero=True)
    ttft_s = None
    if arguments.ttft_ms is not None:
        ttft_s = _milliseconds(arguments.ttft_ms, "--ttft-ms", zero=False)
    folder = find_run(arguments.results, arguments.run)

    # numpy stands behind these, and a wrong argument should be told without waiting for it
    from kvbench.cli import breakeven_text
    from kvbench.cli.breakeven_answer import Answer
    from kvbench.measure.breakeven import Question
    from kvbench.measure.run import measure_run

    run = measure_run(read_run(folder))
    reloads = _reloads(run, arguments.workload)
    question = Question(
        kv_bytes=lambda tokens: sequence_bytes(model.geometry, tokens, dtype),
        prefill=prefill,
        overhead_s=overhead_s,
        ttft_s=ttft_s,
    )
    answer = Answer.of(
        run,
        reloads,
        question,
        model=model.name,
        gpu=gpu.name if gpu else None,
        tp=tp,
        dtype=dtype,
        bytes_per_token=per_token,
    )
    if arguments.json:
        output.print_json(answer)
    else:
        print(breakeven_text.render(answer, ascii_only=not output.speaks_unicode(sys.stdout)))
    return int(ExitCode.OK)


def _prefill(
    arguments: argparse.Namespace, model: Model, tp: int
) -> tuple[Gpu | None, Callable[[int], Prefill]]:
    """Return the GPU, which a user's own figure does not need, and seconds by tokens."""
    gpu = None
    if arguments.gpu is not None:
        gpu = find_gpu(load_gpus(catalog.data_folder() / "gpus.toml"), arguments.gpu)
    if arguments.prefill_tok_s is not None:
        rate = _number(arguments.prefill_tok_s, "--prefill-tok-s", zero=False)
        return gpu, lambda tokens: prefill_from_rate(tokens, rate)
    if gpu is None:
        raise UsageError(
            "name a GPU with --gpu, or give --prefill-tok-s", hint="see kvbench list gpus"
        )
    chosen = gpu
    return gpu, lambda tokens: prefill_s(model, chosen, tp, tokens)


def _reloads(run: "MeasuredRun", workload: str | None) -> "Reloads":
    """Return the reloads of the run; at least one of them was measured."""
    from kvbench.measure.reload import find_reloads

    names = [w.name for w in run.record.plan.workloads]
    if workload is not None and workload not in names:
        raise UsageError(
            f"the run has no workload {found(workload)}",
            where="--workload",
            hint=printable(suggestion(workload, names)),
        )
    reloads = find_reloads(run, workload)
    if any(point.p50.value is not None for point in reloads.points):
        return reloads
    reasons = {f"{p.workload}: {p.stream.name}: {p.p50.reason}": None for p in reloads.points}
    reasons |= {f"{o.workload}: {o.stream}: {o.reason}": None for o in reloads.left_out}
    told = "; ".join(brief(reason) for reason in list(reasons)[:REASONS_SHOWN])
    if len(reasons) > REASONS_SHOWN:
        told += f"; and {len(reasons) - REASONS_SHOWN} more"
    raise UsageError(
        f"no reload of a block or chunk was measured in it: {told or 'it reads nothing'}",
        where=f"run {brief(run.record.run_id)}",
        hint="run for instance --workload vllm-block",
    )


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
