"""The numbers of a measured run that a card asks about, or why there are none.  Pure."""

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from kvbench.measure.model import MeasuredRun, Summary
from kvbench.metrics import METRICS
from kvbench.units import KIB
from kvbench.workload.roles import Subject
from kvbench.workload.schema import Stream, SweepValue, Workload
from kvbench.workload.streams import FIELDS

NOT_IN_RUN = "not in this run"
PAGE_CACHE = "page cache"
UNPROVEN = "target never proven written"
OTHER_IO = "other I/O under this name"
NO_POINT = "no such point here"
NOT_RUN = "no cell of this point is in the archive"

# One number of a whole curve: some point carries it, the others have none.
OF_A_CURVE = ("usable_iops", "usable_share", "span_knee", "span_slope")
# Ratios to a base point, which has none itself; the parameter in which the base differs.
BASES = {
    "iops_over_4kib": "block_size",
    "iops_over_fewer_jobs": "jobs",
    "latency_over_smallest_span": "span_size",
}
BASE_BLOCK_BYTES = 4 * KIB
_SPAN_FIELDS = ("span_start_percent", "span_percent", "span_limit_bytes")


class Figure(Struct, frozen=True, kw_only=True):
    """One metric at one point.  ``value`` is None when there is none, and ``reason`` says why.

    ``checks`` are the names of the checks that doubted the cells behind it.  Of a share of counted
    things ``counted`` is how many there were in all repetitions, and ``hits`` how many had it.
    """

    parameters: dict[str, SweepValue]
    direction: str
    value: float | None
    low: float | None
    high: float | None
    interval: Literal["95 %", "range", "none"]
    n: int
    censored: bool
    reason: str
    doubts: tuple[str, ...]
    checks: tuple[str, ...]
    counted: int = 0
    hits: int = 0


class Found(Struct, frozen=True, kw_only=True):
    """The figures of a subject; without any, ``reason`` says why."""

    figures: tuple[Figure, ...]
    reason: str = ""


class Lookup:
    """Looks subjects up in one measured run."""

    def __init__(self, run: MeasuredRun) -> None:
        plan = run.record.plan
        self.run = run
        self._workloads = {workload.name: workload for workload in plan.workloads}
        self._skipped = {skipped.workload: skipped.reason for skipped in plan.skipped}
        self._checks = _checks(run)
        self._shares = _shares(run)
        self._planned: dict[tuple[str, str], dict[str, dict[str, SweepValue]]] = {}
        for cell in plan.cells:
            if cell.purpose == "measure" and cell.alone is None:
                for placed in cell.placed:
                    points = self._planned.setdefault((cell.workload, placed.stream.name), {})
                    points[cell.point_id] = cell.parameters
        self._summaries: dict[tuple[str, str, str], list[Summary]] = {}
        for summary in run.summaries:
            counts = summary.purpose == "measure" or summary.metric in OF_A_CURVE
            if counts and summary.purpose != "ceiling" and summary.alone is None:
                key = (summary.workload, summary.stream, summary.metric)
                self._summaries.setdefault(key, []).append(summary)

    def has(self, workload: str) -> bool:
        """Whether the run measured a workload of this name."""
        return workload in self._workloads

    def find(self, subject: Subject) -> Found:
        """Return the figures of ``subject`` at every point that matches it."""
        why_not = self._why_not(subject)
        if why_not:
            return Found(figures=(), reason=why_not)
        key = (subject.workload, subject.stream, subject.metric)
        figures: dict[tuple[str, str], Figure] = {
            (s.point_id, s.direction): self._figure(s)
            for s in self._summaries.get(key, ())
            if _matches(s.parameters, subject.at)
        }
        matching = {
            point: parameters
            for point, parameters in self._planned.get(key[:2], {}).items()
            if _matches(parameters, subject.at)
        }
        if not matching and not figures:
            unsupported = [
                one.reason
                for one in self.run.record.plan.unsupported
                if one.cell.workload == subject.workload
                and _matches(one.cell.parameters, subject.at)
            ]
            if unsupported:
                return Found(figures=(), reason=f"not supported here: {unsupported[0]}")
            return Found(figures=(), reason=f"{NO_POINT}: {self._smaller(subject)}")
        if subject.metric not in OF_A_CURVE:
            seen = {point for point, _ in figures}
            for point, parameters in matching.items():
                if point not in seen:
                    figures[point, ""] = _missing(parameters, self._why_missing(subject, point))
        planned = list(self._planned.get(key[:2], {}).values())
        figures = {
            place: figure
            for place, figure in figures.items()
            if figure.value is not None or not _is_base(subject, figure.parameters, planned)
        }
        if not figures:
            return Found(figures=(), reason=self._why_missing(subject, ""))
        return Found(figures=tuple(figures.values()))

    def _why_not(self, subject: Subject) -> str:
        """Return why nothing may be said at all, "" when something may."""
        plan, written = self.run.record.plan, self.run.record.written
        workload = self._workloads.get(subject.workload)
        if workload is None:
            if subject.workload in self._skipped:
                return f"left out: {self._skipped[subject.workload]}"
            return f"{NOT_IN_RUN}: run --workload {subject.workload}"
        if not _same_io(workload, subject):
            return f"{OTHER_IO}: its {subject.workload} is of another model or version"
        if not plan.direct or written.state == "buffered":
            return f"{PAGE_CACHE}: the run did not ask the device"
        stream = next(s for s in workload.streams if s.name == subject.stream)
        if never_proven(self.run, stream):
            return f"{UNPROVEN}: such reads may not reach the medium"
        return ""

    def _figure(self, summary: Summary) -> Figure:
        checks = self._checks.get((summary.point_id, summary.stream), {})
        counted, hits = self._shares.get((summary.point_id, summary.stream, summary.metric), (0, 0))
        return Figure(
            parameters=summary.parameters,
            direction=summary.direction,
            value=summary.median,
            low=summary.low,
            high=summary.high,
            interval=summary.interval,
            n=summary.n,
            censored=summary.censored,
            reason=summary.reason,
            doubts=summary.doubts,
            checks=tuple(checks),
            counted=counted,
            hits=hits,
        )

    def _why_missing(self, subject: Subject, point: str) -> str:
        """Return why a planned point has no such number."""
        cells = [
            cell
            for cell in self.run.cells
            if cell.cell.workload == subject.workload and point in ("", cell.cell.point_id)
        ]
        if not cells:
            return NOT_RUN
        outcomes = {cell.outcome for cell in cells}
        if outcomes & {"valid", "doubtful"}:
            return "no cell gave this number"
        return f"no valid cell: {len(cells)} {' or '.join(sorted(outcomes))}"

    def _smaller(self, subject: Subject) -> str:
        """Say what of the workload was made smaller, where that may be why."""
        told = [s.text for s in self.run.record.plan.scaled if s.workload == subject.workload]
        return told[0] if told else f"the run's {subject.workload} does not have it"


