"""What all processes see and use: mounts of every namespace, open files.  Reads /proc."""

import errno
import os

from msgspec import Struct

from kvbench.host import facts
from kvbench.host.identity import ascii_safe
from kvbench.host.machine import MACHINE, Machine, is_gone


def mounts(machine: Machine = MACHINE) -> tuple[facts.Mount, ...]:
    """Return the mounts that this process sees."""
    return facts.parse_mountinfo(machine.text("/proc/self/mountinfo"))


def mounts_everywhere(machine: Machine = MACHINE) -> tuple[facts.Mount, ...]:
    """Return the mounts of every namespace that a process lives in, each once.

    Raises:
        OSError: a process hides its mounts, or processes are hidden.
    """
    pids = process_ids(machine)
    if "1" not in pids:
        raise PermissionError("processes of others are hidden (/proc is mounted with hidepid)")
    texts: dict[str, None] = {machine.text("/proc/self/mountinfo"): None}
    seen: set[str] = set()
    for pid in pids:
        try:
            namespace = os.readlink(machine.at(f"/proc/{pid}/ns/mnt"))  # noqa: PTH115
        except OSError:
            namespace = f"pid {pid}"  # not ours to see; its mounts are
        if namespace in seen:
            continue
        text = _of_process(machine, f"/proc/{pid}/mountinfo")
        if text is not None:
            seen.add(namespace)
            texts[text] = None
    found = {mount: None for text in texts for mount in facts.parse_mountinfo(text)}
    return tuple(found)


def _of_process(machine: Machine, path: str) -> str | None:
    """Return a file of a process; None when the process has gone or is only a zombie."""
    try:
        return machine.text_if_there(path)
    except OSError as error:
        if error.errno == errno.EINVAL:  # a zombie has no namespace any more
            return None
        raise


def process_ids(machine: Machine = MACHINE) -> list[str]:
    """Return the ids of all processes that are seen from here."""
    return [name for name in machine.names("/proc") if name.isdigit()]


class Openers(Struct, frozen=True, kw_only=True):
    """The other processes that have something open, as "name (pid n)"."""

    seen: tuple[str, ...]
    hidden: int  # processes whose open files may not be looked at from here


def openers(
    machine: Machine,
    *,
    numbers: frozenset[str] = frozenset(),
    characters: frozenset[str] = frozenset(),
    file: tuple[str, int] | None = None,
) -> Openers:
    """Return who else has one of several block or character devices, or a file, open."""
    own = str(os.getpid())
    seen: list[str] = []
    hidden = 0
    for pid in process_ids(machine):
        if pid == own:
            continue
        try:
            found = _has_open(machine, pid, numbers, characters, file)
        except PermissionError:
            hidden += 1
            continue
        if found:
            name = (_of_process(machine, f"/proc/{pid}/comm") or "?").strip()
            seen.append(f"{ascii_safe(name)} (pid {pid})")
    return Openers(seen=tuple(seen), hidden=hidden)


def _has_open(
    machine: Machine,
    pid: str,
    numbers: frozenset[str],
    characters: frozenset[str],
    file: tuple[str, int] | None,
) -> bool:
    for descriptor in machine.names_if_there(f"/proc/{pid}/fd"):
        try:
            node = machine.node(f"/proc/{pid}/fd/{descriptor}")
        except OSError as error:
            if is_gone(error):
                continue
            raise
        if node.kind == "block" and node.number in numbers:
            return True
        if node.kind == "char" and node.number in characters:
            return True
        if node.kind == "file" and node.file_key == file:
            return True
    return False
