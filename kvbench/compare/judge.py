"""Samples side by side -> verdicts.  Pure.

A verdict needs effect and evidence: BETTER or WORSE an effect beyond the margin and a p-value that
holds after correction for all tests; SAME an interval inside the margin.  A number that a side
does not have is MISSING, and one that some repetitions lack is judged by the others (see
``lacking``).  Everything else is UNCLEAR, with what is in the way.
"""

from collections.abc import Sequence
from math import exp
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from kvbench.compare import lacking
from kvbench.compare.lacking import Sides
from kvbench.compare.model import Change, Sample, Verdict
from kvbench.measure.model import Summary
from kvbench.metrics import Better
from kvbench.stats import rank_sum, series, signed_rank, two_sample
from kvbench.stats.two_sample import Goal, TwoSample

LIKE_DRIFT_SHARE = 0.5  # of the change: with a drift this large the change may be its doing


class Question(Struct, frozen=True, kw_only=True):
    """One pair of samples to be judged; ``blocked`` says why it must not be."""

    a: Sample | None
    b: Sample | None
    better: Better
    margin: float
    blocked: str = ""
    names: tuple[str, str] = ("first", "other")  # what the two sides are called
    interleaved: bool = False  # measured in turns: repetitions are pairs, which drift together
    looks: int = 1  # how often this number was measured for one decision

    def chance(self, of_family: float) -> float:
        """Return the error allowed over the family, if all its numbers had as many looks."""
        return of_family * 0.5 ** (self.looks - 1)


