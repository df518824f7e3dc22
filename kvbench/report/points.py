"""A measured run, looked up by point: what was planned, what came back.  Pure.

Everything is built from the plan, so that what is missing shows as missing.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgspec import Struct

from kvbench.measure.model import IoDirection, MeasuredCell, MeasuredRun, Summary
from kvbench.plan import Cell
from kvbench.report.words import sentence
from kvbench.workload.schema import Stream, SweepValue, Workload
from kvbench.workload.subject import PEAK

SummaryKey = tuple[str, str, str, str]  # point_id, stream, direction, metric


class Point(Struct, frozen=True, eq=False):
    """One point of a workload with its cells, in order of repetition.

    ``cell`` is any of its planned cells: repetitions differ in seed and number only.
    """

    cell: Cell
    planned: tuple[str, ...]  # cell ids
    measured: tuple[MeasuredCell, ...]
    unsupported: str = ""  # why this target cannot do it

    @property
    def used(self) -> tuple[MeasuredCell, ...]:
        """The cells whose numbers count."""
        return tuple(c for c in self.measured if c.outcome in ("valid", "doubtful"))

    @property
    def setting(self) -> str:
        """``alone`` when one tenant is measured by itself, else ""."""
        return "alone" if self.cell.alone is not None else ""

    def missing_words(self) -> tuple[str, str]:
        """Return what stands for a number that is not there, and why."""
        if self.unsupported:
            return "not supported here", self.unsupported
        if not self.measured:
            return "not run", "no cell of this point is in the archive"
        if not self.used:
            outcomes = [cell.outcome for cell in self.measured]
            counts = [f"{outcomes.count(o)} {o}" for o in ("invalid", "failed") if o in outcomes]
            return "no valid cell", ", ".join(counts)
        return "not measured", "no reason is given"


class Index:
    """Lookups over one measured run."""

    def __init__(self, run: MeasuredRun) -> None:
        self.run = run
        self.measured = {cell.cell.cell_id: cell for cell in run.cells}
        self._summaries: dict[SummaryKey, Summary] = {
            (s.point_id, s.stream, s.direction, s.metric): s for s in run.summaries
        }
        self._metrics = {(s.workload, s.metric) for s in run.summaries if s.purpose == "measure"}
        self._points: dict[str, tuple[Point, ...]] = {
            workload.name: tuple(self._points_of(workload))
            for workload in run.record.plan.workloads
        }

    def points(self, workload: Workload) -> tuple[Point, ...]:
        """Return the points of ``workload`` in the order of its sweep, mixed before alone."""
        return self._points[workload.name]

    def summary(
        self, point: Point, stream: str, direction: IoDirection, metric: str
    ) -> Summary | None:
        """Return a summary, None when there is none."""
        return self._summaries.get((point.cell.point_id, stream, direction, metric))

    def has(self, point: Point, metric: str) -> bool:
        """Whether any stream of ``point`` has a summary of ``metric``."""
        return any(
            self.summary(point, placed.stream.name, direction, metric) is not None
            for placed in point.cell.placed
            for direction in directions(placed.stream)
        )

    def has_anywhere(self, workload: Workload, metric: str) -> bool:
        """Whether any point of ``workload`` has a summary of ``metric``."""
        return (workload.name, metric) in self._metrics

    def _points_of(self, workload: Workload) -> Iterator[Point]:
        cells: dict[str, list[Cell]] = defaultdict(list)
        for cell in self.run.record.plan.cells:
            if cell.workload == workload.name and cell.purpose == "measure":
                cells[cell.point_id].append(cell)
        cannot = {
            one.cell.point_id: one
            for one in self.run.record.plan.unsupported
            if one.cell.workload == workload.name and one.cell.purpose == "measure"
        }
        cells |= {point_id: [one.cell] for point_id, one in cannot.items()}
        for group in sorted(cells.values(), key=lambda group: _place(workload, group[0])):
            if group[0].point_id in cannot:
                yield Point(group[0], (), (), sentence(cannot[group[0].point_id].reason))
                continue
            ordered = sorted(group, key=lambda cell: cell.repetition)
            ids = tuple(cell.cell_id for cell in ordered)
            found = tuple(self.measured[i] for i in ids if i in self.measured)
            yield Point(ordered[0], ids, found)


def directions(stream: Stream) -> tuple[IoDirection, ...]:
    """Return the directions that a stream does I/O in."""
    match stream.direction:
        case "read":
            return ("read",)
        case "write":
            return ("write",)
        case "trim":
            return ("trim",)
        case "mixed":
            return ("read", "write")


def primary_metrics(workload: Workload, stream: str) -> tuple[str, ...]:
    """Return the primary metrics of one stream, most important first."""
    owner = f"{stream}."  # a metric may hold a dot as well: read.latency_p99.9
    return tuple(n.removeprefix(owner) for n in workload.primary if n.startswith(owner))


def latency_prefix(stream: Stream) -> str:
    """Return whose time counts: ``request`` behind a barrier, else ``latency``."""
    return "request" if stream.barrier else "latency"


def _place(workload: Workload, cell: Cell) -> tuple[int, ...]:
    return place_in_sweep(workload, cell.parameters, cell.alone)


def place_in_sweep(
    workload: Workload, parameters: Mapping[str, SweepValue], alone: str | None
) -> tuple[int, ...]:
    """Return where a point stands in the sweep of its workload."""
    place = []
    for axis in workload.sweep:
        label = axis.field if len(workload.streams) == 1 else f"{axis.stream}.{axis.field}"
        value = parameters.get(label)
        place.append(axis.values.index(value) if value in axis.values else len(axis.values))
    names = [stream.name for stream in workload.streams]
    if workload.load is not None:
        loads = [PEAK, *(f"{percent} %" for percent in workload.load.percents)]
        load = parameters.get("load")
        place.append(loads.index(load) if load in loads else len(loads))
    place += [
        names.index(str(parameters[side])) if parameters[side] in names else len(names)
        for side in ("victim", "aggressor", "phase")
        if side in parameters
    ]
    if workload.matrix:
        place.insert(0, int(alone is not None))  # the pairs, then each stream alone
    place.append(names.index(alone) + 1 if alone in names else 0)
    return tuple(place)
