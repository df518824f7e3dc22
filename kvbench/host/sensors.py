"""sysfs -> how a drive is right now: temperature, controller state, PCIe link, counters.

All of it is cheap but for the temperature of an NVMe drive, which the kernel asks of the drive
itself: a drive that hangs would hold its reader for a minute.  So that is read by a thread of its
own, and a reading that is late is not measured.
"""

import threading
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from kvbench.host.drive_facts import controller_folder
from kvbench.host.health_model import HealthSample
from kvbench.host.machine import Machine
from kvbench.host.model import DeviceCounters
from kvbench.host.smart_json import PLAUSIBLE_C
from kvbench.host.topology import Block

TEMPERATURE_WAIT_S = 0.1  # a drive answers in a millisecond
MILLI = 1000
NOT_SHOWN = "sysfs shows none for this drive"
_NAMES = ("temperature_c", "temperature_alarm", "state", "link_speed", "link_width")


class Sensors:
    """What one drive shows of itself.  Nothing here raises: what is not there has a reason.

    Args:
        disk: the one drive under the target; None when there is none that shows anything.
        reason: why there is none.
        counters: reads the block counters of the device under the target.
        machine: whose sysfs.
    """

    def __init__(
        self,
        disk: Block | None,
        *,
        reason: str,
        counters: Callable[[], DeviceCounters | None],
        machine: Machine,
    ) -> None:
        self._machine = machine
        self._counters = counters
        self._never: dict[str, str] = {}  # what this drive does not show at all
        self._missed: dict[str, str] = {}  # what it did not show in this cell
        self._state = self._heat = self._link = ""
        self._reading: threading.Thread | None = None
        self._read: tuple[float | None, bool | None, str] = (None, None, "")
        if disk is None:
            self._never.update(dict.fromkeys(_NAMES, reason))
            return
        self._find(disk)

    @property
    def unknown(self) -> dict[str, str]:
        """Why something was not measured since ``begin``, by name."""
        return {**self._missed, **self._never}

    def begin(self) -> None:
        """Begin a cell: what was missing in the one before it is forgotten."""
        self._missed = {}

    def _find(self, disk: Block) -> None:
        """Note where the drive shows what; a place that is not there now is not looked at again."""
        is_nvme = disk.name.startswith("nvme")
        controller = controller_folder(disk, self._machine) if is_nvme else None
        own = controller or f"{disk.folder}/device"
        if is_nvme and controller is None:
            self._never.update(dict.fromkeys(_NAMES, "its NVMe controller is not one"))
            return
        self._state = self._where("state", [f"{own}/state"])
        self._heat = next(self._hwmon(own), "")
        if not self._heat:
            self._never["temperature_c"] = NOT_SHOWN
        if not self._heat:
            self._never["temperature_alarm"] = self._never["temperature_c"]
        folders = (str(path) for path in PurePosixPath(self._resolved(own)).parents)
        ports = [f"{folder}/current_link_speed" for folder in (self._resolved(own), *folders)]
        self._link = self._where("link_speed", ports if is_nvme else []).removesuffix("_speed")
        if not self._link:
            self._never["link_width"] = self._never["link_speed"]

    def _resolved(self, folder: str) -> str:
        try:
            return self._machine.resolve(folder)
        except OSError:
            return folder

    def _hwmon(self, own: str) -> Iterator[str]:
        """Yield the sensors of a drive; kernels differ in where they hang them.

        None is read: a drive that hangs would hold the reader.
        """
        for parent in (own, f"{own}/hwmon", f"{own}/device/hwmon"):
            try:
                names = self._machine.names_if_there(parent)
                for name in (name for name in names if name.startswith("hwmon")):
                    if "temp1_input" in self._machine.names_if_there(f"{parent}/{name}"):
                        yield f"{parent}/{name}/temp1"
            except OSError:
                continue

    def _where(self, name: str, paths: list[str]) -> str:
        """Return the first path that can be read, "" with the reason noted."""
        reason = NOT_SHOWN
        for path in paths:
            try:
                if self._machine.text_if_there(path) is not None:
                    return path
            except OSError as error:
                reason = f"{path}: {error.strerror}"
        self._never[name] = reason
        return ""

    def sample(self, at_s: float) -> HealthSample:
        """Return how the drive is now."""
        temperature_c, alarm = self._temperature()
        speed, width = self._link_now()
        return HealthSample(
            at_s=at_s,
            temperature_c=temperature_c,
            temperature_alarm=alarm,
            state=self._text("state", self._state),
            link_speed=speed,
            link_width=width,
            counters=self._counters(),
        )

    def _text(self, name: str, path: str) -> str | None:
        """Return a file that was there at the start, None with the reason when it is not now."""
        if not path:
            return None
        try:
            text = self._machine.text(path).strip()
        except OSError as error:
            self._missed[name] = f"it has gone: {error.strerror}"
            return None
        return text or None

    def _link_now(self) -> tuple[str | None, int | None]:
        if not self._link:
            return None, None
        speed = self._text("link_speed", f"{self._link}_speed")
        width = self._text("link_width", f"{self._link}_width") or ""
        if speed is None or not speed[:1].isdigit() or not width.isdecimal() or int(width) > 32:
            self._missed.setdefault("link_speed", "the PCIe device does not tell its link")
            self._missed.setdefault("link_width", "the PCIe device does not tell its link")
            return None, None
        return speed.removesuffix("PCIe").strip(), int(width)

    def _temperature(self) -> tuple[float | None, bool | None]:
        if not self._heat:
            return None, None
        if self._reading is None or not self._reading.is_alive():
            self._reading = threading.Thread(target=self._read_temperature, daemon=True)
            self._reading.start()
        self._reading.join(TEMPERATURE_WAIT_S)
        if self._reading.is_alive():
            for name in ("temperature_c", "temperature_alarm"):
                self._missed[name] = "the drive did not answer in time"
            return None, None
        value, alarm, reason = self._read
        if reason:
            self._missed["temperature_c"] = reason
        return value, alarm

    def _read_temperature(self) -> None:
        try:
            told = int(self._machine.text(f"{self._heat}_input"))
        except (OSError, ValueError) as error:
            self._read = (None, None, f"it cannot be read: {_words(error)}")
            return
        try:
            alarm: bool | None = self._machine.text(f"{self._heat}_alarm").strip() != "0"
        except OSError as error:
            alarm = None
            self._missed["temperature_alarm"] = f"it cannot be read: {_words(error)}"
        reason = implausible(told)
        self._read = (None if reason else told / MILLI, alarm, reason)


def implausible(told_mc: int) -> str:
    """Return why thousandths of a degree Celsius are no measurement, "" when they are one.  Pure.

    A drive without a sensor tells 0 K or 0xFFFF K, which the kernel hands on in degrees Celsius.
    """
    if round(told_mc / MILLI) in PLAUSIBLE_C:
        return ""
    return f"the drive tells {told_mc / MILLI:g} degrees Celsius, which is no measurement"


def _words(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
