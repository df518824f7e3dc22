"""Repetitions that lack a value, and values that are only known to be large."""

from collections.abc import Sequence

import pytest

from kvbench.measure.model import MeasuredCell, Measurement, Summary
from kvbench.measure.summarise import summarise
from kvbench.report.words import DASH, summary_detail, summary_text
from tests.records import a_plan, a_workload

BIN = 17.11


def summary_of(values: Sequence[float | None]) -> Summary:
    """The p99 of repetitions with these values; None is overloaded, and BIN is at least that."""
    plan = a_plan(a_workload(sweep=()), repetitions=len(values))
    cells = [cell for cell in plan.cells if cell.purpose == "measure"]
    measured = [
        MeasuredCell(
            cell=cell,
            outcome="valid",
            findings=(),
            measurements=(
                Measurement(
                    stream="reads", direction="read", metric="latency_p99", value=value,
                    io_count=1000, reason="" if value is not None else "overloaded",
                    censored=value == BIN,
                ),
            ),
            histograms=(),
        )
        for cell, value in zip(cells, values, strict=True)
    ]  # fmt: skip
    (found,) = summarise(plan, measured)
    return found


def test_what_some_repetitions_lack_has_no_summary_and_keeps_the_values_of_the_others() -> None:
    found = summary_of([1.0, None, 3.0, 2.0])
    assert (found.median, found.values, found.n) == (None, (), 0)
    assert (found.partial, found.lacking) == ((1.0, 3.0, 2.0), 1)
    assert found.reason == "overloaded (in 1 of 4 repetitions)"
    whole = summary_of([1.0, 2.0])
    assert (whole.partial, whole.lacking, whole.values) == ((), 0, (1.0, 2.0))


@pytest.mark.parametrize(
    ("values", "censored"),
    [
        ([0.003] * 7 + [BIN], False),
        ([0.003, 0.003, BIN], False),
        ([0.003, 0.003, BIN, BIN], True),
        ([0.003, BIN, BIN], True),
        ([0.003, 0.003], False),
    ],
)
def test_only_a_median_that_lies_beyond_what_fio_sees_is_at_least_that(
    values: list[float], censored: bool
) -> None:
    found = summary_of(values)
    assert found.censored is censored
    assert found.censored_from == (BIN if BIN in values else None)
    assert summary_text(found).startswith("≥ ") is censored


def test_the_end_of_an_interval_that_lies_beyond_is_said_to() -> None:
    told = summary_detail(summary_of([0.003] * 7 + [BIN]))
    assert told == f"3.00 ms{DASH}≥ 17.1 s, 95 % interval, n=8"
