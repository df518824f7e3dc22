"""Facts of a drive and of the kernel: from sysfs, then from tools that may be missing or hang."""

from pathlib import Path

import pytest

from kvbench.host import probe, topology
from kvbench.host.guard import check_writable
from kvbench.host.identity import no_permission
from kvbench.host.kernel_facts import kernel_facts
from kvbench.host.model import Fact
from tests.host.fakes import FakeMachine

CASE = Path(__file__).parents[1] / "fixtures" / "cases" / "24-nvme-cli-json-variants"


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path / "machine")


def nvme(machine: FakeMachine) -> str:
    path = machine.add_disk("nvme0n1", "259:0")
    for file, text in (
        ("nsid", "1"),
        ("wwid", "eui.0025385b"),
        ("eui", "00 25 38 5b"),
        ("nuse", "100"),
        ("metadata_bytes", "8"),
        ("queue/logical_block_size", "4096"),
        ("queue/io_poll", "0"),
        ("queue/wbt_lat_usec", "2000"),
        ("device/queue_count", "9"),
        ("device/numa_node", "1"),
        ("device/hmb", "1"),
        ("device/power/pm_qos_latency_tolerance_us", "100000"),
    ):
        machine.sysfs("nvme0n1", file, f"{text}\n")
    machine.write("/sys/module/nvme/parameters/poll_queues", "2\n")
    return path


def facts_of(machine: FakeMachine, path: str) -> dict[str, Fact]:
    facts = probe.target_facts(probe.identify(path, machine), machine)
    assert len({fact.name for fact in facts}) == len(facts)
    for fact in facts:
        assert (fact.value is None) == bool(fact.reason), fact
    return {fact.name: fact for fact in facts}


def test_sysfs_tells_the_namespace_the_queues_and_the_node(machine: FakeMachine) -> None:
    found = facts_of(machine, nvme(machine))
    for name, value in (
        ("device_nsid", "1"),
        ("device_wwid", "eui.0025385b"),
        ("device_eui", "00 25 38 5b"),
        ("device_metadata_bytes", "8"),
        ("device_used_bytes", "409600"),
        ("device_queues", "8"),
        ("device_poll_queues", "2"),
        ("device_io_poll", "0"),
        ("device_wbt_us", "2000"),
        ("device_numa_node", "1"),
        ("device_hmb", "on"),
        ("device_apst_latency_us", "100000"),
    ):
        assert found[name].value == value, name
    assert "no nvme-cli" in found["device_firmware_slots"].reason


def test_nvme_cli_tells_what_sysfs_does_not_and_never_overrules_it(machine: FakeMachine) -> None:
    path = nvme(machine)
    machine.sysfs("nvme0n1", "device/serial", "FROMSYSFS\n")
    answers = {"id-ctrl": "qemu-id-ctrl", "id-ns": "qemu-id-ns-512", "fw-log": "qemu-fw-log"}
    cases = "\n".join(f"{verb}) cat {CASE / f'{name}.json'};;" for verb, name in answers.items())
    script = f'#!/bin/sh\necho warning >&2\ncase "$1" in\n{cases}\nesac\nexit 1\n'
    machine.write("/usr/sbin/nvme", script).chmod(0o755)
    found = facts_of(machine, path)
    assert found["device_serial"].value == "FROMSYSFS"
    assert found["device_metadata_bytes"].value == "8"
    assert found["device_firmware"].value == "7.2.22"
    assert found["device_firmware_slots"].value == "1: 1.0 (runs)"
    assert found["device_volatile_write_cache"].value == "yes"
    assert found["device_apst"].value == "no"
    assert found["device_lba_format"].value == "0"
    assert found["device_nguid"].reason == "the device does not tell; the drive has none"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'Failed to open: Permission denied' >&2; exit 1", "Permission denied"),
        ("echo not json; exit 0", "not json"),
        ("echo '{ broken'", "no JSON"),
        ("exit 0", "ended with 0"),
    ],
)
def test_a_tool_that_fails_is_a_reason(machine: FakeMachine, script: str, words: str) -> None:
    path = nvme(machine)
    machine.write("/usr/sbin/nvme", f"#!/bin/sh\n{script}\n").chmod(0o755)
    assert words in facts_of(machine, path)["device_firmware_slots"].reason


