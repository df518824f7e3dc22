"""One gated number in words, and what would decide the open ones.  Pure."""

from collections.abc import Iterator

from kvbench.compare.model import Change
from kvbench.compare.words import change_words, sample_words
from kvbench.gate.model import Gate, GateRow
from kvbench.metrics import METRICS, Better


def headline_parts(gate: Gate) -> Iterator[str]:
    """Yield what stands behind the outcome: what is in the way of PASS, and what doubts it all."""
    passed = sum(row.verdict == "PASS" for row in gate.rows)
    numbers = "1 number" if passed == 1 else f"{passed} numbers"
    yield from gate.reasons or (f"{numbers} not worse by more than the margin",)
    yield from gate.doubts


def judged_direction(row: GateRow) -> Better:
    """Return which direction is better; neither where nothing is concluded."""
    return "neither" if row.verdict == "INCOMPARABLE" else METRICS[row.key.metric].better


def row_words(row: GateRow) -> str:
    """Return both values with n and interval, the change with its interval, and why."""
    values = f"baseline {sample_words(row.baseline, row.unit)}, "
    values += f"candidate {sample_words(row.candidate, row.unit)}"
    changed = change_words(row.change, row.unit, judged_direction(row))
    parts = [values, changed, row.change.reason]
    return "; ".join(part for part in parts if part)


def what_decides(gate: Gate) -> Iterator[str]:
    """Yield how many more repetitions would decide what is unclear, where that can be known."""
    unclear = [row.change for row in gate.rows if row.verdict == "UNCLEAR"]
    if not unclear:
        return
    both = [change for change in unclear if change.more is not None]
    alone = [change for change in unclear if change.more_candidate is not None]
    if both:
        yield (f"about {gate.more} more repetitions a side would decide {_share(both, unclear)}")
        yield (
            f"a rerun of the candidate alone needs about {gate.more_candidate}, "
            f"for {_share(alone, unclear)}"
            if alone
            else "a rerun of the candidate alone decides nothing: the baseline has too few as well"
        )
    if len(both) < len(unclear):
        yield (
            f"{'some of ' if both else ''}what is unclear lies on its margin, drifts, lacks values "
            "or is too noisy: more repetitions may not decide it"
        )


def _share(some: list[Change], of: list[Change]) -> str:
    return (
        "what is unclear" if len(some) == len(of) else f"{len(some)} of {len(of)} unclear numbers"
    )
