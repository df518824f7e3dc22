"""``kvbench compare``: several stored runs side by side, each held against the first."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from kvbench.cli import output
from kvbench.cli.exports import (
    Exports,
    add_export_arguments,
    check_exports,
    exports_of,
    print_markdown,
    write_exports,
)
from kvbench.cli.stored import targets_of
from kvbench.compare.model import Comparison
from kvbench.compare.policy import ASPECT_NAMES, Policy, find_policy
from kvbench.document import found, suggestion
from kvbench.errors import ExitCode, UsageError
from kvbench.measure.model import MeasuredRun
from kvbench.store.read import find_run

DEFAULT_POLICY = "compare"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="two or more runs: ids, folders, labels, or 'latest'; all are held against the first",
    )
    parser.add_argument(
        "--results",
        type=output.named_path,
        default=Path("results"),
        metavar="DIR",
        help="the results store",
    )
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
    parser.add_argument(
        "--html", type=output.named_path, metavar="FILE", help="write a page with figures"
    )
    parser.add_argument(
        "--csv", type=output.named_path, metavar="FILE", help="write a row per number and run"
    )
    add_export_arguments(parser, figures=True)
    parser.add_argument(
        "--text", action="store_true", help="print the comparison, write no file (the default)"
    )
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Measure the runs, compare them, print and write what was asked for."""
    exports = exports_of(arguments)
    if arguments.text and (arguments.html or arguments.csv or exports.any):
        raise UsageError("--text writes no file, so it does not go with any that writes one")
    if len(arguments.runs) < 2:
        raise UsageError("one run alone cannot be compared", hint="name two or more")
    policy = with_may_differ(find_policy(arguments.policy, DEFAULT_POLICY), arguments.may_differ)
    folders = [find_run(arguments.results, name) for name in arguments.runs]
    refuse_twice([str(folder.resolve()) for folder in folders], arguments.runs)
    outputs = {"--html": arguments.html, "--csv": arguments.csv}
    kept = [arguments.policy, *targets_of(arguments.results, folders)]
    check_exports(exports, outputs, kept=kept)

    from kvbench.cli.measuring import measure_all
    from kvbench.compare.join import compare_runs
    from kvbench.report import compare_words

    runs = measure_all(folders)
    refuse_twice([run.record.run_id for run in runs], arguments.runs)
    comparison = compare_runs(runs, policy)
    # Before the files: a folder that is full must not hide what is known.
    if exports.to_stdout:
        print_markdown(_markdown(comparison, runs))
    elif not arguments.json:
        print(_text(comparison, runs), end="")
        sys.stdout.flush()
    files = _write(comparison, runs, arguments, exports, kept)
    if arguments.json:
        output.print_json(comparison)
    output.tell_files([] if arguments.json else files, beside=exports.to_stdout)
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


def _text(comparison: Comparison, runs: Sequence[MeasuredRun]) -> str:
    from kvbench.report import compare_text, compare_view

    view = compare_view.build(comparison, runs, figures=False)
    return compare_text.render(view, ascii_only=not output.speaks_unicode(sys.stdout))


def _markdown(comparison: Comparison, runs: Sequence[MeasuredRun]) -> str:
    from kvbench.report import compare_view, markdown_pages

    return markdown_pages.of_comparison(compare_view.build(comparison, runs, figures=False))


def _write(
    comparison: Comparison,
    runs: Sequence[MeasuredRun],
    arguments: argparse.Namespace,
    exports: Exports,
    kept: Sequence[Path | None],
) -> list[Path]:
    """Write the files that were asked for; return where they are."""
    from kvbench.store.write import write_derived

    files = []
    view = None
    if arguments.html is not None or exports.figures is not None:
        from kvbench.report import compare_view

        view = compare_view.build(comparison, runs)
    if arguments.html is not None and view is not None:
        from kvbench.report import compare_html

        write_derived(arguments.html, compare_html.render(view))
        files.append(arguments.html)
    if arguments.csv is not None:
        from kvbench.report.compare_csv import to_csv

        write_derived(arguments.csv, to_csv(comparison))
        files.append(arguments.csv)
    if not exports.any:
        return files
    from kvbench.report import compare_sheets
    from kvbench.report.compare_words import verdict_words

    return files + write_exports(
        exports,
        markdown=lambda: _markdown(comparison, runs),
        sheets=lambda: compare_sheets.of_comparison(comparison, verdict_words(comparison)),
        figures=lambda: [] if view is None else [f for role in view.roles for f in role.figures],
        kept=kept,
    )
