"""A TOML file of this format -> its values, and the words in which a wrong one is refused.

Data files come from strangers: they are read up to a limit, and what a message repeats of them is
one line without control characters.
"""

import difflib
import errno
import os
import stat
import tomllib
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from kvbench.errors import UsageError
from kvbench.units import MIB

FILE_BYTES_MAX = MIB  # a data file is some pages of text; more is a mistake or an attack
FORMAT = 1
SHOWN_MAX = 100  # characters of a long text that a message repeats


def open_regular(path: Path, limit_bytes: int) -> BinaryIO:
    """Open a regular file to read it.  Never waits for the other end of a pipe.

    Raises:
        OSError: missing, unreadable, larger than the limit, a folder, a pipe or a device.
        ValueError: a NUL in the path.
    """
    _refuse_irregular(path.stat(), limit_bytes)  # before it is opened: that may move a tape
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    file = os.fdopen(os.open(path, flags), "rb")
    try:
        _refuse_irregular(os.fstat(file.fileno()), limit_bytes)
    except OSError:
        file.close()
        raise
    return file


def read_regular(path: Path, limit_bytes: int) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        OSError, ValueError: as for ``open_regular``.
    """
    with open_regular(path, limit_bytes) as file:
        raw = file.read(limit_bytes + 1)
    if len(raw) > limit_bytes:
        raise _too_large(limit_bytes)
    return raw


def read_bytes(path: Path, limit_bytes: int = FILE_BYTES_MAX) -> bytes:
    """Return a small file's bytes.

    Raises:
        UsageError: missing, not a regular file, unreadable, or larger than the limit.
    """
    shown = printable(str(path))
    try:
        return read_regular(path, limit_bytes)
    except FileNotFoundError:
        raise UsageError("there is no such file", where=shown) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot be read: {reason}", where=shown) from None


def _refuse_irregular(status: os.stat_result, limit_bytes: int) -> None:
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder, not a file")
    if not stat.S_ISREG(mode):
        what = "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"
        raise OSError(errno.EINVAL, f"it is {what}, not a file")
    if status.st_size > limit_bytes:
        raise _too_large(limit_bytes)


def _too_large(limit_bytes: int) -> OSError:
    return OSError(errno.EFBIG, f"it is larger than {limit_bytes} bytes")


def read_toml(path: Path) -> dict[str, object]:
    """Return the top table of a data file, its ``format`` checked.

    Raises:
        UsageError: as for ``read_bytes``, or not UTF-8, not TOML, another format.
    """
    raw = read_bytes(path)
    shown = printable(str(path))
    try:
        values = tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError(f"is not UTF-8 text (byte {error.start})", where=shown) from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"is not TOML: {printable(str(error))}", where=shown) from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, 10,000 brackets
        raise UsageError(f"is not usable TOML: {printable(str(error))}", where=shown) from None
    if "format" not in values:
        raise UsageError("the key 'format' is missing", where=shown)
    if values["format"] != FORMAT or isinstance(values["format"], bool):
        raise UsageError(
            f"the key 'format' must be {FORMAT}, not {found(values['format'])}",
            where=f"{shown}: format",
            hint="a newer kvbench may read it",
        )
    return values


def allow_only(values: Iterable[object], known: Iterable[str], where: str) -> None:
    """Refuse keys that nobody reads: a misspelt key must not be dropped without a word."""
    known = tuple(known)
    for key in values:
        if key not in known:
            word = str(key)
            raise UsageError(
                f"unknown key {brief(word)!r}", where=where, hint=suggestion(word, known)
            )


def found(value: object) -> str:
    """Return what was found, short enough for a sentence."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and abs(value) > 10**30:
        return "a number of more than 30 digits"
    text = printable(repr(value) if isinstance(value, str) else str(value))
    return text if len(text) <= 60 else f"{text[:57]}..."


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean ...?``, or nothing where no known word is near."""
    near = difflib.get_close_matches(word[:SHOWN_MAX], list(known), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else ""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean ...?``, or the whole list where nothing is near."""
    known = list(known)
    return nearest(word, known) or f"known: {', '.join(known)}"


def printable(text: str) -> str:
    """Return ``text`` with every control, format and line-separating character as "?"."""
    if text.isprintable():  # nearly every text, and it has none of these
        return text
    return "".join("?" if _unprintable(character) else character for character in text)


def brief(text: str) -> str:
    """Return the beginning of a stranger's text, printable."""
    return printable(text[:SHOWN_MAX])


def _unprintable(character: str) -> bool:
    category = unicodedata.category(character)
    return category.startswith("C") or category in ("Zl", "Zp")
