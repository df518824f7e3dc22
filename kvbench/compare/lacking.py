"""Numbers that repetitions lack: a load that overran, a percentile with too few I/Os.  Pure.

A repetition without the number is no value, and it may be the worst of all; the others are judged,
and what they say is believed only of the side that lacks no more of them.  A number vanished when
it was there and no repetition has it any more.
"""

from collections.abc import Sequence
from math import comb
from typing import Literal

from kvbench.compare.model import Sample, Verdict

Sides = Literal["one", "two"]  # asked for "worse" only (a gate), or for "different"

RARE = "too few "  # how the reason of a percentile begins that lacks I/Os, requests or steps


def without_value(
    a: Sample | None, b: Sample | None, names: Sequence[str], sides: Sides, chance: float
) -> tuple[Verdict, str]:
    """Return the verdict, and why, on a number that at least one side has in no repetition.

    Args:
        a: what ``b`` is held against.
        b: the other side.
        names: what the two are called.
        sides: asked about one side, only a number that ``a`` has can vanish.
        chance: the error allowed to this number.
    """
    named = tuple(zip(names, (a, b), strict=True))
    reason = "; ".join(
        f"{name}: {'not in this run' if sample is None else sample.reason or 'no value'}"
        for name, sample in named
        if sample is None or not sample.known
    )
    gone = [sample for _, sample in named if sample is None or not sample.known]
    if all(sample is not None and sample.reason.startswith(RARE) for sample in gone):
        return "UNCLEAR", reason
    if sides == "two":
        return "MISSING", reason
    if a is None or not a.known:
        return "UNCLEAR", f"there is nothing to hold the {names[1]} against: {reason}"
    if not a.lacking or _p_of_none(a, b) <= chance:
        return "MISSING", reason
    return "UNCLEAR", f"{reason}; {names[0]}: {lacking_words(a)}, so the next run may lack it too"


def unfair(verdict: Verdict, a: Sample, b: Sample, names: Sequence[str], sides: Sides) -> str:
    """Return why ``verdict`` does not follow from the repetitions that have the number, or ""."""
    shares = a.lacking_share, b.lacking_share
    only_b = f"{names[1]}: {lacking_words(b)}; the others alone prove nothing good of it"
    only_a = f"{names[0]}: {lacking_words(a)}; the others alone prove nothing good of it"
    if verdict in ("SAME", "BETTER") and shares[1] > shares[0]:
        return only_b
    if sides == "two" and verdict in ("SAME", "WORSE") and shares[0] > shares[1]:
        return only_a
    return ""


def lacking_words(sample: Sample) -> str:
    """Return in how many repetitions a number is lacking, and why."""
    of = sample.lacking + len(sample.known)
    why, _, _ = sample.reason.rpartition(" (in ")
    return f"{sample.lacking} of {of} repetitions have no value ({why or sample.reason})"


def _p_of_none(a: Sample, b: Sample | None) -> float:
    """Return the chance that all repetitions with a value are a's, were the sides alike."""
    n_b = 0 if b is None else b.lacking
    n_a, with_value = a.lacking + len(a.known), len(a.known)
    return comb(n_a, with_value) / comb(n_a + n_b, with_value)
