"""Watch the health of the drive under a target: around a run, around a cell, and in between.

Asked is only what can answer: SMART and the OCP log pages of the one NVMe, SCSI or SATA drive that
the target stands on; temperature, state and link where its sysfs has them; counters and kernel log
for any block device.  Whatever is missing is a reason, never an error: a run goes on without it.
"""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from types import TracebackType

from kvbench.host import kernel_log, ocp, probe
from kvbench.host.drive_under import only_drive, stands_on
from kvbench.host.health_model import (
    CellHealth,
    DriveHealth,
    HealthSample,
    KernelLine,
    SessionHealth,
)
from kvbench.host.machine import MACHINE, Machine
from kvbench.host.model import Identity
from kvbench.host.sensors import Sensors
from kvbench.host.smart_json import SmartLog

SAMPLE_EVERY_S = 1.0
KERNEL_LINES_MAX = 200  # kept of one cell; a drive that fails says the same a thousand times
NOT_ASKED = "a ceiling cell does not touch the drive"


def _as_it_is(text: str) -> str:
    return text


class HealthWatch:
    """The drive under one target, watched for one session.

    Args:
        identity: the target.
        device: the kernel's name of the device whose counters see the target's I/O.
        machine: where it is.
        facilities: whose lines of the kernel log count.
        clean: what a text passes before it is kept: it hides what names one drive.
        now: the clock of the records.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        identity: Identity,
        device: str | None,
        *,
        machine: Machine = MACHINE,
        facilities: frozenset[int] = frozenset({0}),
        clean: Callable[[str], str] = _as_it_is,
        now: Callable[[], datetime],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._device = device
        self._machine = machine
        self._clean = clean
        self._now = now
        self._clock = clock
        disks, self.devices = stands_on(device, machine)
        self.drive, self._reason = only_drive(disks, device, identity)
        self._tools = probe.DriveTools(self.drive, machine) if self.drive else None
        self._smart_reason = self._reason
        self._sensors = Sensors(
            self.drive,
            reason=self._reason,
            counters=lambda: probe.device_counters(device, machine) if device else None,
            machine=machine,
        )
        self._kernel = kernel_log.KernelLog(self.devices, machine, facilities)
        self._between: list[KernelLine] = []
        self._before: DriveHealth | None = None
        self._started_s = self._clock()

    def __enter__(self) -> "HealthWatch":
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def begin(self) -> SessionHealth:
        """Return what the drive tells before the first cell."""
        self._started_s = self._clock()
        self._before = self._drive_health()
        return self._session(None)

    def finish(self) -> SessionHealth:
        """Return what it tells after the last cell, beside what it told before the first."""
        self._note_between()
        return self._session(self._drive_health())

    def close(self) -> None:
        """Watch no more."""
        self._kernel.close()

    def cell(self, *, measures: bool) -> "CellWatch":
        """Begin to watch one cell.

        Args:
            measures: whether it measures the target; only then is its drive asked for SMART.
        """
        smart, reason = self._smart() if measures else (None, NOT_ASKED)
        self._note_between()
        return CellWatch(self, smart, reason, measures=measures)

    def _session(self, after: DriveHealth | None) -> SessionHealth:
        unknown = {"kernel_log": self._kernel.reason} if self._kernel.reason else {}
        return SessionHealth(
            drive=self.drive.name if self.drive else None,
            devices=self.devices,
            before=self._before or DriveHealth(at=self._stamp()),
            after=after,
            kernel=tuple(self._between),
            unknown=self._hidden(unknown),
        )

    def _note_between(self) -> None:
        lines = self._lines(self._clock() - self._started_s)
        self._between += lines[: max(0, KERNEL_LINES_MAX - len(self._between))]

    def _lines(self, at_s: float) -> list[KernelLine]:
        return [
            KernelLine(at_s=line.at_s, priority=line.priority, text=self._clean(line.text))
            for line in self._kernel.new_lines(at_s)
        ]

    def _smart(self) -> tuple[SmartLog | None, str]:
        """Return the SMART log, or why there is none."""
        if self.drive is None or self._tools is None or self._smart_reason:
            return None, self._smart_reason
        try:
            return probe.ask_smart(self.drive, self._machine, self._tools), ""
        except TimeoutError as error:
            self._smart_reason = str(error)
        except OSError as error:
            if self._before is None:  # it never answered: no tool, no permission, no such log
                self._smart_reason = str(error)
            return None, str(error)
        return None, self._smart_reason

    def _drive_health(self) -> DriveHealth:
        smart, reason = self._smart()
        unknown = {} if smart else {"smart": reason}
        extended = monitor = None
        if self._tools is None or self._smart_reason or not self._is_nvme():
            why = self._reason or "not an NVMe drive" if not self._is_nvme() else reason
            unknown |= {"extended": why, "latency_monitor": why}
        else:
            try:
                page = self._tools.log_page(ocp.EXTENDED_PAGE, ocp.PAGE_BYTES)
                extended = ocp.parse_extended(page)
            except (OSError, ValueError) as error:
                unknown["extended"] = str(error)
            try:
                page = self._tools.log_page(ocp.LATENCY_PAGE, ocp.PAGE_BYTES)
                monitor = ocp.parse_latency(page)
            except (OSError, ValueError) as error:
                unknown["latency_monitor"] = str(error)
        return DriveHealth(
            at=self._stamp(),
            smart=smart,
            extended=extended,
            latency_monitor=monitor,
            unknown=self._hidden(unknown),
        )

    def _is_nvme(self) -> bool:
        return self.drive is not None and self.drive.name.startswith("nvme")

    def _hidden(self, reasons: dict[str, str]) -> dict[str, str]:
        return {name: self._clean(reason) for name, reason in reasons.items()}

    def _stamp(self) -> str:
        return self._now().isoformat(timespec="milliseconds")


class CellWatch:
    """One cell, watched: ``tick`` while it runs, ``end`` once."""

    def __init__(
        self, watch: HealthWatch, smart: SmartLog | None, smart_reason: str, *, measures: bool
    ) -> None:
        self._watch = watch
        self._measures = measures
        self._smart = smart
        self._unknown = {} if smart else {"smart": smart_reason}
        self._kernel: list[KernelLine] = []
        self._dropped = 0
        watch._sensors.begin()
        self._samples: list[HealthSample] = []
        self._look(0.0)

    @property
    def samples(self) -> Sequence[HealthSample]:
        """What was seen so far."""
        return self._samples

    def tick(self, elapsed_s: float) -> None:
        """Look again, at most once a second."""
        if elapsed_s >= self._samples[-1].at_s + SAMPLE_EVERY_S:
            self._look(elapsed_s)

    def end(self, wall_s: float) -> CellHealth:
        """Return what was seen, with a last look after the end."""
        self._look(wall_s)
        smart = None
        if self._measures and self._smart is not None:
            smart, reason = self._watch._smart()
            if smart is None:
                self._unknown["smart_after"] = reason
        unknown = {**self._watch._sensors.unknown, **self._unknown}
        if self._watch._kernel.reason:
            unknown["kernel_log"] = self._watch._kernel.reason
        return CellHealth(
            samples=tuple(self._samples),
            kernel=tuple(self._kernel),
            kernel_dropped=self._dropped,
            smart_before=self._smart,
            smart_after=smart,
            unknown=self._watch._hidden(unknown),
        )

    def _look(self, at_s: float) -> None:
        self._samples.append(self._watch._sensors.sample(at_s))
        lines = self._watch._lines(at_s)
        room = max(0, KERNEL_LINES_MAX - len(self._kernel))
        self._kernel += lines[:room]
        self._dropped += len(lines[room:])
