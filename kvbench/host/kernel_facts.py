"""How the kernel was started and how it treats the CPUs: what moves the cost of an I/O."""

from kvbench.host.fact_reading import read_fact
from kvbench.host.machine import Machine
from kvbench.host.model import Fact

_CPU = "/sys/devices/system/cpu"
_NO_IDLE = "this kernel manages no idle states (often a VM)"


def kernel_facts(machine: Machine) -> tuple[Fact, ...]:
    """Return the command line, the mitigations, the idle states and the NUMA nodes."""
    return (
        read_fact("kernel_command_line", lambda: machine.text("/proc/cmdline").strip()),
        read_fact("mitigations", lambda: _mitigations(machine)),
        read_fact("cpu_idle", lambda: _idle(machine), absent=_NO_IDLE),
        read_fact("cpu_idle_exit_us", lambda: str(_deepest(machine)[1]), absent=_NO_IDLE),
        read_fact("numa_nodes", lambda: str(_numa_nodes(machine))),
    )


def _mitigations(machine: Machine) -> str:
    """Return in one line what the kernel works around, and what it leaves open."""
    folder = f"{_CPU}/vulnerabilities"
    on, off = [], []
    for name in machine.names(folder):
        said = machine.text(f"{folder}/{name}").strip()
        if "Mitigation" in said:
            on.append(name)
        elif not said.startswith("Not affected"):
            off.append(name)
    return f"on: {', '.join(on) or 'none'}; vulnerable: {', '.join(off) or 'none'}"


def _idle(machine: Machine) -> str:
    driver = machine.text(f"{_CPU}/cpuidle/current_driver").strip()
    if driver == "none":
        raise ValueError(_NO_IDLE)
    name, exit_us = _deepest(machine)
    return f"{driver}, up to {name} ({exit_us} us to wake)"


def _deepest(machine: Machine) -> tuple[str, int]:
    """Return the allowed idle state of the first CPU that takes longest to leave."""
    folder = f"{_CPU}/cpu0/cpuidle"
    allowed = []
    for state in machine.names(folder):
        if (machine.text_if_there(f"{folder}/{state}/disable") or "0").strip() == "0":
            exit_us = int(machine.text(f"{folder}/{state}/latency"))
            allowed.append((exit_us, machine.text(f"{folder}/{state}/name").strip()))
    if not allowed:
        raise ValueError("no idle state is allowed")
    exit_us, name = max(allowed)
    return name, exit_us


def _numa_nodes(machine: Machine) -> int:
    names = machine.names("/sys/devices/system/node")
    return sum(name.startswith("node") and name[4:].isdigit() for name in names)
