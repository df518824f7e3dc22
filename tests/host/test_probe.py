"""Reading the machine: on machines made of files, and on this one."""

from pathlib import Path

import pytest

from kvbench.errors import Refused
from kvbench.host import probe
from kvbench.host.facts import mount_of
from kvbench.host.model import DeviceCounters, Fact
from tests.host.fakes import ROOT_MOUNT, FakeMachine
from tests.host.loops import (
    LOOP_BYTES,
    PARTITION_BYTES,
    loop_over,
    make_backing,
    needs_loops,
    partition_on,
)


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path / "machine")


def values(facts: tuple[Fact, ...]) -> dict[str, str | None]:
    return {fact.name: fact.value for fact in facts}


def test_a_partition_has_its_disk_s_serial_and_its_own_number(machine: FakeMachine) -> None:
    machine.add_disk("nvme0n1", "259:0")
    partition = machine.add_partition("nvme0n1", "nvme0n1p2", "259:2", 2)
    machine.sysfs("nvme0n1", "device/serial", "S4EVNX0\0\0  \n")
    machine.sysfs("nvme0n1", "wwid", "eui.0025385b\n")
    machine.sysfs("nvme0n1", "nsid", "1\n")
    identity = probe.identify(partition, machine)
    assert identity.device_number == "259:2"
    assert identity.serial == "S4EVNX0"
    assert identity.wwid == "eui.0025385b, nsid 1, partition 2"
    assert identity.diskseq == "3"


def test_a_device_that_sysfs_does_not_know_is_refused(machine: FakeMachine) -> None:
    machine.write("/dev/odd", "")
    machine.devices["/dev/odd"] = ("block", "99:9")
    with pytest.raises(Refused, match="cannot be told from /sys"):
        probe.identify("/dev/odd", machine)


def test_the_device_under_a_file_is_that_of_its_mount(machine: FakeMachine) -> None:
    machine.write("/data/x", "x" * 4096)
    identity = probe.identify("/data/x", machine)
    assert probe.device_under(identity, machine) == "vda"
    machine.add_disk("sda", "8:0")
    machine.add_disk("sdb", "8:16")
    machine.link("/sys/fs/btrfs/u/devices/sda", "/sys/devices/pci/block/sda")
    for mount, expected in (
        ("30 27 8:0 / /data rw - ext4 /dev/sda rw", "sda"),
        ("30 27 0:50 / /data rw - tmpfs tmpfs rw", None),
        ("30 27 0:50 / /data rw - overlay overlay rw,upperdir=/up", None),
        ("30 27 0:50 / /data rw - nfs4 host:/x rw", None),
        ("30 27 0:50 / /data rw - btrfs /dev/sda rw", "sda"),
    ):
        machine.mount_here([ROOT_MOUNT, mount])
        assert probe.device_under(identity, machine) == expected
    machine.link("/sys/fs/btrfs/u/devices/sdb", "/sys/devices/pci/block/sdb")
    assert probe.device_under(identity, machine) is None


def test_files_in_memory_are_not_direct_even_through_an_overlay(machine: FakeMachine) -> None:
    machine.write("/data/x", "x" * 4096)
    for mount in (
        "30 27 0:50 / /data rw - tmpfs tmpfs rw",
        "30 27 0:50 / /data rw - ramfs ramfs rw",
    ):
        machine.mount_here([ROOT_MOUNT, mount])
        works, reason = probe.supports_direct("/data/x", machine)
        assert not works
        assert "memory" in reason
    machine.mount_here(
        [
            ROOT_MOUNT,
            "30 27 0:50 / /data rw - overlay overlay rw,lowerdir=/l,upperdir=/fast/up",
            "31 27 0:51 / /fast rw - tmpfs tmpfs rw",
        ]
    )
    works, reason = probe.supports_direct("/data/x", machine)
    assert not works
    assert "overlay over tmpfs" in reason


def test_a_file_on_a_disk_is_direct_and_a_missing_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "target"
    path.write_bytes(b"x" * 8192)
    works, reason = probe.supports_direct(str(path))
    mount = mount_of(str(path.resolve()), probe.mounts())
    assert mount is not None
    if mount.file_system not in {"ext4", "xfs", "btrfs"}:
        pytest.skip(f"the temporary folder is on {mount.file_system}")
    assert works, reason
    works, reason = probe.supports_direct(str(tmp_path / "absent"))
    assert not works
    assert reason


def test_counters_that_stand_still_are_not_counters(machine: FakeMachine) -> None:
    expected = DeviceCounters(
        read_ios=1,
        read_sectors=8,
        write_ios=2,
        write_sectors=16,
        read_ticks_ms=0,
        write_ticks_ms=0,
        busy_ms=0,
    )
    assert probe.device_counters("vda", machine) == expected
    machine.sysfs("vda", "queue/iostats", "0\n")
    assert probe.device_counters("vda", machine) is None
    assert probe.device_counters("absent", machine) is None


def test_an_nvme_drive_with_multipath_counts_on_its_paths(machine: FakeMachine) -> None:
    machine.add_disk("nvme0n1", "259:0")
    for path, number in (("nvme0c0n1", "259:5"), ("nvme0c1n1", "259:6"), ("nvme0c0n2", "259:7")):
        machine.add_disk(path, number)
    machine.sysfs("nvme0n1", "stat", "0 0 0 0 0 0 0 0 0 0 0\n")
    counters = probe.device_counters("nvme0n1", machine)
    assert counters is not None
    assert (counters.read_ios, counters.write_sectors) == (2, 32)


