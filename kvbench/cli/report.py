"""``kvbench report``: rebuild everything shown of a run from its archive alone."""

import argparse
import sys
from pathlib import Path

from kvbench.cli import output
from kvbench.store.read import find_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("run", metavar="RUN", help="a run's id, its folder, or 'latest'")
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="the results store"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="where the page goes")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="where the tidy table goes")
    parser.add_argument("--text", action="store_true", help="print the summary only, write no file")
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Measure the archive, write the files, print the summary."""
    from kvbench.cli import reporting

    folder = find_run(arguments.results, arguments.run)
    reported = reporting.read_and_measure(folder)
    files = [] if arguments.text else reporting.write_files(reported, arguments.html, arguments.csv)
    if arguments.json:
        output.print_json(reporting.as_json(reported, files))
    else:
        print(reporting.summary_text(reported, ascii_only=not output.speaks_unicode(sys.stdout)))
        for path in files:
            print(f"wrote {path}")
    # Making the report succeeded, whatever the run was like; only `run` answers for the run.
    return 0
