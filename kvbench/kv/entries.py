"""TOML text -> checked records of a data file, with the file and the key in every complaint.

The record types carry the limits (msgspec ``Meta``); here they become one sentence each.
"""

import difflib
import math
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from kvbench.errors import UsageError
from kvbench.units import MIB

FORMAT = 1
FILE_BYTES_MAX = MIB
NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
SHOWN_MAX = 100  # characters of a stranger's text that a message repeats

Record = TypeVar("Record", bound=Struct)


def read_bytes(path: Path, limit_bytes: int = FILE_BYTES_MAX) -> bytes:
    """Return a small file's bytes.

    Raises:
        UsageError: missing, a folder, unreadable, or larger than the limit.
    """
    shown = printable(str(path))
    try:
        with path.open("rb") as file:
            raw = file.read(limit_bytes + 1)
    except FileNotFoundError:
        raise UsageError("there is no such file", where=shown) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot be read: {reason}", where=shown) from None
    if len(raw) > limit_bytes:
        raise UsageError(f"is larger than {limit_bytes} bytes", where=shown)
    return raw


def read_toml(path: Path, known: Iterable[str]) -> dict[str, object]:
    """Return the top table of a data file of this format.

    Raises:
        UsageError: unreadable, not TOML, another format, or a key that nobody reads.
    """
    raw = read_bytes(path)
    shown = printable(str(path))
    try:
        values = tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError(f"is not UTF-8 text (byte {error.start})", where=shown) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"is not TOML: {printable(str(error))}", where=shown) from None
    refuse_unknown(values, ("format", *known), shown)
    if values.get("format") != FORMAT or isinstance(values["format"], bool):
        raise UsageError(f"the key 'format' must be {FORMAT}", where=shown)
    return values


def tables(values: dict[str, object], key: str, where: str) -> list[dict[str, object]]:
    """Return the tables of ``[[key]]``.

    Raises:
        UsageError: none there, or something else is.
    """
    found = values.get(key)
    if not isinstance(found, list) or not found or not all(isinstance(t, dict) for t in found):
        raise UsageError(f"needs at least one [[{key}]] table", where=where)
    return found


def record(values: object, kind: type[Record], where: str) -> Record:
    """Return ``values`` as a ``kind``.

    Raises:
        UsageError: an unknown key, a missing one, or a value outside its limits.
    """
    if isinstance(values, dict):
        refuse_unknown(values, kind.__struct_fields__, where)
        for key, value in values.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise UsageError(f"must be a finite number, not {value}", where=f"{where}.{key}")
    try:
        return msgspec.convert(values, type=kind)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `$")
        key = printable(place.rstrip("`"))
        message = text[0].lower() + text[1:].replace("`", "'")
        raise UsageError(printable(message), where=f"{where}{key}") from None


def refuse_unknown(values: Iterable[object], known: Iterable[str], where: str) -> None:
    """Refuse keys that nobody reads: a misspelt key must not be dropped without a word."""
    known = tuple(known)
    for key in values:
        if key not in known:
            word = printable(str(key))
            raise UsageError(
                f"unknown key {word!r}",
                where=where,
                hint=suggestion(word, known) or f"known: {', '.join(known)}",
            )


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean ...?``, or nothing where no known word is near."""
    near = difflib.get_close_matches(word[:SHOWN_MAX], list(known), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else ""


def printable(text: str) -> str:
    """Return a stranger's text, short, as one line without control characters."""
    return "".join(c if c.isprintable() else "?" for c in text[:SHOWN_MAX])
