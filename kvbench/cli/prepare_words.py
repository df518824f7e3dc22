"""What ``kvbench prepare`` will do, and what it did, in words.  Pure."""

from msgspec import Struct

from kvbench.host.model import Identity
from kvbench.plan import Plan
from kvbench.prepare.fill import Pass
from kvbench.stats.steady import RANGE_SHARE_MAX, SLOPE_SHARE_MAX, WINDOW_ROUNDS
from kvbench.store.preparation import (
    STATE_WORDS,
    FillPass,
    Preparation,
    PurgeMethod,
    SteadyMetric,
)
from kvbench.units import format_bandwidth, format_clock, format_size, format_time, format_value

ASSUMED_BYTES_PER_S = 1e9


class Todo(Struct, frozen=True, kw_only=True):
    """Everything that will be done, decided before anything is."""

    plan: Plan
    method: PurgeMethod
    why: str
    unit_bytes: int
    unit_reason: str
    passes: tuple[Pass, ...]

    @property
    def fill_bytes(self) -> int:
        """What the passes write."""
        return sum(one.size_bytes for one in self.passes)


def cost_words(todo: Todo) -> str:
    """Return the bytes and the time that it will take."""
    seconds = todo.fill_bytes / ASSUMED_BYTES_PER_S
    cells = [cell for cell in todo.plan.cells if cell.purpose == "measure"]
    least = sum(cell.expected_s for cell in cells[:WINDOW_ROUNDS])
    most = sum(cell.expected_s for cell in cells)
    return (
        f"{format_size(todo.fill_bytes)} are written in {len(todo.passes)} passes "
        f"({format_clock(seconds)} at {format_bandwidth(ASSUMED_BYTES_PER_S)}), then "
        f"{WINDOW_ROUNDS} to {len(cells)} rounds write for {format_clock(least)} to "
        f"{format_clock(most)}"
    )


def describe(todo: Todo, identity: Identity) -> list[str]:
    """Return what will be done, as lines."""
    workload = todo.plan.workloads[0]
    return [
        f"target      {identity.real_path} ({identity.kind}, {format_size(identity.size_bytes)}, "
        f"serial {identity.serial or 'unknown'})",
        f"purge       {todo.method} ({todo.why})",
        f"fill        {len(todo.passes)} passes, the random ones in blocks of {todo.unit_bytes} B "
        f"({todo.unit_reason})",
        f"rounds      {workload.name}: {workload.summary}",
        f"cost        {cost_words(todo)}",
    ]


def fill_words(name: str, done: FillPass) -> str:
    """Return how a pass went."""
    rate = done.written_bytes / done.wall_s if done.wall_s > 0 else 0.0
    return (
        f"{name}: {format_size(done.written_bytes)} in {format_time(done.wall_s)} "
        f"({format_bandwidth(rate)})"
    )


def round_words(number: int, metrics: tuple[SteadyMetric, ...]) -> str:
    """Return what one more round shows."""
    parts = []
    for metric in metrics:
        last = metric.values[-1]
        shown = "no value" if last is None else format_value(last, metric.unit)
        parts.append(f"{metric.metric} {shown} ({steady_words(metric)})")
    return f"round {number}: {', '.join(parts)}"


def steady_words(metric: SteadyMetric) -> str:
    """Return what the criterion says of a metric, with its numbers."""
    if metric.state == "too few rounds":
        have = len(metric.values) - metric.first_round + 1
        return f"{have} of {WINDOW_ROUNDS} rounds"
    if metric.range_share is None or metric.slope_share is None:
        return metric.state
    return (
        f"{metric.state}: range {100 * metric.range_share:.1f} % of "
        f"{100 * RANGE_SHARE_MAX:.0f} %, slope {100 * metric.slope_share:+.1f} % of "
        f"{100 * SLOPE_SHARE_MAX:.0f} %"
    )


def preparation_lines(preparation: Preparation) -> list[str]:
    """Return the summary of a preparation, as lines."""
    lines = [f"purge       {preparation.purge.text}"]
    lines += [f"fill        {fill_words(f'{one.pattern} pass', one)}" for one in preparation.fills]
    lines.append(f"coverage    {preparation.coverage.text}")
    for metric in preparation.metrics:
        mean = "" if metric.mean is None else f"mean {format_value(metric.mean, metric.unit)}, "
        why = f" ({metric.reason})" if metric.reason else ""
        lines.append(f"{metric.metric:<16}{mean}{steady_words(metric)}{why}")
    rounds = max((len(metric.values) for metric in preparation.metrics), default=0)
    lines.append(
        f"state       prepared {STATE_WORDS[preparation.state]}, {rounds} rounds of "
        f"{format_time(preparation.round_s)} of {preparation.workload}"
    )
    return lines
