"""``kvbench breakeven``: from which context on this drive reloads a KV cache faster than a GPU."""

import argparse
import sys
from typing import TYPE_CHECKING

from kvbench.cli import output
from kvbench.cli.breakeven_subject import Asked, subject_of
from kvbench.cli.stored import add_results_argument
from kvbench.document import brief, found, printable, suggestion
from kvbench.errors import ExitCode, UsageError
from kvbench.store.read import find_run, read_run

if TYPE_CHECKING:
    from kvbench.measure.model import MeasuredRun
    from kvbench.measure.reload import Reloads

REASONS_SHOWN = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("run", metavar="RUN", help="a run's id, folder or label, or 'latest'")
    parser.add_argument("--model", metavar="M", help="a model by name (kvbench list models)")
    parser.add_argument(
        "--config",
        type=output.named_path,
        metavar="FILE",
        help="a Hugging Face config.json instead of a name; goes with --prefill-tok-s",
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
    add_results_argument(parser)
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Measure the archive, compare, print."""
    subject = subject_of(
        Asked(
            model=arguments.model,
            config=arguments.config,
            gpu=arguments.gpu,
            tp=arguments.tp,
            dtype=arguments.dtype,
            overhead_ms=arguments.overhead_ms,
            ttft_ms=arguments.ttft_ms,
            prefill_tok_s=arguments.prefill_tok_s,
        )
    )
    folder = find_run(arguments.results, arguments.run)

    # numpy stands behind these, and a wrong argument should be told without waiting for it
    from kvbench.cli import breakeven_text
    from kvbench.measure.run import measure_run
    from kvbench.report.breakeven import Answer

    run = measure_run(read_run(folder))
    answer = Answer.of(run, _reloads(run, arguments.workload), subject)
    if arguments.json:
        output.print_json(answer)
    else:
        print(breakeven_text.render(answer, ascii_only=not output.speaks_unicode(sys.stdout)))
    return int(ExitCode.OK)


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
    if any(point.mean.value is not None for point in reloads.points):
        return reloads
    reasons = {f"{p.workload}: {p.stream.name}: {p.mean.reason}": None for p in reloads.points}
    reasons |= {f"{o.workload}: {o.stream}: {o.reason}": None for o in reloads.left_out}
    told = "; ".join(brief(reason) for reason in list(reasons)[:REASONS_SHOWN])
    if len(reasons) > REASONS_SHOWN:
        told += f"; and {len(reasons) - REASONS_SHOWN} more"
    raise UsageError(
        f"no reload of a block or chunk was measured in it: {told or 'it reads nothing'}",
        where=f"run {brief(run.record.run_id)}",
        hint="run for instance --workload vllm-block",
    )
