"""``kvbench report``: rebuild everything shown of a run from its archive alone."""

import argparse
import sys
from functools import cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kvbench.cli import output
from kvbench.cli.breakeven_subject import Asked
from kvbench.cli.exports import Answer, add_export_arguments, exports_of, give
from kvbench.cli.stored import add_results_argument, targets_of
from kvbench.store import layout
from kvbench.store.read import find_run

if TYPE_CHECKING:
    from kvbench.cli.reporting import Reported


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("run", metavar="RUN", help="a run's id, folder or label, or 'latest'")
    add_results_argument(parser)
    add_export_arguments(
        parser,
        html="where the page goes",
        csv="where the tidy table goes",
        figures=True,
        text="print the summary only, write no file",
    )
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
    """Measure the archive, print the summary, write the files."""
    from kvbench.cli import reporting

    folder = find_run(arguments.results, arguments.run)
    page, table = folder / layout.REPORT_FILE, folder / layout.TABLE_FILE
    exports = exports_of(
        arguments, kept=targets_of(arguments.results, [folder]), derived=[page, table]
    )
    if not exports.any and not arguments.text:
        exports = replace(exports, html=page, csv=table)
    reported = reporting.read_and_measure(
        folder,
        Asked(
            model=arguments.model,
            gpu=arguments.gpu,
            tp=arguments.tp,
            ttft_ms=arguments.ttft_ms,
        ),
    )
    give(_answer(reported), exports, as_json=arguments.json)
    # Making the report succeeded, whatever the run was like; only `run` answers for the run.
    return 0


def _answer(reported: "Reported") -> Answer:
    from kvbench.cli import reporting
    from kvbench.measure.table import to_csv
    from kvbench.report import html, markdown_pages, png, sheets

    shown = cache(lambda: reporting.with_all_figures(reported))
    unicode = output.speaks_unicode(sys.stdout)
    return Answer(
        text=lambda: reporting.summary_text(reported, ascii_only=not unicode) + "\n",
        json=lambda files: reporting.as_json(reported, files),
        html=lambda: html.render(shown()),
        csv=lambda: to_csv(reported.run),
        markdown=lambda: markdown_pages.of_report(reported.view),
        sheets=lambda: sheets.of_report(reported.view, reported.run),
        figures=lambda: png.of_figures(html.figures_of(shown())),
    )
