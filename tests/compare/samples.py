"""Samples and questions from bare numbers."""

from collections.abc import Sequence

from kvbench.compare.model import Sample
from kvbench.compare.question import Question, sample_of
from kvbench.measure.model import Summary
from kvbench.metrics import Better
from kvbench.stats.interval import median_interval


def a_summary(values: Sequence[float], **changes: object) -> Summary:
    """A summary of one number at one point."""
    found = median_interval(values) if values else None
    fields: dict[str, object] = {
        "point_id": "p1",
        "purpose": "measure",
        "workload": "small-reads",
        "role": "memory",
        "parameters": {"queue_depth": 4},
        "alone": None,
        "stream": "reads",
        "direction": "read",
        "metric": "iops",
        "unit": "1/s",
        "median": found.median if found else None,
        "low": found.low if found else None,
        "high": found.high if found else None,
        "interval": found.kind if found else "none",
        "n": len(values),
        "values": tuple(values),
        "io_count": 1000 * len(values),
        "excluded": 0,
        "censored": False,
        "reason": "" if values else "too few I/Os",
        "doubts": (),
    }
    return Summary(**(fields | changes))  # type: ignore[arg-type]


def a_sample(values: Sequence[float], **changes: object) -> Sample:
    """A sample of bare numbers."""
    return sample_of(a_summary(values, **changes))


def a_question(
    a: Sequence[float], b: Sequence[float], better: Better = "lower", margin: float = 0.05
) -> Question:
    """One pair of samples to be judged."""
    return Question(a=a_sample(a), b=a_sample(b), better=better, margin=margin)
