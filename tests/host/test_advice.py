"""Advice: each spoiler is named with a command, and a good machine gets none."""

import pytest

from kvbench.host.advice import Advice, advise
from kvbench.host.model import Fact
from kvbench.units import GIB, MIB

GOOD = {
    "user": "uid 1000",
    "io_uring_disabled": "0",
    "memlock_bytes": "unlimited",
    "cpu_governor": "performance",
    "memory_available_bytes": str(64 * GIB),
    "cgroup_cpus": "no limit",
    "virtual_machine": "no",
    "device": "nvme0n1",
    "device_disk": "nvme0n1",
    "scheduler": "none",
    "device_in_flight": "0",
    "pcie_link": "16.0 GT/s x4",
    "rotational": "0",
    "container": "no",
    "cgroup_io": "no limit",
    "cpu_idle_exit_us": "2",
    "mitigations": "on: none; vulnerable: mds",
    "device_wbt_us": "0",
    "device_poll_queues": "4",
    "device_users": "none",
    "device_apst": "no",
    "device_apst_latency_us": "100000",
    "device_numa_node": "0",
    "numa_nodes": "1",
    "file_system": "ext4",
    "file_system_free_bytes": str(100 * GIB),
}


def advice_with(**changes: str | None) -> list[Advice]:
    known = {**GOOD, **changes}
    return advise(
        [
            Fact(name=name, value=value, reason="" if value else "unknown here")
            for name, value in known.items()
        ]
    )


def test_a_good_machine_gets_no_advice_and_nothing_known_neither() -> None:
    assert advice_with() == []
    assert advise([]) == []
    assert advice_with(**dict.fromkeys(GOOD)) == []


@pytest.mark.parametrize(
    ("name", "value", "severity", "words"),
    [
        ("io_uring_disabled", "2", "blocks", "sysctl kernel.io_uring_disabled=0"),
        ("io_uring_disabled", "1", "blocks", "sysctl"),
        ("memlock_bytes", str(8 * MIB), "spoils", "ulimit -l 65536"),
        ("cpu_governor", "performance, powersave", "spoils", "-g performance"),
        ("memory_available_bytes", str(GIB), "spoils", "1 GiB of memory"),
        ("huge_pages_free", "0", "note", "sysctl vm.nr_hugepages=64"),
        ("transparent_huge_pages", "never", "note", "echo madvise > /sys/kernel/mm"),
        ("cgroup_cpus", "1.5", "spoils", "1.5 CPUs"),
        ("virtual_machine", "yes (KVM)", "note", "virtual machine"),
        ("scheduler", "mq-deadline", "spoils", "echo none > /sys/block/nvme0n1/queue/scheduler"),
        ("device_in_flight", "7", "spoils", "7 I/Os in flight"),
        ("pcie_link", "8.0 GT/s x2 (of 16.0 GT/s x4)", "spoils", "below its best"),
        ("container", "yes (podman)", "note", "container"),
        ("cgroup_io", "259:0 rbps=1048576", "spoils", "limit on I/O"),
        ("cpu_idle_exit_us", "133", "note", "cpupower idle-set -D 20"),
        ("mitigations", "on: mds, spectre_v2; vulnerable: none", "note", ": mds, spectre_v2;"),
        ("device_wbt_us", "2000", "note", "echo 0 > /sys/block/nvme0n1/queue/wbt_lat_usec"),
        ("device_poll_queues", "0", "note", "nvme.poll_queues=4"),
        ("device_users", "dd (pid 7)", "note", "fuser -v /dev/nvme0n1"),
        ("device_monitors", "smartd (pid 7)", "note", "stop monitoring"),
        ("device_apst", "yes", "note", "nvme_core.default_ps_max_latency_us=0"),
        ("numa_nodes", "2", "note", "numactl --cpunodebind=0"),
        ("rotational", "1", "note", "rotating"),
        ("file_system", "tmpfs", "blocks", "memory"),
        ("file_system", "nfs4", "spoils", "network"),
        ("file_system", "overlay", "spoils", "overlay"),
        ("file_system", "btrfs", "note", "copies on write"),
        ("file_system_free_bytes", str(GIB), "note", "1 GiB is free"),
    ],
)
def test_each_spoiler_is_named(name: str, value: str, severity: str, words: str) -> None:
    (advice,) = advice_with(**{name: value})
    assert advice.severity == severity
    assert words in f"{advice.text} {advice.command}"


def test_root_may_lock_memory_and_use_io_uring_at_level_one() -> None:
    assert advice_with(user="root", io_uring_disabled="1", memlock_bytes="65536") == []


def test_the_worst_comes_first() -> None:
    severities = [
        advice.severity
        for advice in advice_with(virtual_machine="yes", scheduler="bfq", file_system="tmpfs")
    ]
    assert severities == ["blocks", "spoils", "note"]


def test_a_fact_that_a_missing_tool_would_tell_names_the_tool() -> None:
    facts = [
        *(Fact(name=name, value=value) for name, value in GOOD.items()),
        Fact(name="device_firmware_slots", value=None, reason="there is no nvme-cli"),
        Fact(
            name="device_used_bytes",
            value=None,
            reason="the device does not tell; there is no nvme-cli",
        ),
        Fact(name="device_hmb", value=None, reason="the device does not tell"),
    ]
    (only,) = advise(facts)
    assert only.severity == "note"
    assert only.text == "without nvme-cli it is not known of the drive: firmware slots, used"
    assert only.command.startswith("apt install nvme-cli")
