"""Facts -> what on this machine would spoil a measurement, and the command that mends it.  Pure."""

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from kvbench.host.model import Fact
from kvbench.units import GIB, MIB, format_size

AdviceSeverity = Literal["blocks", "spoils", "note"]

MEMLOCK_WANTED_BYTES = 64 * MIB  # registered buffers of a deep ring, with room to spare
MEMORY_WANTED_BYTES = 2 * GIB
FREE_WANTED_BYTES = 4 * GIB  # the default target, its results, and some room
_ORDER: dict[AdviceSeverity, int] = {"blocks": 0, "spoils": 1, "note": 2}
IDLE_EXIT_US_MAX = 20  # a CPU that wakes later than this shows in the latency of a fast drive
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "lustre"})


class Advice(Struct, frozen=True, kw_only=True):
    """One thing to know.

    blocks: a measurement is not possible as things are.
    spoils: it is possible, and its numbers would not be those of the device.
    note:   it limits what the numbers may be used for.
    """

    severity: AdviceSeverity
    text: str
    command: str = ""  # what to type to mend it, "" when nothing can be typed


def advise(facts: Iterable[Fact]) -> list[Advice]:
    """Return the advice for a host and (when its facts are among them) a target, worst first."""
    facts = tuple(facts)
    known = {fact.name: fact.value for fact in facts if fact.value is not None}
    found = [*_host(known), *_device(known), *_file_system(known), *_tools(facts)]
    return sorted(found, key=lambda advice: _ORDER[advice.severity])


def _tools(facts: tuple[Fact, ...]) -> Iterator[Advice]:
    """Name each tool without which something of the drive is not known."""
    for package in ("nvme-cli", "smartmontools"):
        missing = [
            fact.name.removeprefix("device_").removesuffix("_bytes").replace("_", " ")
            for fact in facts
            if fact.value is None and f"there is no {package}" in fact.reason
        ]
        if missing:
            yield Advice(
                severity="note",
                text=f"without {package} it is not known of the drive: {', '.join(missing)}",
                command=f"apt install {package}  (or what installs packages here)",
            )


