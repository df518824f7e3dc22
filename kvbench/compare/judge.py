"""Samples side by side -> verdicts.  Pure.

A verdict needs effect and evidence: BETTER or WORSE an effect beyond the margin and a p-value that
holds after correction for all tests; SAME an interval inside the margin.  A number that a side
does not have is MISSING, and one that some repetitions lack is judged by the others (see
``lacking``).  Everything else is UNCLEAR, with what is in the way.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from kvbench.compare import lacking
from kvbench.compare.lacking import Sides
from kvbench.compare.model import Change, Sample, Verdict
from kvbench.compare.question import Question, margins
from kvbench.compare.steady import drifted, steady
from kvbench.compare.unclear import doubts, goals, ordered, why_open
from kvbench.stats import rank_sum, signed_rank, two_sample
from kvbench.stats.two_sample import TwoSample


def judge(
    questions: Sequence[Question],
    chance: float,
    *,
    sides: Sides,
    tests: int | None = None,
    advise: bool = True,
) -> list[Change]:
    """Return one change per question, corrected for all of them together.

    Args:
        questions: one family of tests.
        chance: the error allowed over the family.
        sides: "one" asks only whether b is worse; its PASS needs one bound inside the margin.
        tests: the size of the family, where it is larger than what could be tested of it.
        advise: say how many more repetitions would decide, which takes time to find out.
    """
    tested = [_test(question, chance, sides) for question in questions]
    known = [place for place, test in enumerate(tested) if test is not None]
    count = max(1, len(known), tests or 0)
    worse: dict[int, float] = {}
    better: dict[int, float] = {}
    spare = [1.0] * (count - len(known))
    for target, toward in ((worse, True), (better, False)):
        p = []
        for place in known:
            test = tested[place]
            assert test is not None  # noqa: S101 - known holds those that are not
            question = questions[place]
            raises = (question.better == "lower") is toward
            test = _test_of_change(question, test, chance, sides, count)
            one = test.p_larger if raises else test.p_smaller
            p.append(min(1.0, one * (2 if sides == "two" else 1) * 2 ** (question.looks - 1)))
        target.update(zip(known, two_sample.holm([*p, *spare]), strict=False))
    still = steady(questions, chance, count)
    return [
        _change(
            question,
            test,
            worse.get(place, 1.0),
            better.get(place, 1.0),
            chance,
            sides,
            count,
            still=still[place],
            advise=advise,
        )
        for place, (question, test) in enumerate(zip(questions, tested, strict=True))
    ]


def _test(question: Question, chance: float, sides: Sides) -> TwoSample | None:
    a, b = question.a, question.b
    if question.better == "neither" or a is None or b is None or not a.known or not b.known:
        return None
    # The interval that belongs to the test: asked about one side, its worse end holds the chance.
    chance = question.chance(chance)
    confidence = 1 - (chance if sides == "two" else 2 * chance)
    if _pairs(a, b, question) and signed_rank.edge_rank(len(a.values), (1 - confidence) / 2):
        return two_sample.compare_pairs(a.values, b.values, confidence)
    return two_sample.compare(a.known, b.known, confidence)


def _pairs(a: Sample, b: Sample, question: Question) -> bool:
    """Whether the n-th repetition of both was measured in one turn, and all of them have values.

    The test of pairs weighs differences by their size, so each value has to be known exactly.
    """
    whole = all(not (s.excluded or s.lacking) and s.censored_from is None for s in (a, b))
    return question.interleaved and whole and len(a.values) == len(b.values)


def _test_of_change(
    question: Question, test: TwoSample, chance: float, sides: Sides, count: int
) -> TwoSample:
    """Return the test by which a change is shown among ``count`` numbers.

    So many pairs may be too few for that, where all orders of both samples are enough.  How many
    there are decides, not what they say.
    """
    a, b = question.a, question.b
    each = question.chance(chance) / (2 if sides == "two" else 1) / count
    enough = signed_rank.smallest_p(test.n_a) <= each * (1 + rank_sum.SLACK)
    if not test.paired or enough or a is None or b is None:
        return test
    return two_sample.compare(a.known, b.known, 0.95)


def _change(
    question: Question,
    test: TwoSample | None,
    p_worse: float,
    p_better: float,
    chance: float,
    sides: Sides,
    count: int,
    *,
    still: tuple[bool, bool],
    advise: bool,
) -> Change:
    a, b = question.a, question.b
    if a is None or b is None or not a.known or not b.known:
        verdict, reason = lacking.without_value(a, b, question.names, sides, chance / count)
        return Change(verdict=verdict, reason=reason, margin=question.margin)
    if question.better == "neither" or test is None:
        return Change(verdict="UNCLEAR", reason="no direction of it is better")
    change = Change(
        verdict="UNCLEAR",
        reason="",
        kind=test.kind,
        estimate=test.estimate,
        low=test.low,
        high=test.high,
        p=min(p_worse, p_better),
        margin=question.margin,
        doubts=doubts(question),
    )
    if question.blocked:
        return replace(change, verdict="INCOMPARABLE", reason=question.blocked)
    if not ordered(question, test):
        return replace(change, reason="beyond what fio sees, so its size is not known")
    drift = drifted(question, test, still)
    decided = _verdict(question, test, p_worse, p_better, chance, sides)
    if drift and decided == "BETTER" and sides == "one":
        return replace(change, verdict="SAME")  # its bound holds; only how much better does not
    if drift and decided in ("WORSE", "BETTER"):  # more repetitions do not take it away
        return replace(change, reason=drift)
    unfair = lacking.unfair(decided, a, b, question.names, sides)
    if unfair:  # what is lacking may be worse than all that is there
        return replace(change, reason=unfair)
    if decided != "UNCLEAR":
        beyond = a.censored or b.censored
        told = "beyond what fio sees, so the change is at least this" if beyond else ""
        return replace(change, verdict=decided, reason=told)
    if drift:
        return replace(change, reason=drift)
    bound = question.chance(chance) / (2 if sides == "two" else 1)
    reason = why_open(test, question, bound / count, count, sides, min(p_worse, p_better))
    if not advise:
        return replace(change, reason=reason)
    near = goals(question, test, bound, count, sides)
    later = goals(question, test, bound / 2, count, sides)  # a rerun is one more look
    return replace(
        change,
        reason=reason,
        more=two_sample.more_repetitions(a.known, b.known, near, paired=test.paired),
        more_candidate=two_sample.more_repetitions(a.known, b.known, later, fixed_a=True)
        if sides == "one"
        else None,
    )


def _verdict(
    question: Question,
    test: TwoSample,
    p_worse: float,
    p_better: float,
    chance: float,
    sides: Sides,
) -> Verdict:
    """Return the verdict that effect and evidence give, whatever drifts."""
    allowed = chance * (1 + rank_sum.SLACK)
    lower_is_better = question.better == "lower"
    up, down = margins(question, test)
    shift = test.shift
    beyond_worse = shift > up if lower_is_better else shift < -down
    beyond_better = shift < -down if lower_is_better else shift > up
    if beyond_worse and p_worse <= allowed:
        return "WORSE"
    if beyond_better and p_better <= allowed:
        return "BETTER"
    bound = question.chance(chance) / (2 if sides == "two" else 1) * (1 + rank_sum.SLACK)
    if _all_equal(question):
        least = rank_sum.smallest_n(bound)
        enough = least is not None and min(test.n_a, test.n_b) >= least
        return "SAME" if enough else "UNCLEAR"
    not_worse = test.p_below(up) if lower_is_better else test.p_beyond(-down)
    not_better = test.p_beyond(-down) if lower_is_better else test.p_below(up)
    if not_worse <= bound and (sides == "one" or not_better <= bound):
        return "SAME"
    return "UNCLEAR"


def _all_equal(question: Question) -> bool:
    a, b = question.a, question.b
    return a is not None and b is not None and len({*a.known, *b.known}) == 1
