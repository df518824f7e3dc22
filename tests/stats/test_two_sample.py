"""Two samples of repetitions: what swapping, scaling and shifting do to the answer."""

from math import exp, inf, log, nan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kvbench.stats.two_sample import (
    Goal,
    compare,
    compare_pairs,
    holm,
    more_repetitions,
    ratio_room,
)

numbers = st.floats(1e-6, 1e9)
samples = st.lists(numbers, min_size=1, max_size=8)


@given(samples, samples)
def test_swapping_the_sides_mirrors_everything(a: list[float], b: list[float]) -> None:
    forth, back = compare(a, b, 0.95), compare(b, a, 0.95)
    assert forth.estimate * back.estimate == pytest.approx(1)
    assert (forth.p_larger, forth.p_smaller) == (back.p_smaller, back.p_larger)
    if forth.low is None or forth.high is None:
        assert back.low is back.high is None
    else:
        assert back.low is not None
        assert back.high is not None
        assert forth.low * back.high == pytest.approx(1)
        assert forth.high * back.low == pytest.approx(1)


@given(samples, samples, st.floats(1e-9, 1e9))
def test_the_unit_changes_nothing(a: list[float], b: list[float], factor: float) -> None:
    plain = compare(a, b, 0.95)
    scaled = compare([factor * x for x in a], [factor * x for x in b], 0.95)
    assert scaled.estimate == pytest.approx(plain.estimate)
    assert (scaled.p_larger, scaled.p_smaller) == (plain.p_larger, plain.p_smaller)


@given(samples, samples)
def test_the_order_of_the_repetitions_changes_nothing(a: list[float], b: list[float]) -> None:
    first, second = compare(a, b, 0.95), compare(a[::-1], sorted(b), 0.95)
    assert (first.estimate, first.low, first.high) == (second.estimate, second.low, second.high)


@given(samples, samples)
def test_the_estimate_is_inside_its_interval(a: list[float], b: list[float]) -> None:
    found = compare(a, b, 0.9)
    if found.low is not None and found.high is not None:
        assert found.low <= found.estimate * (1 + 1e-12)
        assert found.estimate <= found.high * (1 + 1e-12)


@given(
    st.lists(st.integers(1, 10**6), min_size=3, max_size=8, unique=True),
    st.lists(st.integers(1, 10**6), min_size=3, max_size=8, unique=True),
)
def test_interval_and_test_agree_about_no_change(a: list[int], b: list[int]) -> None:
    assume(not set(a) & set(b))
    found = compare(a, b, 0.9)
    if found.low is not None and found.high is not None:
        assert (found.low > 1) == (found.p_larger <= 0.05)
        assert (found.high < 1) == (found.p_smaller <= 0.05)


def test_five_against_five_apart_are_one_order_in_252() -> None:
    found = compare([100, 101, 99, 102, 98], [80, 81, 79, 82, 78], 0.95)
    assert found.p_smaller == pytest.approx(1 / 252)
    assert found.estimate == pytest.approx(0.8, rel=0.01)


def test_a_margin_is_tested_as_a_shift() -> None:
    found = compare([100.0, 101, 99, 102, 98], [100.5, 101.5, 99.5, 102.5, 98.5], 0.95)
    up, _ = ratio_room(0.05)
    assert found.p_below(up) == pytest.approx(1 / 252)
    assert found.p_beyond(up) == 1


@pytest.mark.parametrize(
    ("share", "low", "high"),
    [(0.05, 0.95, 1.05), (0.5, 0.5, 1.5), (1.0, 0.5, 2.0), (1.5, 0.4, 2.5)],
)
def test_a_margin_is_what_is_printed_in_both_directions(
    share: float, low: float, high: float
) -> None:
    up, down = ratio_room(share)
    assert (exp(-down), exp(up)) == pytest.approx((low, high))


def test_a_shift_of_exactly_the_margin_is_on_neither_side() -> None:
    found = compare([100.0] * 4, [105.0] * 4, 0.95)
    up, _ = ratio_room(0.05)
    assert found.p_below(up) == 1
    assert found.p_beyond(up) == 1


def test_zero_has_no_ratio_but_a_difference() -> None:
    found = compare([0, 0, 0, 0, 0], [3, 0, 2, 4, 1], 0.95)
    assert (found.kind, found.estimate) == ("difference", 2)
    assert 0.01 < found.p_larger < 0.5


def test_negative_values_have_a_difference() -> None:
    assert compare([-2.0, -1.0], [1.0, 2.0], 0.95).estimate == 3


def test_equal_samples_have_no_change_and_no_evidence() -> None:
    found = compare([5.0] * 5, [5.0] * 5, 0.95)
    assert (found.estimate, found.low, found.high) == (1, 1, 1)
    assert (found.p_larger, found.p_smaller) == (1, 1)


