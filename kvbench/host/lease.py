"""Hold a target: one kvbench at a time, and a device for nobody else while it is written.

The lock is ``flock`` on the target itself, so two results folders do not hide it and a killed
kvbench leaves none behind: it goes with the process.  No child inherits it.  The exclusive
handle is the kernel's O_EXCL on a block device: while it is open nobody can mount the device,
swap to it, or build on it.  fio opens without O_EXCL and is not hindered.
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kvbench.errors import EnvironmentMissing, Refused, StoreError, UsageError
from kvbench.host import facts, topology
from kvbench.host.identity import ascii_safe, no_permission
from kvbench.host.machine import MACHINE, READ_FLAGS, Machine, node_of_descriptor
from kvbench.host.model import Identity

KVBENCH = "another kvbench"
_TRIES, _TRY_PAUSE_S = 4, 0.3  # udev locks a device for a moment after every change


@contextmanager
def hold(identity: Identity, *, exclusive: bool, machine: Machine = MACHINE) -> Iterator[int]:
    """Hold the target while the context lives; gives the descriptor that has the lock.

    Args:
        identity: the target.
        exclusive: also keep everybody else away from a block device.
        machine: where to look.

    Raises:
        UsageError: another kvbench (or another program) has locked it; the pid is named.
        Refused: it is in use, or the name leads to something else by now.
        EnvironmentMissing: it cannot be opened or locked here.
    """
    with ExitStack() as open_ones:
        descriptor = _open(identity, 0, machine)
        open_ones.callback(os.close, descriptor)
        _check_same(identity, descriptor)
        _lock(identity, descriptor, fcntl.LOCK_EX, machine)
        disk = _disk_node(identity, machine)
        if disk is not None:  # two partitions may be held, a disk and its partition may not
            open_ones.callback(os.close, disk)
            _lock(identity, disk, fcntl.LOCK_SH, machine)
        if exclusive and identity.kind == "block":
            claim = _open(identity, os.O_EXCL, machine)
            open_ones.callback(os.close, claim)
            _check_same(identity, claim)
        yield descriptor


@contextmanager
def hold_run(folder: Path, machine: Machine = MACHINE) -> Iterator[None]:
    """Hold the folder of a run while the context lives: what it has stored changes for nobody else.

    Raises:
        UsageError, StoreError: as for ``hold_folder``.
    """
    with hold_folder(folder, "adding to this run", machine):
        yield


@contextmanager
def hold_folder(folder: Path, doing: str, machine: Machine = MACHINE) -> Iterator[None]:
    """Hold a folder while the context lives; ``doing`` says to another kvbench what for.

    Where its file system knows no locks nothing is held; the target's own lock still stands.

    Raises:
        UsageError: another kvbench (or another program) has locked it; the pid is named.
        StoreError: it cannot be opened.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(f"cannot be opened: {error.strerror}", where=str(folder)) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                f"{_holder(descriptor, machine)} is {doing}",
                where=str(folder),
                hint="wait for it to end, or stop it",
            ) from error
        except OSError:
            pass  # no locks here
        yield
    finally:
        os.close(descriptor)


@contextmanager
def opened(identity: Identity, machine: Machine = MACHINE) -> Iterator[str]:
    """Give a name that leads to the target itself, whatever its own name leads to by then.

    The name is that of a descriptor of this process, which was seen to be the target.  A program
    that opens it, for writing too, gets the very same file or device, and never what somebody put
    in the place of the target's name after the last look at it.  No lock is taken.

    Raises:
        Refused: the name leads to something else by now, or nowhere.
        EnvironmentMissing: it cannot be opened.
    """
    descriptor = _open(identity, 0, machine)
    try:
        _check_same(identity, descriptor)
        yield f"/proc/{os.getpid()}/fd/{descriptor}"
    finally:
        os.close(descriptor)


def open_to_write(identity: Identity, flags: int = 0) -> int:
    """Open the target for writing, and return the descriptor once it is seen to be the target.

    Raises:
        Refused: the name leads to something else by now; not a byte was written.
        OSError: it cannot be opened.
    """
    descriptor = os.open(identity.real_path, os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY | flags)
    try:
        _check_same(identity, descriptor)
    except Refused:
        os.close(descriptor)
        raise
    return descriptor


