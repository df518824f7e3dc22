"""What a workload can give: the parameters of its points and the metrics of its streams.  Pure."""

from kvbench.workload.primary import unmet_need
from kvbench.workload.schema import Stream, SweepValue, Workload

PEAK = "peak"  # the closed loop of a load curve; its open loops are called "30 %"


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
    need = unmet_need(metric, workload, stream)
    if need:
        return f"it needs {need}"
    if metric.startswith("latency_p") and not metric.endswith("_over_alone") and stream.barrier:
        return "behind a barrier the time is that of the request"
    if metric.endswith("_over_alone") and stream.side == "aggressor":
        return "a pair is judged by its victim"
    return ""
