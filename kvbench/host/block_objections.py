"""What speaks against writing to a block device, worst first.  Reads only.

Two kinds of witness, and either suffices: what /proc, /sys and the bytes on the device tell, and
the kernel's own claim (an O_EXCL open fails with EBUSY while a mount, swap, md, dm, bcache or
ZFS of any namespace has the device).  The first gives the reason, the second misses nothing.
"""

import re
from collections.abc import Iterator

from kvbench.host import probe, processes, topology
from kvbench.host.facts import Mount, mount_of, parse_mountinfo
from kvbench.host.file_objections import Objection, memory_or_kernel
from kvbench.host.machine import Machine, is_gone
from kvbench.host.model import Identity
from kvbench.host.other_ways import other_ways
from kvbench.host.signatures import find_signatures
from kvbench.host.topology import Block
from kvbench.units import KIB

_FIRMWARE = re.compile(r"mtdblock|mmcblk\d+(boot|rpmb)")
_SYSTEM_POINTS = ("/", "/boot", "/boot/efi", "/boot/firmware", "/efi", "/usr")
_BOOT_PARTITION_TYPES = {  # GPT and MBR types that firmware reads without a file system
    "21686148-6449-6e6f-744e-656564454649": "a BIOS boot partition",
    "c12a7328-f81f-11d2-ba4b-00a0c93ec93b": "an EFI system partition",
    "9e1a2d38-c612-4316-aa26-8b49521e5a8b": "a PReP boot partition",
    "0xef": "an EFI system partition",
    "0x41": "a PReP boot partition",
}
_BTRFS = "btrfs "  # before the UUID, in the place of a mount point: a mount names one member only
_CHUNK_BYTES = 64 * KIB
_LOOKS_MORE, _LOOK_PAUSE_S = 3, 0.5  # udev opens a device for a moment after every change


def block_objections(
    identity: Identity, machine: Machine, *, held: bool = False
) -> Iterator[Objection]:
    """Yield what speaks against writing; ``OSError`` or ``ValueError`` when it cannot be told.

    With ``held`` the kernel's claim is this process's own, so nobody else can have one.
    """
    device = topology.block(machine, identity.device_number)
    relatives = topology.family(machine, device)
    mounts = processes.mounts_everywhere(machine)
    yield from _itself(machine, device)
    yield from _mounted(machine, relatives, mounts)
    yield from _swapped(machine, relatives)
    yield from _held(machine, relatives)
    yield from other_ways(machine, device, relatives)
    yield from _system_disk(machine, device)
    yield from _contents(machine, identity, device)
    yield from _opened(machine, relatives)
    if not held and machine.is_claimed(identity.real_path):
        yield Objection(
            text="the kernel or a program has it for itself alone (O_EXCL: EBUSY)",
            hint="a mount in a container, ZFS, or a program; see lsblk and fuser -v",
        )


def _itself(machine: Machine, device: Block) -> Iterator[Objection]:
    if machine.text(f"{device.folder}/ro").strip() != "0":
        yield Objection(text="is read-only")
    if _FIRMWARE.match(device.name):
        yield Objection(text="holds firmware, this machine might not start again")


def _mounted(
    machine: Machine, relatives: tuple[Block, ...], mounts: tuple[Mount, ...]
) -> Iterator[Objection]:
    """Mounted itself, a part of it, what it is a part of, what stands on it, what it stands on."""
    mounted: dict[str, str] = {}
    for mount in mounts:
        for number in _numbers_of(machine, mount):
            mounted.setdefault(number, mount.point)
    for name, uuid in _btrfs_members(machine):
        mounted.setdefault(topology.block_named(machine, name).number, f"{_BTRFS}{uuid}")
    for relative in relatives:
        if relative.number in mounted:
            yield _mount_objection(relative, relatives[0], mounted[relative.number])
    own = {relative.number for relative in relatives}
    for number, point in mounted.items():
        if relatives[0].number in topology.below(machine, number):
            yield Objection(
                text=f"is under the file system mounted at {point}", hint=f"umount {point} first"
            )
    for number in topology.below(machine, relatives[0].number) - own:
        if number in mounted and not relatives[0].is_partition and not _loop(relatives[0]):
            yield Objection(text=f"stands on a device that is mounted at {mounted[number]}")


def _mount_objection(relative: Block, target: Block, point: str) -> Objection:
    if point.startswith(_BTRFS):
        return Objection(
            text=f"{relative.name} is a member of the {point}, which is mounted",
            hint="umount that file system first, if that is what you mean",
        )
    text = f"is mounted at {point}"
    if relative != target:
        part = "partition" if relative.is_partition else "whole disk"
        text = f"its {part} {relative.name} is mounted at {point}"
    return Objection(text=text, hint=f"umount {point} first, if that is what you mean")


def _numbers_of(machine: Machine, mount: Mount) -> Iterator[str]:
    """Yield the numbers of the devices that a mount names."""
    if not mount.number.startswith("0:"):
        yield mount.number
    if mount.source.startswith("/"):  # btrfs and bcachefs have a number that is no device's
        for source in mount.source.split(":"):
            try:
                node = machine.node(source)
            except OSError as error:
                if is_gone(error):
                    continue
                raise
            if node.kind == "block":
                yield node.number


