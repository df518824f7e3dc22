"""A path -> what it leads to, with everything that binds it.  Reads sysfs only."""

from pathlib import PurePosixPath

from kvbench.errors import EnvironmentMissing, Refused
from kvbench.host import topology
from kvbench.host.machine import MACHINE, Machine, Node
from kvbench.host.model import Identity
from kvbench.units import SECTOR_BYTES

_KIND_WORDS = {
    "directory": "a directory",
    "char": "a character device",
    "fifo": "a pipe",
    "socket": "a socket",
    "other": "neither a file nor a device",
}


def identify(path: str, machine: Machine = MACHINE) -> Identity:
    """Return what ``path`` leads to, symlinks followed, with all that binds it.

    Raises:
        Refused: nothing is there, or it is neither a regular file nor a block device.
        EnvironmentMissing: no permission to look.
    """
    try:
        real_path = machine.resolve(path)
        node = machine.node(real_path)
    except PermissionError as error:
        raise no_permission(path, machine) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL byte
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Refused(
            f"no such target: {why}",
            where=ascii_safe(path),
            hint="kvbench creates no target that was named; check the name",
        ) from error
    if node.kind == "file":
        return Identity(
            path=path,
            real_path=real_path,
            kind="file",
            device_number=node.file_system_number,
            inode=node.inode,
            size_bytes=node.size_bytes,
        )
    if node.kind != "block":
        raise _wrong_kind(path, real_path, node)
    return _identify_block(path, real_path, node, machine)


def _identify_block(path: str, real_path: str, node: Node, machine: Machine) -> Identity:
    try:
        device = topology.block(machine, node.number)
        disk = topology.whole_disk(machine, device)
        sectors = int(machine.text(f"{device.folder}/size"))
        return Identity(
            path=path,
            real_path=real_path,
            kind="block",
            device_number=node.number,
            inode=node.inode,
            size_bytes=sectors * SECTOR_BYTES,
            serial=_first(machine, disk.folder, ("serial", "device/serial", "device/vpd_pg80")),
            wwid=_wwid(machine, device, disk),
            diskseq=_first(machine, disk.folder, ("diskseq",)),
            start_sector=_start_sector(machine, device),
        )
    except (OSError, ValueError) as error:
        raise Refused(
            f"this block device ({node.number}) cannot be told from /sys: {error}",
            where=path,
            hint="run where /sys of the machine is visible",
        ) from error


def _wwid(machine: Machine, device: topology.Block, disk: topology.Block) -> str | None:
    """The world-wide name, the namespace of an NVMe drive, and the partition.

    The name of a loop device is that of its file.
    """
    name = _backing_file(machine, disk) or _first(
        machine, disk.folder, ("wwid", "device/wwid", "dm/uuid", "md/uuid")
    )
    nsid = _first(machine, disk.folder, ("nsid",))
    parts = [name, f"nsid {nsid}" if nsid else None]
    if device.is_partition:
        parts.append(f"partition {machine.text(f'{device.folder}/partition').strip()}")
    return ", ".join(part for part in parts if part) or None


def _backing_file(machine: Machine, disk: topology.Block) -> str | None:
    """Name the file that a loop device shows, None for any other device."""
    backing = _first(machine, disk.folder, ("loop/backing_file",))
    if backing is None:
        return None
    try:
        number, inode = machine.node(backing).file_key
    except OSError:
        return f"backing file {backing}"
    return f"backing file {backing} ({number} inode {inode})"


def _start_sector(machine: Machine, device: topology.Block) -> int | None:
    text = machine.text_if_there(f"{device.folder}/start") if device.is_partition else None
    return int(text) if text else None


def _first(machine: Machine, folder: str, names: tuple[str, ...]) -> str | None:
    """Return the first of several files that says something printable."""
    for name in names:
        try:
            text = machine.text_if_there(f"{folder}/{name}")
        except OSError:
            continue  # e.g. a device that answers no such page
        shown = "".join(c for c in text or "" if c.isprintable()).strip()
        if shown:
            return shown
    return None


def _wrong_kind(path: str, real_path: str, node: Node) -> Refused:
    name = PurePosixPath(real_path).name
    hint = "name a regular file or a block device"
    if node.kind == "char" and name.startswith("ng"):
        return Refused(
            "is the generic character node of an NVMe namespace: commands through it pass by "
            "mounts and every other guard",
            where=path,
            hint=f"use the block device /dev/nvme{name.removeprefix('ng')}",
        )
    if node.kind == "char" and name.startswith("nvme"):
        hint = f"that is the controller; use the block device, e.g. /dev/{name}n1"
    return Refused(f"is {_KIND_WORDS[node.kind]}", where=path, hint=hint)


def no_permission(path: str, machine: Machine = MACHINE) -> EnvironmentMissing:
    """Return the error for a target that this user may not read."""
    hint = "run as root, or as a user who may read it (block devices: group disk)"
    if machine.is_root():
        hint = "root is refused too: a container, a security profile or a server forbids it"
    return EnvironmentMissing(
        "no permission to read this target", where=ascii_safe(path), hint=hint
    )


def ascii_safe(path: str) -> str:
    """Return a name with everything that a terminal might obey made visible."""
    return path if path.isprintable() else ascii(path)[1:-1]
