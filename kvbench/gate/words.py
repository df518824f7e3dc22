"""One gated number in words.  Pure."""

from kvbench.compare.words import change_words, sample_words
from kvbench.gate.model import GateRow
from kvbench.metrics import METRICS, Better


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