def check_free(identity: Identity, machine: Machine = MACHINE) -> None:
    """Return when nobody has locked the target; keeps nothing.

    Raises:
        UsageError: another kvbench (or another program) has locked it; the pid is named.
        EnvironmentMissing: it cannot be opened or locked here.
    """
    descriptor = _open(identity, 0, machine)
    try:
        _lock(identity, descriptor, fcntl.LOCK_EX, machine)
    finally:
        os.close(descriptor)


def _open(identity: Identity, flags: int, machine: Machine) -> int:
    try:
        return os.open(machine.at(identity.real_path), READ_FLAGS | flags)
    except PermissionError as error:
        raise no_permission(identity.path) from error
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise Refused(
                "the kernel or a program has it for itself alone (O_EXCL: EBUSY)",
                where=identity.path,
                hint="see lsblk and fuser -v",
            ) from error
        raise Refused(f"the target has gone: {error.strerror}", where=identity.path) from error


def _check_same(identity: Identity, descriptor: int) -> None:
    node = node_of_descriptor(descriptor)
    number = node.number if identity.kind == "block" else node.file_system_number
    if (node.kind, number, node.inode) != (identity.kind, identity.device_number, identity.inode):
        raise Refused(
            "the name now leads to something else",
            where=identity.path,
            hint="start again with the target that you mean",
        )


def _disk_node(identity: Identity, machine: Machine) -> int | None:
    """Open the whole disk of a partition; None when there is none, or it may not be opened."""
    if identity.kind != "block":
        return None
    try:
        device = topology.block(machine, identity.device_number)
        if not device.is_partition:
            return None
        disk = topology.whole_disk(machine, device)
        descriptor = os.open(machine.at(f"/dev/{disk.name.replace('!', '/')}"), READ_FLAGS)
    except OSError:
        return None  # the partition's own lock still stands
    return descriptor


def _lock(identity: Identity, descriptor: int, operation: int, machine: Machine) -> None:
    for attempt in range(1, _TRIES + 1):
        try:
            fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = _holder(descriptor, machine)
            if attempt == _TRIES or holder.startswith(KVBENCH):
                raise UsageError(
                    f"{holder} is using this target",
                    where=identity.path,
                    hint="wait for it to end, or stop it",
                ) from error
        except OSError as error:
            raise EnvironmentMissing(
                f"cannot be locked against a second kvbench: {error.strerror}",
                where=identity.path,
                hint="use a local file system",
            ) from error
        else:
            return
        time.sleep(_TRY_PAUSE_S)


def holder_of(identity: Identity, machine: Machine = MACHINE) -> str | None:
    """Return who has locked the target, "" for nobody; it is not touched, so nobody is disturbed.

    None where that cannot be told: the name leads to something else, or no locks can be seen.
    """
    try:
        node = machine.node(identity.real_path)
        number = node.number if identity.kind == "block" else node.file_system_number
        found = (node.kind, number, node.inode)
        if found != (identity.kind, identity.device_number, identity.inode):
            return None
        locks = facts.parse_locks(machine.text("/proc/locks"))
    except (OSError, ValueError):
        return None
    return _named(locks, (node.file_system_number, node.inode), machine)


def _holder(descriptor: int, machine: Machine) -> str:
    """Name who has the lock, as far as /proc tells."""
    status = os.fstat(descriptor)
    key = (f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}", status.st_ino)
    try:
        locks = facts.parse_locks(machine.text("/proc/locks"))
    except (OSError, ValueError):
        locks = ()
    return _named(locks, key, machine) or "another program (not seen from here)"


def _named(locks: Sequence[facts.Lock], key: tuple[str, int], machine: Machine) -> str:
    """Return who has a lock on the file ``key``, "" for nobody."""
    for lock in locks:
        if lock.kind != "FLOCK" or lock.file_key != key:
            continue
        if lock.pid is None:
            return "a process of another container"
        try:
            command = machine.text(f"/proc/{lock.pid}/cmdline")
        except OSError:
            command = ""
        words = [word.rpartition("/")[2] for word in command.split("\0")[:4]]
        if any(word.startswith("kvbench") for word in words):
            return f"{KVBENCH} (pid {lock.pid})"
        return f"another program ({ascii_safe(words[0] or '?')}, pid {lock.pid})"
    return ""
