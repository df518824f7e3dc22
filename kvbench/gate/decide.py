"""Baseline, candidate and policy -> Gate.  Pure.

PASS needs every gated number inside its margin, every required level met and both runs whole.
WORSE needs effect and evidence, corrected over all gated numbers.  What is in between is UNCLEAR:
nothing is ever passed for want of evidence.
"""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from kvbench.compare.aspects import blocked, differences
from kvbench.compare.join import Paired, changes_of, pair, sides_of
from kvbench.compare.model import Change, Sample, Side
from kvbench.compare.policy import PRIMARY, Policy, RequiredLevel
from kvbench.compare.unproven import unproven_sides, unproven_words
from kvbench.errors import UsageError
from kvbench.gate.model import Gate, GateRow, Outcome, RequiredRow, RowVerdict, Ungated
from kvbench.gate.pool import looks_of
from kvbench.measure.model import MeasuredRun
from kvbench.measure.roles import Judgement
from kvbench.measure.subjects import OF_A_CURVE
from kvbench.metrics import METRICS
from kvbench.stats import rank_sum
from kvbench.units import format_value

SIDES = ("baseline", "candidate")
OVERRUN = ("overloaded", "no rate that was tried")  # a load took the number away


def decide(
    baseline: MeasuredRun,
    candidate: MeasuredRun,
    policy: Policy,
    judgement: Judgement,
    *,
    reruns: Sequence[str] = (),
) -> Gate:
    """Return what may be said of ``candidate`` against ``baseline``.

    Args:
        baseline: the run that is known to be good.
        candidate: the run in question.
        policy: margins, confidence, what is missing worth, what must not differ.
        judgement: the candidate against the role cards.
        reruns: ids of the runs whose repetitions were added to the candidate.  Each is one more
            look at the numbers that it has; the allowed error of a second look is half, of a third
            a quarter: all looks together never have twice of it.

    Raises:
        UsageError: the two are the same run.
    """
    if baseline.record.run_id == candidate.record.run_id:
        raise UsageError(
            "baseline and candidate are the same run, which always agrees with itself",
            where=candidate.record.run_id,
            hint="measure the candidate anew",
        )
    runs = (baseline, candidate)
    found = tuple(differences([run.record for run in runs], policy))
    pairs = [paired for paired in pair(runs, policy) if paired.wanted]
    ungated = [p for p in pairs if _never_there(p, policy) or _only_new(p, policy)]
    gated = [paired for paired in pairs if paired not in ungated]
    looks = [looks_of(candidate, p.key) if reruns else 1 for p in gated]
    changes = changes_of(gated, runs, found, policy, sides="one", names=SIDES, looks=looks)
    rows = tuple(_row(p, c[1], policy) for p, c in zip(gated, changes, strict=True))
    required = tuple(_required(policy.require, judgement))
    sides = sides_of(runs)
    unmatched = [p for p in policy.metrics if not any(_fits(p, paired) for paired in pairs)]
    outcome, reasons = _outcome(rows, required, sides, blocked(found, 1), unmatched, policy)
    open_rows = [row.change for row in rows if row.verdict == "UNCLEAR"]
    return Gate(
        outcome=outcome,
        sides=(sides[0], sides[1]),
        differences=found,
        rows=rows,
        ungated=tuple(Ungated(key=p.key, reason=_why_ungated(p)) for p in ungated),
        required=required,
        reasons=reasons,
        doubts=tuple(_unproven(gated, runs)),
        confidence=policy.confidence,
        decides_from_n=rank_sum.smallest_n(
            policy.chance / 2 ** (max(looks, default=1) - 1) / max(1, len(gated))
        ),
        more=_most(change.more for change in open_rows),
        more_candidate=_most(change.more_candidate for change in open_rows),
        policy=policy.name,
        looks=1 + len(reruns),
        reruns=tuple(reruns),
    )


def _unproven(gated: Sequence[Paired], runs: Sequence[MeasuredRun]) -> Iterator[str]:
    if sides := unproven_sides((paired.key for paired in gated), runs):
        yield f"not to be relied on: {unproven_words(SIDES[side] for side in sides)}"


def _never_there(paired: Paired, policy: Policy) -> bool:
    """Whether neither run can have the number, for want of I/Os or of what it is made of.

    A number that the policy asks for by name must be there.  One that was lost to a cell that
    failed, or to a load that the drive did not keep up with, is open and not left out; but a load
    curve is driven until the drive does not keep up, and its usable rate says where that is.
    """
    if policy.names_metrics:
        return False
    of_a_curve = paired.workload.load is not None and paired.key.metric not in OF_A_CURVE
    return all(_cannot_be(sample, of_a_curve=of_a_curve) for sample in paired.samples)


def _with_failures(change: Change, candidate: Sample, policy: Policy) -> Change:
    """Return a good verdict as what it is worth when repetitions of the candidate failed."""
    if policy.failed == "ignore":
        return change
    all_of = candidate.n + candidate.excluded
    reason = f"{candidate.excluded} of {all_of} repetitions of the candidate failed or are invalid"
    return replace(change, verdict="WORSE" if policy.failed == "fail" else "UNCLEAR", reason=reason)


def _only_new(paired: Paired, policy: Policy) -> bool:
    """Whether only the candidate has a number that nobody asked for by name."""
    return not policy.names_metrics and paired.samples[0] is None


