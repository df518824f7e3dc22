"""What stands in the way of a verdict, and what would decide it.  Pure."""

from math import exp

from kvbench.compare import lacking
from kvbench.compare.lacking import Sides
from kvbench.compare.question import Question, margins, named
from kvbench.stats import rank_sum
from kvbench.stats.two_sample import Goal, TwoSample


def why_open(
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
    up, down = (exp(room) for room in margins(question, test))
    if test.low > up or test.high * down < 1:
        return (
            f"it is beyond {margin:g} %, but the evidence does not hold for {count} numbers "
            f"together (p={p:.2g})"
        )
    not_worse = (test.high <= up) if question.better == "lower" else (test.low * down >= 1)
    if sides == "two" and not_worse:
        return f"it may be better by more than {margin:g} %, or not"
    return f"it may be worse by more than {margin:g} %, or not"


def goals(
    question: Question, test: TwoSample, bound: float, count: int, sides: Sides
) -> list[Goal]:
    """Return the verdicts that are near, if the change is what it looks like.

    A number inside its margin is tested alone, at ``bound``; a change has to hold among all.
    """
    up, down = margins(question, test)
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


def ordered(question: Question, test: TwoSample) -> bool:
    """Whether values that fio could only see to be large compare as they stand.

    They do where only one side has some, and the largest of the other lies further below than the
    margin reaches: then all pairs have their order, and it is that of the ranks.
    """
    a, b = question.a, question.b
    if a is None or b is None or (a.censored_from is None and b.censored_from is None):
        return True
    up, down = margins(question, test)
    if test.kind != "ratio" or (a.censored_from is not None and b.censored_from is not None):
        return False
    if b.censored_from is not None:
        return b.censored_from > exp(up) * max(a.known)
    return a.censored_from is not None and a.censored_from > exp(down) * max(b.known)


def doubts(question: Question) -> tuple[str, ...]:
    """Return what is doubtful about either side, and which repetitions say nothing."""
    found = []
    for name, sample in named(question):
        if sample is None:
            continue
        found += [f"{name}: {text}" for text in sample.doubts]
        if sample.excluded:
            many = "repetition does" if sample.excluded == 1 else "repetitions do"
            found.append(f"{name}: {sample.excluded} {many} not count")
        if sample.partial:
            found.append(f"{name}: {lacking.lacking_words(sample)}")
    return tuple(found)
