"""Read the machine: what a target is, what it stands on, what it counts, and its facts.

All files are opened through ``machine``, for reading.  In this room the only module that runs a
command: ``blkid``, ``wipefs``, ``nvme`` and ``smartctl``, which only look.
"""

import contextlib
import mmap
import os
import signal
import subprocess

from msgspec import Struct

from kvbench.host import facts, survey, tool_facts, topology
from kvbench.host.identity import ascii_safe, identify
from kvbench.host.machine import MACHINE, READ_FLAGS, Machine
from kvbench.host.model import DeviceCounters, EraseAbilities, Fact, Identity, WriteHistory
from kvbench.host.nvme_json import count_namespaces, format_hits_all
from kvbench.host.ocp import parse_dump
from kvbench.host.processes import mounts
from kvbench.host.smart_json import SmartLog, parse_smart_log, parse_smartctl
from kvbench.units import MIB, SECTOR_BYTES

__all__ = [
    "MACHINE",
    "DriveTools",
    "Machine",
    "ToolAnswer",
    "ask_drive",
    "ask_smart",
    "ask_tools",
    "device_counters",
    "device_under",
    "erase_abilities",
    "host_facts",
    "huge_pages_free",
    "identify",
    "indirection_unit_bytes",
    "logical_block_bytes",
    "mounts",
    "supports_direct",
    "target_facts",
    "why_not_contiguous",
    "write_history",
]

TOOL_TIMEOUT_S = 20.0
OPTIONAL_TOOL_TIMEOUT_S = 5.0  # what these tell is worth no longer wait
KILL_TIMEOUT_S = 1.0
PAGE_BYTES = 4096
_GLIBC_MIN = (2, 35)  # the first that can ask for transparent huge pages
_BLKID_NOTHING, _BLKID_AMBIVALENT = 2, 8  # exit codes of blkid -p


class ToolAnswer(Struct, frozen=True, kw_only=True):
    """What the system's own tools recognise on a device; "" and {} when they see nothing."""

    found: str
    properties: dict[str, str]


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


