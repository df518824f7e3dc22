"""JSON as nvme-cli and smartctl print it -> numbers and words.  Pure.

Versions differ: a counter is a number, or a string with thousands separators, or beyond 64 bits;
a text is padded with blanks.  What cannot be read is None with the reason in ``Reader.unknown``.
"""

import json
import re
from collections.abc import Iterable
from typing import cast

DIGITS_MAX = 60  # of a counter of 128 bits, with separators; more is no counter
_NUMBER = re.compile(r"\d{1,3}(?:[,_' .]\d{3})+|\d+")
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,32}")


def document(text: str) -> dict[str, object]:
    """Return the JSON object in what a tool printed; lines around it are passed over.

    Raises:
        ValueError: there is none; the message says what there was instead.
    """
    for start in (match.start() for match in re.finditer(r"^\s*\{", text, re.MULTILINE)):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, text.index("{", start))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return cast("dict[str, object]", value)
    lines = text.split("\n")
    said = next((line.strip() for line in lines if line.strip()), "")
    raise ValueError(f"no JSON but {said[:60]!r}" if said else "nothing was printed")


def number(value: object) -> int | None:
    """Return a whole number that is not negative, however it was printed; None when it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if value >= 0 else None
    if isinstance(value, float):
        return int(value) if value >= 0 and value.is_integer() else None
    if isinstance(value, list):
        return number(value[0]) if len(value) == 1 else None
    if isinstance(value, dict):
        return number(value.get("value"))
    if isinstance(value, str):
        text = value.strip()[: DIGITS_MAX + 1]
        if len(text) > DIGITS_MAX or not text.isascii():
            return None
        if _HEX.fullmatch(text):
            return int(text, 16)
        return int(re.sub(r"\D", "", text)) if _NUMBER.fullmatch(text) else None
    return None


def words(value: object) -> str | None:
    """Return a text without its padding; None when nothing printable is left of it."""
    if not isinstance(value, str):
        return None
    shown = "".join(character for character in value if character.isprintable()).strip()
    return shown or None


def tables(value: object) -> list[dict[str, object]]:
    """Return the objects of a list; whatever else stands there is passed over."""
    found = value if isinstance(value, list) else [value]
    return [cast("dict[str, object]", one) for one in found if isinstance(one, dict)]


class Reader:
    """Reads the keys of one object and notes why what is None is not known."""

    def __init__(self, values: dict[str, object], source: str) -> None:
        self.values = values
        self.source = source
        self.unknown: dict[str, str] = {}

    def number(self, field: str, keys: Iterable[str]) -> int | None:
        """Return the number under the first of ``keys`` that is there."""
        key = next((key for key in keys if key in self.values), None)
        if key is None:
            self.not_known(field, f"{self.source} does not tell it")
            return None
        value = number(self.values[key])
        if value is None:
            self.not_known(field, f"{self.source} shows no number for {key}")
            return None
        return value

    def words(self, field: str, keys: Iterable[str]) -> str | None:
        """Return the text under the first of ``keys`` that is there."""
        key = next((key for key in keys if key in self.values), None)
        if key is None:
            self.not_known(field, f"{self.source} does not tell it")
            return None
        value = words(self.values[key])
        if value is None:
            self.not_known(field, f"{self.source} shows only blanks for {key}")
            return None
        return value

    def not_known(self, field: str, reason: str) -> None:
        """Note why a field is not known."""
        self.unknown[field] = reason
