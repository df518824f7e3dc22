"""Which numbers rest on reads of blocks that nobody proved to be written.  Pure.

A drive may answer such reads without its medium, so they tell nothing of it; a run's own report
judges no role by them.
"""

from collections.abc import Iterable, Sequence

from kvbench.compare.model import Key
from kvbench.measure.model import MeasuredRun
from kvbench.measure.subjects import never_proven


def unproven_sides(keys: Iterable[Key], runs: Sequence[MeasuredRun]) -> list[int]:
    """Return the places of the runs of which a number of ``keys`` is of such reads."""
    streams = {(key.workload, key.stream) for key in keys}
    return [
        side
        for side, run in enumerate(runs)
        if any(
            (workload.name, stream.name) in streams and never_proven(run, stream)
            for workload in run.record.plan.workloads
            for stream in workload.streams
        )
    ]


def unproven_words(names: Iterable[str]) -> str:
    """Return why the numbers of these sides cannot be relied on."""
    return f"on {', '.join(names)} the reads were of blocks never proven written"