def sample_of(summary: Summary) -> Sample:
    """Return the sample that a summary holds, with what its values tell about themselves."""
    return Sample(
        values=summary.values,
        median=summary.median,
        low=summary.low,
        high=summary.high,
        interval=summary.interval,
        n=summary.n,
        io_count=summary.io_count,
        excluded=summary.excluded,
        censored=summary.censored,
        reason=summary.reason,
        doubts=summary.doubts,
        partial=summary.partial,
        lacking=summary.lacking,
        censored_from=summary.censored_from,
        outliers=series.outliers(summary.values),
        drift=series.clear_drift(summary.values),
    )


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
    steady = _steady(questions, chance, count)
    return [
        _change(
            question,
            test,
            worse.get(place, 1.0),
            better.get(place, 1.0),
            chance,
            sides,
            count,
            steady=steady[place],
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
    steady: tuple[bool, bool],
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
        doubts=_doubts(question),
    )
    if question.blocked:
        return replace(change, verdict="INCOMPARABLE", reason=question.blocked)
    if not _ordered(question, test):
        return replace(change, reason="beyond what fio sees, so its size is not known")
    drifted = _drifted(question, test, steady)
    decided = _verdict(question, test, p_worse, p_better, chance, sides)
    if drifted and decided == "BETTER" and sides == "one":
        return replace(change, verdict="SAME")  # its bound holds; only how much better does not
    if drifted and decided in ("WORSE", "BETTER"):  # more repetitions do not take it away
        return replace(change, reason=drifted)
    unfair = lacking.unfair(decided, a, b, question.names, sides)
    if unfair:  # what is lacking may be worse than all that is there
        return replace(change, reason=unfair)
    if decided != "UNCLEAR":
        beyond = a.censored or b.censored
        told = "beyond what fio sees, so the change is at least this" if beyond else ""
        return replace(change, verdict=decided, reason=told)
    if drifted:
        return replace(change, reason=drifted)
    bound = question.chance(chance) / (2 if sides == "two" else 1)
    reason = _why_open(test, question, bound / count, count, sides, min(p_worse, p_better))
    if not advise:
        return replace(change, reason=reason)
    goals = _goals(question, test, bound, count, sides)
    later = _goals(question, test, bound / 2, count, sides)  # a rerun is one more look
    return replace(
        change,
        reason=reason,
        more=two_sample.more_repetitions(a.known, b.known, goals, paired=test.paired),
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
    up, down = _margins(question, test)
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


def _margins(question: Question, test: TwoSample) -> tuple[float, float]:
    """Return how far up and how far down is inside the margin, on the scale of the test."""
    if test.kind == "ratio":
        return two_sample.ratio_room(question.margin)
    medians = [abs(median(s.known)) for s in (question.a, question.b) if s is not None and s.known]
    room = question.margin * max(medians)
    return room, room


def _ordered(question: Question, test: TwoSample) -> bool:
    """Whether values that fio could only see to be large compare as they stand.

    They do where only one side has some, and the largest of the other lies further below than the
    margin reaches: then all pairs have their order, and it is that of the ranks.
    """
    a, b = question.a, question.b
    if a is None or b is None or (a.censored_from is None and b.censored_from is None):
        return True
    up, down = _margins(question, test)
    if test.kind != "ratio" or (a.censored_from is not None and b.censored_from is not None):
        return False
    if b.censored_from is not None:
        return b.censored_from > exp(up) * max(a.known)
    return a.censored_from is not None and a.censored_from > exp(down) * max(b.known)


def _goals(
    question: Question, test: TwoSample, bound: float, count: int, sides: Sides
) -> list[Goal]:
    """Return the verdicts that are near, if the change is what it looks like.

    A number inside its margin is tested alone, at ``bound``; a change has to hold among all.
    """
    up, down = _margins(question, test)
    goals = []
    if test.shift > up or test.shift < -down:
        beyond = up if test.shift > up else -down
        goals.append(Goal(limits=(0.0,), chance=bound / count, beyond=beyond))
    if sides == "two":
        inside = -down < test.shift < up
        limits: tuple[float, ...] = (up, -down)
    else:
        inside = test.shift < up if question.better == "lower" else test.shift > -down
        limits = (up,) if question.better == "lower" else (-down,)
    if inside:
        goals.append(Goal(limits=limits, chance=bound))
    return goals


def _all_equal(question: Question) -> bool:
    a, b = question.a, question.b
    return a is not None and b is not None and len({*a.known, *b.known}) == 1


def _steady(questions: Sequence[Question], chance: float, count: int) -> list[tuple[bool, bool]]:
    """Return for both sides of each question whether the order of its values may be luck.

    Among many numbers some always rise by luck, so the evidence for a drift is corrected for all
    of them, as that for a change is.
    """
    drifting = [
        (place, side, found.p)
        for place, question in enumerate(questions)
        if not question.interleaved
        for side, sample in enumerate((question.a, question.b))
        if sample is not None
        and sample.drift is not None
        and (found := series.drift(sample.values)) is not None
    ]
    spare = [1.0] * (2 * count - len(drifting))
    corrected = two_sample.holm([*(p for _, _, p in drifting), *spare])
    clear = {
        (place, side)
        for (place, side, _), p in zip(drifting, corrected, strict=False)
        if p <= chance * (1 + rank_sum.SLACK)
    }
    return [((n, 0) not in clear, (n, 1) not in clear) for n in range(len(questions))]


def _drifted(question: Question, test: TwoSample, steady: tuple[bool, bool]) -> str:
    """Return why a drift stands in the way of a change, "" when none does.

    It stands in the way of WORSE and BETTER only: that a candidate is not worse by more than the
    margin holds of these two runs as they were, and the drift is told beside them.
    """
    change = abs(test.shift) if test.kind == "ratio" else 0.0
    for (name, sample), still in zip(_named(question), steady, strict=True):
        drift = sample.drift if sample else None
        if drift is None or still:
            continue
        room = max(question.margin, LIKE_DRIFT_SHARE * change)
        if abs(drift) > room:
            return (
                f"not steady: {name} drifts by {100 * drift:+.0f} % over its "
                "repetitions, which may be all of the difference"
            )
    return ""


def _why_open(
    test: TwoSample, question: Question, each: float, count: int, sides: Sides, p: float
) -> str:
    """Return what stands in the way of a verdict; ``each`` is the error allowed to one test."""
    if min(test.n_a, test.n_b) == 1:
        return "one repetition has no spread, so no verdict is possible"
    if rank_sum.smallest_p(test.n_a, test.n_b) > each * (1 + rank_sum.SLACK):
        least = rank_sum.smallest_n(each)
        return (
            f"{test.n_a} and {test.n_b} repetitions cannot show "
            f"{'WORSE' if sides == 'one' else 'a difference'} among {count} numbers: "
            f"{'no number of them can' if least is None else f'{least} a side can'}"
        )
    if test.low is None or test.high is None:
        return "too few repetitions for an interval"
    if test.kind == "difference":
        return "the difference is within its own spread"
    margin = 100 * question.margin
    up, down = (exp(room) for room in _margins(question, test))
    if test.low > up or test.high * down < 1:
        return (
            f"it is beyond {margin:g} %, but the evidence does not hold for {count} numbers "
            f"together (p={p:.2g})"
        )
    if (test.high <= up) if question.better == "lower" else (test.low * down >= 1):
        return f"it may be better by more than {margin:g} %, or not"
    return f"it may be worse by more than {margin:g} %, or not"


def _named(question: Question) -> tuple[tuple[str, Sample | None], tuple[str, Sample | None]]:
    return (question.names[0], question.a), (question.names[1], question.b)


def _doubts(question: Question) -> tuple[str, ...]:
    found = []
    for name, sample in _named(question):
        if sample is None:
            continue
        found += [f"{name}: {text}" for text in sample.doubts]
        if sample.excluded:
            many = "repetition does" if sample.excluded == 1 else "repetitions do"
            found.append(f"{name}: {sample.excluded} {many} not count")
        if sample.partial:
            found.append(f"{name}: {lacking.lacking_words(sample)}")
    return tuple(found)
