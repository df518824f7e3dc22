"""The criterion of the steady state, by hand and on what fio's own section said."""

import json
from pathlib import Path
from typing import Any

import pytest

from kvbench.stats.steady import steadiness

CASE = Path(__file__).parents[1] / "fixtures" / "cases" / "20-steadystate-window-not-full"


def fio_rounds(name: str) -> list[list[float]]:
    text = (CASE / f"{name}.json").read_text()
    document: dict[str, Any] = json.loads(text[text.index("{") :])
    return [job["steadystate"]["data"]["iops"] for job in document["jobs"]]


def test_five_equal_rounds_are_steady() -> None:
    found = steadiness([100.0] * 5)
    assert (found.state, found.mean) == ("steady", 100.0)
    assert found.range_share == 0.0
    assert found.slope_share == pytest.approx(0.0, abs=1e-12)


def test_fewer_rounds_than_the_window_are_no_verdict_and_have_no_mean() -> None:
    found = steadiness([100.0] * 4)
    assert found.state == "too few rounds"
    assert (found.mean, found.range_share, found.slope_share) == (None, None, None)


def test_only_the_last_five_rounds_count() -> None:
    found = steadiness([1000.0, 500.0, 100.0, 101.0, 99.0, 100.0, 100.0])
    assert (found.state, found.first_round) == ("steady", 3)


def test_a_range_of_just_20_percent_is_within_and_more_is_not() -> None:
    assert steadiness([110.0, 90.0, 100.0, 90.0, 110.0]).state == "steady"
    assert steadiness([111.0, 90.0, 99.0, 90.0, 110.0]).state == "not steady"


@pytest.mark.parametrize("sign", [1, -1])
def test_a_slope_of_more_than_10_percent_is_not_steady_in_either_direction(sign: int) -> None:
    within = steadiness([100 + sign * 2.5 * (n - 2) for n in range(5)])
    beyond = steadiness([100 + sign * 2.6 * (n - 2) for n in range(5)])
    assert within.slope_share == pytest.approx(sign * 0.10)
    assert (within.state, beyond.state) == ("steady", "not steady")
    assert beyond.range_share is not None
    assert beyond.range_share < 0.2  # the slope alone decides


def test_a_drive_that_does_nothing_is_not_steady() -> None:
    assert steadiness([0.0] * 5).state == "not steady"


def test_a_round_without_a_value_is_refused() -> None:
    with pytest.raises(ValueError, match="no round"):
        steadiness([1.0, float("nan"), 1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="slope"):
        steadiness([1.0, 1.0], window=1)


def test_a_window_that_fio_padded_with_zeros_is_not_full() -> None:
    (rounds,) = fio_rounds("window-not-full")
    assert rounds[2:] == [0, 0, 0]  # never measured; fio's mean of them is 496,522 IOPS
    assert steadiness([value for value in rounds if value]).state == "too few rounds"
    assert steadiness(rounds).state == "not steady"  # nor would the zeros pass


def test_what_fio_called_attained_is_judged_by_the_limits_of_the_specification() -> None:
    (rounds,) = fio_rounds("attained")  # a limit of 30 % was given to fio
    found = steadiness(rounds, window=4)
    assert found.state == "not steady"
    assert found.range_share == pytest.approx((2060600 - 1442811) / 1674988, rel=1e-6)


def test_a_falling_load_has_a_negative_slope() -> None:
    falling, rising = fio_rounds("two-jobs-negative-slope")
    down, up = steadiness(falling, window=4), steadiness(rising, window=4)
    assert down.slope_share is not None
    assert up.slope_share is not None
    assert down.slope_share < -0.1 < 0 < up.slope_share
    assert down.state == "not steady"