def _fits(pattern: str, paired: Paired) -> bool:
    key = paired.key
    name = f"{key.workload}/{key.stream}.{key.metric}"
    return pattern == PRIMARY or fnmatchcase(name, pattern)


def _cannot_be(sample: Sample | None, *, of_a_curve: bool) -> bool:
    if sample is None or sample.known or sample.excluded:
        return False
    return of_a_curve or not any(word in sample.reason for word in OVERRUN)


def _why_ungated(paired: Paired) -> str:
    if paired.samples[0] is None:
        return "only the candidate has it"
    reasons = dict.fromkeys(s.reason for s in paired.samples if s is not None)
    return "; ".join(reason for reason in reasons if reason) or "no reason is given"


def _row(paired: Paired, change: Change | None, policy: Policy) -> GateRow:
    assert change is not None  # noqa: S101 - only the baseline has none
    candidate = paired.samples[1]
    if change.verdict in ("SAME", "BETTER") and candidate is not None and candidate.excluded:
        change = _with_failures(change, candidate, policy)
    verdicts: dict[str, RowVerdict] = {"BETTER": "PASS", "SAME": "PASS", "WORSE": "WORSE"}
    verdicts |= {"UNCLEAR": "UNCLEAR", "MISSING": "MISSING", "INCOMPARABLE": "INCOMPARABLE"}
    return GateRow(
        key=paired.key,
        role=paired.workload.role,
        unit=METRICS[paired.key.metric].unit,
        baseline=paired.samples[0],
        candidate=paired.samples[1],
        change=change,
        verdict=verdicts[change.verdict],
        improved=change.verdict == "BETTER",
    )


def _required(required: Sequence[RequiredLevel], judgement: Judgement) -> Iterator[RequiredRow]:
    for one in required:
        role = next((role for role in judgement.roles if role.role == one.role), None)
        level = next((lv for lv in role.levels if lv.name == one.level), None) if role else None
        score = (level.score or level.projected) if level else None
        if level is None or score is None:
            reason = f"the card {one.role} has no level {one.level} that could be read"
            yield RequiredRow(required=one, verdict="cannot say", reason=reason)
            continue
        row = level.rows[score.decided_by]
        value = "no value" if row.value is None else format_value(row.value, row.unit)
        reason = f"{row.workload}/{row.stream}.{row.metric} is {value}, asked for is "
        reason += f"{row.bound.replace('_', ' ')} {row.limit_text}: {row.verdict}"
        if row.reason:
            reason += f" ({row.reason})"
        yield RequiredRow(required=one, verdict=score.verdict, reason=reason)


def _outcome(
    rows: Sequence[GateRow],
    required: Sequence[RequiredRow],
    sides: Sequence[Side],
    block: str,
    unmatched: Sequence[str],
    policy: Policy,
) -> tuple[Outcome, tuple[str, ...]]:
    """Return the verdict over everything and what stands in the way of PASS, worst first."""
    if block:
        return "INCOMPARABLE", (block,)
    by_verdict = {
        verdict: [row for row in rows if row.verdict == verdict]
        for verdict in ("WORSE", "MISSING", "INCOMPARABLE", "UNCLEAR")
    }
    fails: list[str] = []
    opens: list[str] = []
    missed = [row for row in required if row.verdict == "missed"]
    unsaid = [row for row in required if row.verdict == "cannot say"]
    if by_verdict["WORSE"]:
        fails.append(f"{_count(by_verdict['WORSE'])} worse")
    if missed:
        fails.append(f"{_levels(len(missed))} missed")
    if by_verdict["MISSING"] and policy.missing != "ignore":
        text = f"{_count(by_verdict['MISSING'])} missing"
        (fails if policy.missing == "fail" else opens).append(text)
    if by_verdict["UNCLEAR"] and policy.unclear != "pass":
        text = f"{_count(by_verdict['UNCLEAR'])} unclear"
        (fails if policy.unclear == "fail" else opens).append(text)
    if unsaid:
        opens.append(f"nothing can be said of {_levels(len(unsaid))}")
    named = [pattern for pattern in unmatched if pattern != PRIMARY]
    if named:
        opens.append(f"neither run has a number that fits {', '.join(named)}")
    if by_verdict["INCOMPARABLE"]:
        opens.append(f"{_count(by_verdict['INCOMPARABLE'])} not comparable")
    for name, side in zip(SIDES, sides, strict=True):
        if side.incomplete:
            opens.append(f"the {name} is not whole: {side.incomplete}")
    if not any(row.verdict == "PASS" for row in rows) and not (fails or opens):
        opens.append("not one number is gated")
    if fails:
        return "FAIL", (*fails, *opens)
    if opens:
        only_incomparable = rows and all(row.verdict == "INCOMPARABLE" for row in rows)
        return ("INCOMPARABLE" if only_incomparable else "UNCLEAR"), tuple(opens)
    return "PASS", ()


def _levels(count: int) -> str:
    return f"{count} required {'level' if count == 1 else 'levels'}"


def _count(rows: Sequence[GateRow]) -> str:
    return f"{len(rows)} {'number' if len(rows) == 1 else 'numbers'}"


def _most(needs: Iterable[int | None]) -> int | None:
    """Return what the hungriest of the open numbers needs that can be decided, None for none."""
    return max((need for need in needs if need is not None), default=None)
