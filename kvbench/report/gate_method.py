"""How a gate comes to its verdict, in plain words.  Pure."""

from kvbench.gate.model import Gate
from kvbench.report.words import short


def gate_method(gate: Gate) -> tuple[tuple[str, str], ...]:
    """Return (term, explanation) for what a reader must know to judge the verdict."""
    percent = f"{100 * gate.confidence:g} %"
    least = gate.decides_from_n
    enough = (
        f"With {len(gate.rows)} numbers, WORSE needs {least} repetitions a side or more."
        if least is not None
        else f"With {len(gate.rows)} numbers, no number of repetitions can show WORSE."
    )
    looks = (
        ()
        if gate.looks == 1
        else (
            (
                "Looks",
                f"The candidate was measured {gate.looks} times for this decision. Every further "
                "look at a number is allowed half the error of the look before, so that measuring "
                "until it fits does not pay. What was not measured again keeps its verdict.",
            ),
        )
    )
    return (
        (
            "Question",
            "Is the candidate worse than the baseline by more than the margin? Each number has a "
            f"margin of its own, from the policy {short(gate.policy)}.",
        ),
        (
            "Sample",
            "The repetition is the sample, not the I/O. A value is the median over the repetitions "
            "that count, with their range, or from 6 on the 95 % interval of the median.",
        ),
        (
            "Change",
            "The Hodges-Lehmann estimate on logarithms, candidate over baseline. Its "
            f"{percent} interval holds every ratio that the exact Mann-Whitney test does not "
            "refuse. Runs that were measured in turns are held against each other pair by pair, "
            "by the Wilcoxon signed rank test, in which a drift that both share takes no part.",
        ),
        (
            "WORSE",
            "The change is beyond the margin, and the evidence holds after Holm's correction over "
            f"{len(gate.rows)} numbers at {percent} confidence. {enough}",
        ),
        (
            "Chance",
            f"A drive held against itself fails in at most {100 * (1 - gate.confidence):g} of 100 "
            "gates, if the repetitions of both runs could have been those of each other. Two runs "
            "at different times may differ by more than their repetitions tell: kvbench ab in "
            "turns, or a history of runs of one drive, shows by how much.",
        ),
        ("PASS", "The interval does not reach beyond the margin on the worse side."),
        (
            "UNCLEAR",
            "Neither is shown. It is no PASS: the reason says what is in the way, and where it can "
            "be known, how many repetitions would decide.",
        ),
        (
            "MISSING",
            "The baseline has a value and no repetition of the candidate has one. Where some "
            "have one they are judged, and a good verdict stands only where the candidate lacks "
            "it no more often than the baseline.",
        ),
        (
            "INCOMPARABLE",
            "The runs differ in what the policy says must not differ, or did other I/O under one "
            "name. Nothing is concluded.",
        ),
        *looks,
    )
