"""The limits that this process's control group sets: memory, CPUs, I/O.  Reads only."""

from kvbench.host.machine import Machine

NO_LIMIT = "no limit"
_NO_LIMIT_BYTES = 1 << 60  # version 1 tells "none" as a number near 2^63
_THROTTLES = ("read_bps", "write_bps", "read_iops", "write_iops")  # of version 1


def memory_limit_bytes(machine: Machine) -> str:
    """Return how much memory the group may use."""
    folder, version = _folder(machine, "memory")
    name = "memory.limit_in_bytes" if version == 1 else "memory.max"
    text = (machine.text_if_there(f"{folder}/{name}") or "max").strip()
    return NO_LIMIT if text == "max" or int(text) >= _NO_LIMIT_BYTES else text


def cpu_limit(machine: Machine) -> str:
    """Return how many CPUs the group may use at a time."""
    folder, version = _folder(machine, "cpu")
    if version == 1:
        quota = (machine.text_if_there(f"{folder}/cpu.cfs_quota_us") or "-1").strip()
        period = (machine.text_if_there(f"{folder}/cpu.cfs_period_us") or "100000").strip()
    else:
        text = machine.text_if_there(f"{folder}/cpu.max") or "max 100000"
        quota, period = text.split()
    return NO_LIMIT if quota in {"max", "-1"} else f"{int(quota) / int(period):g}"


def io_limit(machine: Machine) -> str:
    """Return the limits of I/O as the kernel words them: "259:0 rbps=1048576"."""
    folder, version = _folder(machine, "blkio")
    found = []
    if version == 1:
        for name in _THROTTLES:
            text = machine.text_if_there(f"{folder}/blkio.throttle.{name}_device") or ""
            found += [f"{line} {name}" for line in text.splitlines() if line.strip()]
    else:
        for line in (machine.text_if_there(f"{folder}/io.max") or "").splitlines():
            number, *limits = line.split()
            real = [limit for limit in limits if not limit.endswith("=max")]
            if real:
                found.append(" ".join((number, *real)))
    return "; ".join(found) or NO_LIMIT


def _folder(machine: Machine, controller: str) -> tuple[str, int]:
    """Return the folder of this process's control group for a controller, and its version."""
    unified = ""
    for line in machine.text("/proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return f"/sys/fs/cgroup/{controller}{path}", 1
        if not names:
            unified = path
    return f"/sys/fs/cgroup{unified}", 2
