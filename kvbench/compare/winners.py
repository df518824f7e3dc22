"""Which side is best for a role, where the evidence allows one.  Pure."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from kvbench.compare.aspects import blocked, in_turns
from kvbench.compare.judge import Question, judge
from kvbench.compare.model import Difference, RoleWinner, Row, Verdict
from kvbench.compare.policy import Policy
from kvbench.measure.model import MeasuredRun
from kvbench.metrics import METRICS
from kvbench.workload.schema import ROLES, Role

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
    if not decided:
        return RoleWinner(role=role, winner=None, text=f"no difference is shown: {_open(table)}")
    return RoleWinner(
        role=role,
        winner=None,
        text="none is better than every other without being worse in some number",
    )


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


def _open(table: _Table) -> str:
    verdicts = [v for (a, b), found in table.items() if a < b for v in found]
    return ", ".join(_counted(verdicts))


def _counted(verdicts: Sequence[Verdict]) -> Iterator[str]:
    for verdict in dict.fromkeys(verdicts):
        yield f"{verdicts.count(verdict)} {verdict}"
