"""A made-up NVMe drive whose sysfs and tools show its health."""

from pathlib import Path

from kvbench.host.model import Identity
from tests.host.fakes import FakeMachine

CASE = Path(__file__).parents[1] / "fixtures" / "cases" / "24-nvme-cli-json-variants"
CONTROLLER = "/sys/devices/pci0000:00/0000:00:1c.0/0000:01:00.0/nvme/nvme0"
PCI = "/sys/devices/pci0000:00/0000:00:1c.0/0000:01:00.0"
HWMON = f"{CONTROLLER}/hwmon3"
GUIDS = {
    0xC0: "c5af1028eabff2a49c4f6f7cc914d5af",
    0xC3: "927ac08cd0846c9c7043e6d4585ed485",
}


def nvme(machine: FakeMachine, *, temperature_mc: int = 45_000) -> str:
    """Add an NVMe drive that is well, and return the path of its node."""
    path = machine.add_disk("nvme0n1", "259:0")
    machine.write(f"{CONTROLLER}/queue_count", "9\n")
    machine.write(f"{CONTROLLER}/state", "live\n")
    heat(machine, temperature_mc, alarm=False)
    link(machine, "8.0 GT/s PCIe", "4")
    machine.link("/sys/devices/pci/block/nvme0n1/device", CONTROLLER)
    return path


def heat(machine: FakeMachine, temperature_mc: int, *, alarm: bool) -> None:
    """Set what the drive's sensor shows."""
    machine.write(f"{HWMON}/temp1_input", f"{temperature_mc}\n")
    machine.write(f"{HWMON}/temp1_alarm", f"{int(alarm)}\n")


def link(machine: FakeMachine, speed: str, width: str) -> None:
    """Set the PCIe link."""
    machine.write(f"{PCI}/current_link_speed", f"{speed}\n")
    machine.write(f"{PCI}/current_link_width", f"{width}\n")


def identity_of(path: str) -> Identity:
    """The drive as a target."""
    return Identity(
        path=path,
        real_path=path,
        kind="block",
        device_number="259:0",
        inode=1,
        size_bytes=2**30,
        serial="SNSECRET01",
    )


def tool(machine: FakeMachine, answers: dict[str, str], name: str = "nvme") -> Path:
    """Install a tool that prints a file by its first argument; return where it notes each call."""
    asked = machine.root / f"asked-{name}"
    cases = "\n".join(f"{verb}) {command};;" for verb, command in answers.items())
    script = f'#!/bin/sh\necho "$@" >> {asked}\ncase "$1" in\n{cases}\nesac\nexit 1\n'
    machine.write(f"/usr/sbin/{name}", script).chmod(0o755)
    return asked


def prints(file: Path) -> str:
    """The command of a tool that answers."""
    return f"cat {file}; exit 0"


def page(number: int, *, version: int = 3, **values: bytes) -> bytes:
    """A log page of the OCP: ``at_0=...`` puts bytes at an offset."""
    made = bytearray(512)
    for name, data in values.items():
        at = int(name.removeprefix("at_"))
        made[at : at + len(data)] = data
    made[494:496] = version.to_bytes(2, "little")
    made[496:] = bytes.fromhex(GUIDS[number])
    return bytes(made)


def dump(data: bytes) -> str:
    """How ``nvme get-log`` prints a page."""
    lines = ["Device:nvme0n1 log-id:192 namespace-id:0xffffffff", "       0  1  2  3  4  5  6  7"]
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f'{at:04x}: {" ".join(f"{byte:02x}" for byte in row)} "{shown}"')
    return "\n".join(lines) + "\n"
