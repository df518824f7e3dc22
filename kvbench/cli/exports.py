"""Where report, compare and gate put their answer besides the terminal: Markdown, .xlsx, PNG."""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from kvbench.cli import output
from kvbench.cli.outputs import check_outputs
from kvbench.document import printable
from kvbench.errors import UsageError
from kvbench.store.write import write_derived

if TYPE_CHECKING:
    from kvbench.report.model import Figure
    from kvbench.report.workbook import Sheet

STDOUT = ("-", "/dev/stdout")


class Exports(Struct, frozen=True, kw_only=True):
    """What was asked for.  ``to_stdout``: Markdown in the place of the text.

    ``page`` is the HTML page of a gate; reports and comparisons know their own.
    """

    markdown: Path | None
    to_stdout: bool
    xlsx: Path | None
    figures: Path | None
    page: Path | None = None

    @property
    def any(self) -> bool:
        """Whether anything was asked for."""
        return self.to_stdout or bool(self.markdown or self.xlsx or self.figures)

    @property
    def files(self) -> dict[str, Path | None]:
        """Option -> file, for the check of all outputs."""
        page = {} if self.page is None else {"--html": self.page}
        return {"--markdown": self.markdown, "--xlsx": self.xlsx, **page}


def add_export_arguments(parser: argparse._ActionsContainer, *, figures: bool) -> None:
    """Declare the options."""
    parser.add_argument(
        "--markdown",
        metavar="FILE",
        type=_markdown_name,
        help="write the verdict and the primary numbers for a pull request; - prints them in the "
        "place of the text",
    )
    parser.add_argument(
        "--xlsx",
        type=output.named_path,
        metavar="FILE",
        help="write a workbook with a sheet per table (needs pip install 'kvbench[xlsx]')",
    )
    if figures:
        parser.add_argument(
            "--figures",
            type=output.named_path,
            metavar="DIR",
            help="write each figure as a PNG file into this folder",
        )


def _markdown_name(text: str) -> str:
    return text if text in STDOUT else str(output.named_path(text))


def exports_of(arguments: argparse.Namespace) -> Exports:
    """Return what was asked for.

    Raises:
        UsageError: two answers on standard output.
        EnvironmentMissing: a workbook, and nothing that could write one.
    """
    name = arguments.markdown
    if name in STDOUT and arguments.json:
        raise UsageError("--markdown - and --json both want standard output")
    if arguments.xlsx is not None:
        from kvbench.report.workbook import require_openpyxl

        require_openpyxl()  # before anything is measured
    return Exports(
        markdown=None if name is None or name in STDOUT else Path(name),
        to_stdout=name in STDOUT,
        xlsx=arguments.xlsx,
        figures=getattr(arguments, "figures", None),
        page=getattr(arguments, "page", None),
    )


def check_exports(
    exports: Exports,
    outputs: dict[str, Path | None],
    *,
    kept: Iterable[Path | None] = (),
    derived: Iterable[Path] = (),
) -> None:
    """Refuse to write over anything that must stay: see ``check_outputs``.

    Raises:
        UsageError: an output is something that must stay, or cannot be one.
    """
    check_outputs(outputs | exports.files, kept=kept, derived=derived)
    if exports.figures is None:
        return
    where = f"--figures {printable(str(exports.figures))}"
    try:
        inside = not exports.figures.exists() or exports.figures.is_dir()
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be used: {error}", where=where) from None
    if not inside:
        raise UsageError("is no folder", where=where)
    # One name stands for all: whether files there become a part of an archive.
    check_outputs({"--figures": exports.figures / "figure.png"}, kept=kept)


def write_exports(
    exports: Exports,
    *,
    markdown: Callable[[], str],
    sheets: "Callable[[], Sequence[Sheet]]",
    page: Callable[[], str] | None = None,
    figures: "Callable[[], Sequence[Figure]] | None" = None,
    kept: Sequence[Path | None] = (),
) -> list[Path]:
    """Write what was asked for and return where; each answer is made only when it is wanted."""
    written = []
    if exports.page is not None and page is not None:
        write_derived(exports.page, page())
        written.append(exports.page)
    if exports.markdown is not None:
        write_derived(exports.markdown, markdown())
        written.append(exports.markdown)
    if exports.xlsx is not None:
        from kvbench.report.workbook import to_xlsx

        write_derived(exports.xlsx, to_xlsx(sheets()))
        written.append(exports.xlsx)
    if exports.figures is not None and figures is not None:
        written += _write_figures(exports.figures, figures(), kept)
    return written


def print_markdown(text: str) -> None:
    """Print Markdown as what it is: no line is cut for a terminal."""
    plain = text if output.speaks_unicode(sys.stdout) else _as_entities(text)
    output.print_answer(plain.rstrip("\n"))


def _as_entities(text: str) -> str:
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _write_figures(
    folder: Path, figures: "Sequence[Figure]", kept: Sequence[Path | None]
) -> list[Path]:
    from kvbench.report.png import pngs_of

    written = []
    for figure in figures:
        for name, png in pngs_of(figure):
            check_outputs({"--figures": folder / name}, kept=kept)
            write_derived(folder / name, png)
            written.append(folder / name)
    return written
