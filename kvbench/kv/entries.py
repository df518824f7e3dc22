"""Tables of a data file -> checked records, with the file and the key in every complaint.

The record types carry the limits (msgspec ``Meta``); here they become one sentence each.
"""

import math
from typing import TypeVar

import msgspec
from msgspec import Struct

from kvbench.document import allow_only, brief
from kvbench.errors import UsageError

NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"

Record = TypeVar("Record", bound=Struct)


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
        allow_only(values, kind.__struct_fields__, where)
        for key, value in values.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise UsageError(f"must be a finite number, not {value}", where=f"{where}.{key}")
    try:
        return msgspec.convert(values, type=kind)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `$")
        key = brief(place.rstrip("`"))
        message = text[0].lower() + text[1:].replace("`", "'")
        raise UsageError(brief(message), where=f"{where}{key}") from None
