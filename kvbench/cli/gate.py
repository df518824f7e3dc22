"""``kvbench gate``: one verdict about a candidate, for people and for pipelines."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kvbench.cli import output
from kvbench.cli.exports import (
    Answer,
    Exports,
    add_export_arguments,
    add_junit_argument,
    exports_of,
    give,
    write_exports,
)
from kvbench.cli.stored import add_results_argument, targets_of
from kvbench.errors import ExitCode, KvbenchError, UsageError
from kvbench.store.read import find_run

if TYPE_CHECKING:
    from kvbench.compare.policy import Policy
    from kvbench.gate.model import Gate

REPETITIONS_MAX = 1000

EXIT_CODES = {
    "PASS": ExitCode.OK,
    "FAIL": ExitCode.REGRESSION,
    "UNCLEAR": ExitCode.INCONCLUSIVE,
    "INCOMPARABLE": ExitCode.INCONCLUSIVE,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("baseline", metavar="BASELINE", help="the run that is known to be good")
    parser.add_argument("candidate", metavar="CANDIDATE", help="the run in question")
    parser.add_argument(
        "more",
        nargs="*",
        default=[],
        metavar="RERUN",
        help="stored reruns of the candidate, as --rerun makes them, whose repetitions are added",
    )
    add_results_argument(parser)
    add_policy_arguments(parser)
    parser.add_argument(
        "--all", action="store_true", help="show every number, also those that pass"
    )
    again = parser.add_argument_group("measure again")
    again.add_argument(
        "--rerun",
        metavar="TARGET",
        help="the candidate's drive: measure what is unclear again, then decide",
    )
    again.add_argument(
        "--repetitions",
        type=int,
        metavar="N",
        help="with --rerun: how often (default: as often as the gate thinks will decide)",
    )
    again.add_argument(
        "--destroy", metavar="TARGET", help="with --rerun: TARGET again, allows writing to it"
    )
    parser.set_defaults(read_only=False)  # without --destroy a rerun writes to no named target
    again.add_argument("--yes", action="store_true", help="with --destroy: do not ask")
    again.add_argument("--quiet", action="store_true", help="with --rerun: no progress")
    output.add_json_argument(parser)


def add_policy_arguments(parser: argparse._ActionsContainer) -> None:
    """Declare what decides, and where the answer goes."""
    parser.add_argument(
        "--policy",
        type=output.named_path,
        metavar="FILE",
        help="margins, confidence, what may differ (default: workloads/policies/gate.toml)",
    )
    add_junit_argument(parser)
    add_export_arguments(
        parser,
        html="also write a page: the verdict, what failed or is unclear, and what would decide it",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Measure both archives, decide, print, write."""
    _refuse_senseless(arguments)
    target = None if arguments.rerun is None else Path(arguments.rerun)
    kept = [arguments.policy, target, *targets_of(arguments.results)]
    with no_old_verdict(exports_of(arguments, kept=kept)):
        names = (arguments.baseline, arguments.candidate, *arguments.more)
        folders = [find_run(arguments.results, name) for name in names]
    exports = exports_of(arguments, kept=[*kept, *targets_of(arguments.results, folders)])
    with no_old_verdict(exports):
        policy = policy_of(arguments.policy)
        if arguments.rerun is not None:
            from kvbench.cli.rerun import rerun, stored_reruns

            folders += stored_reruns(arguments.results, folders)
            gate = decided(policy, folders)
            if gate.outcome == "UNCLEAR":
                folders.append(rerun(arguments, gate, folders))
        return answer(arguments, exports, folders, policy, every_row=arguments.all)


@contextmanager
def no_old_verdict(exports: Exports) -> Iterator[None]:
    """Leave files that say so when no verdict came, in the place of older green ones."""
    try:
        yield
    except KvbenchError as error:
        if any(exports.files.values()):
            write_exports(_no_verdict(str(error)), exports)
        raise


