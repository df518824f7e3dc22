"""The numbers of a comparison in words: names, values, what changed.  Pure."""

from kvbench.compare.model import Change, Key, Sample
from kvbench.metrics import Better
from kvbench.units import format_size, format_value


def key_words(key: Key) -> str:
    """Return ``stream.metric (parameters)``, the name of a number inside its workload."""
    direction = "" if key.direction == "read" else f" {key.direction}"
    words = ", ".join(f"{name}={_value(name, value)}" for name, value in key.parameters.items())
    alone = f"{words}, alone" if words else "alone"
    inside = alone if key.alone is not None else words
    return f"{key.stream}.{key.metric}{direction}" + (f" ({inside})" if inside else "")


def sample_words(sample: Sample | None, unit: str) -> str:
    """Return a value with its n and interval, or why there is none."""
    if sample is None:
        return "not in this run"
    if sample.median is None:
        return f"none ({sample.reason or 'no reason is given'})"
    at_least = ">= " if sample.censored else ""
    text = f"{at_least}{format_value(sample.median, unit)}"
    if sample.low is None or sample.high is None:
        return f"{text} (n={sample.n})"
    kind = "95 % interval" if sample.interval == "95 %" else "range"
    low, high = format_value(sample.low, unit), format_value(sample.high, unit)
    if sample.censored_from is not None and sample.high >= sample.censored_from:
        high = f">= {high}"
    return f"{text} ({kind} {low} to {high}, n={sample.n})"


def change_words(change: Change, unit: str, better: Better = "neither") -> str:
    """Return the change, whether that is worse, its interval and margin; "" where not known."""
    if change.estimate is None:
        return ""
    if change.kind == "ratio":
        text = f"{_percent(change.estimate)}"
        interval = (
            f" ({_percent(change.low)} to {_percent(change.high)})"
            if change.low is not None and change.high is not None
            else ""
        )
    else:
        text = _signed(change.estimate, unit)
        interval = (
            f" ({_signed(change.low, unit)} to {_signed(change.high, unit)})"
            if change.low is not None and change.high is not None
            else ""
        )
    margin = "" if change.margin is None else f", margin {100 * change.margin:g} %"
    return f"{text}{_direction(change, better)}{interval}{margin}"


def _direction(change: Change, better: Better) -> str:
    """Return whether the change is for the worse, "" where there is none."""
    still = 1.0 if change.kind == "ratio" else 0.0
    if change.estimate is None or better == "neither" or change.estimate == still:
        return ""
    return " worse" if (change.estimate > still) == (better == "lower") else " better"


def _percent(ratio: float) -> str:
    change = 100 * (ratio - 1)
    return f"{change:+.1f} %" if abs(change) < 1000 else f"x {ratio:.3g}"


def _signed(difference: float, unit: str) -> str:
    sign = "-" if difference < 0 else "+"
    return f"{sign}{format_value(abs(difference), unit)}"


def _value(name: str, value: object) -> str:
    if name.endswith(("size", "span_size")) and isinstance(value, int):
        return format_size(value)
    return str(value)
