"""What fio says of blocks that did not read back as they were written -> VerifyError.  Pure.

Seen with fio 3.33 and ``continue_on_error=verify``: one line per bad block on standard error, exit
code 0, and the blocks counted as I/Os that failed with errno 84 (EILSEQ)::

    crc32c: verify failed at file F offset 409600, length 4096 (requested block: ...)
           Expected CRC: c3aa6f5e
           Received CRC: 8c6bc05f
    verify: bad header crc 93f484c5, calculated cd7d4bc3 at file F offset 1638400, length 4096 (...
    verify: bad header offset 819200, wanted 1228800 at file F offset 1228800, length 4096 (...
    verify: bad magic header 0, wanted acca at file F offset 0, length 4096 (...

The offset after the file's name is the place in the target.
"""

import re
from collections.abc import Iterable

from msgspec import Struct

_PLACE = re.compile(r" at file .* offset (\d{1,19}), length (\d{1,19}) \(requested block: ")
_BEGIN = re.compile(r"^(\w[\w-]*): (verify failed|bad (?:magic )?header)\b")
_MORE = re.compile(r"^\s*(Expected|Received) (CRC|SUM|\w+): ?[0-9a-fA-F]*$")
_OFFSET = re.compile(r"bad header offset (\d{1,19}), wanted")


class VerifyError(Struct, frozen=True, kw_only=True):
    """One block that is not as it was written."""

    offset_bytes: int  # in the target
    length_bytes: int
    what: str  # in words


def is_verify_line(text: str) -> bool:
    """Return whether a line of fio's is about a block that was checked."""
    return bool(_BEGIN.match(text) or _MORE.match(text))


def verify_errors(texts: Iterable[str]) -> tuple[VerifyError, ...]:
    """Return the bad blocks that lines of fio tell, each place once, by their place."""
    found: dict[int, VerifyError] = {}
    for text in texts:
        begin, place = _BEGIN.match(text), _PLACE.search(text)
        if begin and place:
            offset = int(place[1])
            error = VerifyError(offset_bytes=offset, length_bytes=int(place[2]), what=_what(text))
            found.setdefault(offset, error)
    return tuple(found[offset] for offset in sorted(found))


def _what(text: str) -> str:
    misplaced = _OFFSET.search(text)
    if misplaced:
        return f"it holds the block of offset {misplaced[1]}"
    for words, meaning in _MEANINGS:
        if words in text:
            return meaning
    return "its checksum is wrong"


_MEANINGS = (
    ("bad magic header", "it has no header"),
    ("bad header crc", "its header is damaged"),
    ("bad header rand_seed", "it is of another generation"),
    ("bad header numberio", "it is of another generation"),
    ("bad header", "its header is not the one that was written"),
)
