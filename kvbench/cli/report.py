"""``kvbench report``: rebuild everything shown of a run from its archive alone."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kvbench.cli import output
from kvbench.cli.breakeven_subject import Asked
from kvbench.cli.exports import (
    Exports,
    add_export_arguments,
    check_exports,
    exports_of,
    print_markdown,
    write_exports,
)
from kvbench.cli.stored import targets_of
from kvbench.errors import UsageError
from kvbench.store import layout
from kvbench.store.read import find_run

if TYPE_CHECKING:
    from kvbench.cli.reporting import Reported


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("run", metavar="RUN", help="a run's id, folder or label, or 'latest'")
    parser.add_argument(
        "--results",
        type=output.named_path,
        default=Path("results"),
        metavar="DIR",
        help="the results store",
    )
    parser.add_argument(
        "--html", type=output.named_path, metavar="FILE", help="where the page goes"
    )
    parser.add_argument(
        "--csv", type=output.named_path, metavar="FILE", help="where the tidy table goes"
    )
    add_export_arguments(parser, figures=True)
    parser.add_argument("--text", action="store_true", help="print the summary only, write no file")
    question = parser.add_argument_group("reload or recompute")
    question.add_argument(
        "--model",
        metavar="M",
        help="whose KV cache (default: the model that the run was made for, else llama-3.1-8b)",
    )
    question.add_argument("--gpu", metavar="G", help="what would recompute it (default: h100)")
    question.add_argument(
        "--tp",
        metavar="T",
        help="GPUs that compute together (default: the fewest in the table of this model, else 1)",
    )
    question.add_argument(
        "--ttft-ms", metavar="Y", help="also tell how many users may reload at once within this"
    )
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Measure the archive, write the files, print the summary."""
    from kvbench.cli import reporting

    exports = exports_of(arguments)
    if arguments.text and (arguments.html or arguments.csv or exports.any):
        raise UsageError("--text writes no file, so it does not go with any that writes one")
    folder = find_run(arguments.results, arguments.run)
    kept = targets_of(arguments.results, [folder])
    check_exports(
        exports,
        {"--html": arguments.html, "--csv": arguments.csv},
        kept=kept,
        derived=[folder / name for name in (layout.REPORT_FILE, layout.TABLE_FILE)],
    )
    reported = reporting.read_and_measure(
        folder,
        Asked(
            model=arguments.model,
            gpu=arguments.gpu,
            tp=arguments.tp,
            ttft_ms=arguments.ttft_ms,
        ),
    )
    # Before the files: a folder that is full must not hide what is known.
    if exports.to_stdout:
        from kvbench.report import markdown_pages

        print_markdown(markdown_pages.of_report(reported.view))
    elif not arguments.json:
        print(reporting.summary_text(reported, ascii_only=not output.speaks_unicode(sys.stdout)))
        sys.stdout.flush()
    files = [] if arguments.text else _write(reported, arguments, exports, kept)
    if arguments.json:
        output.print_json(reporting.as_json(reported, files))
    output.tell_files([] if arguments.json else files, beside=exports.to_stdout)
    # Making the report succeeded, whatever the run was like; only `run` answers for the run.
    return 0


def _write(
    reported: "Reported", arguments: argparse.Namespace, exports: Exports, kept: Sequence[Path]
) -> list[Path]:
    from kvbench.cli import reporting
    from kvbench.report import html, markdown_pages, sheets

    shown = reporting.with_all_figures(reported)
    files = reporting.write_files(reported, arguments.html, arguments.csv, shown)
    return files + write_exports(
        exports,
        markdown=lambda: markdown_pages.of_report(shown),
        sheets=lambda: sheets.of_report(shown, reported.run),
        figures=lambda: html.figures_of(shown),
        kept=kept,
    )
