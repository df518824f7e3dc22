"""One decoded JSON document of fio -> FioResult.  Pure; the one place that knows fio's units.

The unit of a value is told by its key, and where a key changed its meaning by the version:

=============  ======================================================================
clat_ns        ns (from 2.99); before it was ``clat`` in microseconds
io_bytes       bytes (from 2.21, together with ``io_kbytes``); before it was KiB
bw_bytes       bytes/s (from 3.2); ``bw`` is KiB/s in every version
runtime        ms in every version
=============  ======================================================================

What fits neither is an error: a number that is wrong a thousandfold is worse than none.
"""

import re
from functools import lru_cache
from math import isfinite

import msgspec
import numpy as np
from numpy.typing import NDArray

from kvbench.fio.diagnostics import FioOutputError
from kvbench.fio.model import Diagnostic, DiskUtil, FioDirection, FioJob, FioResult, LatencyStats
from kvbench.fio.raw import Number, Options, RawDirection, RawDisk, RawDocument, RawJob, RawLatency
from kvbench.units import KIB, MS_PER_S, NS_PER_S, US_PER_S

_VERSION = re.compile(r"fio-(\d+)\.(\d+)(?:[.-].*)?")
_PERCENT = re.compile(r"\d+(\.\d+)?")
_BYTES_SINCE = (2, 21)
_NANOSECONDS_SINCE = (2, 99)
_BW_BYTES_SINCE = (3, 2)
_LIMIT = 2**63  # fio's unset or wrapped counters lie here or above
_NS_PER_US = NS_PER_S // US_PER_S
_ROUNDING = 1e-5  # fio prints a mean with six decimals, and min and max as whole numbers
_UNIT_TOLERANCE = 0.01
_UNIT_CHECK_MS_MIN = 200  # below, the millisecond of ``runtime`` is too coarse to check a unit


def read_document(raw: str) -> FioResult:
    """Return the result in one JSON document, without the lines around it.

    Values that fio cannot have measured (NaN, infinite, negative, 2^63 and above) become None
    where the model has a None, with a warning among the diagnostics, and are an error elsewhere.

    Raises:
        FioOutputError: the document is not what fio prints, or its units are not certain.
        msgspec.DecodeError: it is no JSON.
    """
    try:
        document = msgspec.json.decode(raw.encode("utf-8", "replace"), type=RawDocument)
    except msgspec.ValidationError as error:
        raise FioOutputError(f"fio's JSON is not as fio writes it: {error}") from None
    if document.client_stats is not None:
        raise FioOutputError(
            "this is client/server output of fio, which is another document",
            hint="give the output of a fio that ran its jobs itself",
        )
    if not document.jobs:
        raise FioOutputError("fio's JSON holds no job, so nothing ran")
    return _Reader(document.version).result(document)


def parse_version(text: str) -> tuple[int, int]:
    """Return (3, 33) from ``fio-3.33`` or ``fio-3.33-12-gabc``.

    Raises:
        FioOutputError: it is no version of fio, so the units of its numbers are not known.
    """
    match = _VERSION.fullmatch(text.strip())
    if not match:
        raise FioOutputError(f"unknown version of fio: {text!r}, so its units are not certain")
    return int(match[1]), int(match[2])


def unescape(name: str) -> str:
    r"""Return a name as it is outside fio: ``usb-0\:0`` is ``usb-0:0``."""
    return name.replace(r"\:", ":")


