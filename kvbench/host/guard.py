"""May this target be read?  May it be written?  Decisions; opens nothing for writing.

Reading needs a regular file or a block device.  Writing needs in addition that the user named
the target twice (or that kvbench made the file), and that nothing whatever speaks against it:
see ``block_objections`` and ``file_objections``.  What cannot be decided is refused, whether the
reason is a file of /proc that cannot be read or a text that is not as expected.
"""

import re

from kvbench.errors import EnvironmentMissing, Refused, UsageError
from kvbench.host import facts, lease, processes
from kvbench.host.block_objections import block_objections
from kvbench.host.file_objections import file_objections
from kvbench.host.identity import ascii_safe, identify, no_permission
from kvbench.host.machine import MACHINE, Machine
from kvbench.host.model import Identity
from kvbench.host.ownership import is_own

# fio replaces these inside any value (and runs a shell for the second kind), and trims the end.
_FIO_WOULD_CHANGE = re.compile(r"\$\{|\$(?:pagesize|mb_memory|ncpus)|[;#]|\s$")
_NEW_AT_EVERY_BOOT = frozenset({"path", "real_path", "device_number", "inode", "diskseq"})


def check_readable(path: str, machine: Machine = MACHINE) -> Identity:
    """Return what ``path`` leads to when it may be read; creates and writes nothing.

    Raises:
        Refused: not there, not a regular file or block device, a window into the kernel, or a
            name that cannot be handed to fio unchanged.
        UsageError: no name, or nothing in it to read.
        EnvironmentMissing: no permission.
    """
    if not path:
        raise UsageError("the target has no name")
    _check_name(path)
    identity = identify(path, machine)
    _check_name(identity.real_path)
    if _is_kernel_file(identity, machine):
        raise Refused(
            "is a window into the kernel, not storage",
            where=path,
            hint="name a regular file or a block device",
        )
    if identity.size_bytes == 0:
        what = "the file is empty" if identity.kind == "file" else "the device has no medium"
        raise UsageError(f"{what}, there is nothing to read", where=path)
    try:
        machine.check_opens(identity.real_path)
    except PermissionError as error:
        raise no_permission(path, machine) from error
    except OSError as error:
        raise EnvironmentMissing(
            f"cannot be opened for reading: {error.strerror}", where=path
        ) from error
    return identity


def check_writable(
    identity: Identity,
    destroy: str | None,
    *,
    own_file: bool,
    machine: Machine = MACHINE,
) -> None:
    """Return when the target may be written, and only then.

    Call it before ``lease.hold``: a target that is held, by whom ever, counts as in use.

    Args:
        identity: the target, as ``check_readable`` gave it.
        destroy: the name that the user gave to ``--destroy``, None without it.
        own_file: the caller says that kvbench made the file; it is checked here.
        machine: where to look.

    Raises:
        Refused: it may not, or it cannot be decided.
        UsageError: another kvbench is using it.
    """
    same_device(identity, machine)
    lease.check_free(identity, machine)
    _check_consent(identity, destroy, own_file=own_file, machine=machine)
    _refuse_objections(identity, machine, own_file=own_file, held=None)


def check_still_writable(
    identity: Identity, held: int, *, own_file: bool, machine: Machine = MACHINE
) -> None:
    """Ask again what ``check_writable`` asked, once the target is held and before it is written.

    The user may have been asked in between, for as long as he likes: what stands on the target
    now counts, and not what stood there when he was asked.

    Args:
        identity: the target, which passed ``check_writable``.
        held: what ``lease.hold`` gave, exclusively for a block device.
        own_file: the caller says that kvbench made the file.
        machine: where to look.

    Raises:
        Refused: it may not be written any more, or it cannot be decided.
    """
    same_device(identity, machine)
    _refuse_objections(identity, machine, own_file=own_file, held=held)


def _refuse_objections(
    identity: Identity, machine: Machine, *, own_file: bool, held: int | None
) -> None:
    if identity.kind == "block":
        objections = block_objections(identity, machine, held=held is not None)
    else:
        objections = file_objections(identity, machine, own=own_file, held=held)
    try:
        objection = next(objections, None)
    except (OSError, ValueError, LookupError) as error:
        who = "" if machine.is_root() else "as root, "
        raise Refused(
            f"cannot decide whether it may be written, so it is not: {_words(error)}",
            where=identity.path,
            hint=f"run {who}where /proc, /sys and /dev of the whole machine are seen",
        ) from error
    if objection is not None:
        raise Refused(objection.text, where=_named(identity), hint=objection.hint)


