"""Whether a drawing shows a device in its steady state, in words inside the drawing itself.  Pure.

Figures are cut out of reports, so the mark travels with each of them.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from kvbench.report.compare_words import letter
from kvbench.report.model import Figure
from kvbench.stats.steady import State
from kvbench.store.preparation import Condition

RUNS_NAMED_MAX = 6  # in one mark; it stands in one line of a small drawing
_ENDED: dict[State, str] = {
    "steady": "",
    "not steady": "not steady",
    "too few rounds": "too few rounds to be steady",
}
_F = TypeVar("_F", bound=Figure | None)


def steady_mark(condition: Condition | None) -> str:
    """Return the mark of one run: "" for a file, and for a device that is as it was prepared."""
    if condition is None:
        return ""
    match condition.state:
        case "holds":
            return _ENDED[condition.steady or "too few rounds"]
        case "broken":
            return "not steady: changed since it was prepared"
        case "unknown":
            return "not known to be steady"
        case "none":
            return "not prepared to steady state"


def state_mark(state: State) -> str:
    """Return the mark of a preparation that ended in ``state``."""
    return _ENDED[state]


def mark_of_sides(conditions: Sequence[Condition | None]) -> str:
    """Return one mark for several runs: ``A, C: not steady; B: not prepared to steady state``."""
    marks = [steady_mark(condition) for condition in conditions]
    if len(marks) > 1 and len(set(marks)) == 1:
        return _of_all(marks[0])
    return _joined([(letter(place), mark) for place, mark in enumerate(marks)])


def mark_of_runs(conditions: Mapping[int, Condition | None]) -> str:
    """Return one mark for the runs of a history, by their numbers."""
    marks = {number: steady_mark(condition) for number, condition in conditions.items()}
    if len(marks) > 1 and len(set(marks.values())) == 1:
        return _of_all(next(iter(marks.values())))
    return _joined([(f"run {number}", mark) for number, mark in marks.items()])


def with_mark(figure: _F, mark: str) -> _F:
    """Return ``figure`` with the mark in each of its panels."""
    if figure is None or not mark:
        return figure
    return replace(figure, panels=tuple(replace(panel, mark=mark) for panel in figure.panels))


def _of_all(mark: str) -> str:
    return f"all runs: {mark}" if mark else ""


def _joined(named: Sequence[tuple[str, str]]) -> str:
    found: dict[str, list[str]] = {}
    for name, mark in named:
        if mark:
            found.setdefault(mark, []).append(name)
    parts = []
    for mark, names in found.items():
        shown = ", ".join(names[:RUNS_NAMED_MAX])
        more = len(names) - RUNS_NAMED_MAX
        parts.append(f"{shown}{f' and {more} more' if more > 0 else ''}: {mark}")
    return "; ".join(parts)
