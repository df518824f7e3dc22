"""Which drives a target stands on, and what the kernel calls them.  Reads only."""

from kvbench.host import kernel_log, topology
from kvbench.host.machine import Machine
from kvbench.host.model import Identity

DRIVES = ("nvme", "sd")  # how the names of disks begin that can tell of their health


def stands_on(device: str | None, machine: Machine) -> tuple[list[topology.Block], tuple[str, ...]]:
    """Return the disks that a device is on, or is, and every name that the kernel has for them."""
    if device is None:
        return [], ()
    try:
        own = topology.block_named(machine, device)
        numbers = sorted(topology.below(machine, own.number))
        blocks = [own]
        for number in numbers:
            try:
                blocks.append(topology.block(machine, number))
            except OSError:
                continue  # it has gone meanwhile, or is no block device
        disks = {d.name: d for d in (topology.whole_disk(machine, b) for b in blocks)}
    except OSError:
        return [], (device,)
    names = [device, *disks]
    for disk in disks.values():
        names += kernel_log.names_in_path(disk.folder)
    return list(disks.values()), tuple(dict.fromkeys(names))


def only_drive(
    disks: list[topology.Block], device: str | None, identity: Identity
) -> tuple[topology.Block | None, str]:
    """Return the one drive that can tell of its health, or why there is none."""
    drives = [disk for disk in disks if disk.name.startswith(DRIVES)]
    if len(drives) == 1:
        return drives[0], ""
    if drives:
        return None, f"{device} stands on several drives: {', '.join(d.name for d in drives)}"
    if device is None:
        return None, f"no single device is known under {identity.path}"
    lowest = disks[-1].name if disks else device
    where = device if lowest == device else f"{device} on {lowest}"
    return None, f"{where} is not an NVMe, SATA or SAS drive, and tells nothing of its health"
