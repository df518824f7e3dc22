"""The kernel log while a cell runs: what the kernel says of the devices under the target.

``/dev/kmsg`` is read from its end at the start on, without waiting.  A drive whose controller died
shows as a stall with a good end of fio; here it shows as a timeout and a reset.
"""

import errno
import os
import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from kvbench.host.health_model import KernelLine
from kvbench.host.machine import READ_FLAGS, Machine

PATH = "/dev/kmsg"
RECORD_BYTES_MAX = 8192  # of the kernel's own limit
RECORDS_MAX = 20_000  # looked at in one go; a kernel that says more does nothing else
LINE_CHARS_MAX = 300
_KERNEL_FACILITY = 0
_ERROR, _WARNING, _NOTICE, _INFO = 3, 4, 5, 6
_TROUBLE = re.compile(
    r"error|timeout|timed out|reset|abort|fail|offline|removed|lost|dead|is down|"
    r"not responding|not ready|downgrade|degraded|retrain|thrott|rejecting",
    re.IGNORECASE,
)
# A controller that comes back says harmless things at this level ("Shutdown timeout set to ...").
_TROUBLE_OF_INFO = re.compile(
    r"I/O error|resetting|reset controller|timed out|timeout, |removed|device lost|not ready|"
    r"medium error|thrott|link is down|"
    r"default/read/poll queues",  # all that NVMe says of a reset that somebody asked for
    re.IGNORECASE,
)
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ATA = re.compile(r"ata\d+")
_CONTROLLER = re.compile(r"nvme\d+")


class Record(Struct, frozen=True, kw_only=True):
    """One record of the kernel log."""

    facility: int
    priority: int
    text: str


def parse_record(raw: bytes) -> Record | None:
    """Return a record of ``/dev/kmsg``, None when it is none; its key-value lines are left out."""
    head, separator, rest = raw.decode("utf-8", errors="replace").partition(";")
    level = head.partition(",")[0]
    if not separator or not (level.isascii() and level.isdecimal()):
        return None
    text = "".join(c if c.isprintable() else " " for c in rest.split("\n", 1)[0])
    return Record(facility=int(level) >> 3, priority=int(level) & 7, text=text[:LINE_CHARS_MAX])


def is_trouble(record: Record, names: re.Pattern[str]) -> bool:
    """Return whether a record tells of trouble with one of the devices."""
    if not names.search(record.text):
        return False
    if record.priority <= _ERROR:
        return True
    words = _TROUBLE if record.priority <= _NOTICE else _TROUBLE_OF_INFO
    return words.search(record.text) is not None


def names_pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Return what finds device names in a line: whole names, their partitions and namespaces."""
    parts = []
    for name in sorted(set(names)):
        ending = r"(?:n\d+(?:p\d+)?)?" if _CONTROLLER.fullmatch(name) else r"(?:p?\d+)?"
        if _PCI.fullmatch(name):
            ending = ""
        elif _ATA.fullmatch(name):
            ending = r"(?:\.\d+)?"
        elif name[-1:].isdigit() and not _CONTROLLER.fullmatch(name):
            ending = r"(?:p\d+)?"
        parts.append(re.escape(name) + ending)
    every = "|".join(parts) or r"(?!)"
    return re.compile(rf"(?<![A-Za-z0-9])(?:{every})(?![A-Za-z0-9])")


def names_in_path(sysfs_folder: str) -> tuple[str, ...]:
    """Return by what else the kernel calls a disk: its controller, ATA port and PCI functions.

    Of the PCI functions the device's own and its port's count: those above have other devices.
    """
    parts = sysfs_folder.split("/")
    pci = [part for part in parts if _PCI.fullmatch(part)][-2:]
    others = [part for part in parts if _ATA.fullmatch(part) or _CONTROLLER.fullmatch(part)]
    return tuple(dict.fromkeys((*pci, *others)))


class KernelLog:
    """The kernel log from now on; ``reason`` says why it cannot be read, "" when it can.

    Args:
        names: of the devices whose lines are wanted.
        machine: whose log.
        facilities: whose lines count; programs can write to the log too, as another facility.
    """

    def __init__(
        self,
        names: Sequence[str],
        machine: Machine,
        facilities: frozenset[int] = frozenset({_KERNEL_FACILITY}),
    ) -> None:
        self.reason = ""
        self._names = names_pattern(names)
        self._facilities = facilities
        self._descriptor: int | None = None
        if not names:
            self.reason = "no device under the target is known"
            return
        try:
            self._descriptor = os.open(machine.at(PATH), READ_FLAGS)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        except OSError as error:
            self.close()
            self.reason = f"the kernel log cannot be read: {error.strerror}"

    def new_lines(self, at_s: float) -> list[KernelLine]:
        """Return what was said since the last call; its time is that of this call."""
        found = []
        for _ in range(RECORDS_MAX):
            raw = self._next()
            if raw is None:
                break
            record = parse_record(raw)
            if record is None or record.facility not in self._facilities:
                continue
            if is_trouble(record, self._names):
                found.append(KernelLine(at_s=at_s, priority=record.priority, text=record.text))
        return found

    def close(self) -> None:
        """Read it no more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _next(self) -> bytes | None:
        """Return the next record, None when there is none yet."""
        if self._descriptor is None:
            return None
        while True:
            try:
                return os.read(self._descriptor, RECORD_BYTES_MAX) or None
            except BlockingIOError:
                return None
            except OSError as error:
                if error.errno == errno.EPIPE:
                    continue  # records were overwritten before they were read; it goes on behind
                self.reason = f"the kernel log cannot be read any more: {error.strerror}"
                self.close()
                return None