class DriveTools:
    """nvme-cli and smartctl, asked about one device; once one hung none is asked again."""

    def __init__(self, disk: topology.Block, machine: Machine) -> None:
        self._machine = machine
        self._path = str(machine.at(f"/dev/{disk.name.replace('!', '/')}"))
        self._hung = ""

    def answer(self, tool: str, *arguments: str) -> str:
        """Return the JSON that a tool prints; ``OSError`` with what it said instead."""
        done = self._ask(tool, *arguments)
        if done.stdout.lstrip().startswith("{"):
            return done.stdout  # smartctl's status is a bit mask, and its data may be good
        raise OSError(_said(tool, done))

    def log_page(self, number: int, length_bytes: int) -> bytes:
        """Return a log page of an NVMe drive.

        Raises:
            OSError: the drive has no such page, as most have few, or no tool had an answer.
            ValueError: what nvme-cli printed is no page.
        """
        # The readable form: it can be told from an error, and nvme-cli's own reading cannot fail.
        done = self._ask("nvme", "get-log", f"--log-id={number}", f"--log-len={length_bytes}")
        if done.returncode != 0:
            raise OSError(_said("nvme", done))
        return parse_dump(done.stdout)

    def _ask(self, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = self._machine.tool(tool)
        if program is None:
            package = {"nvme": "nvme-cli", "smartctl": "smartmontools"}[tool]
            raise FileNotFoundError(f"there is no {package}")
        if self._hung:
            raise TimeoutError(self._hung)
        try:
            return _run([str(program), *arguments, self._path], OPTIONAL_TOOL_TIMEOUT_S)
        except TimeoutError as error:
            self._hung = str(error)
            raise


def _said(tool: str, done: subprocess.CompletedProcess[str]) -> str:
    """Return in a sentence what a tool said instead of an answer."""
    said = next((line for line in (done.stderr + done.stdout).splitlines() if line.strip()), "")
    return f"{tool} ended with {done.returncode}: {ascii_safe(said.strip()[:100])}"


def ask_drive(disk: topology.Block, machine: Machine = MACHINE) -> tuple[Fact, ...]:
    """Return what nvme-cli or smartctl tell of a disk; what they do not tell has a reason.

    Other devices than NVMe and SCSI or SATA disks are not asked.
    """
    answer = DriveTools(disk, machine).answer
    if disk.name.startswith("nvme"):
        return tool_facts.nvme_facts(
            lambda: answer("nvme", "id-ctrl", "-o", "json"),
            lambda: answer("nvme", "id-ns", "-o", "json"),
            lambda: answer("nvme", "fw-log", "-o", "json"),
        )
    if disk.name.startswith("sd"):
        return tool_facts.smartctl_facts(lambda: answer("smartctl", "-j", "-i"))
    return ()


def ask_smart(
    disk: topology.Block, machine: Machine = MACHINE, tools: DriveTools | None = None
) -> SmartLog:
    """Return the health log of an NVMe, SCSI or SATA disk: nvme-cli's, else smartctl's.

    Args:
        disk: a whole disk.
        machine: where it is.
        tools: that were asked about it before, and may have hung.

    Raises:
        OSError: this kind of device is not asked, or no tool is there, or none had an answer.
    """
    tools = tools or DriveTools(disk, machine)
    said = []
    if disk.name.startswith("nvme"):
        try:
            return parse_smart_log(tools.answer("nvme", "smart-log", "-o", "json"))
        except (OSError, ValueError) as error:
            said.append(str(error))
    if disk.name.startswith(("nvme", "sd")):
        try:
            return parse_smartctl(tools.answer("smartctl", "-j", "-a"))
        except (OSError, ValueError) as error:
            said.append(str(error))
    raise OSError("; ".join(said) or "this kind of device keeps no health log")


def _run(argv: list[str], timeout_s: float = TOOL_TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Run a tool that only looks; a tool that hangs in the kernel is left behind, not waited for.

    Raises:
        OSError: it cannot be started, or did not answer in time.
    """
    tool = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={"LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        start_new_session=True,
    )
    try:
        out, err = tool.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{argv[0]} did not answer in {timeout_s:g} s") from error
    finally:
        if tool.poll() is None:  # too slow, or Ctrl-C: it is not left to go on alone
            with contextlib.suppress(ProcessLookupError):
                os.killpg(tool.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                tool.communicate(timeout=KILL_TIMEOUT_S)
    return subprocess.CompletedProcess(argv, tool.returncode, out, err)


def logical_block_bytes(identity: Identity, machine: Machine = MACHINE) -> int:
    """Return the smallest I/O that the device under a target takes; 512 when nobody knows."""
    name = device_under(identity, machine)
    if name is None:
        return SECTOR_BYTES
    disk = topology.whole_disk(machine, topology.block_named(machine, name))
    text = machine.text_if_there(f"{disk.folder}/queue/logical_block_size")
    return int(text) if text else SECTOR_BYTES


def indirection_unit_bytes(identity: Identity, machine: Machine = MACHINE) -> tuple[int, str]:
    """Return the unit in which the device under a target says that it maps, and who says so.

    A drive tells its preferred write granularity, which the kernel shows as the least I/O without
    a read-modify-write; at least 4 KiB, as no current drive maps less.
    """
    name = device_under(identity, machine)
    told = [0]
    if name is not None:
        disk = topology.whole_disk(machine, topology.block_named(machine, name))
        for attribute in ("physical_block_size", "minimum_io_size"):
            text = (machine.text_if_there(f"{disk.folder}/queue/{attribute}") or "").strip()
            told.append(int(text) if text.isdigit() else 0)
    unit = max(told)
    if PAGE_BYTES <= unit <= MIB and unit & (unit - 1) == 0:
        return unit, "as the device says (minimum_io_size)"
    return PAGE_BYTES, "the device does not tell its own, 4 KiB is usual"


def erase_abilities(identity: Identity, machine: Machine = MACHINE) -> EraseAbilities:
    """Return what a target can be erased with; asks nvme-cli of a whole NVMe namespace only."""
    if identity.kind != "block":
        return EraseAbilities()
    device = topology.block(machine, identity.device_number)
    disk = topology.whole_disk(machine, device)
    text = (machine.text_if_there(f"{disk.folder}/queue/discard_max_bytes") or "").strip()
    abilities = EraseAbilities(discards=text.isdigit() and int(text) > 0)
    if not disk.name.startswith("nvme") or device.is_partition:
        return abilities
    tools = DriveTools(disk, machine)
    tool = machine.tool("nvme")
    namespaces = hits_all = None
    with contextlib.suppress(OSError, ValueError):
        said = tools.answer("nvme", "list-ns", "--all", "-o", "json")
        namespaces = count_namespaces(said)
    with contextlib.suppress(OSError, ValueError):
        hits_all = format_hits_all(tools.answer("nvme", "id-ctrl", "-o", "json"))
    return EraseAbilities(
        nvme_tool=str(tool or ""),
        whole_namespace=True,
        namespaces=namespaces,
        format_hits_all=hits_all,
        discards=abilities.discards,
    )


def huge_pages_free(machine: Machine = MACHINE) -> int:
    """Return the reserved huge pages of 2 MiB that nobody uses; 0 when that cannot be known."""
    known = {fact.name: fact.value for fact in survey.host_facts(machine)}
    return int(known.get("huge_pages_free") or 0)


def why_not_contiguous(machine: Machine = MACHINE) -> str:
    """Return why buffers cannot be on transparent huge pages, "" when they can."""
    known = {fact.name: fact.value for fact in survey.host_facts(machine)}
    if known.get("transparent_huge_pages") == "never":
        return (
            "transparent huge pages are switched off "
            "(echo madvise > /sys/kernel/mm/transparent_hugepage/enabled)"
        )
    return glibc_problem(_glibc())


def glibc_problem(name: str) -> str:
    """Return why a C library ("glibc 2.36") cannot ask for huge pages, "" when it can.  Pure."""
    library, _, version = name.partition(" ")
    numbers = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    if library == "glibc" and len(numbers) == 2 and tuple(numbers) >= _GLIBC_MIN:
        return ""
    wanted = ".".join(map(str, _GLIBC_MIN))
    return f"they need glibc {wanted} or later, here is {name or 'another C library'}"


def _glibc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        return ""


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
        with mmap.mmap(-1, PAGE_BYTES) as page:  # page-aligned, as O_DIRECT wants it
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


def write_history(identity: Identity, machine: Machine = MACHINE) -> WriteHistory:
    """Return what the device under a target has counted so far."""
    name = device_under(identity, machine)
    smart, reason = None, "no single device is known under it"
    counted = device_counters(name, machine) if name else None
    whole = None
    if name is not None:
        try:
            disk = topology.whole_disk(machine, topology.block_named(machine, name))
            if disk.name != name:
                whole = device_counters(disk.name, machine)
            smart, reason = ask_smart(disk, machine), ""
        except OSError as error:
            reason = str(error)
    return WriteHistory(
        smart_written_bytes=smart.written_bytes if smart else None,
        power_cycles=smart.power_cycles if smart else None,
        write_sectors=counted.write_sectors if counted else None,
        discard_sectors=counted.discard_sectors if counted else None,
        boot_id=(machine.text_if_there("/proc/sys/kernel/random/boot_id") or "").strip() or None,
        diskseq=identity.diskseq,
        reason=reason,
        disk_write_sectors=whole.write_sectors if whole else None,
        disk_discard_sectors=whole.discard_sectors if whole else None,
    )


def host_facts(machine: Machine = MACHINE) -> tuple[Fact, ...]:
    """Return what of the host decides or disturbs a measurement."""
    return survey.host_facts(machine)


def target_facts(identity: Identity, machine: Machine = MACHINE) -> tuple[Fact, ...]:
    """Return what is known of the target, its file system and the device under it."""
    mount = None
    if identity.kind == "file":
        mount = facts.mount_of(identity.real_path, mounts(machine))
    name = device_under(identity, machine)
    found = survey.target_facts(identity, mount, name, machine)
    if name is None:
        return found
    try:
        disk = topology.whole_disk(machine, topology.block_named(machine, name))
    except OSError:
        return found  # it has gone; the facts say so
    return tool_facts.complete(found, ask_drive(disk, machine))
