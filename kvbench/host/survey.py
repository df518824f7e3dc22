"""The machine -> facts, each with its value or the reason why it is unknown.  Reads only.

Names are fixed: ``advice`` and reports look facts up by them.  Sizes are plain bytes.
"""

import os
from collections.abc import Callable

from kvbench.host import facts, topology
from kvbench.host.facts import Mount
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
_CGROUP_NO_LIMIT_BYTES = 1 << 60  # cgroup v1 tells "none" as a number near 2^63
_LIMITS = {"memlock_bytes": "Max locked memory", "open_files_max": "Max open files"}


def host_facts(machine: Machine) -> tuple[Fact, ...]:
    """Return what of the host decides or disturbs a measurement."""
    return (
        _fact("kernel", lambda: machine.text("/proc/sys/kernel/osrelease").strip()),
        _fact("os", lambda: _os_name(machine)),
        _fact("cpu", lambda: _cpu_model(machine)),
        _fact("cpus_online", lambda: str(_cpus_online(machine))),
        _fact("memory_bytes", lambda: str(_memory(machine)["MemTotal"])),
        _fact("memory_available_bytes", lambda: str(_memory(machine)["MemAvailable"])),
        _fact("virtual_machine", lambda: _virtual_machine(machine)),
        _fact("container", lambda: _container(machine)),
        _fact("cpu_governor", lambda: _governors(machine)),
        _fact("transparent_huge_pages", lambda: _transparent_huge_pages(machine)),
        _fact("huge_pages_free", lambda: str(_huge_pages_free(machine))),
        _fact(
            "io_uring_disabled",
            lambda: machine.text("/proc/sys/kernel/io_uring_disabled").strip(),
            absent="this kernel has no such switch, so io_uring is not switched off by it",
        ),
        *(
            _fact(name, lambda limit=limit: _limit(machine, limit))  # type: ignore[misc]
            for name, limit in _LIMITS.items()
        ),
        _fact("cgroup_memory_bytes", lambda: _cgroup_memory(machine)),
        _fact("cgroup_cpus", lambda: _cgroup_cpus(machine)),
        _fact("user", lambda: "root" if os.geteuid() == 0 else f"uid {os.geteuid()}"),
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
    return (*found, *_device_facts(device, machine))


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
        _fact("file_system_free_bytes", lambda: _free_bytes(identity, machine)),
    )


def _device_facts(name: str, machine: Machine) -> tuple[Fact, ...]:
    try:
        device = topology.block_named(machine, name)
        disk = topology.whole_disk(machine, device)
    except OSError as error:
        return (Fact(name="device", value=None, reason=f"sysfs does not show {name}: {error}"),)

    def of_disk(*paths: str) -> Callable[[], str]:
        return lambda: _first_text(machine, *(f"{disk.folder}/{path}" for path in paths))

    return (
        Fact(name="device", value=name),
        Fact(name="device_disk", value=disk.name),
        _fact("device_bytes", lambda: str(_sectors(machine, device.folder) * SECTOR_BYTES)),
        _fact("device_model", of_disk("device/model", "dm/name", "loop/backing_file")),
        _fact("device_serial", of_disk("serial", "device/serial")),
        _fact("device_firmware", of_disk("device/firmware_rev", "device/rev")),
        *(
            _fact(fact, lambda path=path: facts.chosen(of_disk(f"queue/{path}")()))  # type: ignore[misc]
            for fact, path in _QUEUE_FACTS
        ),
        _fact("device_read_only", of_disk("ro")),
        _fact("device_in_flight", lambda: _in_flight(machine, disk.folder)),
        _fact("pcie_link", lambda: _pcie_link(machine, disk.folder)),
    )


def _fact(name: str, read: Callable[[], str], *, absent: str = "") -> Fact:
    """Return a fact; what cannot be read becomes its reason."""
    try:
        return Fact(name=name, value=read())
    except FileNotFoundError as error:
        return Fact(name=name, value=None, reason=absent or f"there is no {error.filename}")
    except OSError as error:
        return Fact(name=name, value=None, reason=f"{error.filename}: {error.strerror}")
    except (ValueError, KeyError, IndexError) as error:
        return Fact(name=name, value=None, reason=str(error).strip("'"))


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


def _cgroup(machine: Machine, controller: str) -> tuple[str, int]:
    """Return the folder of this process's control group for a controller, and its version."""
    unified = ""
    for line in machine.text("/proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return f"/sys/fs/cgroup/{controller}{path}", 1
        if not names:
            unified = path
    return f"/sys/fs/cgroup{unified}", 2


def _cgroup_memory(machine: Machine) -> str:
    folder, version = _cgroup(machine, "memory")
    name = "memory.limit_in_bytes" if version == 1 else "memory.max"
    text = (machine.text_if_there(f"{folder}/{name}") or "max").strip()
    return "no limit" if text == "max" or int(text) >= _CGROUP_NO_LIMIT_BYTES else text


def _cgroup_cpus(machine: Machine) -> str:
    folder, version = _cgroup(machine, "cpu")
    if version == 1:
        quota = (machine.text_if_there(f"{folder}/cpu.cfs_quota_us") or "-1").strip()
        period = (machine.text_if_there(f"{folder}/cpu.cfs_period_us") or "100000").strip()
    else:
        text = machine.text_if_there(f"{folder}/cpu.max") or "max 100000"
        quota, period = text.split()
    return "no limit" if quota in {"max", "-1"} else f"{int(quota) / int(period):g}"


def _free_bytes(identity: Identity, machine: Machine) -> str:
    status = os.statvfs(machine.at(identity.real_path))
    return str(status.f_bavail * status.f_frsize)


def _sectors(machine: Machine, folder: str) -> int:
    return int(machine.text(f"{folder}/size"))


def _first_text(machine: Machine, *paths: str) -> str:
    for path in paths:
        text = machine.text_if_there(path)
        if text and text.strip():
            return text.strip()
    raise ValueError("the device does not tell")


def _in_flight(machine: Machine, folder: str) -> str:
    return str(sum(int(word) for word in machine.text(f"{folder}/inflight").split()))


def _pcie_link(machine: Machine, folder: str) -> str:
    """Return speed and width of the PCIe link now and at best: "8.0 GT/s x4 (of 16.0 GT/s x4)"."""
    path = folder
    while path not in {"/", "/sys"}:
        speed = machine.text_if_there(f"{path}/current_link_speed")
        if speed:
            width = machine.text(f"{path}/current_link_width").strip()
            best = machine.text(f"{path}/max_link_speed").strip()
            widest = machine.text(f"{path}/max_link_width").strip()
            now, top = f"{_short(speed)} x{width}", f"{_short(best)} x{widest}"
            return now if now == top else f"{now} (of {top})"
        path = path.rpartition("/")[0] or "/"
    raise ValueError("no PCIe link is seen above this device")


def _short(speed: str) -> str:
    return speed.strip().removesuffix("PCIe").strip()
