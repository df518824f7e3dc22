"""What speaks against writing to a block device: its bytes are reached in another way too.

A second path to the same drive, a loop device, another machine.  Reads only.
"""

from collections.abc import Iterator

from kvbench.host import topology
from kvbench.host.file_objections import Objection, file_use
from kvbench.host.machine import Machine
from kvbench.host.topology import Block

_SERVED = "/sys/kernel/config/nvmet/subsystems"  # by the kernel's NVMe target


def other_ways(
    machine: Machine, device: Block, relatives: tuple[Block, ...]
) -> Iterator[Objection]:
    """Yield them; ``OSError`` or ``ValueError`` when it cannot be told."""
    yield from _twins(machine, device)
    yield from _loops(machine, device, relatives)
    yield from _exported(machine, relatives)


def _twins(machine: Machine, device: Block) -> Iterator[Objection]:
    """Another path to the same drive, where multipath is not set up: same world-wide name."""
    disk = topology.whole_disk(machine, device)
    wwid = _world_wide_name(machine, disk.folder)
    if not wwid:
        return
    for name in machine.names("/sys/class/block"):
        other = topology.named_if_there(machine, name)  # None: hidden paths have no number
        if other is None or topology.whole_disk(machine, other) == disk:
            continue
        if _world_wide_name(machine, other.folder) == wwid:
            yield Objection(
                text=f"is reached as /dev/{name} too (same world-wide name {wwid})",
                hint="set up multipath, and use its device",
            )


def _world_wide_name(machine: Machine, folder: str) -> str:
    for path in ("wwid", "device/wwid"):
        text = machine.text_if_there(f"{folder}/{path}")
        if text and text.strip():
            return text.strip()
    return ""


def _loops(machine: Machine, device: Block, relatives: tuple[Block, ...]) -> Iterator[Objection]:
    """Loop devices that show the target, and what a loop target shows itself."""
    disk = topology.whole_disk(machine, device)
    own = {relative.number for relative in relatives}
    loops = topology.attached_loops(machine)
    for loop, backing in loops.items():
        if backing.number in own:
            yield Objection(
                text=f"is shown as the loop device /dev/{loop.name} too",
                hint=f"losetup -d /dev/{loop.name}, when nothing uses that device",
            )
    if disk not in loops:
        return
    shown = loops[disk]
    if shown.number is not None:
        yield Objection(
            text="is a loop device over another block device",
            hint="use that device itself",
        )
    for loop, backing in loops.items():
        if loop != disk and backing == shown:
            yield Objection(text=f"its file is shown as /dev/{loop.name} too")
    path = machine.text(f"{disk.folder}/loop/backing_file").rstrip("\n")
    if machine.node(path).file_key != shown.file_key:
        raise ValueError(f"the file behind the loop device is not the one now named {path}")
    yield from file_use(path, machine, ignore_loop=disk.number)


def _exported(machine: Machine, relatives: tuple[Block, ...]) -> Iterator[Objection]:
    """Served to other machines by the kernel, which claims nothing and is no process."""
    numbers = {relative.number for relative in relatives}
    for name in machine.names_if_there(_SERVED):
        for nsid in machine.names_if_there(f"{_SERVED}/{name}/namespaces"):
            folder = f"{_SERVED}/{name}/namespaces/{nsid}"
            path = (machine.text_if_there(f"{folder}/device_path") or "").strip()
            if (machine.text_if_there(f"{folder}/enable") or "0").strip() == "0":
                continue
            node = machine.node(path)
            if node.kind == "block" and node.number in numbers:
                yield Objection(
                    text=f"is served to other machines as NVMe subsystem {name}",
                    hint=f"echo 0 > {folder}/enable, when nobody uses it there",
                )
