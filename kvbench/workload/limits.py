"""A limit as a card writes it -> a number in the metric's unit: "1ms", "5.4GB/s", 0.9, 1000000."""

from math import isfinite

from kvbench.document import found
from kvbench.errors import UsageError
from kvbench.metrics import Metric
from kvbench.units import format_value, parse_duration, parse_size
from kvbench.workload.roles import Bound
from kvbench.workload.table import Table, plain_text

LIMIT_TEXT_MAX = 40
LIMIT_MAX = 1e18
_HINTS = {
    "s": "write e.g. 1ms",
    "B": "write e.g. 4KiB",
    "B/s": "write e.g. 5.4GB/s",
    "%": "write e.g. 99",
}


def read_limit(table: Table, key: Bound, metric: Metric) -> tuple[float, str]:
    """Return the limit in the metric's unit, and its words.

    Raises:
        UsageError: not a quantity of that unit, or not above 0: a margin is a ratio to it.
    """
    raw = table.require(key)
    if isinstance(raw, bool) or not isinstance(raw, (str, int, float)):
        raise table.error(key, f"must be a limit, not {found(raw)}", _hint(metric))
    text = (
        raw if isinstance(raw, (int, float)) else plain_text(raw, table, key, limit=LIMIT_TEXT_MAX)
    )
    try:
        value = _number(text, metric.unit)
    except (UsageError, ValueError):
        raise table.error(
            key, f"is no limit for {metric.name}: {found(raw)}", _hint(metric)
        ) from None
    if not (isfinite(value) and 0 < value <= LIMIT_MAX):
        raise table.error(key, f"must be above 0 and at most {LIMIT_MAX:g}, not {found(raw)}")
    return value, format_value(value, metric.unit)


def _number(text: str | float, unit: str) -> float:
    """Return ``text`` in ``unit``; a time, size or rate must name its own.

    Raises:
        UsageError, ValueError: it is something else.
    """
    if unit == "s":
        if not isinstance(text, str):
            raise ValueError(text)
        return parse_duration(text)
    if unit in ("B", "B/s"):
        if not isinstance(text, str):
            raise ValueError(text)
        if unit == "B":
            return parse_size(text)
        amount, slash, per = text.rpartition("/")
        if (slash, per.strip()) != ("/", "s"):
            raise ValueError(text)
        return parse_size(amount)
    if unit == "%" and isinstance(text, str):
        text = text.removesuffix("%").strip()
    return float(text)


def _hint(metric: Metric) -> str:
    return _HINTS.get(metric.unit, "write e.g. 0.9 or 1000000")
