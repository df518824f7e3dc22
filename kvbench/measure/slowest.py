"""The slowest I/O of a stream against its usual one: did the device stall?  Pure.

One I/O that took long says little of a tail: the next run may have none.  But it shapes the rate
of a closed loop, whose jobs wait for it, and it is often the drive's: a reset, a long collection.
"""

from collections.abc import Iterator

from kvbench.measure.evidence import Evidence
from kvbench.measure.model import Finding
from kvbench.stats import histogram
from kvbench.units import NS_PER_S, format_time

# A quarter of the measured time in one I/O takes that much off the rate of its job.  Ten times the
# median keeps out workloads whose every I/O is long, as 64 MiB in a cell of a second; 0.1 s keeps
# out cells so short that a busy host's scheduler makes such an I/O.
SHARE_MIN = 0.25
SHARE_MEDIANS_MIN = 10.0
SHARE_S_MIN = 0.1
# In a long cell a stall is a small share, and still one where it stands out: flash drives answer
# within milliseconds, and take a second for resets and timeouts alone.
LONG_S_MIN = 1.0
LONG_MEDIANS_MIN = 100.0


def stalled(evidence: Evidence) -> Iterator[Finding]:
    """No I/O took a large share of the measured time, or stood out absurdly."""
    measured_s = evidence.cell.measured_s
    for rows in evidence.streams:
        found = [m for d in rows.directions if (m := rows.merged(d)) is not None]
        for merged in found:
            if merged.max_ns is None or not merged.bin_counts.size:
                continue
            slowest_s = merged.max_ns / NS_PER_S
            median_s = histogram.quantile(merged.bin_ns, merged.bin_counts, 0.5) / NS_PER_S
            if evidence.measures_target and is_stall(slowest_s, median_s, measured_s):
                text = (
                    f"one I/O took {format_time(slowest_s)} of the {format_time(measured_s)} "
                    f"measured, the median {format_time(median_s)}: the device stalled, or this "
                    "host did"
                )
                yield Finding(check="stalled", severity="doubt", text=text, stream=rows.stream.name)
                break


def is_stall(slowest_s: float, median_s: float, measured_s: float) -> bool:
    """Return whether the slowest I/O is no part of what the others are like."""
    large = slowest_s >= max(SHARE_MIN * measured_s, SHARE_MEDIANS_MIN * median_s, SHARE_S_MIN)
    return large or slowest_s >= max(LONG_S_MIN, LONG_MEDIANS_MIN * median_s)