def test_a_tool_that_hangs_is_given_up_once(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = nvme(machine)
    monkeypatch.setattr(probe, "OPTIONAL_TOOL_TIMEOUT_S", 0.3)
    asked = machine.root / "asked"
    script = f"#!/bin/sh\necho asked >> {asked}\nsleep 60\n"
    machine.write("/usr/sbin/nvme", script).chmod(0o755)
    found = facts_of(machine, path)
    assert "did not answer in 0.3 s" in found["device_apst"].reason
    assert "did not answer in 0.3 s" in found["device_firmware_slots"].reason
    assert asked.read_text() == "asked\n"


def test_smartctl_names_a_disk_that_sysfs_does_not(machine: FakeMachine) -> None:
    path = machine.add_disk("sda", "8:0")
    assert "no smartmontools" in facts_of(machine, path)["device_firmware"].reason
    machine.tool_says("smartctl", (CASE / "smartctl-exit-64-data-valid.json").read_text(), 64)
    assert facts_of(machine, path)["device_serial"].value == "SNA0001"
    machine.tool_says("smartctl", (CASE / "smartctl-exit-1-no-data.json").read_text(), 1)
    assert facts_of(machine, path)["device_serial"].value is None


def test_a_drive_that_vanishes_between_two_looks_is_a_reason(machine: FakeMachine) -> None:
    identity = probe.identify(nvme(machine), machine)
    machine.at("/sys/class/block/nvme0n1").unlink()
    found = {fact.name: fact for fact in probe.target_facts(identity, machine)}
    assert found["device"].value is None
    assert "nvme0n1" in found["device"].reason


def test_the_controller_of_a_multipath_disk_is_found_through_its_subsystem(
    machine: FakeMachine,
) -> None:
    path = machine.add_disk("nvme0n1", "259:0")
    folder = machine.resolve("/sys/class/block/nvme0n1")
    machine.write("/sys/devices/pci1/nvme/nvme1/queue_count", "5\n")
    for name, text in (("speed", "8.0 GT/s PCIe"), ("width", "4")):
        machine.write(f"/sys/devices/pci1/current_link_{name}", f"{text}\n")
        machine.write(f"/sys/devices/pci1/max_link_{name}", f"{text}\n")
    machine.link(f"{folder}/device", "/sys/devices/subsys0")
    machine.link("/sys/devices/subsys0/nvme1", "/sys/devices/pci1/nvme/nvme1")
    found = facts_of(machine, path)
    assert found["device_queues"].value == "4"
    assert found["pcie_link"].value == "8.0 GT/s x4"
    assert found["pcie_link_best"].value == "8.0 GT/s x4"
    machine.write("/sys/devices/pci1/nvme/nvme2/queue_count", "5\n")
    machine.link("/sys/devices/subsys0/nvme2", "/sys/devices/pci1/nvme/nvme2")
    assert facts_of(machine, path)["device_queues"].value is None


def test_a_link_that_tells_no_speed_is_unknown(machine: FakeMachine) -> None:
    path = machine.add_disk("nvme0n1", "259:0")
    for name in ("current", "max"):
        machine.write(f"/sys/devices/pci/{name}_link_speed", "Unknown\n")
        machine.write(f"/sys/devices/pci/{name}_link_width", "255\n")
    assert "does not tell" in facts_of(machine, path)["pcie_link"].reason


def test_the_kernel_tells_its_line_its_mitigations_and_its_idle_states(
    machine: FakeMachine,
) -> None:
    machine.write("/proc/cmdline", "quiet mitigations=auto\n")
    cpu = "/sys/devices/system/cpu"
    machine.write(f"{cpu}/vulnerabilities/mds", "Mitigation: Clear CPU buffers; SMT vulnerable\n")
    machine.write(f"{cpu}/vulnerabilities/tsa", "Vulnerable\n")
    machine.write(f"{cpu}/vulnerabilities/srbds", "Not affected\n")
    machine.write(f"{cpu}/cpuidle/current_driver", "intel_idle\n")
    for state, name, us, off in (("0", "POLL", 0, 0), ("1", "C1", 2, 0), ("2", "C6", 133, 1)):
        for file, text in (("name", name), ("latency", us), ("disable", off)):
            machine.write(f"{cpu}/cpu0/cpuidle/state{state}/{file}", f"{text}\n")
    machine.write("/sys/devices/system/node/node0/cpulist", "0-3\n")
    found = {fact.name: fact.value for fact in kernel_facts(machine)}
    assert found["kernel_command_line"] == "quiet mitigations=auto"
    assert found["mitigations"] == "on: mds; vulnerable: tsa"
    assert found["cpu_idle"] == "intel_idle, up to C1 (2 us to wake)"
    assert found["cpu_idle_exit_us"] == "2"
    assert found["numa_nodes"] == "1"


@pytest.mark.parametrize(
    ("group", "file", "text", "expected"),
    [
        ("0::/pod", "pod/io.max", "259:0 rbps=1048576 wbps=max", "259:0 rbps=1048576"),
        ("0::/pod", "pod/io.max", "259:0 rbps=max wbps=max", "no limit"),
        ("0::/pod", "pod/none", "", "no limit"),
        (
            "7:blkio:/pod",
            "blkio/pod/blkio.throttle.read_bps_device",
            "259:0 1048576",
            "259:0 1048576 read_bps",
        ),
    ],
)
def test_a_limit_of_the_control_group_on_io_is_told(
    machine: FakeMachine, group: str, file: str, text: str, expected: str
) -> None:
    machine.write("/proc/self/cgroup", f"{group}\n")
    machine.write(f"/sys/fs/cgroup/{file}", f"{text}\n")
    found = {fact.name: fact.value for fact in probe.host_facts(machine)}
    assert found["cgroup_io"] == expected


def test_other_devices_are_not_asked_with_tools(machine: FakeMachine) -> None:
    machine.tool_says("nvme", "{}", 0)
    machine.tool_says("smartctl", "{}", 0)
    assert probe.ask_drive(topology.block_named(machine, "vda"), machine) == ()


def test_a_serial_of_blanks_is_unknown_and_not_an_empty_name(machine: FakeMachine) -> None:
    path = nvme(machine)
    machine.sysfs("nvme0n1", "device/serial", "                    \n")
    assert probe.identify(path, machine).serial is None
    assert facts_of(machine, path)["device_serial"].value is None


def test_a_disk_of_a_virtual_machine_without_identity_is_still_identified(
    machine: FakeMachine,
) -> None:
    identity = probe.identify("/dev/vda", machine)
    assert (identity.serial, identity.wwid) == (None, None)
    assert identity.device_number == "254:0"
    assert "not an NVMe drive" in facts_of(machine, "/dev/vda")["device_queues"].reason


def test_every_fact_is_in_the_documentation(machine: FakeMachine) -> None:
    text = (Path(__file__).parents[2] / "results" / "README.md").read_text()
    facts = {*facts_of(machine, nvme(machine)), *(f.name for f in probe.host_facts(machine))}
    assert {name for name in facts if f"`{name}`" not in text} == set()


def test_who_else_has_the_drive_open_is_told(machine: FakeMachine) -> None:
    path = nvme(machine)
    assert facts_of(machine, path)["device_users"].value == "none"
    machine.process(77, [], comm="dd")
    machine.opens(77, path)
    machine.add_disk("dm-0", "253:0")
    machine.hold_by("nvme0n1", "dm-0")
    assert facts_of(machine, path)["device_users"].value == "dd (pid 77), dm-0"


def test_who_holds_the_controller_is_told_and_who_holds_the_drive_apart(
    machine: FakeMachine,
) -> None:
    path = nvme(machine)
    machine.sysfs("nvme0n1", "device/dev", "241:0\n")
    machine.add_char("/dev/nvme0", "241:0")
    assert facts_of(machine, path)["device_monitors"].value == "none"
    machine.process(77, [], comm="smartd")
    machine.opens(77, "/dev/nvme0")
    found = facts_of(machine, path)
    assert found["device_monitors"].value == "smartd (pid 77)"
    assert found["device_users"].value == "none"
    check_writable(probe.identify(path, machine), path, own_file=False, machine=machine)


def test_a_drive_without_a_controller_of_its_own_says_that_it_has_none(
    machine: FakeMachine,
) -> None:
    found = facts_of(machine, machine.add_disk("vdb", "254:16"))
    assert found["device_monitors"].value is None


def test_who_is_root_is_not_told_to_run_as_root(machine: FakeMachine) -> None:
    path = nvme(machine)
    machine.process(77, [], comm="other")
    machine.write("/proc/77/fd/3", "")
    machine.hidden.add("/proc/77/fd/3")
    for root, said in ((True, "not even to root here"), (False, "run as root")):
        machine.root_user = root
        assert said in facts_of(machine, path)["device_users"].reason
        hint = no_permission(path, machine).hint
        assert hint.startswith("run as root") != root
