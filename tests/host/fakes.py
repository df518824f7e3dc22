"""A machine made of files: /proc, /sys and /dev under a temporary folder."""

import os
import stat
from pathlib import Path

import msgspec

from kvbench.host.machine import LoopBacking, Machine, Node, NodeKind
from kvbench.units import MIB, SECTOR_BYTES

DISK_BYTES = 4 * MIB
SWAPS_HEADER = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
ROOT_MOUNT = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw"


class FakeMachine(Machine):
    """Device nodes are plain files of which this class says what they are."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.devices: dict[str, tuple[NodeKind, str]] = {}
        self.claimed: set[str] = set()
        self.hidden: set[str] = set()
        self.root_user = True
        self.backings: dict[str, LoopBacking] = {}
        self.write("/proc/swaps", SWAPS_HEADER)
        self.at("/sys/class/block").mkdir(parents=True)
        self.at("/sys/dev/block").mkdir(parents=True)
        self.tool_says("blkid", "", 2)
        self.process(1, [ROOT_MOUNT])
        self.mount_here([ROOT_MOUNT])
        self.add_disk("vda", "254:0")

    def node(self, path: str) -> Node:
        """Return the node, with its pretended kind."""
        if path in self.hidden:
            raise PermissionError(13, "Permission denied", path)
        found = super().node(path)
        known = self.devices.get(self.resolve(path))
        if known is None:
            return found
        return msgspec.structs.replace(found, kind=known[0], number=known[1], size_bytes=0)

    def is_claimed(self, path: str) -> bool:
        """Return what the test decided."""
        return path in self.claimed

    def loop_backing(self, kernel_name: str) -> LoopBacking:
        """Return what the test decided."""
        return self.backings[kernel_name]

    def is_root(self) -> bool:
        """Return what the test decided."""
        return self.root_user

    def pause(self, seconds: float) -> None:
        """Wait for nothing."""

    def write(self, path: str, text: str) -> Path:
        place = self.at(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def link(self, path: str, target: str) -> None:
        """Make a symlink that stays inside the tree."""
        place = self.at(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(os.path.relpath(self.at(target), place.parent))

    def tool_says(self, name: str, text: str, code: int) -> None:
        place = self.write(
            f"/usr/sbin/{name}", f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {code}\n"
        )
        place.chmod(place.stat().st_mode | stat.S_IXUSR)

    def process(self, pid: int, mounts: list[str], *, comm: str = "init") -> None:
        self.write(f"/proc/{pid}/mountinfo", "".join(f"{line}\n" for line in mounts))
        self.write(f"/proc/{pid}/comm", f"{comm}\n")

    def opens(self, pid: int, path: str) -> None:
        self.link(f"/proc/{pid}/fd/3", path)

    def mount_here(self, mounts: list[str]) -> None:
        self.write("/proc/self/mountinfo", "".join(f"{line}\n" for line in mounts))

    def swap(self, path: str) -> None:
        self.write("/proc/swaps", f"{SWAPS_HEADER}{path} partition 65532 0 -2\n")

    def add_char(self, path: str, number: str) -> None:
        self.write(path, "")
        self.devices[path] = ("char", number)

    def add_disk(self, name: str, number: str, *, size_bytes: int = DISK_BYTES) -> str:
        """Add an empty disk, and return the path of its node."""
        return self._add(f"/sys/devices/pci/block/{name}", name, number, size_bytes)

    def add_partition(self, disk: str, name: str, number: str, index: int) -> str:
        folder = f"/sys/devices/pci/block/{disk}/{name}"
        path = self._add(folder, name, number, DISK_BYTES // 4)
        self.write(f"{folder}/partition", f"{index}\n")
        return path

    def _add(self, folder: str, name: str, number: str, size_bytes: int) -> str:
        self.write(f"{folder}/dev", f"{number}\n")
        self.write(f"{folder}/size", f"{size_bytes // SECTOR_BYTES}\n")
        self.write(f"{folder}/ro", "0\n")
        self.write(f"{folder}/diskseq", "3\n")
        self.write(f"{folder}/stat", "1 0 8 0 2 0 16 0 0 0 0\n")
        self.at(f"{folder}/holders").mkdir()
        self.at(f"{folder}/slaves").mkdir()
        self.link(f"/sys/class/block/{name}", folder)
        self.link(f"/sys/dev/block/{number}", folder)
        node = f"/dev/{name}"
        place = self.write(node, "")
        with place.open("wb") as file:
            file.truncate(size_bytes)
        self.devices[node] = ("block", number)
        return node

    def sysfs(self, name: str, file: str, text: str) -> None:
        """Set a file in the sysfs folder of a device."""
        self.write(f"{self.resolve(f'/sys/class/block/{name}')}/{file}", text)

    def hold_by(self, name: str, holder: str) -> None:
        """Build ``holder`` upon a device, both ways."""
        self.link(
            f"{self.resolve(f'/sys/class/block/{name}')}/holders/{holder}",
            self.resolve(f"/sys/class/block/{holder}"),
        )
        self.link(
            f"{self.resolve(f'/sys/class/block/{holder}')}/slaves/{name}",
            self.resolve(f"/sys/class/block/{name}"),
        )

    def put(self, path: str, offset_bytes: int, data: bytes) -> None:
        """Put bytes on a device."""
        with self.at(path).open("r+b") as file:
            file.seek(offset_bytes)
            file.write(data)
