"""``kvbench compare``: several stored runs side by side, each held against the first."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kvbench.cli import output
from kvbench.cli.exports import Answer, add_export_arguments, exports_of, give
from kvbench.cli.stored import add_results_argument, targets_of
from kvbench.compare.model import Comparison
from kvbench.compare.policy import ASPECT_NAMES, Policy, find_policy
from kvbench.document import found, suggestion
from kvbench.errors import ExitCode, UsageError
from kvbench.measure.model import MeasuredRun
from kvbench.store.read import find_run

if TYPE_CHECKING:
    from kvbench.report.workbook import Sheet

DEFAULT_POLICY = "compare"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="two or more runs: ids, folders, labels, or 'latest'; all are held against the first",
    )
    add_results_argument(parser)
    parser.add_argument(
        "--policy",
        type=output.named_path,
        metavar="FILE",
        help="margins, confidence, and what must not differ (default: workloads/policies/"
        "compare.toml)",
    )
    parser.add_argument(
        "--may-differ",
        action="append",
        default=[],
        metavar="ASPECT",
        help="what is under test, so that it may differ: kernel, fio, engine, preparation, ...; "
        "may be given again",
    )
    add_export_arguments(
        parser,
        html="write a page with figures",
        csv="write a row per number and run",
        figures=True,
        text="print the comparison, write no file (the default)",
    )
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Measure the runs, compare them, print and write what was asked for."""
    if len(arguments.runs) < 2:
        raise UsageError("one run alone cannot be compared", hint="name two or more")
    policy = with_may_differ(find_policy(arguments.policy, DEFAULT_POLICY), arguments.may_differ)
    folders = [find_run(arguments.results, name) for name in arguments.runs]
    refuse_twice([str(folder.resolve()) for folder in folders], arguments.runs)
    kept = [arguments.policy, *targets_of(arguments.results, folders)]
    exports = exports_of(arguments, kept=kept)

    from kvbench.cli.measuring import measure_all
    from kvbench.compare.join import compare_runs
    from kvbench.report import compare_words

    runs = measure_all(folders)
    refuse_twice([run.record.run_id for run in runs], arguments.runs)
    comparison = compare_runs(runs, policy)
    give(_answer(comparison, runs), exports, as_json=arguments.json)
    nothing = compare_words.shares_nothing(comparison)
    return int(ExitCode.INCONCLUSIVE if nothing else ExitCode.OK)


def with_may_differ(policy: Policy, aspects: Sequence[str]) -> Policy:
    """Return ``policy`` with ``aspects`` named as the thing under test.

    Raises:
        UsageError: there is no such aspect.
    """
    for name in aspects:
        if name not in ASPECT_NAMES:
            raise UsageError(
                f"there is no aspect {found(name)}",
                where="--may-differ",
                hint=suggestion(name, ASPECT_NAMES),
            )
    return replace(
        policy,
        may_differ=tuple(dict.fromkeys((*policy.may_differ, *aspects))),
        must_not_differ=tuple(name for name in policy.must_not_differ if name not in aspects),
    )


def refuse_twice(keys: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a run that is named twice: a run cannot differ from itself.

    Args:
        keys: what tells runs apart, one per run.
        names: how the runs were named, in the same order.

    Raises:
        UsageError: two keys are the same.
    """
    seen: dict[str, str] = {}
    for key, name in zip(keys, names, strict=True):
        if key in seen:
            both = dict.fromkeys((seen[key], name))
            said = " and ".join(found(one) for one in both)
            are = "are the same run" if len(both) > 1 else "is named twice"
            raise UsageError(f"{said} {are}, which cannot differ from itself")
        seen[key] = name


def _answer(comparison: Comparison, runs: Sequence[MeasuredRun]) -> Answer:
    from kvbench.report import compare_view, markdown_pages
    from kvbench.report.compare_csv import to_csv

    plain = cache(lambda: compare_view.build(comparison, runs, figures=False))
    drawn = cache(lambda: compare_view.build(comparison, runs))

    def text() -> str:
        from kvbench.report import compare_text

        return compare_text.render(plain(), ascii_only=not output.speaks_unicode(sys.stdout))

    def page() -> str:  # which imports what draws
        from kvbench.report import compare_html

        return compare_html.render(drawn())

    def sheets() -> "list[Sheet]":
        from kvbench.report import compare_sheets, compare_words

        return compare_sheets.of_comparison(comparison, compare_words.verdict_words(comparison))

    def figures() -> Iterator[tuple[str, bytes]]:
        from kvbench.report import png

        return png.of_figures(f for role in drawn().roles for f in role.figures)

    return Answer(
        text=text,
        json=lambda _: comparison,
        html=page,
        csv=lambda: to_csv(comparison),
        markdown=lambda: markdown_pages.of_comparison(plain()),
        sheets=sheets,
        figures=figures,
    )
