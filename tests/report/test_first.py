"""The first screen: a verdict per role, and at most three facts."""

import pytest
from msgspec.structs import replace

from kvbench.report.doubts import collect_marks
from kvbench.report.first import FACTS_MAX, first_facts, role_verdicts
from kvbench.report.model import ReloadView
from kvbench.report.role_model import CardView, Chip
from kvbench.report.words import parameter_words, summary_detail, summary_text
from tests.report.example import make_run, never_written

RELOAD = ReloadView(words=(), figure=None, tables=(), lines=(), fact="model M on G; reloading wins")


def test_each_role_has_its_best_point_with_interval_and_place() -> None:
    run = make_run()
    facts = first_facts(run, collect_marks(run), None)
    assert 1 <= len(facts) <= FACTS_MAX
    roles = {workload.role for workload in run.record.plan.workloads}
    assert {fact.href for fact in facts} <= {f"#role-{role}" for role in roles}
    best = max(
        (
            summary
            for summary in run.summaries
            if (summary.metric, summary.workload, summary.purpose)
            == ("iops", "iops-ladder", "measure")
        ),
        key=lambda summary: summary.median or 0,
    )
    ladder = next(fact for fact in facts if "iops-ladder" in fact.text)
    assert summary_text(best) == ladder.value
    assert summary_detail(best) in ladder.detail
    assert parameter_words(best.parameters) in ladder.detail


def test_the_reload_takes_the_last_place() -> None:
    run = make_run()
    facts = first_facts(run, collect_marks(run), RELOAD)
    assert len(facts) <= FACTS_MAX
    assert facts[-1].href == "#reload"
    assert facts[-1].detail == "model M on G; reloading wins"


def test_a_reload_that_was_not_measured_is_no_fact() -> None:
    run = make_run()
    facts = first_facts(run, collect_marks(run), replace(RELOAD, fact=""))
    assert all(fact.href != "#reload" for fact in facts)


def test_a_fact_carries_the_marks_of_its_doubts() -> None:
    run = make_run(judge=never_written)
    marks = collect_marks(run)
    facts = first_facts(run, marks, None)
    assert all(set(fact.marks) <= {doubt.mark for doubt in marks.doubts} for fact in facts)
    assert any(fact.marks for fact in facts)


def test_a_run_without_numbers_has_no_facts() -> None:
    run = make_run()
    empty = replace(run, summaries=tuple(replace(s, median=None) for s in run.summaries))
    assert first_facts(empty, collect_marks(empty), None) == ()


def test_a_role_says_what_its_card_comes_to() -> None:
    card = CardView(
        role="memory",
        summary="s",
        chip=Chip(text="cannot say", kind="open"),
        headline="no level is met",
        counts="of 4 levels: 4 cannot say",
        levels=(),
        unmeasured="",
    )
    (seen,) = role_verdicts([card])
    assert seen.words == "no level is met, of 4 levels: 4 cannot say"
    assert seen.href == "#card-memory"
    (other,) = role_verdicts([replace(card, unmeasured="run it")])
    assert other.words == "run it"


@pytest.mark.parametrize("state", ["unproven", "buffered"])
def test_no_reload_is_claimed_of_what_may_not_have_come_from_the_medium(state: str) -> None:
    run = make_run()
    written = replace(run.record.written, state=state, reason="nobody filled it")
    run = replace(run, record=replace(run.record, written=written))
    assert all(fact.href != "#reload" for fact in first_facts(run, collect_marks(run), RELOAD))