def never_proven(run: MeasuredRun, stream: Stream) -> bool:
    """Whether ``stream`` read blocks that nobody proved to be written."""
    return run.record.written.state == "unproven" and stream.reads


def _checks(run: MeasuredRun) -> dict[tuple[str, str], dict[str, None]]:
    """Return the doubting checks of each point and stream."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for cell in run.cells:
        if cell.outcome not in ("valid", "doubtful"):
            continue
        names = [placed.stream.name for placed in cell.cell.placed]
        for finding in cell.findings:
            if finding.severity == "doubt":
                for name in names if finding.stream is None else [finding.stream]:
                    found.setdefault((cell.cell.point_id, name), {})[finding.check] = None
    return found


def _shares(run: MeasuredRun) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Return how many were counted and how many had it, of each share of counted things."""
    found: dict[tuple[str, str, str], tuple[int, int]] = {}
    for cell in run.cells:
        if cell.outcome not in ("valid", "doubtful"):
            continue
        for one in cell.measurements:
            if one.value is not None and one.metric in METRICS and METRICS[one.metric].share_of:
                key = (cell.cell.point_id, one.stream, one.metric)
                counted, hits = found.get(key, (0, 0))
                here = round(one.value / 100 * one.io_count)
                found[key] = counted + one.io_count, hits + here
    return found


def _is_base(
    subject: Subject,
    parameters: Mapping[str, SweepValue],
    planned: Iterable[Mapping[str, SweepValue]],
) -> bool:
    """Whether the point is the one that its metric is a ratio to."""
    field = BASES.get(subject.metric)
    label = next((name for name in parameters if name.rpartition(".")[2] == field), None)
    if label is None:
        return False
    if field == "block_size":
        return parameters[label] == BASE_BLOCK_BYTES
    values = [point[label] for point in planned if label in point]
    return parameters[label] == min(values, key=lambda value: float(value), default=None)


def _matches(parameters: Mapping[str, SweepValue], at: Mapping[str, SweepValue]) -> bool:
    return all(key in parameters and parameters[key] == value for key, value in at.items())


def _same_io(workload: Workload, subject: Subject) -> bool:
    """Whether the run's workload does what the card's does, apart from sizes of spans and times."""
    swept = {f"{axis.stream}.{axis.field}" for axis in workload.sweep}
    ours = {stream.name: stream for stream in workload.streams}
    if not swept <= set(subject.swept) or len(ours) != len(subject.streams):
        return False
    return all(
        stream.name in ours
        and _decisive(stream, subject.swept) == _decisive(ours[stream.name], subject.swept)
        for stream in subject.streams
    )


def _decisive(stream: Stream, swept: Iterable[str]) -> dict[str, object]:
    free = {name.rpartition(".")[2] for name in swept if name.startswith(f"{stream.name}.")}
    free = {"block_mix" if name == "block_size" else FIELDS.get(name, name) for name in free}
    free |= set(_SPAN_FIELDS)
    return {name: getattr(stream, name) for name in stream.__struct_fields__ if name not in free}


def _missing(parameters: dict[str, SweepValue], reason: str) -> Figure:
    return Figure(
        parameters=parameters,
        direction="",
        value=None,
        low=None,
        high=None,
        interval="none",
        n=0,
        censored=False,
        reason=reason,
        doubts=(),
        checks=(),
    )
