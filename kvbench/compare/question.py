"""One pair of samples that is to be judged.  Pure."""

from statistics import median

from msgspec import Struct

from kvbench.compare.model import Sample
from kvbench.measure.model import Summary
from kvbench.metrics import Better
from kvbench.stats import series, two_sample
from kvbench.stats.two_sample import TwoSample


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


def margins(question: Question, test: TwoSample) -> tuple[float, float]:
    """Return how far up and how far down is inside the margin, on the scale of the test."""
    if test.kind == "ratio":
        return two_sample.ratio_room(question.margin)
    medians = [abs(median(s.known)) for s in (question.a, question.b) if s is not None and s.known]
    room = question.margin * max(medians)
    return room, room


def named(question: Question) -> tuple[tuple[str, Sample | None], tuple[str, Sample | None]]:
    """Return both sides with what they are called."""
    return (question.names[0], question.a), (question.names[1], question.b)
