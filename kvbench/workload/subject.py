"""What a workload can give: the parameters of its points and the metrics of its streams.  Pure."""

from kvbench.workload.schema import Stream, SweepValue, Workload

PEAK = "peak"  # the closed loop of a load curve; its open loops are called "30 %"
SMALL_BYTES = 4096
_FROM_LOAD = ("usable_iops", "usable_share")
_PER_IO = ("latency_",)
_OF_SPANS = ("span_knee", "span_slope", "latency_over_smallest_span")


def parameter_values(workload: Workload) -> dict[str, tuple[SweepValue, ...]]:
    """Return the parameters of the workload's points, each with its values in stored form."""
    found: dict[str, tuple[SweepValue, ...]] = {}
    for axis in workload.sweep:
        label = axis.field if len(workload.streams) == 1 else f"{axis.stream}.{axis.field}"
        found[label] = axis.values
    if workload.load is not None:
        found["load"] = (PEAK, *(f"{percent} %" for percent in workload.load.percents))
    for side in ("victim", "aggressor"):
        names = tuple(s.name for s in workload.streams if s.side == side)
        if names:
            found[side] = names
    return found


def why_not_given(metric: str, workload: Workload, stream: Stream) -> str:
    """Return why ``stream`` of ``workload`` has no such metric, "" when it may have it."""
    needs = _needs(metric, workload, stream)
    return next((f"it needs {what}" for what, there in needs.items() if not there), "")


def _needs(metric: str, workload: Workload, stream: Stream) -> dict[str, bool]:
    """Return what the metric needs, and whether it is there."""
    together = workload.isolate or workload.matrix
    if metric.endswith("_mixed_over_alone") or metric == "jain_index":
        needs = {"isolate = true, or victims and aggressors": together}
        if metric.endswith("_mixed_over_alone") and workload.matrix:
            needs["a stream that is a victim"] = stream.side == "victim"
        return needs
    if metric.startswith("request_"):
        return {"a stream with barrier = true": stream.barrier}
    if metric.startswith("step_"):
        return {"a request of several steps": stream.request_steps > 1}
    if metric.startswith("stall_"):
        return {"a stream with compute": stream.compute_s is not None}
    if metric.startswith("deadline_"):
        return {"a stream with a deadline": stream.deadline_s is not None}
    if metric in _FROM_LOAD:
        return {"a [load] with a search": workload.load is not None}
    if metric in _OF_SPANS:
        return {"a sweep of the span": bool(_swept(workload, "span_size", "span_percent"))}
    if metric.startswith(_PER_IO):
        return {"a stream without a barrier": not stream.barrier}
    if metric == "iops_over_4kib":
        sizes = _swept(workload, "block_size")
        return {"a sweep of the block size that has 4 KiB": SMALL_BYTES in sizes}
    if metric == "iops_over_fewer_jobs":
        return {"a sweep of the jobs": bool(_swept(workload, "jobs"))}
    if metric == "read_amplification":
        return {"a payload": stream.payload_bytes is not None}
    return {}


def _swept(workload: Workload, *fields: str) -> tuple[SweepValue, ...]:
    return tuple(v for axis in workload.sweep if axis.field in fields for v in axis.values)
