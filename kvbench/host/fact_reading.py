"""One thing to read -> a fact with its value, or with the reason why there is none."""

from collections.abc import Callable

from kvbench.host.machine import Machine
from kvbench.host.model import Fact


def read_fact(name: str, read: Callable[[], str], *, absent: str = "") -> Fact:
    """Return a fact; what cannot be read becomes its reason.

    Args:
        name: of the fact.
        read: returns the value, or raises ``OSError``, ``ValueError`` or ``LookupError``.
        absent: what it means that a file is not there, "" for saying only that.
    """
    try:
        return Fact(name=name, value=read())
    except FileNotFoundError as error:
        return Fact(name=name, value=None, reason=absent or f"there is no {error.filename}")
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return Fact(name=name, value=None, reason=reason)
    except (ValueError, LookupError) as error:
        return Fact(name=name, value=None, reason=str(error).strip("'"))


def first_text(machine: Machine, *paths: str) -> str:
    """Return the first of several files that says something printable.

    Raises:
        ValueError: none does.
    """
    for path in paths:
        text = machine.text_if_there(path) or ""
        shown = "".join(character for character in text if character.isprintable()).strip()
        if shown:
            return shown
    raise ValueError("the device does not tell")
