"""Parse and format sizes, times and rates.  The only home of 1024, 1000 and 1e9.

``KiB`` is 1024 bytes and ``KB`` is 1000, always.  fio reads the same spellings the other way
round, so fio is only ever given plain byte counts (see ``kvbench.fio.jobfile``).
"""

import re
from math import isfinite

from kvbench.errors import UsageError

KIB = 1024
MIB = 1024**2
GIB = 1024**3
TIB = 1024**4

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
MS_PER_S = 1000
US_PER_S = 1_000_000
S_PER_MINUTE = 60
S_PER_HOUR = 3600
SECTOR_BYTES = 512  # the unit of /sys/block/*/stat and size, whatever the device's LBA size
SHARE_ROUNDS_TO_0, SHARE_ROUNDS_TO_100 = 0.005, 99.95  # %, with three digits
HUGE_PAGE_BYTES = 2 * MIB  # of x86 and of most arm64 kernels

_SIZE_UNITS: dict[str, int] = {
    "": 1,
    "B": 1,
    "KiB": KIB,
    "MiB": MIB,
    "GiB": GIB,
    "TiB": TIB,
    "KB": 1000,
    "kB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
}
_TIME_UNITS: dict[str, float] = {
    "us": 1 / US_PER_S,
    "ms": 1 / MS_PER_S,
    "s": 1.0,
    "": 1.0,
    "min": 60.0,
    "h": 3600.0,
}
_QUANTITY = re.compile(r"\s*([0-9]{1,24}(?:\.[0-9]{1,24})?)\s*([A-Za-z]*)\s*")
_SIZE_HINT = "write e.g. 4096, 4KiB, 2MiB or 1GB; KiB is 1024 bytes, KB is 1000"


def parse_size(text: str | int, *, where: str = "") -> int:
    """Return a byte count from ``"4KiB"``, ``"2 MiB"``, ``"1GB"``, ``"512"`` or ``512``.

    Raises:
        UsageError: not a size, not a whole number of bytes, or an ambiguous unit such as ``64M``.
    """
    if isinstance(text, bool):
        raise UsageError(f"not a size: {text!r}", where=where, hint=_SIZE_HINT)
    if isinstance(text, int):
        if text < 0:
            raise UsageError(f"a size cannot be negative: {text}", where=where)
        return text
    match = _QUANTITY.fullmatch(text)
    if not match or match[2] not in _SIZE_UNITS:
        raise UsageError(f"not a size: {text!r}", where=where, hint=_SIZE_HINT)
    number, unit = match[1], _SIZE_UNITS[match[2]]
    size = float(number) * unit if "." in number else int(number) * unit
    if isinstance(size, float) and (not isfinite(size) or size != int(size)):
        raise UsageError(f"not a whole number of bytes: {text!r}", where=where, hint=_SIZE_HINT)
    return int(size)


def parse_duration(text: str | float, *, where: str = "") -> float:
    """Return seconds from ``"500ms"``, ``"2s"``, ``"1.5min"`` or a plain number of seconds."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        value = float(text)
        if not isfinite(value) or value < 0:
            raise UsageError(f"not a duration: {text!r}", where=where, hint="write e.g. 500ms or 2")
        return value
    match = _QUANTITY.fullmatch(str(text))
    if not match or match[2] not in _TIME_UNITS:
        raise UsageError(
            f"not a duration: {text!r}", where=where, hint="write e.g. 500ms, 2s, 1min"
        )
    return float(match[1]) * _TIME_UNITS[match[2]]


def format_size(size_bytes: float) -> str:
    """Return a binary size, exact where it can be: ``512 B``, ``4 KiB``, ``1.5 GiB``."""
    for unit, factor in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if size_bytes >= factor:
            return f"{_short(size_bytes / factor)} {unit}"
    return f"{_short(size_bytes)} B"


def format_bandwidth(bytes_per_s: float) -> str:
    """Return a decimal rate: ``3.12 GB/s``."""
    for unit, factor in (("GB/s", 1e9), ("MB/s", 1e6), ("KB/s", 1e3)):
        if bytes_per_s >= factor:
            return f"{_three(bytes_per_s / factor)} {unit}"
    return f"{_three(bytes_per_s)} B/s"


def format_time(seconds: float) -> str:
    """Return a latency with three significant digits: ``84.2 us``, ``1.31 ms``, ``2.50 s``."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor:
            return f"{_three(seconds / factor)} {unit}"
    return f"{_three(seconds / 1e-9)} ns"


def format_clock(seconds: float) -> str:
    """Return a length of time for people: ``45 s``, ``2 min 05 s``, ``3 h 10 min``."""
    whole = max(0, round(seconds))
    if whole < S_PER_MINUTE:
        return f"{whole} s"
    if whole < S_PER_HOUR:
        return f"{whole // S_PER_MINUTE} min {whole % S_PER_MINUTE:02d} s"
    return f"{whole // S_PER_HOUR} h {whole % S_PER_HOUR // S_PER_MINUTE:02d} min"


def format_count(value: float) -> str:
    """Return a count or rate with three significant digits: ``812``, ``19.1k``, ``1.24M``."""
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= factor:
            return f"{_three(value / factor)}{unit}"
    return _three(value)


def format_value(value: float, unit: str) -> str:
    """Return ``value`` in ``unit`` as people read it; the units are those of ``metrics``."""
    match unit:
        case "s":
            return format_time(value)
        case "B":
            return format_size(value)
        case "B/s":
            return format_bandwidth(value)
        case "1/s":
            return format_count(value)
        case "%":
            return f"{_percent(value)} %"
        case "1":
            return _three(value) if value >= 1 else f"{value:.3f}"
        case _:
            return f"{_three(value)} {unit}"


def _short(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.2f}".rstrip("0").rstrip(".")


def _percent(value: float) -> str:
    """Return a share that is only 0 or 100 where it is so: ``0.004``, ``70.0``, ``99.96``."""
    if 0 < value < SHARE_ROUNDS_TO_0:
        return f"{value:.2g}"
    if SHARE_ROUNDS_TO_100 <= value < 100:
        decimals = next((d for d in range(2, 9) if float(f"{value:.{d}f}") < 100), 9)
        return f"{value:.{decimals}f}"
    return _three(value)


def _three(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
