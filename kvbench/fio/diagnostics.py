"""The lines that fio prints beside its JSON -> Diagnostic.  Pure.

fio mixes notices, warnings and I/O errors into the stream of the result, and exits 0 after some of
them, so every line is kept and judged by fio's own phrasing.
"""

import re
from collections.abc import Iterable

from kvbench.errors import CellFailed
from kvbench.fio.model import Diagnostic, Level

_MILD = re.compile(
    r"warning|\[warn\]|exceeds 32-bit|switching to|to get rid of this|will never start|forcing use"
    r"|disabling",
    re.IGNORECASE,
)
_GRAVE = re.compile(
    r"\berr=\s*[1-9]|\bio_u error|total=[1-9]\d*, first_error=|\berror\b|\bfail(ed|ure|s)?\b"
    r"|not loadable|unable to|cannot|can't|could not|couldn't|abort|disallowed|not allowed"
    r"|n't support|not support|unrecognized|no such|bad option|invalid|dropped|exceeds specified"
    r"|terminating on signal|got signal|stuck|hung|larger than|too (small|large|big)|out of memory"
    r"|permission denied|no i/o performed|isn't set|refus",
    re.IGNORECASE,
)
# Without fio's prefix only phrases that no line of fio's text report contains are errors.
_GRAVE_UNPREFIXED = re.compile(
    r"\berr=\s*[1-9]|\bio_u error|total=[1-9]\d*, first_error=|^bad option|^no such command"
    r"|: you need to specify|unrecognized option|^(setpriv|error|fatal)\b.*:"
    r"|error while loading shared libraries|segmentation fault|assertion .* failed"
    r"|^\w[\w-]*: (verify failed at|bad (magic )?header)",
    re.IGNORECASE,
)


class FioOutputError(CellFailed):
    """fio left no result that can be used.  ``diagnostics`` holds what it said instead."""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        where: str = "",
        diagnostics: tuple[Diagnostic, ...] = (),
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.diagnostics = diagnostics


def classify(line: str) -> Level:
    """Return how grave fio means ``line`` to be.

    A line of fio's that is not known is a warning: it is shown, and the numbers decide.
    """
    if line.startswith("fio: "):
        if _MILD.search(line):
            return "warning"
        return "error" if _GRAVE.search(line) else "warning"
    if line.lower().startswith("note:"):
        return "note"
    if _GRAVE_UNPREFIXED.search(line):
        return "error"
    return "warning" if _MILD.search(line) else "note"


def read_lines(texts: Iterable[str]) -> tuple[Diagnostic, ...]:
    """Return the distinct lines of ``texts`` that are not blank, in their order."""
    lines = (line.rstrip() for text in texts for line in text.splitlines())
    return tuple(
        Diagnostic(level=classify(line), text=line) for line in dict.fromkeys(lines) if line
    )


def quote_errors(diagnostics: Iterable[Diagnostic], *, most: int = 2) -> str:
    """Return fio's first error lines for a message, "" when there are none."""
    errors = [line.text for line in diagnostics if line.level == "error"]
    return "; ".join(errors[:most])
