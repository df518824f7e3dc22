"""Which file is kvbench's own: a mark on the file itself, and a record beside it that names both.

An inode alone does not tell: file systems give the inode of a deleted file to the next one, and
that one may be somebody's data.  The mark is an extended attribute, which dies with its file; a
copy that took the attribute along has another inode.
"""

import os
from pathlib import Path, PurePosixPath

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


def mark_own(descriptor: int, folder: Path, mark: str) -> None:
    """Mark an open file as kvbench's own and write the record beside it.

    Raises:
        OSError: the folder cannot be written, or its file system knows no extended attributes.
    """
    os.setxattr(descriptor, ATTRIBUTE, mark.encode())
    status = os.fstat(descriptor)
    record = OwnRecord(device=status.st_dev, inode=status.st_ino, mark=mark)
    (folder / RECORD).write_bytes(msgspec.json.encode(record))


def is_own(identity: Identity, machine: Machine = MACHINE) -> bool:
    """Whether kvbench made this very file."""
    if identity.kind != "file":
        return False
    path = identity.real_path
    try:
        text = machine.text(str(PurePosixPath(path).with_name(RECORD)))
        own = msgspec.json.decode(text, type=OwnRecord)
        found = (machine.node(path).file_key, machine.attribute(path, ATTRIBUTE))
    except (OSError, msgspec.DecodeError, UnicodeEncodeError):
        return False
    number = f"{os.major(own.device)}:{os.minor(own.device)}"
    return bool(own.mark) and found == ((number, own.inode), own.mark)
