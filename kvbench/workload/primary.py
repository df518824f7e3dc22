"""The ``primary`` list of a workload file: metrics, each of which the workload can give."""

from collections.abc import Callable

from kvbench.document import found, suggestion
from kvbench.metrics import METRICS
from kvbench.units import KIB
from kvbench.workload.schema import Stream, SweepAxis, Workload
from kvbench.workload.table import Table, plain_text

PRIMARY_MAX = 16
_Met = Callable[[Workload, Stream], bool]


def _swept(workload: Workload, stream: Stream, field: str) -> SweepAxis | None:
    for axis in workload.sweep:
        if (axis.stream, axis.field) == (stream.name, field):
            return axis
    return None


def _sweeps_4kib(workload: Workload, stream: Stream) -> bool:
    axis = _swept(workload, stream, "block_size")
    return axis is not None and 4 * KIB in axis.values


# how a metric's name begins or ends -> what it needs, in words and as a test
_NEEDS: tuple[tuple[str, str, str, _Met], ...] = (
    ("request_", "", "a stream with barrier = true", lambda _, s: s.barrier),
    ("step_", "", "request_steps above 1", lambda _, s: s.request_steps > 1),
    ("stall_", "", "compute_per_step", lambda _, s: s.compute_s is not None),
    ("deadline_", "", "a deadline", lambda _, s: s.deadline_s is not None),
    ("usable_", "", "a [load] table", lambda w, _: w.load is not None),
    ("read_amplification", "", "a payload", lambda _, s: s.payload_bytes is not None),
    (
        "",
        "_mixed_over_alone",
        "isolate = true, or sides",
        lambda w, _: w.isolate or w.matrix,
    ),
    ("jain_index", "", "isolate = true, or sides", lambda w, _: w.isolate or w.matrix),
    ("iops_over_4kib", "", "a sweep of block_size with 4KiB in it", _sweeps_4kib),
    (
        "iops_over_fewer_jobs",
        "",
        "a sweep of jobs",
        lambda w, s: _swept(w, s, "jobs") is not None,
    ),
    (
        "latency_over_smallest_span",
        "",
        "a sweep of span_size",
        lambda w, s: _swept(w, s, "span_size") is not None,
    ),
    (
        "span_",
        "",
        "a sweep of span_size",
        lambda w, s: _swept(w, s, "span_size") is not None,
    ),
)


def read_primary(table: Table, workload: Workload) -> tuple[str, ...]:
    """Return the ``stream.metric`` names of a file, whose other parts are in ``workload``.

    Raises:
        UsageError: no stream or metric of that name, or the workload cannot give it.
    """
    streams = {stream.name: stream for stream in workload.streams}
    names = []
    for n, value in enumerate(table.array("primary", at_most=PRIMARY_MAX), start=1):
        key = f"primary[{n}]"
        text = plain_text(value, table, key, limit=100)
        owner, _, metric = text.partition(".")
        if owner not in streams:
            raise table.error(
                key, f"{found(text)} names no stream of this file", suggestion(owner, list(streams))
            )
        if metric not in METRICS:
            raise table.error(key, f"{found(text)} names no metric", suggestion(metric, METRICS))
        need = unmet_need(metric, workload, streams[owner])
        if need:
            raise table.error(key, f"{metric} needs {need}")
        names.append(text)
    return tuple(names)


def unmet_need(metric: str, workload: Workload, stream: Stream) -> str:
    """Return what ``stream`` lacks to give ``metric``, in words; "" when it lacks nothing."""
    for begin, end, need, met in _NEEDS:
        fits = metric.startswith(begin) and metric.endswith(end)
        if fits and not met(workload, stream):
            return need
    return ""
