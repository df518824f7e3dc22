"""Where report, compare, gate, ab and history put their answer: the terminal, and files.

A verb declares which outputs it has, and says in an ``Answer`` how each of them is made; what is
refused, what is printed, what is written and in which order is the same for all, and stands here.
"""

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
    from kvbench.report.workbook import Sheet

STDOUT = ("-", "/dev/stdout")

Text = Callable[[], str]


class Exports(Struct, frozen=True, kw_only=True):
    """What was asked for.  ``to_stdout``: Markdown in the place of the text.

    ``kept`` are the files that none of it may replace.
    """

    junit: Path | None
    html: Path | None
    csv: Path | None
    markdown: Path | None
    to_stdout: bool
    xlsx: Path | None
    figures: Path | None
    kept: tuple[Path, ...]

    @property
    def any(self) -> bool:
        """Whether anything but the text was asked for."""
        return self.to_stdout or self.figures is not None or any(self.files.values())

    @property
    def files(self) -> dict[str, Path | None]:
        """Option -> file."""
        return {
            "--junit": self.junit,
            "--html": self.html,
            "--csv": self.csv,
            "--markdown": self.markdown,
            "--xlsx": self.xlsx,
        }


class Answer(Struct, frozen=True, kw_only=True):
    """How a verb makes each of its outputs; each is made only when it is wanted.

    ``text`` ends with its newline.  ``json`` gets the files that were written.  ``figures`` yields
    the name and the bytes of each PNG file.  ``is_verdict``: its files take the place of older
    verdicts, so they are written before anything is printed, and told on stderr.
    """

    text: Text
    json: Callable[[Sequence[Path]], object]
    junit: Text | None = None
    html: Text | None = None
    csv: Text | None = None
    markdown: Text | None = None
    sheets: "Callable[[], Sequence[Sheet]] | None" = None
    figures: Callable[[], Iterable[tuple[str, bytes]]] | None = None
    is_verdict: bool = False


def add_export_arguments(
    parser: argparse._ActionsContainer,
    *,
    html: str,
    csv: str = "",
    figures: bool = False,
    text: str = "",
) -> None:
    """Declare the options; ``html``, ``csv`` and ``text`` are their help, "" for no such option."""
    _add_file(parser, "--html", "FILE", html)
    if csv:
        _add_file(parser, "--csv", "FILE", csv)
    parser.add_argument(
        "--markdown",
        metavar="FILE",
        type=_markdown_name,
        help="write the verdict and the primary numbers for a pull request; - prints them in the "
        "place of the text",
    )
    workbook = "write a workbook with a sheet per table (needs pip install 'kvbench[xlsx]')"
    _add_file(parser, "--xlsx", "FILE", workbook)
    if figures:
        _add_file(parser, "--figures", "DIR", "write each figure as a PNG file into this folder")
    if text:
        parser.add_argument("--text", action="store_true", help=text)


def add_junit_argument(parser: argparse._ActionsContainer) -> None:
    """Declare ``--junit``."""
    _add_file(parser, "--junit", "FILE", "also write JUnit XML")


def _add_file(parser: argparse._ActionsContainer, option: str, metavar: str, told: str) -> None:
    parser.add_argument(option, type=output.named_path, metavar=metavar, help=told)


def _markdown_name(text: str) -> str:
    return text if text in STDOUT else str(output.named_path(text))


def exports_of(
    arguments: argparse.Namespace,
    *,
    kept: Iterable[Path | None] = (),
    derived: Iterable[Path] = (),
) -> Exports:
    """Return what was asked for, all of which may be written: see ``check_outputs``.

    Raises:
        UsageError: two answers on standard output, files beside ``--text``, or an output is
            something that must stay, or cannot be one.
        EnvironmentMissing: a workbook, and nothing that could write one.
    """
    name = arguments.markdown
    if name in STDOUT and arguments.json:
        raise UsageError("--markdown - and --json both want standard output")
    exports = Exports(
        junit=getattr(arguments, "junit", None),
        html=arguments.html,
        csv=getattr(arguments, "csv", None),
        markdown=None if name is None or name in STDOUT else Path(name),
        to_stdout=name in STDOUT,
        xlsx=arguments.xlsx,
        figures=getattr(arguments, "figures", None),
        kept=tuple(path for path in kept if path is not None),
    )
    if exports.any and getattr(arguments, "text", False):
        raise UsageError("--text writes no file, so it does not go with any that writes one")
    if exports.xlsx is not None:
        from kvbench.report.workbook import require_openpyxl

        require_openpyxl()  # before anything is measured
    check_outputs(exports.files, kept=exports.kept, derived=derived)
    if exports.figures is not None:
        _check_figures(exports.figures, exports.kept)
    return exports


def _check_figures(folder: Path, kept: Sequence[Path]) -> None:
    where = f"--figures {printable(str(folder))}"
    try:
        inside = not folder.exists() or folder.is_dir()
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be used: {error}", where=where) from None
    if not inside:
        raise UsageError("is no folder", where=where)
    # One name stands for all: whether files there become a part of an archive.
    check_outputs({"--figures": folder / "figure.png"}, kept=kept)


def give(answer: Answer, exports: Exports, *, as_json: bool) -> None:
    """Print the answer, write what was asked for, and say which files that were.

    A folder that is full does not hide what is known.
    """
    if answer.is_verdict:
        try:
            files = write_exports(answer, exports)
        finally:
            _print(answer, exports, as_json=as_json)
    else:
        _print(answer, exports, as_json=as_json)
        files = write_exports(answer, exports)
    if as_json:
        output.print_json(answer.json(files))
    else:
        output.tell_files(files, beside=exports.to_stdout or answer.is_verdict)


def _print(answer: Answer, exports: Exports, *, as_json: bool) -> None:
    if exports.to_stdout and answer.markdown is not None:
        print_markdown(answer.markdown())
    elif not as_json:
        output.print_answer(answer.text().removesuffix("\n"))


def write_exports(answer: Answer, exports: Exports) -> list[Path]:
    """Write what was asked for and return where."""
    written = []
    made = {
        "--junit": answer.junit,
        "--html": answer.html,
        "--csv": answer.csv,
        "--markdown": answer.markdown,
    }
    for option, make in made.items():
        path = exports.files[option]
        if path is not None and make is not None:
            write_derived(path, make())
            written.append(path)
    if exports.xlsx is not None and answer.sheets is not None:
        from kvbench.report.workbook import to_xlsx

        write_derived(exports.xlsx, to_xlsx(answer.sheets()))
        written.append(exports.xlsx)
    if exports.figures is not None and answer.figures is not None:
        for name, png in answer.figures():
            path = exports.figures / name
            check_outputs({"--figures": path}, kept=exports.kept)
            write_derived(path, png)
            written.append(path)
    return written


def print_markdown(text: str) -> None:
    """Print Markdown as what it is: no line is cut for a terminal."""
    plain = text if output.speaks_unicode(sys.stdout) else _as_entities(text)
    output.print_answer(plain.rstrip("\n"))


def _as_entities(text: str) -> str:
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")