class _Reader:
    """Converts one document; collects what it had to leave out."""

    def __init__(self, version: str) -> None:
        self.version = parse_version(version)
        self.version_text = version
        self.doubts: list[Diagnostic] = []

    def result(self, document: RawDocument) -> FioResult:
        shared = document.options if isinstance(document.options, list) else [document.options]
        options = {key: value for part in shared for key, value in part.items()}
        timestamp = _usable(document.timestamp_ms)
        jobs = tuple(self.job(i, job, options) for i, job in enumerate(document.jobs or ()))
        return FioResult(
            version=self.version_text,
            timestamp_ms=None if timestamp is None else int(timestamp),
            jobs=jobs,
            disk_util=tuple(disk for raw in document.disk_util if (disk := _disk(raw))),
            diagnostics=tuple(self.doubts),
        )

    def job(self, index: int, raw: RawJob, shared: Options) -> FioJob:
        name = unescape(raw.jobname)
        if raw.mixed is not None and raw.read is None and raw.write is None:
            raise FioOutputError(
                "reads and writes are melted into one row", where=name,
                hint="run fio without unified_rw_reporting",
            )  # fmt: skip
        options = {**shared, **raw.options}
        return FioJob(
            index=index,
            name=name,
            group_id=raw.groupid,
            error=raw.error,
            total_err=_count(raw.total_err, "total_err", name),
            first_error=_count(raw.first_error, "first_error", name),
            job_runtime_ms=_usable(raw.job_runtime),
            user_cpu_percent=_usable(raw.usr_cpu),
            system_cpu_percent=_usable(raw.sys_cpu),
            depth_percent={
                depth: share
                for depth, value in raw.iodepth_level.items()
                if (share := _usable(value)) is not None
            },
            options={key: unescape(str(value)) for key, value in options.items()},
            read=self.direction(raw.read, f"{name}: read"),
            write=self.direction(raw.write, f"{name}: write"),
            trim=self.direction(raw.trim, f"{name}: trim"),
        )

    def direction(self, raw: RawDirection | None, where: str) -> FioDirection | None:
        if raw is None:
            return None
        total_ios = _count(raw.total_ios, "total_ios", where)
        io_bytes = self.io_bytes(raw, where)
        if total_ios == 0 and io_bytes == 0:
            return None
        runtime_ms = _needed(raw.runtime, "runtime", where)
        bandwidth = self.bandwidth(raw, where)
        if self.version < _BW_BYTES_SINCE and runtime_ms >= _UNIT_CHECK_MS_MIN:
            twin = io_bytes / runtime_ms * MS_PER_S
            if abs(bandwidth - twin) > _UNIT_TOLERANCE * twin + KIB:
                raise FioOutputError(
                    f"io_bytes and bw do not fit together in {self.version_text}, "
                    "so their units are not certain",
                    where=where,
                )
        return FioDirection(
            io_bytes=io_bytes,
            total_ios=total_ios,
            runtime_ms=runtime_ms,
            bandwidth_bytes_per_s=bandwidth,
            iops=_needed(raw.iops, "iops", where),  # iops_mean is 0 for runs below half a second
            short_ios=_count(raw.short_ios, "short_ios", where),
            drop_ios=_count(raw.drop_ios, "drop_ios", where),
            slat=self.latency(raw.slat_ns, raw.slat, total_ios, f"{where} slat"),
            clat=self.latency(raw.clat_ns, raw.clat, total_ios, f"{where} clat"),
            lat=self.latency(raw.lat_ns, raw.lat, total_ios, f"{where} lat"),
        )

    def io_bytes(self, raw: RawDirection, where: str) -> int:
        value = _count(raw.io_bytes, "io_bytes", where)
        if raw.io_kbytes is not None:
            if abs(_count(raw.io_kbytes, "io_kbytes", where) - value / KIB) > 1:
                raise FioOutputError("io_bytes and io_kbytes contradict each other", where=where)
            return value
        if self.version >= _BYTES_SINCE:
            raise self.uncertain("io_kbytes", where)
        return value * KIB

    def bandwidth(self, raw: RawDirection, where: str) -> float:
        if raw.bw_bytes is not None:
            return _needed(raw.bw_bytes, "bw_bytes", where)
        if self.version >= _BW_BYTES_SINCE:
            raise self.uncertain("bw_bytes", where)
        return _needed(raw.bw, "bw", where) * KIB

    def uncertain(self, key: str, where: str) -> FioOutputError:
        return FioOutputError(
            f"{self.version_text} always prints {key}, which is missing, "
            "so the units of this output are not certain",
            where=where,
        )

    def latency(
        self, in_ns: RawLatency | None, in_us: RawLatency | None, total_ios: int, where: str
    ) -> LatencyStats | None:
        """Return a section that has samples; None when fio did not measure it."""
        if in_us is not None and (in_ns is not None or self.version >= _NANOSECONDS_SINCE):
            raise FioOutputError(
                f"a latency without the unit in its key does not belong into {self.version_text}",
                where=where,
            )
        raw = in_us or in_ns
        factor = 1 if in_us is None else _NS_PER_US
        if raw is not None and raw.count is None and in_us is not None:
            # Before 2.99 a section has no N: every I/O was a sample, or none, and then all is 0.
            raw.count = total_ios if raw.max or raw.mean else 0
        if raw is None or not raw.count:
            return None
        count = _usable(raw.count)
        low, high, mean, stddev = map(_usable, (raw.min, raw.max, raw.mean, raw.stddev))
        if (
            count is None
            or low is None
            or high is None
            or mean is None
            or stddev is None
            or not low <= mean * (1 + _ROUNDING) <= high * (1 + _ROUNDING) ** 2
        ):
            text = f"{where}: fio printed an impossible latency, so it counts as not measured"
            self.doubts.append(Diagnostic(level="warning", text=text))
            return None
        # Bins of 2.x are indices of a table, not times.
        bins = raw.bins if in_us is None else {}
        times, counts = _bins(bins, where) if bins else (None, None)
        return LatencyStats(
            count=int(count),
            min_ns=float(low * factor),
            max_ns=float(high * factor),
            mean_ns=float(mean * factor),
            stddev_ns=float(stddev * factor),
            bin_ns=times,
            bin_counts=counts,
            percentiles_ns=_percentiles(raw.percentile, factor),
        )


