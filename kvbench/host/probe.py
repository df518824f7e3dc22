"""Read the machine: what a path leads to, and the facts of the host and of a target.

Besides ``machine`` (which opens files) the only module that touches the machine, and in this
room the only one that runs a command: ``blkid`` and ``wipefs``, which read.
"""

import errno
import mmap
import os
import subprocess
from pathlib import PurePosixPath

from msgspec import Struct

from kvbench.errors import EnvironmentMissing, Refused
from kvbench.host import facts, survey, topology
from kvbench.host.machine import READ_FLAGS, Machine, Node, is_gone
from kvbench.host.model import DeviceCounters, Fact, Identity
from kvbench.units import SECTOR_BYTES

MACHINE = Machine()
TOOL_TIMEOUT_S = 20.0
_PAGE_BYTES = 4096
_KIND_WORDS = {
    "directory": "a directory",
    "char": "a character device",
    "fifo": "a pipe",
    "socket": "a socket",
    "other": "neither a file nor a device",
}
_BLKID_NOTHING, _BLKID_AMBIVALENT = 2, 8  # exit codes of blkid -p


class ToolAnswer(Struct, frozen=True, kw_only=True):
    """What the system's own tools recognise on a device; "" and {} when they see nothing."""

    found: str
    properties: dict[str, str]


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
        raise no_permission(path) from error
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
        )
    except (OSError, ValueError) as error:
        raise Refused(
            f"this block device ({node.number}) cannot be told from /sys: {error}",
            where=path,
            hint="run where /sys of the machine is visible",
        ) from error


def _wwid(machine: Machine, device: topology.Block, disk: topology.Block) -> str | None:
    """The world-wide name, and the namespace of an NVMe drive; of a loop device its file."""
    backing = _first(machine, disk.folder, ("loop/backing_file",))
    if backing is not None:
        try:
            number, inode = machine.node(backing).file_key
        except OSError:
            return f"backing file {backing}"
        return f"backing file {backing} ({number} inode {inode})"
    name = _first(machine, disk.folder, ("wwid", "device/wwid", "dm/uuid", "md/uuid"))
    nsid = _first(machine, disk.folder, ("nsid",))
    parts = [name, f"nsid {nsid}" if nsid else None]
    if device.is_partition:
        parts.append(f"partition {machine.text(f'{device.folder}/partition').strip()}")
    return ", ".join(part for part in parts if part) or None


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


def no_permission(path: str) -> EnvironmentMissing:
    """Return the error for a target that this user may not read."""
    return EnvironmentMissing(
        "no permission to read this target",
        where=ascii_safe(path),
        hint="run as root, or as a user who may read it (block devices: group disk)",
    )


def ascii_safe(path: str) -> str:
    """Return a name with everything that a terminal might obey made visible."""
    return path if path.isprintable() else ascii(path)[1:-1]


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
    machine: Machine, *, numbers: frozenset[str] = frozenset(), file: tuple[str, int] | None = None
) -> Openers:
    """Return who else has one of several devices, or a file, open."""
    own = str(os.getpid())
    seen: list[str] = []
    hidden = 0
    for pid in process_ids(machine):
        if pid == own:
            continue
        try:
            found = _has_open(machine, pid, numbers, file)
        except PermissionError:
            hidden += 1
            continue
        if found:
            name = (_of_process(machine, f"/proc/{pid}/comm") or "?").strip()
            seen.append(f"{ascii_safe(name)} (pid {pid})")
    return Openers(seen=tuple(seen), hidden=hidden)