def test_every_host_fact_has_a_value_or_a_reason() -> None:
    facts = probe.host_facts()
    names = [fact.name for fact in facts]
    assert len(names) == len(set(names))
    for fact in facts:
        assert (fact.value is None) == bool(fact.reason), fact


def test_facts_of_an_empty_machine_are_reasons_and_no_errors(tmp_path: Path) -> None:
    for fact in probe.host_facts(probe.Machine(tmp_path)):
        if fact.name != "user":
            assert fact.value is None or fact.value in {"no", "no limit"}
            assert fact.value or fact.reason, fact


@pytest.mark.parametrize(
    ("size", "free", "fact", "pages"),
    [("2048 kB", 8, "5", 5), ("2048 kB", 3, "0", 0), ("1048576 kB", 8, None, 0)],
)
def test_huge_pages_that_are_promised_or_of_another_size_are_not_free(
    machine: FakeMachine, size: str, free: int, fact: str | None, pages: int
) -> None:
    machine.write(
        "/proc/meminfo",
        f"HugePages_Free: {free}\nHugePages_Rsvd: 3\nHugepagesize: {size}\n",
    )
    assert values(probe.host_facts(machine))["huge_pages_free"] == fact
    assert probe.huge_pages_free(machine) == pages


def test_host_facts_tell_limits_and_governors(machine: FakeMachine) -> None:
    machine.write("/proc/cpuinfo", "model name\t: Fast\nflags\t\t: fpu hypervisor\n")
    machine.write("/proc/self/cgroup", "0::/pod\n")
    machine.write("/sys/fs/cgroup/pod/cpu.max", "150000 100000\n")
    machine.write("/sys/fs/cgroup/pod/memory.max", "1073741824\n")
    machine.write("/sys/devices/system/cpu/online", "0-3,8\n")
    machine.write("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n")
    machine.write("/proc/1/environ", "A=b\0container=podman\0")
    found = values(probe.host_facts(machine))
    assert found["cpu"] == "Fast"
    assert found["virtual_machine"] == "yes"
    assert found["container"] == "yes (podman)"
    assert found["cpus_online"] == "5"
    assert found["cgroup_cpus"] == "1.5"
    assert found["cgroup_memory_bytes"] == "1073741824"
    assert found["cpu_governor"] == "powersave"
    assert found["io_uring_disabled"] is None


def test_target_facts_of_an_nvme_drive(machine: FakeMachine) -> None:
    path = machine.add_disk("nvme0n1", "259:0")
    machine.sysfs("nvme0n1", "device/model", "FAST 1000 \n")
    machine.sysfs("nvme0n1", "device/firmware_rev", "1.0\n")
    machine.sysfs("nvme0n1", "queue/logical_block_size", "4096\n")
    machine.sysfs("nvme0n1", "queue/scheduler", "[none] mq-deadline\n")
    machine.sysfs("nvme0n1", "inflight", "1 2\n")
    for name, text in (
        ("current_link_speed", "8.0 GT/s PCIe\n"),
        ("current_link_width", "4\n"),
        ("max_link_speed", "16.0 GT/s PCIe\n"),
        ("max_link_width", "4\n"),
    ):
        machine.write(f"/sys/devices/pci/{name}", text)
    identity = probe.identify(path, machine)
    found = values(probe.target_facts(identity, machine))
    assert found["device_model"] == "FAST 1000"
    assert found["device_firmware"] == "1.0"
    assert found["scheduler"] == "none"
    assert found["device_in_flight"] == "3"
    assert found["pcie_link"] == "8.0 GT/s x4 (of 16.0 GT/s x4)"
    assert found["device_serial"] is None
    assert probe.logical_block_bytes(identity, machine) == 4096


def test_target_facts_of_a_file_tell_its_file_system(tmp_path: Path) -> None:
    path = tmp_path / "target"
    path.write_bytes(b"x" * 4096)
    facts = probe.target_facts(probe.identify(str(path)))
    found = values(facts)
    assert found["target_kind"] == "file"
    assert found["file_system"]
    assert int(found["file_system_free_bytes"] or "0") > 0
    for fact in facts:
        assert (fact.value is None) == bool(fact.reason), fact


@pytest.mark.blockdev
@needs_loops
def test_a_loop_device_and_its_partition_are_identified(tmp_path: Path) -> None:
    backing = make_backing(tmp_path / "backing")
    with loop_over(backing) as loop:
        identity = probe.identify(loop)
        assert identity.size_bytes == LOOP_BYTES
        assert identity.serial is None
        assert str(backing) in (identity.wwid or "")
        assert probe.device_under(identity) == Path(loop).name
        assert probe.logical_block_bytes(identity) == 512
        assert probe.supports_direct(loop)[0]
        assert probe.device_counters(Path(loop).name) is not None
        with partition_on(loop) as partition:
            part = probe.identify(partition)
            assert part.size_bytes == PARTITION_BYTES
            assert part.device_number != identity.device_number
            assert probe.device_under(part) == Path(partition).name
            assert probe.device_counters(Path(partition).name) is not None


@pytest.mark.parametrize(
    ("library", "works"),
    [
        ("glibc 2.35", True),
        ("glibc 2.36.9", True),
        ("glibc 3.0", True),
        ("glibc 2.9", False),
        ("glibc 2.34", False),
        ("musl 1.2", False),
        ("", False),
    ],
)
def test_contiguous_buffers_need_a_glibc_that_asks_for_huge_pages(
    library: str, works: bool
) -> None:
    assert (probe.glibc_problem(library) == "") is works
