"""The machine -> facts, each with its value or the reason why it is unknown.  Reads only.

Names are fixed: ``advice`` and reports look facts up by them.  Sizes are plain bytes.
"""

import os
from collections.abc import Callable

from kvbench.host import cgroup, facts, processes, topology
from kvbench.host.drive_facts import controller_folder, drive_facts
from kvbench.host.fact_reading import first_text, read_fact
from kvbench.host.facts import Mount
from kvbench.host.kernel_facts import kernel_facts
from kvbench.host.machine import Machine
from kvbench.host.model import Fact, Identity
from kvbench.units import HUGE_PAGE_BYTES, SECTOR_BYTES

_QUEUE_FACTS = (  # fact, file under queue/
    ("logical_block_bytes", "logical_block_size"),
    ("physical_block_bytes", "physical_block_size"),
    ("rotational", "rotational"),
    ("scheduler", "scheduler"),
    ("nr_requests", "nr_requests"),
    ("max_sectors_kib", "max_sectors_kb"),
    ("max_segments", "max_segments"),
    ("write_cache", "write_cache"),
    ("read_ahead_kib", "read_ahead_kb"),
)
_LIMITS = {"memlock_bytes": "Max locked memory", "open_files_max": "Max open files"}


def host_facts(machine: Machine) -> tuple[Fact, ...]:
    """Return what of the host decides or disturbs a measurement."""
    return (
        read_fact("kernel", lambda: machine.text("/proc/sys/kernel/osrelease").strip()),
        read_fact("os", lambda: _os_name(machine)),
        read_fact("cpu", lambda: _cpu_model(machine)),
        read_fact("cpus_online", lambda: str(_cpus_online(machine))),
        read_fact("memory_bytes", lambda: str(_memory(machine)["MemTotal"])),
        read_fact("memory_available_bytes", lambda: str(_memory(machine)["MemAvailable"])),
        read_fact("virtual_machine", lambda: _virtual_machine(machine)),
        read_fact("container", lambda: _container(machine)),
        read_fact("cpu_governor", lambda: _governors(machine)),
        read_fact("transparent_huge_pages", lambda: _transparent_huge_pages(machine)),
        read_fact("huge_pages_free", lambda: str(_huge_pages_free(machine))),
        read_fact(
            "io_uring_disabled",
            lambda: machine.text("/proc/sys/kernel/io_uring_disabled").strip(),
            absent="this kernel has no such switch, so io_uring is not switched off by it",
        ),
        *(
            read_fact(name, lambda limit=limit: _limit(machine, limit))  # type: ignore[misc]
            for name, limit in _LIMITS.items()
        ),
        read_fact("cgroup_memory_bytes", lambda: cgroup.memory_limit_bytes(machine)),
        read_fact("cgroup_cpus", lambda: cgroup.cpu_limit(machine)),
        read_fact("cgroup_io", lambda: cgroup.io_limit(machine)),
        *kernel_facts(machine),
        read_fact("user", lambda: "root" if os.geteuid() == 0 else f"uid {os.geteuid()}"),
    )


def target_facts(
    identity: Identity, mount: Mount | None, device: str | None, machine: Machine
) -> tuple[Fact, ...]:
    """Return what is known of the target.

    Args:
        identity: the target.
        mount: what a file lies on, None for a block device.
        device: kernel name of the block device under the target, None when there is no one.
        machine: where to read.
    """
    found = [
        Fact(name="target_kind", value=identity.kind),
        Fact(name="target_bytes", value=str(identity.size_bytes)),
    ]
    if identity.kind == "file":
        found += _file_system_facts(identity, mount, machine)
    if device is None:
        reason = "no single block device is known under this target"
        return (*found, Fact(name="device", value=None, reason=reason))
    found += _device_facts(device, machine)
    if identity.kind == "block":
        found.append(read_fact("device_users", lambda: _users(device, machine)))
    return tuple(found)


def _file_system_facts(
    identity: Identity, mount: Mount | None, machine: Machine
) -> tuple[Fact, ...]:
    if mount is None:
        unknown = "the mount is not seen from here"
        return (Fact(name="file_system", value=None, reason=unknown),)
    options = dict.fromkeys((*mount.options, *mount.super_options))
    return (
        Fact(name="file_system", value=mount.file_system),
        Fact(name="mount_options", value=",".join(options)),
        Fact(name="mount_source", value=mount.source),
        read_fact("file_system_free_bytes", lambda: _free_bytes(identity, machine)),
    )


def _device_facts(name: str, machine: Machine) -> tuple[Fact, ...]:
    try:
        device = topology.block_named(machine, name)
        disk = topology.whole_disk(machine, device)
    except OSError as error:
        return (Fact(name="device", value=None, reason=f"sysfs does not show {name}: {error}"),)

    def of_disk(*paths: str) -> Callable[[], str]:
        return lambda: first_text(machine, *(f"{disk.folder}/{path}" for path in paths))

    return (
        Fact(name="device", value=name),
        Fact(name="device_disk", value=disk.name),
        read_fact("device_bytes", lambda: str(_sectors(machine, device.folder) * SECTOR_BYTES)),
        read_fact("device_model", of_disk("device/model", "dm/name", "loop/backing_file")),
        read_fact("device_serial", of_disk("serial", "device/serial")),
        read_fact("device_firmware", of_disk("device/firmware_rev", "device/rev")),
        *(
            read_fact(fact, lambda path=path: facts.chosen(of_disk(f"queue/{path}")()))  # type: ignore[misc]
            for fact, path in _QUEUE_FACTS
        ),
        read_fact("device_read_only", of_disk("ro")),
        read_fact("device_in_flight", lambda: _in_flight(machine, disk.folder)),
        read_fact("device_monitors", lambda: _monitors(disk, machine)),
        *drive_facts(disk, machine),
    )