def _btrfs_members(machine: Machine) -> Iterator[tuple[str, str]]:
    for uuid in machine.names_if_there("/sys/fs/btrfs"):
        for name in machine.names_if_there(f"/sys/fs/btrfs/{uuid}/devices"):
            yield name, uuid


def _loop(device: Block) -> bool:
    return device.name.startswith("loop")


def _swapped(machine: Machine, relatives: tuple[Block, ...]) -> Iterator[Objection]:
    numbers, _ = topology.swap_numbers_and_files(machine)
    for relative in relatives:
        if relative.number in numbers:
            yield Objection(
                text=f"{relative.name} is swap in use",
                hint=f"swapoff {numbers[relative.number]}, if you can do without",
            )
    for number, path in numbers.items():
        if relatives[0].number in topology.below(machine, number):
            yield Objection(text=f"is under the swap device {path}")


def _held(machine: Machine, relatives: tuple[Block, ...]) -> Iterator[Objection]:
    for relative in relatives:
        names = topology.holders(machine, relative)
        if names:
            kind = _kind_of_holder(machine, names[0])
            yield Objection(
                text=f"{relative.name} is part of {kind} {names[0]}",
                hint=f"see lsblk; use /dev/{names[0]} itself, or take it apart first",
            )


def _kind_of_holder(machine: Machine, name: str) -> str:
    if name.startswith("dm-"):
        uuid = (machine.text_if_there(f"/sys/class/block/{name}/dm/uuid") or "").strip()
        kinds = {"LVM-": "the LVM volume", "CRYPT-": "the encrypted volume", "mpath-": "multipath"}
        return next((kinds[k] for k in kinds if uuid.startswith(k)), "the device-mapper device")
    kinds = {"md": "the RAID array", "bcache": "the bcache device"}
    return next((kinds[k] for k in kinds if name.startswith(k)), "the device")


def _system_disk(machine: Machine, device: Block) -> Iterator[Objection]:
    """The disks that this machine starts from, with all their partitions.

    A disk that is claimed or signed is refused anyway.  What is left to protect are partitions
    without either, beside the system's: firmware and boot loaders keep code in such.
    """
    disk = topology.whole_disk(machine, device).number
    mounts = parse_mountinfo(machine.text("/proc/1/mountinfo"))  # containers have a / of their own
    if mount_of("/", mounts) is None:
        raise ValueError("no mount of / is seen")
    unknown = ""
    for point in _SYSTEM_POINTS:
        for mount in (each for each in mounts if each.point == point):
            numbers = set(_numbers_of(machine, mount))
            if not numbers and not memory_or_kernel(mount):
                unknown = f"{point} is on {mount.file_system}"
            for number in numbers:
                if disk in topology.below(machine, number) | {number}:
                    yield Objection(
                        text=f"is on the disk that this machine runs from ({point})",
                        hint="use another disk, or a file",
                    )
    if unknown and device.is_partition:
        raise ValueError(f"which disk this machine runs from is not known ({unknown})")


def _contents(machine: Machine, identity: Identity, device: Block) -> Iterator[Objection]:
    """Signatures: what this module's own list knows, then what blkid and wipefs know."""
    path = identity.real_path
    hint = f"if nothing on it is needed, remove its marks yourself: wipefs -a {path}"
    if not device.is_partition:
        for part in topology.partitions(machine, device):
            yield Objection(text=f"has partitions ({part.name})", hint=hint)
    chunks: dict[int, bytes] = {}

    def read(offset_bytes: int, length_bytes: int) -> bytes:
        got = b""
        first = offset_bytes // _CHUNK_BYTES
        for number in range(first, (offset_bytes + length_bytes - 1) // _CHUNK_BYTES + 1):
            if number not in chunks:
                chunks[number] = machine.bytes_at(path, number * _CHUNK_BYTES, _CHUNK_BYTES)
            got += chunks[number]
        start = offset_bytes - first * _CHUNK_BYTES
        return got[start : start + length_bytes]

    for signature in find_signatures(read, identity.size_bytes):
        yield Objection(
            text=f"holds {signature.name} (at byte {signature.offset_bytes})", hint=hint
        )
    answer = probe.ask_tools(path, machine)
    if answer.found:
        yield Objection(text=f"holds {answer.found}", hint=hint)
    kind = _BOOT_PARTITION_TYPES.get(answer.properties.get("PART_ENTRY_TYPE", "").lower())
    if kind is not None:
        yield Objection(text=f"is {kind}")


def _opened(machine: Machine, relatives: tuple[Block, ...]) -> Iterator[Objection]:
    """Programs that have the device open without a claim: a virtual machine, a data base.

    Root inside a container may not look at every process; there the kernel's claim must do.
    """
    numbers = frozenset(relative.number for relative in relatives)
    characters = topology.pass_through_numbers(machine, relatives[0])
    found = processes.openers(machine, numbers=numbers, characters=characters)
    for _ in range(_LOOKS_MORE):
        if not found.seen:
            break
        machine.pause(_LOOK_PAUSE_S)
        found = processes.openers(machine, numbers=numbers, characters=characters)
    if found.seen:
        yield Objection(text=f"is open in {', '.join(found.seen)}", hint="end that program first")
    if found.hidden and not machine.is_root():
        raise PermissionError("which programs have it open is for root to see")
