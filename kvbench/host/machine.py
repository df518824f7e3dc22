"""The one place through which /proc, /sys and /dev are read.  Opens read-only, runs nothing.

``root`` is ``/``; a test gives a folder that looks like a machine instead.
"""

import errno
import fcntl
import os
import signal
import stat
import struct
import time
from pathlib import Path
from typing import Literal

from msgspec import Struct

NodeKind = Literal["file", "block", "char", "directory", "fifo", "socket", "other"]

READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
TOOL_FOLDERS = ("usr/sbin", "sbin", "usr/bin", "bin", "run/current-system/sw/bin")
_KINDS: dict[int, NodeKind] = {
    stat.S_IFREG: "file",
    stat.S_IFBLK: "block",
    stat.S_IFCHR: "char",
    stat.S_IFDIR: "directory",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
}
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ESRCH, errno.ENODEV, errno.ENXIO}
_LOOP_GET_STATUS64 = 0x4C05  # linux/loop.h
_LOOP_INFO64_BYTES = 232


class Node(Struct, frozen=True, kw_only=True):
    """What a path leads to, symlinks followed."""

    kind: NodeKind
    file_system_number: str  # "major:minor" of the file system that holds the node
    number: str  # "major:minor" that a device node stands for
    inode: int
    size_bytes: int  # 0 for a device
    links: int

    @property
    def file_key(self) -> tuple[str, int]:
        """What binds a regular file, whatever its name."""
        return self.file_system_number, self.inode


class LoopBacking(Struct, frozen=True, kw_only=True):
    """What a loop device shows: a file, or another block device (then ``number`` is set)."""

    file_key: tuple[str, int]
    number: str | None


class Machine:
    """A machine to read.  Every method raises ``OSError`` when it cannot tell.

    Args:
        root: the folder under which proc, sys, dev and everything else is found.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    def at(self, path: str) -> Path:
        """Return where ``path`` of this machine really lies; a relative one is the caller's."""
        return self.root / path.lstrip("/") if path.startswith("/") else Path(path)

    def resolve(self, path: str) -> str:
        """Return the path with every symlink followed; it must exist."""
        real = os.path.realpath(self.at(path), strict=True)
        if self.root == Path("/"):
            return real
        return "/" + os.path.relpath(real, os.path.realpath(self.root))

    def node(self, path: str) -> Node:
        """Return what ``path`` leads to."""
        return _node(os.stat(self.at(path)))  # noqa: PTH116 - a path may hold any byte

    def text(self, path: str) -> str:
        """Return a whole small file; bytes that are no text survive as surrogates."""
        return os.fsdecode(self.at(path).read_bytes())

    def attribute(self, path: str, name: str) -> str:
        """Return an extended attribute of a file."""
        return os.fsdecode(os.getxattr(self.at(path), name))

    def text_if_there(self, path: str) -> str | None:
        """Return a whole small file, None when there is none."""
        try:
            return self.text(path)
        except OSError as error:
            if error.errno in _GONE:
                return None
            raise

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a folder."""
        return sorted(entry.name for entry in self.at(path).iterdir())

    def names_if_there(self, path: str) -> list[str]:
        """Return the sorted names in a folder, none when there is no folder."""
        try:
            return self.names(path)
        except OSError as error:
            if error.errno in _GONE:
                return []
            raise

    def bytes_at(self, path: str, offset_bytes: int, length_bytes: int) -> bytes:
        """Return ``length_bytes`` from ``offset_bytes``, fewer at the end."""
        descriptor = os.open(self.at(path), READ_FLAGS)
        try:
            return os.pread(descriptor, length_bytes, offset_bytes)
        finally:
            os.close(descriptor)

    def check_opens(self, path: str) -> None:
        """Open for reading and close again."""
        os.close(os.open(self.at(path), READ_FLAGS))

    def tool(self, name: str) -> Path | None:
        """Return where a system tool lies; the user's PATH is not asked."""
        for folder in TOOL_FOLDERS:
            path = self.root / folder / name
            if os.access(path, os.X_OK):
                return path
        return None

    def is_claimed(self, path: str) -> bool:
        """Return whether the kernel or a program has a block device for itself alone.

        The kernel's own word, over all namespaces: mounts, swap, md, dm, bcache and ZFS claim.
        """
        try:
            os.close(os.open(self.at(path), READ_FLAGS | os.O_EXCL))
        except OSError as error:
            if error.errno == errno.EBUSY:
                return True
            raise
        return False

    def is_open_elsewhere(self, path: str, held: int | None = None) -> bool | None:
        """Return whether anything at all has a regular file open; None if the kernel won't say.

        A write lease is granted only while nobody else has the file open: programs that run
        from it, kernel users and other containers count too.  It is given back at once.  Who has
        the file open itself asks on that descriptor, ``held``, which then does not count.
        """
        descriptor = os.open(self.at(path), READ_FLAGS) if held is None else held
        try:
            # A lease that is broken in this instant would kill us with SIGIO; URG is ignored.
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except OSError as error:
            return True if error.errno in {errno.EAGAIN, errno.EBUSY} else None
        finally:
            if held is None:
                os.close(descriptor)
        return False

    def loop_backing(self, kernel_name: str) -> LoopBacking:
        """Return what an attached loop device shows, by number: names may lie or be gone."""
        status = bytearray(_LOOP_INFO64_BYTES)
        descriptor = os.open(self.at(f"/dev/{kernel_name}"), READ_FLAGS)
        try:
            fcntl.ioctl(descriptor, _LOOP_GET_STATUS64, status)
        finally:
            os.close(descriptor)
        device, inode, number = struct.unpack_from("=QQQ", status)
        return LoopBacking(
            file_key=(_number(device), inode), number=_number(number) if number else None
        )

    def is_root(self) -> bool:
        """Return whether this process runs as root."""
        return os.geteuid() == 0

    def pause(self, seconds: float) -> None:
        """Wait for something short-lived to pass."""
        time.sleep(seconds)


MACHINE = Machine()  # this one


def node_of_descriptor(descriptor: int) -> Node:
    """Return what an open descriptor leads to."""
    return _node(os.fstat(descriptor))


def is_gone(error: OSError) -> bool:
    """Return whether an error says that the thing is not there (any more)."""
    return error.errno in _GONE


def _node(status: os.stat_result) -> Node:
    return Node(
        kind=_KINDS.get(stat.S_IFMT(status.st_mode), "other"),
        file_system_number=_number(status.st_dev),
        number=_number(status.st_rdev),
        inode=status.st_ino,
        size_bytes=status.st_size,
        links=status.st_nlink,
    )


def _number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"