def _percentiles(raw: dict[str, Number], factor: int) -> dict[float, float]:
    """Return the percentiles that mean something: 2.x fills its list up with "0.00"."""
    found: dict[float, float] = {}
    for key, value in raw.items():
        usable, percent = _usable(value), _percent(key)
        if percent is not None and percent > 0 and usable is not None:
            found[percent] = float(usable * factor)
    return found


@lru_cache(maxsize=256)  # a document has the same few keys hundreds of times
def _percent(key: str) -> float | None:
    return float(key) if _PERCENT.fullmatch(key) else None


def _bins(raw: dict[str, int], where: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return times in ns and counts, both of shape (bins,), ascending in time."""
    try:
        times = np.fromiter(map(int, raw), dtype=np.float64, count=len(raw))
        counts = np.fromiter(raw.values(), dtype=np.int64, count=len(raw))
    except (ValueError, OverflowError):
        raise FioOutputError("a latency bin is not a time and a count", where=where) from None
    if (counts < 0).any() or (times < 0).any():
        raise FioOutputError("a latency bin is negative", where=where)
    if (np.diff(times) < 0).any():
        order = np.argsort(times)
        times, counts = times[order], counts[order]
    used = counts > 0
    return (times, counts) if used.all() else (times[used], counts[used])


def _disk(raw: RawDisk) -> DiskUtil | None:
    read_ios, write_ios = _usable(raw.read_ios), _usable(raw.write_ios)
    sectors = _usable(raw.read_sectors)
    if read_ios is None or write_ios is None:
        return None
    return DiskUtil(
        name=raw.name.strip(),
        read_ios=int(read_ios),
        write_ios=int(write_ios),
        read_sectors=None if sectors is None else int(sectors),
    )


def _usable(value: Number) -> float | None:
    """Return ``value``, or None when fio cannot have measured it."""
    if value is None or not isfinite(value) or not 0 <= value < _LIMIT:
        return None
    return value


def _needed(value: Number, key: str, where: str) -> float:
    usable = _usable(value)
    if usable is None:
        shown = "nothing usable" if value is None else str(value)
        raise FioOutputError(f"fio printed {shown} for {key}", where=where)
    return usable


def _count(value: Number, key: str, where: str) -> int:
    usable = _needed(value, key, where)
    if usable != int(usable):
        raise FioOutputError(f"fio printed {value} for {key}, which counts things", where=where)
    return int(usable)
