"""What a drive told of its health: before and after a run, around a cell, and once a second.

Data only.  ``None`` is "not measured"; the ``unknown`` beside it says why, by the field's name.
"""

from msgspec import Struct

from kvbench.host.model import DeviceCounters
from kvbench.host.ocp import LatencyMonitor, SmartExtended
from kvbench.host.smart_json import SmartLog


class HealthSample(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One look at the drive during a cell; ``at_s`` counts from the start of its launch."""

    at_s: float
    temperature_c: float | None = None
    temperature_alarm: bool | None = None  # the drive's own: it is over its warning temperature
    state: str | None = None  # of the controller or the disk: "live", "resetting", "running"
    link_speed: str | None = None  # of PCIe, as the kernel words it: "8.0 GT/s"
    link_width: int | None = None
    counters: DeviceCounters | None = None


class KernelLine(Struct, frozen=True, kw_only=True):
    """One line of the kernel log about the devices under the target, seen ``at_s``."""

    at_s: float
    priority: int  # 0 emergency to 7 debug
    text: str


class CellHealth(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was seen of the drive around and during one cell.

    The first sample is from before the launch and the last from after its end.  The SMART logs
    are there for cells that measure the target.
    """

    samples: tuple[HealthSample, ...] = ()
    kernel: tuple[KernelLine, ...] = ()
    kernel_dropped: int = 0  # lines about the devices beyond those that are kept
    smart_before: SmartLog | None = None
    smart_after: SmartLog | None = None
    unknown: dict[str, str] = {}


class DriveHealth(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a drive told at one moment, on its standard and its OCP log pages."""

    at: str  # ISO 8601, UTC
    smart: SmartLog | None = None
    extended: SmartExtended | None = None  # log page C0h
    latency_monitor: LatencyMonitor | None = None  # log page C3h
    unknown: dict[str, str] = {}


class SessionHealth(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A drive before and after one session of a run; ``after`` is None while it goes on.

    ``kernel`` has lines that came between two cells.
    """

    drive: str | None  # the kernel's name of the one drive under the target
    devices: tuple[str, ...]  # whose lines of the kernel log are kept
    before: DriveHealth
    after: DriveHealth | None = None
    kernel: tuple[KernelLine, ...] = ()
    unknown: dict[str, str] = {}


class RunHealth(Struct, frozen=True, kw_only=True):
    """health.json: one entry per session; a run that was resumed has several."""

    format: int
    sessions: tuple[SessionHealth, ...]
