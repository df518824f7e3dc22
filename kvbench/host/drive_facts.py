"""sysfs -> what a drive is and how the kernel drives it.  Reads only.

Most of it only NVMe drives tell.  What sysfs does not tell is asked of nvme-cli and smartctl:
see ``tool_facts``.
"""

import re
from collections.abc import Callable

from kvbench.host.fact_reading import first_text, read_fact
from kvbench.host.machine import Machine
from kvbench.host.model import Fact
from kvbench.host.topology import Block

_CONTROLLER = re.compile(r"nvme\d+")
_LANES_MAX = 32
_NOT_NVME = "not an NVMe drive"


def drive_facts(disk: Block, machine: Machine) -> tuple[Fact, ...]:
    """Return the facts of a whole disk."""
    controller = controller_folder(disk, machine)

    def of_disk(*paths: str) -> Callable[[], str]:
        return lambda: first_text(machine, *(f"{disk.folder}/{path}" for path in paths))

    def of_controller(path: str) -> str:
        if controller is None:
            raise ValueError(
                "its NVMe controller is not one" if disk.name.startswith("nvme") else _NOT_NVME
            )
        return first_text(machine, f"{controller}/{path}")

    return (
        read_fact("device_nsid", of_disk("nsid")),
        read_fact("device_wwid", of_disk("wwid", "device/wwid")),
        read_fact("device_eui", of_disk("eui")),
        read_fact("device_nguid", of_disk("nguid")),
        read_fact("device_metadata_bytes", of_disk("metadata_bytes")),
        read_fact("device_used_bytes", lambda: _used_bytes(machine, disk.folder)),
        read_fact("device_numa_node", lambda: _numa_node(machine, controller or disk.folder)),
        read_fact("device_queues", lambda: str(int(of_controller("queue_count")) - 1)),
        read_fact("device_poll_queues", lambda: _poll_queues(machine, disk)),
        read_fact("device_io_poll", of_disk("queue/io_poll")),
        read_fact("device_wbt_us", of_disk("queue/wbt_lat_usec")),
        read_fact("device_hmb", lambda: _switch(of_controller("hmb"))),
        read_fact(
            "device_apst_latency_us",
            lambda: of_controller("power/pm_qos_latency_tolerance_us"),
        ),
        read_fact("pcie_link", lambda: _link_now(machine, controller or disk.folder)),
        read_fact("pcie_link_best", lambda: _link(machine, controller or disk.folder)[1]),
    )


def controller_folder(disk: Block, machine: Machine) -> str | None:
    """Return the sysfs folder of an NVMe disk's only controller, None where there is no one.

    With native multipath a disk hangs on its subsystem, which names the controllers.  The number
    in a disk's name is the subsystem's: the controller may have another.
    """
    if not disk.name.startswith("nvme"):
        return None
    try:
        folder = machine.resolve(f"{disk.folder}/device")
        if machine.text_if_there(f"{folder}/queue_count") is not None:
            return folder
        found = [name for name in machine.names(folder) if _CONTROLLER.fullmatch(name)]
        return machine.resolve(f"{folder}/{found[0]}") if len(found) == 1 else None
    except OSError:
        return None


def _used_bytes(machine: Machine, folder: str) -> str:
    used = int(first_text(machine, f"{folder}/nuse"))
    return str(used * int(machine.text(f"{folder}/queue/logical_block_size")))


def _numa_node(machine: Machine, folder: str) -> str:
    node = first_text(machine, f"{folder}/numa_node", f"{folder}/device/numa_node")
    if int(node) < 0:
        raise ValueError("the kernel counts it to no NUMA node")
    return node


def _poll_queues(machine: Machine, disk: Block) -> str:
    if not disk.name.startswith("nvme"):
        raise ValueError(_NOT_NVME)
    return machine.text("/sys/module/nvme/parameters/poll_queues").strip()


def _switch(text: str) -> str:
    return {"0": "off", "1": "on"}.get(text, text)


def _link_now(machine: Machine, folder: str) -> str:
    """Return speed and width of the PCIe link now and at best: "8.0 GT/s x4 (of 16.0 GT/s x4)"."""
    now, top = _link(machine, folder)
    return now if now == top else f"{now} (of {top})"


def _link(machine: Machine, folder: str) -> tuple[str, str]:
    """Return the PCIe link of the nearest device above: now, and the best that it can do."""
    path = folder
    while path not in {"", "/", "/sys"}:
        if machine.text_if_there(f"{path}/current_link_speed"):
            return _side(machine, path, "current"), _side(machine, path, "max")
        path = path.rpartition("/")[0]
    raise ValueError("no PCIe link is seen above this device")


def _side(machine: Machine, path: str, side: str) -> str:
    speed = machine.text(f"{path}/{side}_link_speed").strip().removesuffix("PCIe").strip()
    width = machine.text(f"{path}/{side}_link_width").strip()
    if not speed[:1].isdigit() or not 0 < int(width) <= _LANES_MAX:
        raise ValueError(f"the PCIe device does not tell its {side} link")
    return f"{speed} x{width}"
