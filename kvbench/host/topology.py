"""sysfs -> which block devices stand on, beside and above each other.  Reads only.

Devices are named by their number "major:minor", which no namespace can change.  A name in /sys
has "!" where the node's name in /dev has "/".
"""

from pathlib import PurePosixPath

from msgspec import Struct

from kvbench.host.facts import parse_swaps
from kvbench.host.machine import LoopBacking, Machine, is_gone


class Block(Struct, frozen=True, kw_only=True):
    """One block device as sysfs shows it."""

    name: str
    number: str
    folder: str  # its resolved folder in sysfs
    is_partition: bool


def block(machine: Machine, number: str) -> Block:
    """Return the block device with a number; ``OSError`` when sysfs does not know it."""
    folder = machine.resolve(f"/sys/dev/block/{number}")
    return _block(machine, folder)


def block_named(machine: Machine, name: str) -> Block:
    """Return the block device with a kernel name."""
    return _block(machine, machine.resolve(f"/sys/class/block/{name}"))


def _block(machine: Machine, folder: str) -> Block:
    return Block(
        name=PurePosixPath(folder).name,
        number=machine.text(f"{folder}/dev").strip(),
        folder=folder,
        is_partition=machine.text_if_there(f"{folder}/partition") is not None,
    )


def whole_disk(machine: Machine, device: Block) -> Block:
    """Return the disk that a partition is on; a disk itself."""
    if not device.is_partition:
        return device
    return _block(machine, str(PurePosixPath(device.folder).parent))


def partitions(machine: Machine, disk: Block) -> tuple[Block, ...]:
    """Return the partitions that the kernel knows on a disk."""
    return tuple(
        _block(machine, f"{disk.folder}/{name}")
        for name in machine.names(disk.folder)
        if machine.text_if_there(f"{disk.folder}/{name}/partition") is not None
    )


def family(machine: Machine, device: Block) -> tuple[Block, ...]:
    """Return the devices that share bytes with this one: it, its disk or its partitions."""
    if device.is_partition:
        return device, whole_disk(machine, device)
    return device, *partitions(machine, device)


def pass_through_numbers(machine: Machine, device: Block) -> frozenset[str]:
    """Return the character devices through which commands reach a disk past its block device.

    /dev/ng0n1 stands in sysfs beside nvme0n1; /dev/sg0 below the disk's SCSI device.
    """
    folder = PurePosixPath(whole_disk(machine, device).folder)
    paths = [folder.with_name(f"ng{folder.name.removeprefix('nvme')}")]
    generic = folder / "device/scsi_generic"
    paths += [generic / name for name in machine.names_if_there(str(generic))]
    texts = [machine.text_if_there(f"{path}/dev") for path in paths]
    return frozenset(text.strip() for text in texts if text)


def holders(machine: Machine, device: Block) -> tuple[str, ...]:
    """Return the names of what is built on a device: dm, md, bcache."""
    return tuple(machine.names(f"{device.folder}/holders"))


def below(machine: Machine, number: str) -> frozenset[str]:
    """Return the numbers of everything that a device stands on: slaves, loop backings, disks."""
    found: set[str] = set()
    todo = [number]
    while todo:
        try:
            device = block(machine, todo.pop())
        except OSError as error:
            if is_gone(error):
                continue  # a number such as 0:42 that no block device has
            raise
        lower = [block_named(machine, n) for n in machine.names_if_there(f"{device.folder}/slaves")]
        numbers = {each.number for each in lower}
        if device.is_partition:
            numbers.add(whole_disk(machine, device).number)
        if is_attached_loop(machine, device):
            backing = machine.loop_backing(device.name)
            numbers.add(backing.number or backing.file_key[0])
        todo += numbers - found
        found |= numbers
    return frozenset(found)


def is_attached_loop(machine: Machine, device: Block) -> bool:
    """Return whether a device is a loop device that shows something."""
    return machine.text_if_there(f"{device.folder}/loop/backing_file") is not None


def attached_loops(machine: Machine) -> dict[Block, LoopBacking]:
    """Return every loop device that shows something, and what.

    Raises:
        OSError: a loop device shows something that cannot be told.
    """
    found: dict[Block, LoopBacking] = {}
    for name in machine.names("/sys/class/block"):
        if not name.startswith("loop"):
            continue
        device = named_if_there(machine, name)
        if device is None or not is_attached_loop(machine, device):
            continue
        try:
            found[device] = machine.loop_backing(name)
        except OSError:
            if is_attached_loop(machine, device):
                raise
            # else it was detached in this moment
    return found


def named_if_there(machine: Machine, name: str) -> Block | None:
    """Return the block device with a kernel name, None when it has gone meanwhile."""
    try:
        return block_named(machine, name)
    except OSError as error:
        if is_gone(error):
            return None
        raise


def swap_numbers_and_files(machine: Machine) -> tuple[dict[str, str], dict[tuple[str, int], str]]:
    """Return the devices (by number) and files (by key) that the kernel swaps to.

    Raises:
        OSError: a swap's path leads nowhere from here, so nobody can tell what it is.
    """
    numbers: dict[str, str] = {}
    files: dict[tuple[str, int], str] = {}
    for swap in parse_swaps(machine.text("/proc/swaps")):
        try:
            node = machine.node(swap.path)
        except OSError as error:
            if not (is_gone(error) and swap.path.startswith("/dev/")):
                raise
            name = swap.path.removeprefix("/dev/").replace("/", "!")  # no such node in this /dev
            numbers[block_named(machine, name).number] = swap.path
            continue
        if node.kind == "block":
            numbers[node.number] = swap.path
        else:
            files[node.file_key] = swap.path
    return numbers, files
