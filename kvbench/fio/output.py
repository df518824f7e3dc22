"""All that fio printed -> FioResult.  Pure.

fio's stdout is a document between other lines: notices before it, text reports after it, one
document per status interval.  A document begins with a ``{`` that ends its line and is followed by
``"fio version"``, and ends with the next line that begins with ``}``: all between is indented.
Braces inside messages and paths do not matter, nor does a notice without an end of line before
the document, or a line of another thread inside it.
"""

import re
from itertools import pairwise

import msgspec
from msgspec import structs

from kvbench.fio.diagnostics import FioOutputError, quote_errors, read_lines
from kvbench.fio.document import read_document
from kvbench.fio.model import Diagnostic, FioResult

__all__ = ["FioOutputError", "parse"]

_VERSION_KEY = '"fio version"'
_BEGIN = re.compile(rf"\{{[ \t]*\r?\n\s*{_VERSION_KEY}")
_END = "\n}"
_NOTICE = "\nfio: "
_LINE_INSIDE = re.compile(r"^fio: .*\n", re.MULTILINE)
_LONE_BRACE = re.compile(r"^\{[ \t]*\r?$", re.MULTILINE)
_HELP = re.compile(
    r"^\s*(valid values: |type: .*\(opt=|--\w[\w-]*\s.*\t|fio \[options\])|^No such command",
    re.MULTILINE,
)
# Some versions print C's nan and inf, or a backslash of a name as it is: no JSON, but readable.
_NOT_FINITE = re.compile(r'(?<=[^\\]")(\s*:\s*)[-+]?(?:nan|inf(?:inity)?)(?=\s*[,}\r\n])', re.I)
_BAD_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)')


def parse(text: str, *, stderr: str = "") -> FioResult:
    """Return what fio reported: its last document, and every other line as a diagnostic.

    With several documents (``status-interval``) the counters are cumulative, so the last one is
    the result.  ``text`` is fio's stdout or its ``--output`` file.

    Raises:
        FioOutputError: there is no complete document, or it cannot be trusted.
    """
    documents, around, cut = _split(text)
    diagnostics = read_lines([*around, stderr])
    if cut:
        raise FioOutputError(
            "fio's JSON breaks off in the middle, so fio was killed or the disk was full",
            hint=quote_errors(diagnostics),
            diagnostics=diagnostics,
        )
    if not documents:
        raise _no_document(text, diagnostics)
    try:
        result = _decode(documents[-1])
    except FioOutputError as error:
        raise FioOutputError(
            error.message, where=error.where, hint=error.hint, diagnostics=diagnostics
        ) from None
    return structs.replace(result, diagnostics=diagnostics + result.diagnostics)


def _split(text: str) -> tuple[list[str], list[str], bool]:
    """Return the complete documents, the text around them, and whether the last one is cut."""
    documents: list[str] = []
    around: list[str] = []
    position = 0
    begins = [match.start() for match in _BEGIN.finditer(text)]
    for begin, limit in pairwise([*begins, len(text)]):
        around.append(text[position:begin])
        end = text.find(_END, begin, limit)
        if end >= 0:
            position = end + len(_END)
            document = text[begin:position]
            if _NOTICE in document:  # rare, and looking for whole lines takes long
                around += _LINE_INSIDE.findall(document)
                document = _LINE_INSIDE.sub("", document)
            documents.append(document)
        elif limit == len(text):
            return documents, around, True
        else:
            around.append("fio: warning: a document before the last one is cut and was left out")
            position = limit
    rest = text[position:]
    around.append(rest)
    return documents, around, _begins_document(rest)


def _begins_document(rest: str) -> bool:
    """Return whether ``rest`` ends inside the first bytes of a document."""
    braces = list(_LONE_BRACE.finditer(rest))
    return bool(braces) and _VERSION_KEY.startswith(rest[braces[-1].end() :].strip())


def _no_document(text: str, diagnostics: tuple[Diagnostic, ...]) -> FioOutputError:
    said = quote_errors(diagnostics)
    if not text.strip():
        message = "fio left no output, so it was killed or could not start"
    elif _HELP.search(text):
        message = "fio printed its help instead of a result, so it does not take an option"
    else:
        message = "fio printed no JSON document"
    return FioOutputError(message, hint=said, diagnostics=diagnostics)


def _decode(raw: str) -> FioResult:
    try:
        return read_document(raw)
    except msgspec.DecodeError:
        pass
    repaired = _BAD_ESCAPE.sub(lambda m: m[0] if m[1] else r"\\", raw)
    repaired = _NOT_FINITE.sub(r"\1null", repaired)
    try:
        return read_document(repaired)
    except msgspec.DecodeError as error:
        raise FioOutputError(f"fio's JSON is damaged: {error}") from None