def _host(known: dict[str, str]) -> Iterator[Advice]:
    root = known.get("user") == "root"
    switch = known.get("io_uring_disabled", "0")
    if switch == "2" or (switch == "1" and not root):
        yield Advice(
            severity="blocks",
            text=f"io_uring is switched off (kernel.io_uring_disabled is {switch})",
            command="sysctl kernel.io_uring_disabled=0",
        )
    limit = known.get("memlock_bytes", "unlimited")
    if not root and limit.isdigit() and int(limit) < MEMLOCK_WANTED_BYTES:
        yield Advice(
            severity="spoils",
            text=f"only {format_size(int(limit))} of memory may be locked, too little for the "
            "registered buffers of workloads that look for a peak",
            command=f"ulimit -l {MEMLOCK_WANTED_BYTES // 1024}  (or limits.conf: memlock)",
        )
    governors = known.get("cpu_governor", "")
    slow = sorted(set(governors.split(", ")) & {"powersave", "conservative", "ondemand"})
    if slow:
        yield Advice(
            severity="spoils",
            text=f"the CPU governor is {', '.join(slow)}: clocks that rise late make short I/Os "
            "look slow",
            command="cpupower frequency-set -g performance",
        )
    free = known.get("memory_available_bytes", "")
    if free.isdigit() and int(free) < MEMORY_WANTED_BYTES:
        yield Advice(
            severity="spoils",
            text=f"only {format_size(int(free))} of memory is free, swapping would be measured",
            command="end what uses the memory: ps -eo rss,comm --sort=-rss | head",
        )
    limited = known.get("cgroup_cpus", "no limit")
    if limited != "no limit":
        yield Advice(
            severity="spoils",
            text=f"this control group may use {limited} CPUs; when it is throttled, I/Os look slow",
            command="run kvbench in a group without a CPU limit",
        )
    if known.get("huge_pages_free") == "0":
        yield Advice(
            severity="note",
            text="no huge pages are free, so workloads with buffers on huge pages are skipped",
            command="sysctl vm.nr_hugepages=64  (keeps 128 MiB away from everything else)",
        )
    if known.get("transparent_huge_pages") == "never":
        yield Advice(
            severity="note",
            text="transparent huge pages are switched off, so workloads with contiguous buffers "
            "are skipped",
            command="echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        )
    if known.get("virtual_machine", "no").startswith("yes"):
        yield Advice(
            severity="note",
            text="this is a virtual machine: the host's cache and its other guests are measured "
            "too, so compare only within one run",
        )

    if known.get("container", "no").startswith("yes"):
        yield Advice(
            severity="note",
            text="this is a container: its limits apply, and other users of the drive are not seen",
        )
    yield from _kernel(known)


def _kernel(known: dict[str, str]) -> Iterator[Advice]:
    limited = known.get("cgroup_io", "no limit")
    if limited != "no limit":
        yield Advice(
            severity="spoils",
            text=f"this control group has a limit on I/O ({limited}), which would be measured",
            command="run kvbench in a group without a limit on I/O",
        )
    exit_us = known.get("cpu_idle_exit_us", "0")
    if exit_us.isdigit() and int(exit_us) > IDLE_EXIT_US_MAX:
        yield Advice(
            severity="note",
            text=f"idle CPUs may take {exit_us} us to wake ({known.get('cpu_idle', '?')}), which "
            "adds to the latency of single I/Os",
            command=f"cpupower idle-set -D {IDLE_EXIT_US_MAX}",
        )
    mitigations = known.get("mitigations", "on: none").partition(";")[0].removeprefix("on: ")
    if mitigations != "none":
        yield Advice(
            severity="note",
            text=f"CPU mitigations cost time per I/O: {mitigations}; compare only with runs that "
            "had the same",
        )


def _device(known: dict[str, str]) -> Iterator[Advice]:
    device = known.get("device")
    if device is None:
        return
    disk = known.get("device_disk", device)
    scheduler = known.get("scheduler", "none")
    if disk.startswith("nvme") and scheduler != "none":
        yield Advice(
            severity="spoils",
            text=f"the I/O scheduler of {disk} is {scheduler}, which costs an NVMe drive IOPS",
            command=f"echo none > /sys/block/{disk}/queue/scheduler",
        )
    in_flight = known.get("device_in_flight", "0")
    if in_flight.isdigit() and int(in_flight) > 0:
        yield Advice(
            severity="spoils",
            text=f"other programs are using {device} now ({in_flight} I/Os in flight)",
            command="find them: iotop -o, or pidstat -d 1",
        )
    users = known.get("device_users", "none")
    if users != "none":
        yield Advice(
            severity="note",
            text=f"{device} is also open elsewhere: {users}; what these do is measured too",
            command=f"look at them: fuser -v /dev/{device}",
        )
    monitors = known.get("device_monitors", "none")
    if monitors != "none":
        yield Advice(
            severity="note",
            text=f"the controller of {disk} is held by {monitors}: what it asks of the drive while "
            "a cell runs is measured too",
            command="stop monitoring for the run where it asks often",
        )
    link = known.get("pcie_link", "")
    if "(of " in link:
        yield Advice(
            severity="spoils",
            text=f"the PCIe link of {device} runs below its best: {link}",
            command="look at the slot, the riser and power saving (lspci -vv, LnkSta)",
        )
    throttle = known.get("device_wbt_us", "0")
    if disk.startswith("nvme") and throttle not in {"0", "-1"}:
        yield Advice(
            severity="note",
            text=f"the kernel holds buffered writes back when reads of {disk} take longer than "
            f"{throttle} us (wbt)",
            command=f"echo 0 > /sys/block/{disk}/queue/wbt_lat_usec",
        )
    if known.get("device_poll_queues") == "0":
        yield Advice(
            severity="note",
            text=f"{disk} has no poll queues, so no workload can poll for completions there",
            command="boot with nvme.poll_queues=4 (or set it when the nvme module is loaded)",
        )
    tolerance = known.get("device_apst_latency_us", "0")
    if known.get("device_apst") == "yes" and tolerance != "0":
        yield Advice(
            severity="note",
            text=f"{disk} may save power when idle and then answers late (APST)",
            command="boot with nvme_core.default_ps_max_latency_us=0",
        )
    node = known.get("device_numa_node")
    if node is not None and known.get("numa_nodes", "1") != "1":
        yield Advice(
            severity="note",
            text=f"{disk} is on NUMA node {node} of {known['numa_nodes']}; CPUs of other nodes see "
            "it from afar",
            command=f"numactl --cpunodebind={node} --membind={node} kvbench run ...",
        )
    if known.get("rotational") == "1" and known.get("virtual_machine", "no") == "no":
        yield Advice(severity="note", text=f"{device} says that it is a rotating disk")


def _file_system(known: dict[str, str]) -> Iterator[Advice]:
    kind = known.get("file_system", "")
    if kind in {"tmpfs", "ramfs"}:
        yield Advice(
            severity="blocks",
            text=f"the target lies on {kind}, which is memory: no device would be measured",
            command="choose a target on a disk",
        )
    elif kind in _NETWORK:
        yield Advice(
            severity="spoils",
            text=f"the target lies on {kind}: network and server are measured, not a drive",
            command="choose a target on a local disk",
        )
    elif kind == "overlay":
        yield Advice(
            severity="spoils",
            text="the target lies on an overlay file system (a container's layer)",
            command="choose a target on a volume, or a block device",
        )
    elif kind in {"btrfs", "zfs", "bcachefs"}:
        yield Advice(
            severity="note",
            text=f"the target lies on {kind}, which copies on write, checks and may compress: its "
            "figures are the file system's as much as the drive's",
        )
    free = known.get("file_system_free_bytes", "")
    if free.isdigit() and int(free) < FREE_WANTED_BYTES:
        yield Advice(
            severity="note",
            text=f"only {format_size(int(free))} is free on the target's file system",
            command="free space; a nearly full drive is slower, and results need room",
        )
