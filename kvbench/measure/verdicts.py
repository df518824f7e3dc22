"""One requirement against a measured run: met, missed, unclear or not measurable.  Pure."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from kvbench.measure.subjects import PAGE_CACHE, Figure, Lookup
from kvbench.measure.values import FIO_LAST_BIN_NS
from kvbench.metrics import METRICS
from kvbench.stats.proportion import count_needed, share_interval
from kvbench.units import NS_PER_S
from kvbench.workload.roles import Bound, ControllerKey, Of, Requirement
from kvbench.workload.schema import Evidence, SweepValue

Verdict = Literal["met", "missed", "unclear", "not measurable"]

ONE_REPETITION = "one repetition has no interval"
BEYOND_FIO = "beyond what fio sees"
STRADDLES = "the interval holds the limit"
TOO_FEW = "too few"  # and what: requests, steps
HOST_BOUND = "host-bound"  # the check's name, and what a reader sees


class RequirementRow(Struct, frozen=True, kw_only=True):
    """One requirement and what the run says of it.

    ``value`` to ``doubts`` are of the point that decides.  ``margin`` is the ratio to the limit
    less 1, turned so that above 0 is better than asked; None where there is no value.  ``reason``
    says why the verdict is unclear or not measurable.
    """

    workload: str
    stream: str
    metric: str
    unit: str
    at: dict[str, SweepValue]
    of: Of
    bound: Bound
    limit: float
    limit_text: str
    why: str
    source: str
    evidence: Evidence
    controller: ControllerKey | None
    verdict: Verdict
    reason: str
    value: float | None
    low: float | None
    high: float | None
    interval: Literal["95 %", "range", "none"]
    n: int
    censored: bool
    margin: float | None
    parameters: dict[str, SweepValue]
    points: int  # that matched, with a number or without
    doubts: tuple[str, ...]


def judge_row(lookup: Lookup, requirement: Requirement) -> RequirementRow:
    """Return what the run says of one requirement."""
    found = lookup.find(requirement.subject)
    judged = [(_verdict(requirement, figure), figure) for figure in found.figures]
    (verdict, reason), figure = _deciding(requirement, judged, found.reason)
    subject = requirement.subject
    engine = lookup.run.record.plan.engine
    other = () if engine == "io_uring" else (f"engine {engine}, not io_uring",)
    return RequirementRow(
        workload=subject.workload,
        stream=subject.stream,
        metric=subject.metric,
        unit=subject.unit,
        at=subject.at,
        of=requirement.of,
        bound=requirement.bound,
        limit=requirement.limit,
        limit_text=requirement.limit_text,
        why=requirement.why,
        source=requirement.source,
        evidence=requirement.evidence,
        controller=requirement.controller,
        verdict=verdict,
        reason=reason,
        value=figure.value if figure else None,
        low=figure.low if figure else None,
        high=figure.high if figure else None,
        interval=figure.interval if figure else "none",
        n=figure.n if figure else 0,
        censored=figure.censored if figure else False,
        margin=_margin(requirement, figure.value) if figure else None,
        parameters=figure.parameters if figure else {},
        points=len(judged),
        doubts=(*figure.doubts, *other) if figure else (),
    )


_Said = tuple[Verdict, str]
_Judged = tuple[_Said, Figure]


def _deciding(
    requirement: Requirement, judged: Sequence[_Judged], reason: str
) -> tuple[_Said, Figure | None]:
    """Return the verdict over all points, and the point that decides it.

    The worst point: one miss is a miss, and all must be met.  The best: one that is met is enough,
    and all must miss.  What is unknown never helps to a verdict.
    """
    if not judged:
        return ("not measurable", reason), None
    order: tuple[Verdict, ...] = ("missed", "unclear", "not measurable", "met")
    if requirement.of == "best":
        order = ("met", "unclear", "not measurable", "missed")
    for verdict in order:
        some = [entry for entry in judged if entry[0][0] == verdict]
        if some:
            pick = min if requirement.of == "worst" else max
            said, figure = pick(some, key=lambda entry: _goodness(requirement, entry[1].value))
            return said, figure
    raise AssertionError(order)  # every verdict is in it


def _verdict(requirement: Requirement, figure: Figure) -> _Said:
    if figure.value is None:
        return "not measurable", figure.reason or "no reason is given"
    if PAGE_CACHE.replace(" ", "-") in figure.checks:
        return "not measurable", f"{PAGE_CACHE}: not all of it came from the device"
    if figure.censored:  # the true values are at least these, so an upper end is none
        low = figure.low
        if requirement.bound == "at_most" and low is not None and low > requirement.limit:
            return _missed(requirement, figure)
        return "unclear", BEYOND_FIO
    if METRICS[requirement.subject.metric].share_of:
        return _share_verdict(requirement, figure)
    if figure.low is None or figure.high is None:
        return "unclear", ONE_REPETITION
    if requirement.bound == "at_least":
        met, missed = figure.low >= requirement.limit, figure.high < requirement.limit
    else:
        met, missed = figure.high <= requirement.limit, figure.low > requirement.limit
    if met:
        return ("unclear", BEYOND_FIO) if _is_open(requirement, figure.high) else ("met", "")
    if not missed:
        return "unclear", STRADDLES
    return _missed(requirement, figure)


def _is_open(requirement: Requirement, high: float) -> bool:
    """Whether the upper end of an interval is only the least that it can be."""
    seen = requirement.subject.metric.startswith("latency_p") and requirement.bound == "at_most"
    return seen and high >= FIO_LAST_BIN_NS / NS_PER_S


def _share_verdict(requirement: Requirement, figure: Figure) -> _Said:
    """Judge a share of counted things by how many there were in all repetitions.

    Each repetition may have a few of them only, so what repetitions vary by tells little.
    """
    limit, what = requirement.limit / 100, METRICS[requirement.subject.metric].share_of
    if not figure.counted:
        return "unclear", f"{TOO_FEW} {what}: how many there were is not known"
    low, high = share_interval(figure.hits, figure.counted)
    if requirement.bound == "at_least":
        met, missed = low >= limit, high < limit
    else:
        met, missed = high <= limit, low > limit
    if met:
        return "met", ""
    if missed:
        return _missed(requirement, figure)
    told = f"{figure.hits:,} of {figure.counted:,} tell of {100 * low:.3g} to {100 * high:.3g} %"
    if 0 < limit < 1 and figure.counted < count_needed(max(limit, 1 - limit)):
        needed = count_needed(max(limit, 1 - limit))
        return "unclear", f"{TOO_FEW} {what}: {told}, and {needed:,} are needed at least"
    return "unclear", f"{STRADDLES}: {told}"


def _missed(requirement: Requirement, figure: Figure) -> _Said:
    """Return the verdict of what is beyond its limit, unless the host may be why."""
    if HOST_BOUND not in figure.checks:
        return "missed", ""
    if METRICS[requirement.subject.metric].better == "higher":
        return "not measurable", f"{HOST_BOUND}: the drive may reach more than this host asks for"
    return "not measurable", f"{HOST_BOUND}: waiting for this host is part of the time"


def _goodness(requirement: Requirement, value: float | None) -> float:
    """Return how many times as good as the limit a value is; 1 is just enough."""
    if value is None:
        return 1.0  # unknown ones come after each other in the plan's order
    if requirement.bound == "at_least":
        return value / requirement.limit
    return requirement.limit / value if value > 0 else float("inf")


def _margin(requirement: Requirement, value: float | None) -> float | None:
    goodness = None if value is None else _goodness(requirement, value)
    return None if goodness in (None, float("inf")) else goodness - 1