@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_what_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        compare([1.0, value], [1.0], 0.95)


def test_an_empty_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="value"):
        compare([], [1.0], 0.95)


def test_holm_is_the_published_example() -> None:
    # 0.01 x 4, 0.013 x 3, 0.014 x 2 held at the largest so far, 0.05 x 1
    assert holm([0.01, 0.05, 0.013, 0.014]) == pytest.approx([0.04, 0.05, 0.04, 0.04])


@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_only_raises_and_keeps_the_order(p: list[float]) -> None:
    corrected = holm(p)
    assert all(1 >= c >= x for c, x in zip(corrected, p, strict=True))
    ranked = sorted(zip(p, corrected, strict=True))
    assert [c for _, c in ranked] == sorted(c for _, c in ranked)


def test_more_repetitions_grow_with_the_spread_and_shrink_with_the_distance() -> None:
    goals = [Goal(limits=(log(1.05),), chance=0.01)]
    quiet = more_repetitions([100, 101, 99], [101, 102, 100], goals)
    loud = more_repetitions([100, 108, 92], [101, 109, 93], goals)
    assert quiet is not None
    assert loud is not None
    assert 1 <= quiet < loud


def test_a_shift_on_the_limit_is_never_decided() -> None:
    a, b = [100.0, 102.0, 98.0], [105.0, 107.1, 102.9]
    assert more_repetitions(a, b, [Goal(limits=(log(1.05),), chance=0.05)]) is None
    assert more_repetitions(a, b, []) is None


def test_at_least_as_many_repetitions_are_asked_for_as_the_number_of_tests_needs() -> None:
    goal = Goal(limits=(0.0,), chance=0.05 / 100, beyond=log(0.95))
    more = more_repetitions([100, 100.1, 99.9], [90, 90.1, 89.9], [goal])
    assert more is not None
    assert more >= 4


def test_the_nearest_goal_is_what_is_asked_for() -> None:
    a, b = [100.0, 108, 92, 101], [101.0, 109, 93, 100]
    near, far = (Goal(limits=(log(1.1),), chance=chance) for chance in (0.05, 0.0005))
    found = more_repetitions(a, b, [near])
    assert found is not None
    assert found == more_repetitions(a, b, [far, near])
    further = more_repetitions(a, b, [far])
    assert further is not None
    assert further > 2 * found


def test_a_side_that_stays_small_may_never_be_enough() -> None:
    goal = [Goal(limits=(log(1.1),), chance=0.05)]
    b = np.exp([-0.15, -0.08, -0.02, 0.02, 0.08, 0.15]).tolist()
    both = more_repetitions(b, b, goal)
    assert both is not None
    assert both > 6
    assert more_repetitions(b, b, goal, fixed_a=True) is None
    alone = more_repetitions(3 * b, b, goal, fixed_a=True)
    assert alone is not None
    assert alone < both


def test_so_many_more_repetitions_do_decide_mostly() -> None:
    rng = np.random.default_rng(5)
    goal = Goal(limits=(log(1.1),), chance=0.05)
    a, b = np.exp(rng.normal(0, 0.1, (2, 8)))
    b *= compare(b.tolist(), a.tolist(), 0.9).estimate  # no shift at all
    more = more_repetitions(a.tolist(), b.tolist(), [goal])
    assert more is not None
    spread = np.sqrt((np.log(a).var(ddof=1) + np.log(b).var(ddof=1)) / 2)
    decided = 0
    for _ in range(100):
        one, other = np.exp(rng.normal(0, spread, (2, 8 + more))).tolist()
        decided += compare(one, other, 0.9).p_below(log(1.1)) <= 0.05
    assert 65 <= decided <= 95


def test_pairs_share_a_drift_that_takes_no_part() -> None:
    drift = np.linspace(1, 2, 8)
    noise = np.array([1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.005])
    a, b = drift.tolist(), (1.1 * drift * noise).tolist()
    pairs, apart = compare_pairs(a, b, 0.9), compare(a, b, 0.9)
    assert pairs.estimate == pytest.approx(1.1, rel=0.01)
    assert pairs.p_larger == pytest.approx(1 / 256)
    assert apart.p_larger > 0.05
    assert pairs.low is not None
    assert apart.low is not None
    assert pairs.low > 1.08 > apart.low
    assert pairs.p_below(log(1.15)) == pytest.approx(1 / 256)
    more = more_repetitions(a, b, [Goal(limits=(log(1.1),), chance=0.05)], paired=True)
    assert more is None or more > 8  # it lies on its limit


def test_pairs_need_as_many_of_both() -> None:
    with pytest.raises(ValueError, match="as many"):
        compare_pairs([1.0, 2.0], [1.0], 0.9)
    with pytest.raises(ValueError, match="finite"):
        compare_pairs([1.0, 2.0], [1.0, nan], 0.9)
