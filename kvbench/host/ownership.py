"""Which file is kvbench's own: a mark on the file itself, and a record beside it that names both.

An inode alone does not tell: file systems give the inode of a deleted file to the next one, and
that one may be somebody's data.  The mark is an extended attribute, which dies with its file; a
copy that took the attribute along has another inode.
"""

import os
from pathlib import PurePosixPath

import msgspec
from msgspec import Struct

from kvbench.host.machine import MACHINE, Machine
from kvbench.host.model import Identity

RECORD = "target.json"
ATTRIBUTE = "user.kvbench.mark"


class OwnRecord(Struct, frozen=True):
    """target.json: the one file in its folder that kvbench made."""

    device: int
    inode: int
    mark: str


def mark_own(descriptor: int, token: str) -> OwnRecord:
    """Mark an open file as kvbench's own, and return what its record must say.

    The mark names its file, so that of a copy, which has another inode, it says nothing.

    Raises:
        OSError: its file system knows no extended attributes.
    """
    status = os.fstat(descriptor)
    mark = _mark(token, status)
    os.setxattr(descriptor, ATTRIBUTE, mark.encode())
    return OwnRecord(device=status.st_dev, inode=status.st_ino, mark=mark)


def is_marked(descriptor: int, token: str) -> bool:
    """Whether ``mark_own`` has marked this very file with this token."""
    try:
        mark = os.getxattr(descriptor, ATTRIBUTE)
    except OSError:
        return False
    return mark == _mark(token, os.fstat(descriptor)).encode()


def is_own(identity: Identity, machine: Machine = MACHINE) -> bool:
    """Whether kvbench made this very file.

    A record that is empty, which a full disk or a crash can leave, is none; then the mark stands
    for itself where it names its file.
    """
    if identity.kind != "file":
        return False
    path = identity.real_path
    try:
        text = machine.text(str(PurePosixPath(path).with_name(RECORD)))
        key, mark = machine.node(path).file_key, machine.attribute(path, ATTRIBUTE)
        if not text.strip():
            return _names_itself(mark, key)
        own = msgspec.json.decode(text, type=OwnRecord)
    except (OSError, msgspec.DecodeError, UnicodeEncodeError):
        return False
    number = f"{os.major(own.device)}:{os.minor(own.device)}"
    return bool(own.mark) and (key, mark) == ((number, own.inode), own.mark)


def _mark(token: str, status: os.stat_result) -> str:
    return f"{token}-{os.major(status.st_dev)}:{os.minor(status.st_dev)}-{status.st_ino}"


def _names_itself(mark: str, key: tuple[str, int]) -> bool:
    token, _, file = mark.partition("-")
    return bool(token) and file == f"{key[0]}-{key[1]}"