def _users(name: str, machine: Machine) -> str:
    """Return who else has a device, its disk or its partitions open, and what is built on it."""
    device = topology.block_named(machine, name)
    numbers = frozenset(one.number for one in topology.family(machine, device))
    characters = topology.pass_through_numbers(machine, device)
    openers = processes.openers(machine, numbers=numbers, characters=characters)
    users = (*openers.seen, *topology.holders(machine, device))
    if not users and openers.hidden:
        raise ValueError(_hidden(openers.hidden, machine))
    return ", ".join(users) or "none"


def _monitors(disk: topology.Block, machine: Machine) -> str:
    """Return who has the character node of an NVMe drive's controller open.

    Tools that look at its health do, and harm nothing; but what they ask of the drive takes time,
    and who may send commands there may also format it.
    """
    controller = controller_folder(disk, machine)
    if controller is None:
        raise ValueError("not an NVMe drive, or its controller is not one")
    number = machine.text(f"{controller}/dev").strip()
    openers = processes.openers(machine, characters=frozenset({number}))
    if not openers.seen and openers.hidden:
        raise ValueError(_hidden(openers.hidden, machine))
    return ", ".join(openers.seen) or "none"


def _hidden(count: int, machine: Machine) -> str:
    how = "not even to root here" if machine.is_root() else "run as root"
    who = "1 process does" if count == 1 else f"{count} processes do"
    return f"{who} not show what {'it has' if count == 1 else 'they have'} open; {how}"


def _os_name(machine: Machine) -> str:
    return facts.parse_os_release(machine.text("/etc/os-release"))["PRETTY_NAME"]


def _cpu_model(machine: Machine) -> str:
    fields = facts.parse_cpuinfo(machine.text("/proc/cpuinfo"))
    for key in ("model name", "Model", "Hardware", "cpu"):
        if fields.get(key):
            return fields[key]
    raise ValueError("/proc/cpuinfo names no model")


def _cpus_online(machine: Machine) -> int:
    count = 0
    for part in machine.text("/sys/devices/system/cpu/online").strip().split(","):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return count


def _memory(machine: Machine) -> dict[str, int]:
    return facts.parse_meminfo_bytes(machine.text("/proc/meminfo"))


def _virtual_machine(machine: Machine) -> str:
    flags = facts.parse_cpuinfo(machine.text("/proc/cpuinfo")).get("flags", "").split()
    product = machine.text_if_there("/sys/class/dmi/id/product_name")
    if "hypervisor" in flags:
        return f"yes ({product.strip()})" if product and product.strip() else "yes"
    if not flags:
        raise ValueError("/proc/cpuinfo has no x86 flags to tell it from")
    return "no"


def _container(machine: Machine) -> str:
    for marker in ("/.dockerenv", "/run/.containerenv"):
        if machine.text_if_there(marker) is not None:
            return f"yes ({marker})"
    environment = machine.text("/proc/1/environ").split("\0")
    kinds = [e.removeprefix("container=") for e in environment if e.startswith("container=")]
    return f"yes ({kinds[0]})" if kinds else "no"


def _governors(machine: Machine) -> str:
    folder = "/sys/devices/system/cpu/cpufreq"
    names = machine.names_if_there(folder)
    texts = (machine.text_if_there(f"{folder}/{name}/scaling_governor") for name in names)
    found = sorted({text.strip() for text in texts if text})
    if not found:
        raise ValueError("this machine does not let its CPU frequency be seen (often a VM)")
    return ", ".join(found)


def _transparent_huge_pages(machine: Machine) -> str:
    return facts.chosen(machine.text("/sys/kernel/mm/transparent_hugepage/enabled"))


def _huge_pages_free(machine: Machine) -> int:
    """Return the pages of the default size that are neither used nor promised to a mapping."""
    memory = _memory(machine)
    if memory["Hugepagesize"] != HUGE_PAGE_BYTES:
        raise ValueError(f"huge pages are of {memory['Hugepagesize']} B here, not of 2 MiB")
    return memory["HugePages_Free"] - memory["HugePages_Rsvd"]


def _limit(machine: Machine, name: str) -> str:
    return facts.parse_limits(machine.text("/proc/self/limits"))[name]


def _free_bytes(identity: Identity, machine: Machine) -> str:
    status = os.statvfs(machine.at(identity.real_path))
    return str(status.f_bavail * status.f_frsize)


def _sectors(machine: Machine, folder: str) -> int:
    return int(machine.text(f"{folder}/size"))


def _in_flight(machine: Machine, folder: str) -> str:
    return str(sum(int(word) for word in machine.text(f"{folder}/inflight").split()))
