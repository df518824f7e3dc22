"""Whether a drift over the repetitions may be all of a change.  Pure."""

from collections.abc import Sequence

from kvbench.compare.question import Question, named
from kvbench.stats import rank_sum, series, two_sample
from kvbench.stats.two_sample import TwoSample

LIKE_DRIFT_SHARE = 0.5  # of the change: with a drift this large the change may be its doing


def steady(questions: Sequence[Question], chance: float, count: int) -> list[tuple[bool, bool]]:
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


def drifted(question: Question, test: TwoSample, steady: tuple[bool, bool]) -> str:
    """Return why a drift stands in the way of a change, "" when none does.

    It stands in the way of WORSE and BETTER only: that a candidate is not worse by more than the
    margin holds of these two runs as they were, and the drift is told beside them.
    """
    change = abs(test.shift) if test.kind == "ratio" else 0.0
    for (name, sample), still in zip(named(question), steady, strict=True):
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
