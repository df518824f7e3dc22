"""What stands on the first screen: a verdict per role, and three facts in words.  Pure."""

from collections.abc import Iterable, Iterator, Sequence

from kvbench.measure.model import MeasuredRun, Summary
from kvbench.metrics import METRICS
from kvbench.report.doubts import Marks
from kvbench.report.model import FirstFact, ReloadView, RoleVerdict
from kvbench.report.reload import NOT_THE_MEDIUM
from kvbench.report.role_model import CardView
from kvbench.report.words import (
    metric_label,
    parameter_words,
    short,
    stream_words,
    summary_detail,
    summary_text,
)
from kvbench.workload.schema import ROLES, Role, Workload

FACTS_MAX = 3


def role_verdicts(cards: Iterable[CardView]) -> tuple[RoleVerdict, ...]:
    """Return what each role's card comes to."""
    return tuple(
        RoleVerdict(
            role=card.role,
            chip=card.chip,
            words=card.unmeasured or ", ".join(filter(None, (card.headline, card.counts))),
            href=f"#card-{card.role}",
        )
        for card in cards
    )


def first_facts(run: MeasuredRun, marks: Marks, reload: ReloadView | None) -> tuple[FirstFact, ...]:
    """Return at most three facts: what the first workload of each role reached, and the reload.

    A projected workload speaks only where its role has no other.  The best point is told, because
    it is what the drive can do; the tables have the rest.
    """
    found = [fact for role in ROLES if (fact := _of_role(run, role, marks)) is not None]
    # A cache or an empty block is no reload.
    proven = run.record.written.state not in NOT_THE_MEDIUM
    if reload is None or not reload.fact or not proven:
        return tuple(found[:FACTS_MAX])
    fact = FirstFact(text="Reload or recompute", detail=reload.fact, href="#reload")
    return (*found[: FACTS_MAX - 1], fact)


def _of_role(run: MeasuredRun, role: Role, marks: Marks) -> FirstFact | None:
    mine = [workload for workload in run.record.plan.workloads if workload.role == role]
    for workload in sorted(mine, key=lambda one: one.evidence == "projected"):
        summary = _best(run.summaries, workload)
        if summary is not None:
            return _fact(workload, summary, marks)
    return None


def _best(summaries: Sequence[Summary], workload: Workload) -> Summary | None:
    """Return the best point of the first primary number that has one."""
    for name in workload.primary:
        stream, _, metric = name.partition(".")
        there = [
            one
            for one in summaries
            if (one.workload, one.stream, one.metric) == (workload.name, stream, metric)
            and one.purpose == "measure"
            and one.median is not None
        ]
        if there:
            pick = min if METRICS[metric].better == "lower" else max
            return pick(there, key=lambda one: one.median or 0.0)
    return None


def _fact(workload: Workload, summary: Summary, marks: Marks) -> FirstFact:
    stream = next((one for one in workload.streams if one.name == summary.stream), None)
    where = ", ".join(_where(summary, stream_words(stream) if stream else ""))
    projected = " (projected)" if workload.evidence == "projected" else ""
    return FirstFact(
        text=f"{workload.role.capitalize()}: {metric_label(summary.metric)} of "
        f"{short(workload.name)}{projected}",
        value=summary_text(summary),
        detail=f"{summary_detail(summary)}; {where}",
        href=f"#role-{workload.role}",
        marks=marks.of(summary.doubts),
    )


def _where(summary: Summary, what: str) -> Iterator[str]:
    """Yield at which point: what was swept, else what the stream does."""
    swept = parameter_words(summary.parameters)
    yield f"at {swept}" if swept else what
    if summary.alone:
        yield "alone"
