"""One probing workload of a run with its cells and numbers, and the words for them.  Pure."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kvbench.measure.model import MeasuredCell, Summary
from kvbench.measure.reading_model import Answer, Reading
from kvbench.measure.timeline import Timeline
from kvbench.plan import Plan
from kvbench.units import format_value
from kvbench.workload.schema import SweepValue, Workload

_VIRTUAL = "a virtual machine's host caches and schedules what its disk seems to do"
_COUNTS = ("valid", "doubtful")


class Probed(Struct, frozen=True, kw_only=True, eq=False):
    """A workload of a run with its cells and numbers."""

    workload: Workload
    plan: Plan
    cells: tuple[MeasuredCell, ...]  # that measured, whatever their outcome
    summaries: tuple[Summary, ...]
    timeline: Timeline
    facts: Mapping[str, str | None]  # of the host and the target, by name

    @property
    def used(self) -> tuple[MeasuredCell, ...]:
        """The cells whose numbers count."""
        return tuple(cell for cell in self.cells if cell.outcome in _COUNTS)

    def summary(
        self, metric: str, parameters: Mapping[str, SweepValue] | None = None, stream: str = ""
    ) -> Summary | None:
        """Return one summary, None when there is none with a number."""
        for one in self.summaries:
            fits = parameters is None or one.parameters == parameters
            if one.metric == metric and fits and stream in ("", one.stream):
                return one if one.median is not None else None
        return None

    def by_repetition(
        self, metric: str, stream: str, parameters: Mapping[str, SweepValue]
    ) -> dict[int, float]:
        """Return the value of each repetition that counts."""
        return {
            cell.cell.repetition: found.value
            for cell in self.used
            if cell.cell.parameters == parameters
            for found in cell.measurements
            if (found.stream, found.metric) == (stream, metric) and found.value is not None
        }

    @property
    def caveats(self) -> tuple[str, ...]:
        """What can mislead it: what the workload says itself, and where it ran."""
        own = (self.workload.cannot_express,) if self.workload.cannot_express else ()
        return (*own, *((_VIRTUAL,) if self.facts.get("virtual_machine") == "yes" else ()))

    def number(self, fact: str) -> int | None:
        """Return a fact that is a whole number, None where it is not known."""
        text = self.facts.get(fact) or ""
        return int(text[:18]) if text.isascii() and text.isdecimal() else None

    def reading(
        self,
        question: str,
        answer: Answer,
        *sentences: str,
        more: Sequence[str] = (),
        own: bool = True,
    ) -> Reading:
        """Return a reading of this workload; ``own`` adds what the workload says of itself."""
        caveats = self.caveats if own else self.caveats[bool(self.workload.cannot_express) :]
        return Reading(
            workload=self.workload.name,
            question=question,
            answer=answer,
            sentences=sentences,
            caveats=(*more, *caveats),
        )


def with_spread(summary: Summary) -> str:
    """Return a median with its interval or range and its n."""
    return f"{_number(summary, summary.median)} ({spread(summary)})"


def spread(summary: Summary) -> str:
    """Return the interval or range with its n."""
    if summary.interval == "none" or summary.low is None or summary.high is None:
        return f"n={summary.n}, no interval"
    low, high = _number(summary, summary.low), _number(summary, summary.high)
    what = "95 % interval" if summary.interval == "95 %" else "range"
    return f"{low} to {high}, {what} of n={summary.n}"


def _number(summary: Summary, value: float | None) -> str:
    if value is None:
        return "not measured"
    return f"{value:.3g}" if summary.unit == "1" else format_value(value, summary.unit)


def range_words(values: Sequence[float]) -> str:
    """Return the smallest and the largest of some shares, with their n."""
    if len(values) == 1:
        return "n=1, no interval"
    return f"{min(values):.2f} to {max(values):.2f}, range of n={len(values)}"