def _no_verdict(error: str) -> Answer:
    from kvbench.gate.junit import junit_of_error
    from kvbench.report import gate_html, markdown_pages

    return Answer(
        text=lambda: error,
        json=lambda _: error,
        junit=lambda: junit_of_error(error),
        html=lambda: gate_html.of_error(error),
        markdown=lambda: markdown_pages.of_error(error),
    )


def _refuse_senseless(arguments: argparse.Namespace) -> None:
    if arguments.rerun is None:
        for name in ("repetitions", "destroy"):
            if getattr(arguments, name):
                raise UsageError(f"--{name} only goes with --rerun")
    if arguments.yes and arguments.destroy is None:
        raise UsageError("--yes only goes with --destroy")
    if arguments.repetitions is not None and not 1 <= arguments.repetitions <= REPETITIONS_MAX:
        raise UsageError(
            f"{arguments.repetitions} is not within 1 to {REPETITIONS_MAX}", where="--repetitions"
        )


def policy_of(path: Path | None) -> "Policy":
    """Return the policy in ``path``, or the one for gates that comes with kvbench.

    Raises:
        UsageError: the file is wrong.
    """
    from kvbench.compare.policy import find_policy

    return find_policy(path, "gate")


def answer(
    arguments: argparse.Namespace,
    exports: Exports,
    folders: Sequence[Path],
    policy: "Policy",
    *,
    every_row: bool = False,
) -> int:
    """Decide about ``folders``: baseline, candidate, reruns of the candidate; print; write."""
    from kvbench.gate.junit import junit
    from kvbench.report import compare_sheets, markdown_pages

    gate = decided(policy, folders)
    code = EXIT_CODES[gate.outcome]
    made = Answer(
        text=lambda: _text(gate, every_row=every_row),
        json=lambda _: {"exit_code": int(code), "gate": gate},
        junit=lambda: junit(gate, policy),
        html=lambda: _page(gate, _command(arguments, folders)),
        markdown=lambda: markdown_pages.of_gate(gate),
        sheets=lambda: compare_sheets.of_gate(gate),
        is_verdict=True,
    )
    give(made, exports, as_json=arguments.json)
    return int(code)


def _text(gate: "Gate", *, every_row: bool) -> str:
    from kvbench.gate import text
    from kvbench.report.columns import fitted

    shown = text.render(gate, every_row=every_row)
    unicode = output.speaks_unicode(sys.stdout)
    return fitted(shown, text.WIDTH, ascii_only=not unicode) + "\n"


def _page(gate: "Gate", command: Sequence[str]) -> str:
    from kvbench.report import gate_html, gate_view

    return gate_html.render(gate_view.build(gate, command))


def _command(arguments: argparse.Namespace, folders: Sequence[Path]) -> list[str]:
    """Return the command that decides about the same stored runs again, none where none does."""
    if getattr(arguments, "target_b", None) is not None:
        return []  # `ab` of two drives lets the drive differ, which no policy file says
    results = arguments.results
    runs = [f.name if f.parent == results else str(f) for f in folders]
    words = ["kvbench", "gate", *runs]
    if results != Path("results"):
        words += ["--results", str(results)]
    return words if arguments.policy is None else [*words, "--policy", str(arguments.policy)]


def decided(policy: "Policy", folders: Sequence[Path]) -> "Gate":
    """Return what the gate says of stored runs: baseline, candidate, reruns of the candidate."""
    from kvbench.cli.judging import judged
    from kvbench.cli.measuring import measure_all
    from kvbench.compare.policy import refuse_unknown_level
    from kvbench.gate.decide import decide
    from kvbench.gate.pool import pooled

    baseline, first, *more = measure_all(folders)
    candidate = pooled(first, more)
    judgement = judged(candidate)
    for required in policy.require:
        levels = [lv.name for r in judgement.roles if r.role == required.role for lv in r.levels]
        refuse_unknown_level(required, tuple(levels), f"policy {policy.name}")
    return decide(
        baseline,
        candidate,
        policy,
        judgement,
        reruns=[one.record.run_id for one in more],
    )
