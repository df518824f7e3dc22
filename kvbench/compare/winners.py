"""Which side is best for a role, where the evidence allows one.  Pure."""

from collections.abc import Sequence
from itertools import combinations

from kvbench.compare.aspects import blocked, in_turns
from kvbench.compare.judge import judge
from kvbench.compare.letters import side_letter
from kvbench.compare.model import Difference, RoleWinner, Row, Verdict
from kvbench.compare.policy import Policy
from kvbench.compare.question import Question
from kvbench.compare.unproven import unproven_sides, unproven_words
from kvbench.measure.model import MeasuredRun
from kvbench.metrics import METRICS
from kvbench.workload.schema import ROLES, Role

CANNOT_SAY = "cannot say"

_Table = dict[tuple[int, int], list[Verdict]]  # (a, b) -> the verdicts of b against a


def winners(
    rows: Sequence[Row],
    runs: Sequence[MeasuredRun],
    differences: Sequence[Difference],
    policy: Policy,
) -> tuple[RoleWinner, ...]:
    """Return one entry per role that any run measured.

    A side wins a role when no other beats it in any primary number and it beats every other in at
    least one.  All pairs of sides are one family of tests, and only numbers that are shared count.
    Of reads of blocks that were never proven written nothing can be said.
    """
    return tuple(
        _winner(role, [row for row in rows if row.primary and row.role == role], runs, differences,
                policy)
        for role in ROLES
        if any(row.role == role for row in rows)
    )  # fmt: skip


def _winner(
    role: Role,
    rows: Sequence[Row],
    runs: Sequence[MeasuredRun],
    differences: Sequence[Difference],
    policy: Policy,
) -> RoleWinner:
    if not rows:
        return RoleWinner(role=role, winner=None, text="no primary number of this role is compared")
    reasons = [
        reason for side in range(len(runs)) if side and (reason := blocked(differences, side))
    ]
    if reasons:
        return RoleWinner(role=role, winner=None, text=f"not comparable: {reasons[0]}")
    if sides := unproven_sides((row.key for row in rows), runs):
        text = f"{CANNOT_SAY}: {unproven_words(side_letter(side) for side in sides)}"
        return RoleWinner(role=role, winner=None, text=text)
    table = _all_pairs(rows, runs, policy)
    decided = [v for verdicts in table.values() for v in verdicts if v in ("BETTER", "WORSE")]
    candidates = [
        side
        for side in range(len(runs))
        if all(
            "WORSE" not in table[other, side] and "BETTER" in table[other, side]
            for other in range(len(runs))
            if other != side
        )
    ]
    if candidates:
        (winner,) = candidates
        beaten = [
            table[other, winner].count("BETTER") for other in range(len(runs)) if other != winner
        ]
        return RoleWinner(
            role=role,
            winner=winner,
            text=f"better than every other in {min(beaten)} or more of {len(rows)} primary ones, "
            "worse in none",
        )
    shown = _against_first(rows)
    if not decided:
        text = "no difference is shown between any two"
        if shown:
            text = f"{shown}, but among all pairs together too little is shown for a winner"
        elif any(change.verdict == "UNCLEAR" for row in rows for change in row.changes if change):
            text = "UNCLEAR: no difference is shown between any two"
        return RoleWinner(role=role, winner=None, text=text)
    return RoleWinner(role=role, winner=None, text=f"{_told(table)}; none beats every other")


def _against_first(rows: Sequence[Row]) -> str:
    """Return how many numbers of each side are better or worse than the first's."""
    parts = []
    for side in range(1, max((len(row.changes) for row in rows), default=0)):
        verdicts = [change.verdict for row in rows if (change := row.changes[side]) is not None]
        for word in ("BETTER", "WORSE"):
            if word in verdicts:
                parts.append(
                    f"{side_letter(side)} is {word} than {side_letter(0)} in {verdicts.count(word)}"
                )
    return ", ".join(parts)


def _told(table: _Table) -> str:
    """Return who is better than whom, and in how many numbers."""
    parts = [
        f"{side_letter(b)} is better than {side_letter(a)} in {found.count('BETTER')}"
        for (a, b), found in table.items()
        if "BETTER" in found
    ]
    return ", ".join(parts)


def _all_pairs(rows: Sequence[Row], runs: Sequence[MeasuredRun], policy: Policy) -> _Table:
    pairs = list(combinations(range(len(runs)), 2))
    questions = [
        Question(
            a=row.samples[a],
            b=row.samples[b],
            better=METRICS[row.key.metric].better,
            margin=policy.margin(row.key.metric),
            blocked=_incomparable(row),
            interleaved=in_turns(runs[a].record, runs[b].record),
        )
        for a, b in pairs
        for row in rows
    ]
    verdicts = [
        change.verdict for change in judge(questions, policy.chance, sides="two", advise=False)
    ]
    table: _Table = {}
    mirrored: dict[Verdict, Verdict] = {"BETTER": "WORSE", "WORSE": "BETTER"}
    for place, (a, b) in enumerate(pairs):
        mine = verdicts[place * len(rows) : (place + 1) * len(rows)]
        table[a, b] = mine
        table[b, a] = [mirrored.get(verdict, verdict) for verdict in mine]
    return table


def _incomparable(row: Row) -> str:
    for change in row.changes:
        if change is not None and change.verdict == "INCOMPARABLE":
            return change.reason
    return ""
