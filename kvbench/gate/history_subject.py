"""A run's record -> what it measured, as a history knows it: never by a path.  Pure.

A drive is known by its serial, and two namespaces or partitions of one drive are two targets.  A
drive without a serial is known by its world-wide name.  A file is known by the serial of the drive
under it, else by its inode and the number of its file system on a machine with that CPU; so is a
loop device, by the file behind it.
"""

import re

from msgspec import Struct

from kvbench.compare.aspects import ASPECTS
from kvbench.store.records import RunRecord
from kvbench.store.redact import PREFIX, hidden

_PART = re.compile(r"\b(?:nsid|partition) \d+")
_BACKING_FILE = re.compile(
    r"^backing file .*\((\d+:\d+) inode (\d+)\)(?:, (partition \d+))?$", re.DOTALL
)


class Subject(Struct, frozen=True, kw_only=True):
    """What runs of one history share.

    ``key`` is equal for a redacted run and an open one.  ``part`` is the namespace and partition
    of a drive with a serial, "" where there is none or none is told.  ``words`` name it.
    """

    key: str
    part: str
    words: str


def subject_of(record: RunRecord) -> Subject | None:
    """Return what ``record`` is a run of, None where nothing binds it."""
    identity = record.identity
    serial = ASPECTS["serial"][1](record)
    if serial:
        part = _part(record)
        words = f"{serial}, {part}" if part else serial
        return Subject(key=f"serial {_hidden(serial)}", part=part, words=words)
    if identity.kind == "file":
        return _file(record, identity.device_number, str(identity.inode))
    if identity.wwid is None:
        return None
    backing = _BACKING_FILE.match(identity.wwid)
    if backing:
        return _file(record, backing[1], backing[2], backing[3] or "")
    name = _PART.sub("", identity.wwid).strip(" ,")
    if not name or name.startswith("backing file "):
        return None  # a namespace or partition of nobody knows what
    part = _part(record)
    return Subject(key=f"wwid {_hidden(name)}", part=part, words=identity.wwid)


def names_of(record: RunRecord) -> tuple[str, ...]:
    """Return by what the drive of a run can be named: serial, world-wide name, both or none."""
    found = [ASPECTS["serial"][1](record), record.identity.wwid, _fact(record, "device_wwid")]
    if record.identity.wwid:
        found.append(_PART.sub("", record.identity.wwid).strip(" ,"))
    return tuple(dict.fromkeys(name for name in found if name))


def is_named(record: RunRecord, name: str) -> bool:
    """Return whether ``name`` names the drive of a run, whichever of the two is redacted."""
    return bool(name) and any(
        name == one or _hidden(name) == _hidden(one) for one in names_of(record)
    )


def _file(record: RunRecord, file_system: str, inode: str, part: str = "") -> Subject:
    cpu = _fact(record, "cpu") or "a CPU that is not known"
    words = f"file with inode {inode} on {file_system}"
    shown = f"{words}, {part}" if part else words
    return Subject(key=f"{words} beside {cpu}", part=part, words=shown)


def _part(record: RunRecord) -> str:
    """Return namespace and partition: ``nsid 1, partition 2``."""
    found = _PART.findall(record.identity.wwid or "")
    nsid = _fact(record, "device_nsid")
    if not found and nsid:
        found = [f"nsid {nsid}"]
    return ", ".join(found)


def _fact(record: RunRecord, name: str) -> str | None:
    return next((fact.value for fact in record.facts if fact.name == name), None)


def _hidden(name: str) -> str:
    return name if name.startswith(PREFIX) else hidden(name)
