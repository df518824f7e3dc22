"""Which boot of the machine this is: its monotonic clock means something within one only."""

from kvbench.host.machine import MACHINE, Machine


def boot_id(machine: Machine = MACHINE) -> str:
    """Return the kernel's random name of this boot, "" where it does not tell."""
    try:
        return machine.text("/proc/sys/kernel/random/boot_id").strip()
    except OSError:
        return ""
