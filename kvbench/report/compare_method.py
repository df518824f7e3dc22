"""How verdicts are made, in plain words.  Pure."""

from kvbench.compare.model import Comparison
from kvbench.report.words import short


def method_words(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """Return (term, explanation) for what a reader must know to judge the verdicts."""
    percent = f"{100 * comparison.confidence:g} %"
    least = comparison.decides_from_n
    enough = f"at least {least} repetitions of each run are" if least else "no number of them is"
    return (
        (
            "Sample",
            "The repetition is the sample, not the I/O. A value is the median over the repetitions "
            "that count, with their range, or from 6 on the 95 % interval of the median. Each run "
            "is held against the first.",
        ),
        (
            "Change",
            "The Hodges-Lehmann estimate on logarithms: the median of all ratios of a repetition "
            f"of this run to one of the first. Its {percent} interval holds every ratio that the "
            "exact Mann-Whitney test does not refuse. Runs that were measured in turns are held "
            "against each other pair by pair, by the Wilcoxon signed rank test, in which a drift "
            "that both share takes no part; a change among more numbers than so many pairs can "
            "show is tested as above. Where a value is not above zero, the same is done with "
            "differences.",
        ),
        (
            "Many numbers",
            f"p-values are corrected by Holm's method for the {comparison.tests} primary numbers "
            f"{_of_all(comparison)}together; the other numbers are a family of their own, so that "
            "a curious reader costs the primary ones nothing. That holds for runs whose "
            "repetitions could have been those of each other. Two runs at different times may "
            "differ by more than their repetitions tell, also on one drive.",
        ),
        (
            "BETTER, WORSE",
            "The estimate lies beyond the margin and the corrected evidence holds at "
            f"{percent} confidence. Both are needed: a small effect that is certain is no "
            "difference, and a large one that may be luck is none either.",
        ),
        ("SAME", "The whole interval lies inside the margin, in both directions."),
        (
            "UNCLEAR",
            "Neither is shown, and the reason says what is in the way: too few repetitions, too "
            "few I/Os for a percentile, too wide a spread, a drift. It never means the same.",
        ),
        ("MISSING", "One side has no such number. The rest is compared all the same."),
        (
            "INCOMPARABLE",
            "The runs differ in what the policy says must not differ, or did other I/O under one "
            "name. The numbers are shown, and nothing is concluded.",
        ),
        (
            "Margins",
            f"They come from the policy {short(comparison.policy)}, by metric, and stand beside "
            "each number.",
        ),
        (
            "Repetitions",
            f"For {comparison.tests} primary numbers {_of_all(comparison)}{enough} needed before "
            "any verdict is possible: with fewer, even values that do not overlap at all may be "
            "luck.",
        ),
        (
            "Winner",
            "A run wins a role when no other beats it in any primary number and it beats each "
            "other one in at least one. All pairs of runs are one family of tests.",
        ),
        (
            "Pairing",
            "Numbers pair by workload, parameters, stream, direction and metric. Drives are known "
            "by model, serial and namespace, never by path.",
        ),
    )


def _of_all(comparison: Comparison) -> str:
    others = len(comparison.sides) - 1
    return f"of each of {others} runs against the first " if others > 1 else ""