def same_device(identity: Identity, machine: Machine = MACHINE) -> None:
    """Return when the target's names still lead to the very same thing.

    Raises:
        Refused: gone, or another file or device in its place.
    """
    for path in dict.fromkeys((identity.path, identity.real_path)):
        try:
            now = identify(path, machine)
        except (Refused, EnvironmentMissing) as error:
            raise Refused(f"the target has gone: {error.message}", where=path) from error
        changed = _changes(identity, now, frozenset({"path", "real_path"}))
        if changed:
            raise Refused(
                f"the name now leads to something else: {changed}",
                where=path,
                hint="start again with the target that you mean",
            )


def found_again(stored: Identity, machine: Machine = MACHINE, *, same_boot: bool) -> Identity:
    """Return the target of an earlier run as it is now, perhaps after a reboot.

    The kernel numbers its devices anew at every boot.  What tells a serial and a world-wide name
    is known by these; a file, and a device that tells less, must be unchanged in everything.  What
    tells neither is known within one boot only: later another disk may have got its numbers.

    Args:
        stored: the target as the run has it.
        machine: where to look.
        same_boot: whether the machine is known not to have been booted since.

    Raises:
        Refused: the name leads nowhere, or to something else, or nobody can tell.
    """
    if stored.kind == "block" and not same_boot and not _is_named(stored):
        raise Refused(
            "tells neither a serial nor a world-wide name, and it is not known to be the same boot "
            "of this machine: nobody can tell whether it is the drive of this run",
            where=stored.path,
            hint="start a new run",
        )
    if stored.kind != "block" or stored.serial is None or stored.wwid is None:
        same_device(stored, machine)
        return stored
    try:
        now = identify(stored.path, machine)
    except (Refused, EnvironmentMissing) as error:
        raise Refused(f"the target has gone: {error.message}", where=stored.path) from error
    changed = _changes(stored, now, _NEW_AT_EVERY_BOOT)
    if changed:
        raise Refused(
            f"the name now leads to something else: {changed}",
            where=stored.path,
            hint="names such as /dev/nvme0n1 may change at a reboot; those in /dev/disk/by-id stay",
        )
    return now


def _is_named(identity: Identity) -> bool:
    """Return whether a device tells anything that no other one tells."""
    named = identity.wwid is not None and not identity.wwid.startswith(("nsid ", "partition "))
    return identity.serial is not None or named


def _changes(before: Identity, now: Identity, besides: frozenset[str]) -> str:
    return "; ".join(
        f"{field.replace('_', ' ')} was {old}, is {new}"
        for field in Identity.__struct_fields__
        if field not in besides
        and (old := getattr(before, field)) != (new := getattr(now, field))
        and not (field == "start_sector" and old is None)  # an archive that did not keep it
    )


def _check_name(path: str) -> None:
    if not path.isprintable():
        raise Refused(
            "the name has a control character, or bytes that are no text",
            where=ascii_safe(path),
            hint="rename the file",
        )
    if _FIO_WOULD_CHANGE.search(path):
        raise Refused(
            "fio would take this name for another: it has one of ; # ${ $pagesize $mb_memory "
            "$ncpus, or ends in a blank",
            where=path,
            hint="rename the file",
        )


def _is_kernel_file(identity: Identity, machine: Machine) -> bool:
    if identity.kind != "file":
        return False
    mount = facts.mount_of(identity.real_path, processes.mounts(machine))
    return mount is not None and mount.of_the_kernel


def _check_consent(
    identity: Identity, destroy: str | None, *, own_file: bool, machine: Machine
) -> None:
    if own_file:
        if not is_own(identity, machine):
            raise Refused(
                "is not a file that kvbench made",
                where=identity.path,
                hint=f"to write to it nevertheless: --destroy {identity.path}",
            )
        return
    if destroy is None:
        raise Refused(
            "writing would destroy what it holds, and --destroy was not given",
            where=identity.path,
            hint=f"if nothing on it is needed: --destroy {identity.path}",
        )
    if destroy == identity.path:
        return
    try:
        named = identify(destroy, machine)
    except (Refused, EnvironmentMissing) as error:
        raise Refused(f"--destroy names no target: {error.message}", where=destroy) from error
    if (named.kind, named.device_number, named.inode) != (
        identity.kind,
        identity.device_number,
        identity.inode,
    ):
        raise Refused(
            f"--destroy names another target: {destroy}",
            where=identity.path,
            hint="name the same target twice",
        )


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _named(identity: Identity) -> str:
    if identity.path == identity.real_path:
        return identity.path
    return f"{identity.path} ({identity.real_path})"
