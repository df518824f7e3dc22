"""Text of /proc and /sys -> values.  Pure; a text that is not as expected raises ``ValueError``.

The kernel's units stay in the names until they are turned into bytes here.
"""

import re
from collections.abc import Iterable

from msgspec import Struct

from kvbench.host.model import DeviceCounters
from kvbench.units import KIB

_OCTAL = re.compile(r"\\([0-7]{3})")
_DELETED = " (deleted)"
_MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "rootfs", "devtmpfs", "hugetlbfs"})
_NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "lustre", "glusterfs", "afs", "gpfs"}
)
_KERNEL_FILE_SYSTEMS = frozenset(
    {
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devpts",
        "devtmpfs",
        "efivarfs",
        "fusectl",
        "mqueue",
        "nsfs",
        "proc",
        "pstore",
        "securityfs",
        "selinuxfs",
        "sysfs",
        "tracefs",
    }
)


class Mount(Struct, frozen=True, kw_only=True):
    """One line of mountinfo."""

    number: str  # "major:minor" of the file system; major 0 when no single device is behind it
    root: str  # which part of the file system is seen here
    point: str
    options: tuple[str, ...]
    file_system: str
    source: str
    super_options: tuple[str, ...]

    @property
    def in_memory(self) -> bool:
        """Whether the file system keeps its data in RAM."""
        return self.file_system in _MEMORY_FILE_SYSTEMS

    @property
    def on_network(self) -> bool:
        """Whether another machine keeps the data."""
        return self.file_system in _NETWORK_FILE_SYSTEMS

    @property
    def of_the_kernel(self) -> bool:
        """Whether its files are windows into the kernel, not storage."""
        return self.file_system in _KERNEL_FILE_SYSTEMS


class Swap(Struct, frozen=True, kw_only=True):
    """One line of /proc/swaps."""

    path: str
    deleted: bool


class Lock(Struct, frozen=True, kw_only=True):
    """One lock of /proc/locks that is held (waiters are left out)."""

    kind: str  # FLOCK, POSIX, OFDLCK, LEASE
    pid: int | None  # None: the holder is in a namespace that is not seen from here
    file_key: tuple[str, int]  # "major:minor" of the file system, inode


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Return the mounts of one namespace (proc(5), "mountinfo")."""
    return tuple(_mount(line) for line in text.split("\n") if line)


def _mount(line: str) -> Mount:
    before, separator, after = line.partition(" - ")
    left, right = before.split(" "), after.split(" ")
    if not separator or len(left) < 6 or len(right) < 3:
        raise ValueError(f"not a line of mountinfo: {line!r}")
    return Mount(
        number=left[2],
        root=unescape(left[3]),
        point=unescape(left[4]),
        options=tuple(left[5].split(",")),
        file_system=right[0],
        source=unescape(right[1]),
        super_options=tuple(unescape(option) for option in right[2].split(",")),
    )


def unescape(text: str) -> str:
    r"""Return the name that the kernel printed with ``\040`` for a blank and the like."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)


def mount_of(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """Return the mount that a resolved path lies on: the deepest, of those the latest."""
    found: Mount | None = None
    for mount in mounts:
        inside = path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        if inside and (found is None or len(mount.point) >= len(found.point)):
            found = mount
    return found


def parse_swaps(text: str) -> tuple[Swap, ...]:
    """Return what the kernel swaps to."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("Filename"):
        raise ValueError("not a /proc/swaps")
    swaps = []
    for line in lines[1:]:
        path = unescape(line.split()[0])
        swaps.append(Swap(path=path.removesuffix(_DELETED), deleted=path.endswith(_DELETED)))
    return tuple(swaps)


def parse_locks(text: str) -> tuple[Lock, ...]:
    """Return the locks that are held."""
    locks = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 8 or fields[1] == "->":
            continue
        major, minor, inode = fields[5].split(":")
        pid = int(fields[4])
        locks.append(
            Lock(
                kind=fields[1],
                pid=pid if pid > 0 else None,
                file_key=(f"{int(major, 16)}:{int(minor, 16)}", int(inode)),
            )
        )
    return tuple(locks)


def parse_cpuinfo(text: str) -> dict[str, str]:
    """Return the first processor's fields (x86: "model name", "flags")."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, separator, value = line.partition(":")
        if separator:
            fields.setdefault(key.strip(), value.strip())
        elif fields:
            break
    return fields


def parse_meminfo_bytes(text: str) -> dict[str, int]:
    """Return the fields of /proc/meminfo in bytes; its "kB" are 1024 bytes each."""
    fields: dict[str, int] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        words = value.split()
        if words:
            fields[key] = int(words[0]) * (KIB if words[1:] == ["kB"] else 1)
    return fields


def parse_os_release(text: str) -> dict[str, str]:
    """Return the fields of os-release without their quotes."""
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {key.strip(): value.strip().strip("\"'") for key, separator, value in pairs if separator}


def parse_limits(text: str) -> dict[str, str]:
    """Return the soft limits of /proc/PID/limits by their name; sizes are in bytes."""
    limits: dict[str, str] = {}
    for line in text.splitlines()[1:]:
        fields = re.split(r"\s{2,}", line.strip())
        if len(fields) >= 3:
            limits[fields[0]] = fields[1]
    return limits


def parse_stat(text: str) -> DeviceCounters:
    """Return the counters of /sys/block/*/stat; its sectors are 512 bytes on every device."""
    fields = [int(word) for word in text.split()]
    if len(fields) < 7:
        raise ValueError(f"not a stat of a block device: {text!r}")
    return DeviceCounters(
        read_ios=fields[0],
        read_sectors=fields[2],
        write_ios=fields[4],
        write_sectors=fields[6],
        discard_sectors=fields[13] if len(fields) > 13 else None,
        read_ticks_ms=fields[3],
        write_ticks_ms=fields[7] if len(fields) > 7 else None,
        busy_ms=fields[9] if len(fields) > 9 else None,
    )


def add_counters(parts: Iterable[DeviceCounters]) -> DeviceCounters:
    """Return the sum over several paths to one device."""
    several = tuple(parts)
    return DeviceCounters(
        read_ios=sum(part.read_ios for part in several),
        read_sectors=sum(part.read_sectors for part in several),
        write_ios=sum(part.write_ios for part in several),
        write_sectors=sum(part.write_sectors for part in several),
        discard_sectors=_sum(part.discard_sectors for part in several),
        read_ticks_ms=_sum(part.read_ticks_ms for part in several),
        write_ticks_ms=_sum(part.write_ticks_ms for part in several),
        busy_ms=_sum(part.busy_ms for part in several),
    )


def _sum(parts: Iterable[int | None]) -> int | None:
    """Return the sum, None where one of them is not known."""
    values = list(parts)
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def chosen(text: str) -> str:
    """Return the bracketed word of ``none [mq-deadline] kyber``, or the whole text."""
    match = re.search(r"\[([^\]]+)\]", text)
    return match[1] if match else text.strip()


def parse_export(text: str) -> dict[str, str]:
    """Return the KEY=value lines of ``blkid -o export``."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value for key, separator, value in pairs if separator}
