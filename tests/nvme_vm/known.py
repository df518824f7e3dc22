"""Devices whose latency is known because it was configured, and what a percentile of them must be.

A device is made of pieces of equal size; each piece answers after a fixed time.  Reads go to all
places alike, so the share of a piece in the device is its share in the latencies.
"""

import math

from msgspec import Struct

PIECE_MIB = 1
MARGIN = 0.03 + 0.008  # of the configured latency; and half a bin of fio's histogram
SIGMAS = 3.0  # of the share of I/Os that meets a kind of pieces by chance
PERCENTILES = (50.0, 99.0, 99.9, 99.99)


class Level(Struct, frozen=True, kw_only=True):
    """So many pieces that answer after the same time."""

    latency_s: float
    pieces: int


class Device(Struct, frozen=True, kw_only=True):
    """A device under test; ``levels`` from the fastest to the slowest."""

    name: str  # of a folder as well
    summary: str
    levels: tuple[Level, ...]

    @property
    def pieces(self) -> int:
        """All pieces of the device."""
        return sum(level.pieces for level in self.levels)

    @property
    def mean_s(self) -> float:
        """The mean latency over all places."""
        return sum(level.latency_s * level.pieces for level in self.levels) / self.pieces


def single(name: str, latency_s: float) -> Device:
    """Return a device with one latency everywhere."""
    summary = f"{latency_s * 1e3:g} ms everywhere"
    return Device(name=name, summary=summary, levels=(Level(latency_s=latency_s, pieces=1000),))


def tail(name: str, *pieces: int) -> Device:
    """Return a device with pieces of 1, 5 and 20 ms."""
    levels = tuple(
        Level(latency_s=latency_s, pieces=count)
        for latency_s, count in zip((1e-3, 5e-3, 20e-3), pieces, strict=True)
    )
    summary = ", ".join(f"{level.pieces} of {level.latency_s * 1e3:g} ms" for level in levels)
    return Device(name=name, summary=summary, levels=levels)


class Load(Struct, frozen=True, kw_only=True):
    """How a device is read.  ``ios`` is about how many I/Os are measured."""

    name: str  # of a workload file as well
    ios: int
    queue_depth: int = 1
    open_loop_share: float | None = None  # of the rate at depth 1; None is a closed loop

    def rate_iops(self, device: Device) -> int | None:
        """Return the rate of random arrivals, None in a closed loop."""
        if self.open_loop_share is None:
            return None
        return round(self.open_loop_share / device.mean_s)

    def runtime_s(self, device: Device) -> int:
        """Return the whole seconds that so many I/Os take, and a little more."""
        rate = self.rate_iops(device) or self.queue_depth / device.mean_s
        return math.ceil(1.05 * self.ios / rate)

    def workload(self, device: Device) -> str:
        """Return the text of a workload file."""
        rate = self.rate_iops(device)
        return "\n".join(
            [
                "format = 1",
                f'summary = "4 KiB random reads of a device made of {device.summary}"',
                'role = "memory"',
                'evidence = "probe"',
                'source = "the latency of the device is configured: what is measured must be it"',
                'cannot_express = "nothing about a drive: it is the instrument that is tested"',
                'primary = ["reads.latency_p99"]',
                "[timing]",
                f'runtime = "{self.runtime_s(device)}s"',
                'ramp = "1s"',
                "[[stream]]",
                'name = "reads"',
                'direction = "read"',
                'pattern = "random"',
                'block_size = "4KiB"',
                f"queue_depth = {self.queue_depth}",
                *([f"rate_iops = {rate}"] if rate else []),
                "",
            ]
        )


Case = tuple[Device, tuple[Load, ...]]

DEPTH_1 = Load(name="depth-1", ios=100_000)  # what p99.99 needs
DEPTH_1_SHORT = Load(name="depth-1", ios=10_000)  # what p99.9 needs
# More than p99.9 needs: when its time is over fio waits for all that is in flight at once, which
# adds the rest of a slow read to up to seven others.
DEPTH_8 = Load(name="depth-8", ios=40_000, queue_depth=8)
ARRIVALS = Load(name="arrivals", ios=10_000, queue_depth=32, open_loop_share=0.5)

ONE_MS = single("one-ms", 1e-3)
CASES: tuple[Case, ...] = (
    (ONE_MS, (DEPTH_1, DEPTH_8, ARRIVALS)),
    (single("five-ms", 5e-3), (DEPTH_1,)),
    (tail("tail", 989, 10, 1), (DEPTH_1, ARRIVALS)),
    # The p99.9 of the tail above lies where 5 ms ends and 20 ms begins; that of this one does not.
    (tail("wide-tail", 985, 10, 5), (DEPTH_1_SHORT, DEPTH_8)),
)


def configured_s(device: Device, percentile: float, io_count: int) -> tuple[float, ...]:
    """Return the latencies that a percentile of so many I/Os may have: one, or two at a step.

    How many of ``io_count`` I/Os meet the slow pieces is chance.  A percentile that lies within
    three standard deviations of a step between two latencies may be either.
    """
    wanted = percentile / 100
    found = []
    done = 0
    for level in device.levels:
        low, high = done / device.pieces, (done + level.pieces) / device.pieces
        done += level.pieces
        if low - _by_chance(low, io_count) <= wanted <= high + _by_chance(high, io_count):
            found.append(level.latency_s)
    return tuple(found)


def _by_chance(share: float, io_count: int) -> float:
    return SIGMAS * math.sqrt(share * (1 - share) / io_count)


def off(value_s: float, configured: tuple[float, ...]) -> float:
    """Return the relative difference to the nearest of the configured latencies."""
    return min((value_s / one - 1 for one in configured), key=abs)
