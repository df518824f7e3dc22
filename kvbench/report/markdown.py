"""Texts -> Markdown as GitHub and GitLab read it, where every text is a stranger's.  Pure.

Nothing of a text is markup: not HTML, no links, no mentions of people or issues, no new lines.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from kvbench.report.words import TEXT_CHARS_MAX, short

BYTES_MAX = 60_000  # GitHub takes 65,536 characters in a comment
_BREAK = "&#8203;"  # no width, and what stands on both sides of it is no longer one word
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MARKS = re.compile(r"([\\`*_{}\[\]|~$])")
# what becomes a link, or a mention of a person or an issue, by itself
_LINKS = re.compile(r"\b[wW]{3}(?=\.)|(?<=[A-Za-z])://|[@#!](?=\w)|(?<=\w)@|\bGH-(?=\d)")
_BLOCKS = re.compile(r"^([-+](?=\s)|#{1,6}(?=\s)|\d+(?=[.)](\s|$)))")


def escaped(text: str, limit: int = TEXT_CHARS_MAX) -> str:
    """Return ``text`` in one line, visible, cut to ``limit``, and without any markup of its own."""
    shown = short(text, limit).translate(_ENTITIES)
    shown = _MARKS.sub(r"\\\1", shown)
    shown = _LINKS.sub(_apart, shown)
    return _BLOCKS.sub(rf"{_BREAK}\1", shown)


def _apart(match: re.Match[str]) -> str:
    return f"{match[0][0]}{_BREAK}{match[0][1:]}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; its texts are Markdown already."""
    yield _row(head)
    yield _row(["---"] * len(head))
    for row in rows:
        yield _row(row)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def joined(lines: Iterable[str], *, bytes_max: int = BYTES_MAX) -> str:
    """Return the lines as one text that a comment may hold; says how much was left out.

    Rows of tables are left out first, the last ones, so that what is doubtful is always there.
    """
    given = list(lines)
    sizes = [len(line.encode()) + 1 for line in given]
    kept = [not line.startswith("| ") for line in given]
    room = bytes_max - sum(size for size, keep in zip(sizes, kept, strict=True) if keep)
    for place, size in enumerate(sizes):
        if kept[place]:
            continue
        room -= size
        if room < 0:
            break
        kept[place] = True
    left_out = kept.count(False)
    shown = [line for line, keep in zip(given, kept, strict=True) if keep]
    if left_out:
        shown += ["", f"{left_out} rows were left out, as a comment has an end."]
    return "\n".join(shown) + "\n"
