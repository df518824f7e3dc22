"""A TOML file -> checked values, key by key.  Every complaint names the file and the key.

A workload file is data from strangers: only known keys are read, and text holds no control or
formatting characters, so that no value can become a line of its own anywhere.
"""

from collections.abc import Iterable
from math import isfinite
from pathlib import Path
from typing import TypeVar

from kvbench import document
from kvbench.document import found, printable, suggestion
from kvbench.errors import UsageError
from kvbench.units import parse_duration, parse_size

SIZE_TEXT_MAX = 40  # Python itself refuses to read numbers of thousands of digits

_Choice = TypeVar("_Choice", bound=str)


class Table:
    """One TOML table and the place where it stands, read key by key."""

    def __init__(self, values: dict[str, object], file: str, path: str = "") -> None:
        self.values = values
        self.file = file
        self.path = path

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def where(self, key: str = "") -> str:
        """Return ``file: table.key``, the place that an error names."""
        dotted = ".".join(part for part in (self.path, printable(key)) if part)
        return f"{self.file}: {dotted}" if dotted else self.file

    def error(self, key: str, message: str, hint: str = "") -> UsageError:
        """Return the error about ``key``; the caller raises it."""
        return UsageError(message, where=self.where(key), hint=hint)

    def allow_only(self, known: Iterable[str]) -> None:
        """Refuse keys that nobody reads: a misspelt key must not be dropped without a word."""
        document.allow_only(self.values, known, self.where())

    def require(self, key: str) -> object:
        """Return the raw value of a key that must be there."""
        if key not in self.values:
            raise UsageError(f"the key {key!r} is missing", where=self.where())
        return self.values[key]

    def text(self, key: str, *, limit: int, default: str | None = None) -> str:
        """Return one line of plain text."""
        if key not in self.values and default is not None:
            return default
        return plain_text(self.require(key), self, key, limit=limit)

    def flag(self, key: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, f"must be true or false, not {found(value)}")
        return value

    def integer(self, key: str, *, low: int, high: int) -> int:
        """Return a whole number in ``low..high``."""
        return whole(self.require(key), self, key, low=low, high=high)

    def number(self, key: str, *, low: float, high: float) -> float:
        """Return a number in ``low..high``."""
        return real(self.require(key), self, key, low=low, high=high)

    def size(self, key: str, *, low: int, high: int) -> int:
        """Return a size in bytes."""
        return size(self.require(key), self, key, low=low, high=high)

    def duration_s(self, key: str, *, low: float, high: float) -> float:
        """Return seconds from a number or from text such as "500ms"."""
        return duration_s(self.require(key), self, key, low=low, high=high)

    def choice(self, key: str, options: tuple[_Choice, ...], default: _Choice | None) -> _Choice:
        """Return one of ``options``."""
        if key not in self.values and default is not None:
            return default
        value = self.require(key)
        for option in options:
            if value == option:
                return option
        allowed = ", ".join(options)
        hint = suggestion(value, options) if isinstance(value, str) else ""
        raise self.error(key, f"must be one of {allowed}, not {found(value)}", hint)

    def array(self, key: str, *, at_most: int) -> list[object]:
        """Return a list with at least one entry."""
        value = self.require(key)
        if not isinstance(value, list):
            raise self.error(key, f"must be a list, not {found(value)}")
        if not 1 <= len(value) <= at_most:
            raise self.error(key, f"must have from 1 to {at_most} entries, not {len(value)}")
        return value

    def table(self, key: str) -> "Table":
        """Return the table under ``key``, an empty one when it is not there."""
        return self._inner(self.values.get(key, {}), key)

    def tables(self, key: str, *, at_most: int) -> list["Table"]:
        """Return the tables of ``[[key]]``; the first is ``key[1]`` in messages."""
        entries = self.array(key, at_most=at_most)
        return [self._inner(entry, f"{key}[{n}]") for n, entry in enumerate(entries, start=1)]

    def _inner(self, value: object, key: str) -> "Table":
        if not isinstance(value, dict):
            raise self.error(key, f"must be a table, not {found(value)}")
        return Table(value, self.file, ".".join(part for part in (self.path, key) if part))


def read_document(path: Path) -> Table:
    """Return the file's top table, its ``format`` checked.

    Raises:
        UsageError: missing, a folder, too large, not UTF-8, not TOML, another format.
    """
    return Table(document.read_toml(path), printable(str(path)))


def plain_text(value: object, table: Table, key: str, *, limit: int) -> str:
    """Return ``value`` as one line of at most ``limit`` characters without control characters."""
    if not isinstance(value, str):
        raise table.error(key, f"must be text, not {found(value)}")
    if not value.strip():
        raise table.error(key, "must not be empty")
    if len(value) > limit:
        raise table.error(key, f"must have at most {limit} characters, not {len(value)}")
    if value != printable(value):
        raise table.error(
            key,
            f"must be one line of plain text, not {found(value)}",
            "a long text may be broken with a backslash at the end of the line",
        )
    return value


def whole(value: object, table: Table, key: str, *, low: int, high: int) -> int:
    """Return ``value`` as a whole number in ``low..high``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise table.error(key, f"must be a whole number, not {found(value)}")
    if not low <= value <= high:
        raise table.error(key, f"must be from {low} to {high}, not {found(value)}")
    return value


def real(value: object, table: Table, key: str, *, low: float, high: float) -> float:
    """Return ``value`` as a finite number in ``low..high``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise table.error(key, f"must be a number, not {found(value)}")
    if not (low <= value <= high and isfinite(value)):
        raise table.error(key, f"must be from {low:g} to {high:g}, not {found(value)}")
    return float(value)


def size(value: object, table: Table, key: str, *, low: int, high: int) -> int:
    """Return ``value`` as bytes; text such as "4KiB" or a plain number."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise table.error(key, f"must be a size, not {found(value)}", "write e.g. 4096 or 4KiB")
    if isinstance(value, str) and len(value) > SIZE_TEXT_MAX:
        raise table.error(key, f"is not a size: {found(value)}", "write e.g. 4096 or 4KiB")
    parsed = parse_size(value, where=table.where(key))
    if not low <= parsed <= high:
        raise table.error(key, f"must be from {low} to {high} bytes, not {found(parsed)}")
    return parsed


def duration_s(raw: object, table: Table, key: str, *, low: float, high: float) -> float:
    """Return seconds from a number or from text such as "500ms", in ``low..high``."""
    if isinstance(raw, bool) or not isinstance(raw, (str, int, float)):
        raise table.error(key, f"must be a duration, not {found(raw)}", "write e.g. 500ms or 2")
    value = parse_duration(raw, where=table.where(key))
    if not low <= value <= high:
        raise table.error(key, f"must be from {low:g} to {high:g} seconds, not {value:g}")
    return value