def _has_open(
    machine: Machine, pid: str, numbers: frozenset[str], file: tuple[str, int] | None
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
        if node.kind == "file" and node.file_key == file:
            return True
    return False


def ask_tools(real_path: str, machine: Machine = MACHINE) -> ToolAnswer:
    """Return what ``blkid -p`` and ``wipefs`` (listing only) recognise on a device.

    Raises:
        OSError: blkid is not installed, or did not answer.
    """
    blkid = machine.tool("blkid")
    if blkid is None:
        raise FileNotFoundError("blkid is not installed (apt install util-linux)")
    target = str(machine.at(real_path))
    probed = _run([str(blkid), "-p", "-o", "export", target])
    properties = facts.parse_export(probed.stdout)
    found = ""
    if probed.returncode == _BLKID_AMBIVALENT:
        found = "several signatures that contradict each other"
    elif probed.returncode == 0:
        found = properties.get("TYPE") or properties.get("PTTYPE") or ""
    elif probed.returncode != _BLKID_NOTHING:
        raise OSError(f"blkid ended with {probed.returncode}: {probed.stderr.strip()}")
    wipefs = machine.tool("wipefs")
    if not found and wipefs is not None:
        listed = _run([str(wipefs), "--no-act", "--parsable", target])
        if listed.returncode != 0:
            raise OSError(f"wipefs ended with {listed.returncode}: {listed.stderr.strip()}")
        rows = [row for row in listed.stdout.splitlines() if row and not row.startswith("#")]
        found = rows[0].rsplit(",", 1)[-1] if rows else ""
    return ToolAnswer(found=found, properties=properties)


def _run(argv: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TOOL_TIMEOUT_S,
            check=False,
            env={"LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{argv[0]} did not answer in {TOOL_TIMEOUT_S:g} s") from error


def logical_block_bytes(identity: Identity, machine: Machine = MACHINE) -> int:
    """Return the smallest I/O that the device under a target takes; 512 when nobody knows."""
    name = device_under(identity, machine)
    if name is None:
        return SECTOR_BYTES
    disk = topology.whole_disk(machine, topology.block_named(machine, name))
    text = machine.text_if_there(f"{disk.folder}/queue/logical_block_size")
    return int(text) if text else SECTOR_BYTES


def supports_direct(path: str, machine: Machine = MACHINE) -> tuple[bool, str]:
    """Return whether O_DIRECT I/O on ``path`` works and reaches a device, and the reason.

    A file system in memory is refused even where the kernel accepts the flag: there is no
    device behind it.  Everywhere else one aligned block is really read.
    """
    try:
        real_path = machine.resolve(path)
        node = machine.node(real_path)
        if node.kind != "block":
            memory = _in_memory(real_path, machine)
            if memory:
                return False, memory
        descriptor = os.open(machine.at(real_path), READ_FLAGS | os.O_DIRECT)
    except OSError as error:
        return False, f"opening with O_DIRECT fails: {error.strerror}"
    try:
        with mmap.mmap(-1, _PAGE_BYTES) as page:  # page-aligned, as O_DIRECT wants it
            os.preadv(descriptor, [page], 0)
    except OSError as error:
        return False, f"an aligned O_DIRECT read fails: {error.strerror}"
    finally:
        os.close(descriptor)
    return True, "an aligned O_DIRECT read works"


def _in_memory(real_path: str, machine: Machine) -> str:
    """Return why a file lies in memory, "" when it does not (or nobody can tell)."""
    seen = mounts(machine)
    mount = facts.mount_of(real_path, seen)
    if mount is not None and mount.file_system == "overlay":
        uppers = [o for o in mount.super_options if o.startswith("upperdir=")]
        below = facts.mount_of(uppers[0].removeprefix("upperdir="), seen) if uppers else None
        if below is not None and below.in_memory:
            return f"it lies on an overlay over {below.file_system}, which is memory"
    elif mount is not None and mount.in_memory:
        return f"it lies on {mount.file_system}, which is memory, not a device"
    return ""


def device_under(identity: Identity, machine: Machine = MACHINE) -> str | None:
    """Return the kernel name of the one block device whose counters see the target's I/O.

    A partition has counters of its own, which see less of other programs than the disk's.
    None when no single device is known: tmpfs, overlay, network, several devices.
    """
    try:
        if identity.kind == "block":
            return topology.block(machine, identity.device_number).name
        mount = facts.mount_of(identity.real_path, mounts(machine))
        if mount is None:
            return None
        if not mount.number.startswith("0:"):
            return topology.block(machine, mount.number).name
        if mount.file_system == "btrfs":
            return _only_btrfs_device(machine, mount)
    except (OSError, ValueError):
        return None
    return None


def _only_btrfs_device(machine: Machine, mount: facts.Mount) -> str | None:
    name = topology.block(machine, machine.node(mount.source).number).name
    for uuid in machine.names_if_there("/sys/fs/btrfs"):
        members = machine.names_if_there(f"/sys/fs/btrfs/{uuid}/devices")
        if name in members:
            return name if len(members) == 1 else None
    return None


def device_counters(kernel_name: str, machine: Machine = MACHINE) -> DeviceCounters | None:
    """Return the counters of a block device, None when it has none or they stand still.

    An NVMe drive with native multipath counts on its hidden paths, which are added up.
    """
    try:
        device = topology.block_named(machine, kernel_name)
        disk = topology.whole_disk(machine, device)
        if (machine.text_if_there(f"{disk.folder}/queue/iostats") or "1").strip() == "0":
            return None
        folders = [device.folder]
        controller, separator, namespace = kernel_name.removeprefix("nvme").partition("n")
        if kernel_name.startswith("nvme") and separator and not device.is_partition:
            paths = [
                name
                for name in machine.names("/sys/class/block")
                if name.startswith(f"nvme{controller}c") and name.endswith(f"n{namespace}")
            ]
            folders = [machine.resolve(f"/sys/class/block/{name}") for name in paths] or folders
        stats = [facts.parse_stat(machine.text(f"{folder}/stat")) for folder in folders]
    except (OSError, ValueError):
        return None
    return facts.add_counters(stats)


def host_facts(machine: Machine = MACHINE) -> tuple[Fact, ...]:
    """Return what of the host decides or disturbs a measurement."""
    return survey.host_facts(machine)


def target_facts(identity: Identity, machine: Machine = MACHINE) -> tuple[Fact, ...]:
    """Return what is known of the target, its file system and the device under it."""
    mount = None
    if identity.kind == "file":
        mount = facts.mount_of(identity.real_path, mounts(machine))
    return survey.target_facts(identity, mount, device_under(identity, machine), machine)
