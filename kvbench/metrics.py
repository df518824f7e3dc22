"""ONE table of what is measured: name, unit, direction of better, I/Os needed, meaning."""

from typing import Literal

from msgspec import Struct

Better = Literal["higher", "lower", "neither"]

BEYOND_MIN = 10  # a percentile is a claim only when this many I/Os lie beyond it
PERCENTILES: tuple[float, ...] = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999)


class Metric(Struct, frozen=True, kw_only=True):
    """One kind of number.  ``percentile`` is set for those read from a latency histogram.

    ``share_of`` names what is counted in a share of counted things ("requests"), else "".
    """

    name: str
    unit: str
    better: Better
    meaning: str
    percentile: float | None = None
    share_of: str = ""

    @property
    def min_ios(self) -> int:
        """The I/Os (or requests) needed before the number may be shown."""
        if self.percentile is None:
            return 1
        return ios_needed(self.percentile)


def ios_needed(percentile: float) -> int:
    """Return how many I/Os a percentile needs so that ``BEYOND_MIN`` of them lie beyond it."""
    return round(BEYOND_MIN / (1 - percentile / 100))


def percentile_name(percentile: float) -> str:
    """Return ``p50``, ``p99.9``: the field's own spelling."""
    return f"p{percentile:g}"


def _latencies(prefix: str, what: str) -> list[Metric]:
    return [
        Metric(
            name=f"{prefix}_{percentile_name(p)}",
            unit="s",
            better="lower",
            meaning=f"{what}: {p:g} % were at most this long",
            percentile=p,
        )
        for p in PERCENTILES
    ]


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in [
        Metric(
            name="iops",
            unit="1/s",
            better="higher",
            meaning="I/Os completed without error per second of measured runtime",
        ),
        Metric(
            name="bandwidth",
            unit="B/s",
            better="higher",
            meaning="bytes moved per second of measured runtime (MB/s is 10^6 bytes)",
        ),
        *_latencies("latency", "latency of one I/O from submission to reaping"),
        Metric(
            name="latency_mean",
            unit="s",
            better="lower",
            meaning="mean latency of one I/O from submission to reaping",
        ),
        *_latencies("request", "time of one request: the slowest I/O of each of its steps, added"),
        *_latencies("step", "time of one step of a request, which is its slowest I/O"),
        *_latencies("stall", "time per request that the GPU would wait for data"),
        Metric(
            name="deadline_hit_share",
            unit="%",
            better="higher",
            meaning="requests that were whole before their deadline",
            share_of="requests",
        ),
        Metric(
            name="deadline_step_share",
            unit="%",
            better="higher",
            meaning="steps (pages, blocks) that were there before their request's deadline",
            share_of="steps",
        ),
        Metric(
            name="request_rate",
            unit="1/s",
            better="higher",
            meaning="requests (groups of I/Os behind one barrier) per second",
        ),
        Metric(
            name="cpu_per_io",
            unit="s",
            better="lower",
            meaning="user and system CPU time that the generator spent per I/O",
        ),
        Metric(
            name="depth_mean",
            unit="1",
            better="neither",
            meaning="mean I/Os in flight, from Little's law (rate x mean latency)",
        ),
        Metric(
            name="device_requests_per_io",
            unit="1",
            better="neither",
            meaning="requests that the block device saw per I/O of the workload (whole cell)",
        ),
        Metric(
            name="device_request_bytes",
            unit="B",
            better="neither",
            meaning="mean size of the requests that the block device saw (whole cell)",
        ),
        Metric(
            name="device_byte_share",
            unit="%",
            better="neither",
            meaning="bytes that the block device saw over the bytes of the workload (whole cell)",
        ),
        Metric(
            name="device_latency_mean",
            unit="s",
            better="neither",
            meaning="mean time of a request from the block layer down: its queues and the device",
        ),
        Metric(
            name="host_latency_mean",
            unit="s",
            better="neither",
            meaning="mean latency of an I/O less that: system call, file system, waking, reaping",
        ),
        Metric(
            name="read_amplification",
            unit="1",
            better="neither",
            meaning="bytes read over the bytes that the software wanted of them",
        ),
        Metric(
            name="usable_iops",
            unit="1/s",
            better="higher",
            meaning="highest searched open-loop rate whose tail latency stays within the limit",
        ),
        Metric(
            name="usable_share",
            unit="%",
            better="higher",
            meaning="the usable rate over the peak of the closed loop",
        ),
        Metric(
            name="iops_over_4kib",
            unit="1",
            better="higher",
            meaning="IOPS over those of 4 KiB blocks, all else equal; R512 at 512 B",
        ),
        Metric(
            name="iops_over_fewer_jobs",
            unit="1",
            better="higher",
            meaning="IOPS over the best of fewer submitters, all else equal; below 1 is a collapse",
        ),
        Metric(
            name="latency_over_smallest_span",
            unit="1",
            better="lower",
            meaning="median latency over that of the smallest span, all else equal",
        ),
        Metric(
            name="span_knee",
            unit="B",
            better="higher",
            meaning="span from which on the median latency rises; looked for over all spans",
        ),
        Metric(
            name="span_slope",
            unit="s",
            better="lower",
            meaning="rise of the median latency per doubling of the span beyond the knee",
        ),
        Metric(
            name="host_ceiling_share",
            unit="%",
            better="neither",
            meaning="share of what this host generates with fio's null engine, same job shape",
        ),
        Metric(
            name="latency_p99_mixed_over_alone",
            unit="1",
            better="lower",
            meaning="p99 latency beside the other tenants over the same stream alone",
        ),
        Metric(
            name="latency_p99.9_mixed_over_alone",
            unit="1",
            better="lower",
            meaning="p99.9 latency beside the other tenants over the same stream alone",
        ),
        Metric(
            name="jain_index",
            unit="1",
            better="higher",
            meaning="Jain's fairness of the tenants' shares of their own rates; 1 is fair",
        ),
        Metric(
            name="iops_mixed_over_alone",
            unit="1",
            better="higher",
            meaning="rate beside the other tenants over the same stream alone",
        ),
    ]
}
