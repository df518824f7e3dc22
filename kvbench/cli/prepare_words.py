"""What ``kvbench prepare`` will do, in words.  Pure."""

from msgspec import Struct

from kvbench.host.model import Identity
from kvbench.plan import Plan
from kvbench.prepare.fill import Pass
from kvbench.stats.steady import WINDOW_ROUNDS
from kvbench.store.preparation import PurgeMethod
from kvbench.units import format_bandwidth, format_clock, format_size

ASSUMED_BYTES_PER_S = 1e9  # of a drive as they are sold
ASSUMED_RANDOM_BYTES_PER_S = 250e6


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
    randoms = sum(one.size_bytes for one in todo.passes if one.pattern == "random")
    in_order = todo.fill_bytes - randoms
    seconds = in_order / ASSUMED_BYTES_PER_S + randoms / ASSUMED_RANDOM_BYTES_PER_S
    cells = [cell for cell in todo.plan.cells if cell.purpose == "measure"]
    least = sum(cell.expected_s for cell in cells[:WINDOW_ROUNDS])
    most = sum(cell.expected_s for cell in cells)
    rounds = f"{WINDOW_ROUNDS} rounds of writes take {format_clock(least)}"
    if len(cells) > WINDOW_ROUNDS:
        rounds = (
            f"{WINDOW_ROUNDS} to {len(cells)} rounds of writes take {format_clock(least)} to "
            f"{format_clock(most)}"
        )
    return (
        f"{format_size(todo.fill_bytes)} are written in {len(todo.passes)} passes "
        f"({format_clock(seconds)} at {format_bandwidth(ASSUMED_BYTES_PER_S)} in order and "
        f"{format_bandwidth(ASSUMED_RANDOM_BYTES_PER_S)} at random), then {rounds}"
    )


def describe(todo: Todo, identity: Identity, serial: str) -> list[str]:
    """Return what will be done, as lines; ``serial`` is the target's as it may be shown."""
    workload = todo.plan.workloads[0]
    return [
        f"target      {identity.real_path} ({identity.kind}, {format_size(identity.size_bytes)}, "
        f"serial {serial})",
        f"purge       {todo.method} ({todo.why})",
        f"fill        {len(todo.passes)} passes, the random ones in blocks of {todo.unit_bytes} B "
        f"({todo.unit_reason})",
        f"rounds      {workload.name}: {workload.summary}",
        f"cost        {cost_words(todo)}",
    ]
