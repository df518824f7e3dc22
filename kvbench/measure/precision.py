"""How precise the primary numbers of a run are by now.  Pure."""

from msgspec import Struct

from kvbench.measure.model import MeasuredRun, Summary
from kvbench.measure.subjects import OF_A_CURVE

# Simulated: 6,000 runs of each of some spreads and limits, up to 10 to 40 repetitions; 89 to 95 %
# of those that stopped held the median.  A stricter rank for the rule does not mend it, as it is
# the stopping that chooses intervals which are narrow by chance.
STOPPED_COVERAGE = "read 95 % as about 90 %"


class Precision(Struct, frozen=True, kw_only=True):
    """``wide`` has (name, width as a share of the median, None where there is no interval).

    ``unmeasured`` counts primary numbers without a value; more repetitions give them none.
    """

    numbers: int
    wide: tuple[tuple[str, float | None], ...]
    unmeasured: int


def precision(run: MeasuredRun, share: float) -> Precision:
    """Return which primary numbers have an interval that is wider than ``share`` of the median."""
    primary = {
        (workload.name, name) for workload in run.record.plan.workloads for name in workload.primary
    }
    summaries = [
        s
        for s in run.summaries
        if (s.workload, f"{s.stream}.{s.metric}") in primary and s.alone is None and _counts(s)
    ]
    measured = [s for s in summaries if s.median is not None]
    wide = [(s, _width(s)) for s in measured]
    return Precision(
        numbers=len(measured),
        wide=tuple((_name(s), w) for s, w in wide if w is None or w > share),
        unmeasured=len(summaries) - len(measured),
    )


def _counts(summary: Summary) -> bool:
    if summary.purpose == "measure":
        return True
    return summary.purpose == "search" and summary.metric in OF_A_CURVE


def _width(summary: Summary) -> float | None:
    """Return the width of the interval over the median; 0 where all values are 0."""
    if summary.interval != "95 %" or summary.low is None or summary.high is None:
        return None
    if summary.high == summary.low:
        return 0.0
    return (summary.high - summary.low) / abs(summary.median) if summary.median else None


def _name(summary: Summary) -> str:
    point = ", ".join(f"{key}={value}" for key, value in summary.parameters.items())
    name = f"{summary.workload}/{summary.stream}.{summary.metric}"
    return f"{name} ({point})" if point else name
