"""Summaries -> the usable rate beside the peak, for every load curve of a role.  Pure.

With one curve there is no figure: its own figure marks both rates.
"""

from collections.abc import Sequence

from msgspec import Struct

from kvbench.measure.model import Summary
from kvbench.metrics import percentile_name
from kvbench.report.load import LoadCurve, anywhere, curves_of
from kvbench.report.model import Bar, BarGroup, BarPanel, Figure, PlainTable
from kvbench.report.points import Index
from kvbench.report.words import quantity, short, summary_detail, summary_text
from kvbench.workload.schema import Load, Role, Workload

FIGURE_ID = "usable"
BARS_MAX = 8


class _Curve(Struct, frozen=True, eq=False):
    label: str
    limit: str  # "p99.9 within 1 ms"
    peak: Summary | None
    usable: Summary | None
    share: Summary | None


def usable_figure(index: Index, role: Role) -> Figure | None:
    """Return peak and usable rate of each load curve of ``role``, None for fewer than two."""
    curves = [
        _curve(index, workload, workload.load, curve)
        for workload in index.run.record.plan.workloads
        if workload.role == role and workload.load is not None
        for curve in curves_of(index, workload)
    ]
    drawn = [curve for curve in curves if curve.usable is not None and curve.usable.median]
    if len(drawn) < 2:
        return None
    drawn = drawn[:BARS_MAX]
    limits = ", ".join(dict.fromkeys(curve.limit for curve in drawn))
    title = f"{role.capitalize()}: the usable rate beside the peak"
    return Figure(
        figure_id=f"{FIGURE_ID}-{role}",
        title=title,
        question=f"How much of the peak is left while the tail keeps its limit ({limits})?",
        how_to_read="Bar: median; dots: every repetition. Each curve has an axis of its own, and "
        "every axis starts at zero. The peak is a closed loop; usable is the highest rate of "
        "arrivals that wait for nothing.",
        panels=(
            BarPanel(
                title=title,
                description=" ".join(_describe(curve) for curve in drawn),
                what="rate",
                groups=tuple(_group(curve) for curve in drawn),
            ),
        ),
        table=_data_table(role, curves),
    )


def _curve(index: Index, workload: Workload, load: Load, curve: LoadCurve) -> _Curve:
    stream = workload.streams[0]
    peak = None
    if curve.peak is not None:
        peak = index.summary(curve.peak, stream.name, curve.direction, "iops")
    limit = quantity("latency_p50", "s", load.limit_s)
    return _Curve(
        label=short(curve.words or workload.name, 24),
        limit=f"{percentile_name(load.percentile)} within {limit}",
        peak=peak,
        usable=anywhere(index, stream, curve, "usable_iops"),
        share=anywhere(index, stream, curve, "usable_share"),
    )


def _group(curve: _Curve) -> BarGroup:
    pair = (("peak", 7, curve.peak), ("usable", 2, curve.usable))
    bars = tuple(
        Bar(
            label=label,
            colour=colour,
            median=None if summary is None else summary.median,
            dots=() if summary is None else summary.values,
        )
        for label, colour, summary in pair
    )
    return BarGroup(label=curve.label, metric="iops", unit="1/s", bars=bars)


def _describe(curve: _Curve) -> str:
    return f"{curve.label}: peak {_words(curve.peak)}, usable {_words(curve.usable)}."


def _data_table(role: Role, curves: Sequence[_Curve]) -> PlainTable:
    return PlainTable(
        caption=f"{role.capitalize()}: peak and usable rate of each load curve",
        head=("curve", "limit", "peak", "usable", "usable / peak"),
        rows=tuple(
            (c.label, c.limit, _words(c.peak), _words(c.usable), _words(c.share)) for c in curves
        ),
    )


def _words(summary: Summary | None) -> str:
    if summary is None:
        return "not measured"
    return f"{summary_text(summary)} ({summary_detail(summary)})"
