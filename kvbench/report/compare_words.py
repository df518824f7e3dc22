"""The words of a comparison: letters, numbers, changes, the verdict in one sentence.  Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from kvbench.compare.aspects import ASPECTS
from kvbench.compare.letters import side_letter
from kvbench.compare.model import Change, Comparison, Difference, Key, Sample, Side
from kvbench.compare.winners import CANNOT_SAY
from kvbench.report.words import (
    metric_label,
    missing_text,
    parameter_words,
    quantity,
    sentence,
    short,
    spread,
)

SIDES_NAMED_MAX = 8  # in a title


def letter(place: int) -> str:
    """Return A, B, ... Z, AA, AB, ..."""
    return side_letter(place)


def letters(places: Iterable[int]) -> str:
    """Return ``A, C``."""
    return ", ".join(letter(place) for place in places)


def side_name(side: Side) -> str:
    """Return the name of a side, visible and of bounded length."""
    return short(side.name, 48)


def number_words(key: Key) -> tuple[str, str, str]:
    """Return parameters, stream and metric of a number."""
    words = parameter_words(key.parameters)
    if key.alone is not None:
        words = f"{words}, alone" if words else "alone"
    stream = short(key.stream, 24)
    if key.direction != "read":
        stream = f"{stream} {key.direction}s"
    return words, stream, metric_label(key.metric)


def value_words(sample: Sample | None, metric: str, unit: str) -> tuple[str, str, str]:
    """Return the value, its spread and its sample; or what stands for them."""
    if sample is None:
        return "not in this run", "", ""
    if sample.median is None or not isfinite(sample.median):
        head, why = missing_text(sample.reason), sentence(sample.reason)
        why = why.removeprefix(f"{head}: ")  # "too few I/Os" is said already
        return head, "", why or "no reason is given"
    value = quantity(metric, unit, sample.median, censored=sample.censored)
    n = f"n={sample.n}"
    if sample.excluded:
        n = f"n={sample.n} of {sample.n + sample.excluded}"
    if sample.censored:
        return value, "", f"beyond what fio sees, {n}"
    if sample.low is None or sample.high is None or sample.interval == "none":
        return value, "", f"{n}, no interval"
    if not (isfinite(sample.low) and isfinite(sample.high)):
        return value, "", n
    found = spread(
        metric,
        unit,
        sample.low,
        sample.median,
        sample.high,
        censored_from=sample.censored_from,
    )
    return value, found, n if sample.interval == "95 %" else f"range, {n}"


def change_words(change: Change, metric: str, unit: str) -> tuple[str, str]:
    """Return the change against the first side and its interval, "" where not known."""
    if change.estimate is None or not isfinite(change.estimate):
        return "", ""
    if change.low is None or change.high is None:
        interval = ""
    else:
        low, high = (_one(change, value, metric, unit) for value in (change.low, change.high))
        if low.endswith(" %") and high.endswith(" %"):
            low = low.removesuffix(" %")
        interval = f"{low} to {high}"
    return _one(change, change.estimate, metric, unit), interval


def _one(change: Change, value: float, metric: str, unit: str) -> str:
    if change.kind == "ratio":
        percent = 100 * (value - 1)
        if abs(percent) >= 1000 or value < 0.01:
            return f"x {value:.3g}"
        text = f"{percent:+.1f} %" if abs(percent) < 100 else f"{percent:+.0f} %"
        return "0.0 %" if text in ("+0.0 %", "-0.0 %") else text
    if not isfinite(value):
        return "unbounded"
    return f"{'-' if value < 0 else '+'}{quantity(metric, unit, abs(value))}"


def aspect_value(difference: Difference, value: str | None) -> str:
    """Return a value of an aspect; a label that was not given is none, all else is unknown."""
    if value is None:
        return "none" if difference.aspect == "label" else "unknown"
    return short(value)


def difference_words(difference: Difference) -> str:
    """Return ``I/O engine: io_uring (A, C), libaio (B)`` with what the policy says of it."""
    title = sentence(difference.text.partition(":")[0])
    if difference.effect == "blocks":
        title = title.partition(" must not differ")[0]
    values = list(dict.fromkeys(difference.values))
    parts = [
        f"{aspect_value(difference, value)} "
        f"({letters(n for n, one in enumerate(difference.values) if one == value)})"
        for value in values
    ]
    return f"{title}: {', '.join(parts)}"


def unknown_words(differences: Sequence[Difference]) -> Iterator[str]:
    """Yield what cannot be held together because it is unknown; what no run knows in one line."""
    unknown = [d for d in differences if d.effect == "noted" and None in d.values]
    nowhere = [d for d in unknown if all(value is None for value in d.values)]
    if len(nowhere) > 1:
        names = ", ".join(ASPECTS[d.aspect][0] for d in nowhere)
        yield f"no run knows these, so nobody can say that they are the same: {names}"
    for difference in unknown:
        if len(nowhere) < 2 or difference not in nowhere:
            yield sentence(difference.text)


def counted(verdicts: Sequence[str]) -> str:
    """Return ``5 BETTER, 40 UNCLEAR`` in a fixed order."""
    order = ("BETTER", "WORSE", "SAME", "UNCLEAR", "MISSING", "INCOMPARABLE")
    counts = Counter(verdicts)
    return ", ".join(f"{counts[name]} {name}" for name in order if counts[name])


def shares_nothing(comparison: Comparison) -> bool:
    """Whether no number has a value on two sides."""
    return not any(
        sum(sample is not None and bool(sample.values) for sample in row.samples) > 1
        for row in comparison.rows
    )


def verdict_words(comparison: Comparison) -> str:
    """Return who wins which role, or that nothing can be said and why, in one sentence."""
    if shares_nothing(comparison):
        return "INCONCLUSIVE: the runs share no number, so nothing can be compared."
    blocking = [d for d in comparison.differences if d.effect == "blocks"]
    changes = [c for row in comparison.rows for c in row.changes if c is not None]
    known = {change.verdict for change in changes if change.estimate is not None}
    if blocking and known <= {"INCOMPARABLE"}:
        why = "; ".join(sentence(difference.text) for difference in blocking)
        return f"INCOMPARABLE: {why}."
    parts = []
    for winner in comparison.winners:
        if winner.text.startswith(CANNOT_SAY):
            parts.append(f"{winner.role}: {sentence(winner.text)}")
        elif winner.winner is None:
            parts.append(f"{winner.role}: no winner ({sentence(winner.text)})")
        else:
            side = comparison.sides[winner.winner]
            parts.append(f"{winner.role}: {letter(winner.winner)} ({side_name(side)}) is best")
    return f"{'; '.join(parts)}." if parts else "No role has a number in common."


def decides_words(comparison: Comparison) -> str:
    """Return how many repetitions decide, and who has fewer."""
    needed = comparison.decides_from_n
    if not comparison.tests:
        return ""
    numbers = "1 primary number" if comparison.tests == 1 else f"{comparison.tests} primary numbers"
    if needed is None:
        return f"No number of repetitions decides among {numbers} at this confidence."
    fewer = [n for n, side in enumerate(comparison.sides) if side.repetitions < needed]
    text = f"From {needed} repetitions of each run on, {numbers} can be decided"
    if not fewer:
        return f"{text}; all have so many."
    have = ", ".join(f"{letter(n)} has {comparison.sides[n].repetitions}" for n in fewer)
    return f"{text}; {have}, so most of them must stay UNCLEAR."


def title_words(comparison: Comparison) -> str:
    """Return ``kvbench compare: drive 1, drive 2``."""
    names = [side_name(side) for side in comparison.sides]
    more = f" and {len(names) - SIDES_NAMED_MAX} more" if len(names) > SIDES_NAMED_MAX else ""
    return f"kvbench compare: {', '.join(names[:SIDES_NAMED_MAX])}{more}"
