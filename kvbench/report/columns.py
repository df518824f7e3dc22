"""Text in columns of a terminal: width, cutting, padding, ASCII.  Pure."""

import unicodedata

from kvbench.report.words import DASH

_ASCII = str.maketrans({DASH: "-", "≥": ">=", "µ": "u", "…": "~", "⟨": "<", "⟩": ">"})


def as_ascii(text: str) -> str:
    """Return ``text`` for a terminal that shows ASCII only; what has no likeness is a ``?``."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def width(text: str) -> int:
    """Return how many columns ``text`` takes."""
    return sum(_columns(character) for character in text)


def cut(text: str, size: int) -> str:
    """Return ``text``, cut to ``size`` columns with a mark where it goes on."""
    if width(text) <= size:
        return text
    kept, used = "", 0
    for character in text:
        used += _columns(character)
        if used > size - 1:
            break
        kept += character
    return f"{kept}…"


def fitted(text: str, size: int, *, ascii_only: bool) -> str:
    """Return ``text`` with each line cut to ``size`` columns, for a terminal of ASCII if asked."""
    fit = "\n".join(cut(line, size) for line in text.split("\n"))
    return as_ascii(fit) if ascii_only else fit


def pad(text: str, size: int, *, left: bool = True) -> str:
    """Return ``text`` in ``size`` columns, aligned to the left or to the right."""
    space = " " * (size - width(text))
    return text + space if left else space + text


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
