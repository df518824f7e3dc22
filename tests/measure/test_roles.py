"""A run against requirements: what is met, what is missed, and what cannot be said."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from kvbench.host.model import Written
from kvbench.measure.model import Finding, MeasuredRun, Measurement
from kvbench.measure.roles import JudgedRole, judge
from kvbench.measure.verdicts import RequirementRow
from kvbench.plan import Skipped
from kvbench.workload.roles import (
    CONTROLLER_KEYS,
    ControllerRequirement,
    Probe,
    Requirement,
    RoleCard,
)
from kvbench.workload.schema import SweepAxis, SweepValue
from tests import records
from tests.measure import judged

HOST_BOUND = Finding(check="host-bound", severity="doubt", text="t", stream="reads")
FAST, SLOW, AROUND = (2000.0, 2100.0), (500.0, 600.0), (900.0, 1100.0)


def row(run: MeasuredRun, requirement: Requirement) -> RequirementRow:
    return judge(run, [judged.card([requirement])]).roles[0].levels[0].rows[0]


def by_depth(**values: Sequence[float] | str) -> judged.Values:
    """depth1=..., depth4=...: the values of each point."""

    def of(parameters: dict[str, SweepValue]) -> Sequence[float] | str:
        return values[f"depth{parameters['queue_depth']}"]

    return of


def role(run: MeasuredRun, card: RoleCard) -> JudgedRole:
    return judge(run, [card]).roles[0]


@pytest.mark.parametrize(
    ("values", "verdict"), [(FAST, "met"), (SLOW, "missed"), (AROUND, "unclear")]
)
def test_the_interval_decides_and_not_the_median(values: tuple[float, ...], verdict: str) -> None:
    assert row(judged.run(lambda _: values), judged.requirement()).verdict == verdict


@pytest.mark.parametrize(
    ("values", "verdict", "margin"),
    [((0.001, 0.001), "met", 1.0), ((0.004, 0.004), "missed", -0.5)],
)
def test_a_latency_is_better_when_it_is_smaller(
    values: tuple[float, ...], verdict: str, margin: float
) -> None:
    about = judged.subject(metric="latency_p99")
    asked = judged.requirement(about, bound="at_most", limit=0.002)
    found = row(judged.run(lambda _: values, metric="latency_p99"), asked)
    assert found.verdict == verdict
    assert found.margin == pytest.approx(margin)


def test_a_value_at_the_limit_meets_it() -> None:
    found = row(judged.run(lambda _: (1000.0, 1000.0)), judged.requirement())
    assert (found.verdict, found.margin) == ("met", 0.0)


def test_one_repetition_has_no_interval_and_so_no_verdict() -> None:
    found = row(judged.run(lambda _: (5000.0,)), judged.requirement())
    assert (found.verdict, found.reason) == ("unclear", "one repetition has no interval")
    assert (found.value, found.n, found.low) == (5000.0, 1, None)


def test_a_latency_beyond_what_fio_sees_misses_a_limit_below_it_and_says_nothing_of_one_above() -> (
    None
):
    about = judged.subject(metric="latency_p99")
    run = judged.run(lambda _: (17.1, 17.1), metric="latency_p99", censored=True)
    assert row(run, judged.requirement(about, bound="at_most", limit=1.0)).verdict == "missed"
    assert row(run, judged.requirement(about, bound="at_most", limit=60.0)).verdict == "unclear"
    holds = judged.run(
        lambda _: (1.0, 1.6, 2.0, 2.0, 2.0, 17.1), metric="latency_p99", censored=True
    )
    found = row(holds, judged.requirement(about, bound="at_most", limit=1.5))
    assert (found.verdict, found.reason) == ("unclear", "beyond what fio sees")
    exact = judged.run(  # its median is known, and the upper end of its interval is not
        lambda _: (1.0, 1.6, 2.0, 2.0, 2.0, 17.12), metric="latency_p99"
    )
    verdicts = [
        row(exact, judged.requirement(about, bound="at_most", limit=limit)).verdict
        for limit in (0.5, 1.5, 60.0)
    ]
    assert verdicts == ["missed", "unclear", "unclear"]


def test_the_worst_point_decides_unless_the_best_is_asked_for() -> None:
    run = judged.run(by_depth(depth1=SLOW, depth4=FAST))
    everywhere = judged.subject(at={})
    worst = row(run, judged.requirement(everywhere))
    best = row(run, judged.requirement(everywhere, of="best"))
    assert (worst.verdict, worst.parameters) == ("missed", {"queue_depth": 1})
    assert (best.verdict, best.parameters) == ("met", {"queue_depth": 4})
    assert worst.points == best.points == 2


def test_a_point_without_a_number_is_never_passed_over() -> None:
    few = "too few I/Os: 10 of 1,000 needed"
    everywhere = judged.subject(at={})
    hopeful = judged.run(by_depth(depth1=few, depth4=FAST))
    assert row(hopeful, judged.requirement(everywhere)).verdict == "not measurable"
    assert row(hopeful, judged.requirement(everywhere)).reason == few
    assert row(hopeful, judged.requirement(everywhere, of="best")).verdict == "met"
    bad = judged.run(by_depth(depth1=few, depth4=SLOW))
    assert row(bad, judged.requirement(everywhere)).verdict == "missed"
    assert row(bad, judged.requirement(everywhere, of="best")).verdict == "not measurable"


def test_a_rate_that_the_host_limits_is_no_miss_of_the_drive() -> None:
    slow = judged.run(lambda _: SLOW, findings=(HOST_BOUND,))
    found = row(slow, judged.requirement())
    assert found.verdict == "not measurable"
    assert found.reason.startswith("host-bound")
    assert found.value == 550.0, "the number is shown all the same"
    fast = judged.run(lambda _: FAST, findings=(HOST_BOUND,))
    assert row(fast, judged.requirement()).verdict == "met"


@pytest.mark.parametrize(
    ("hits", "counts", "verdict", "reason"),
    [
        # All of 14 are in time, and a share of 77 % still gives that in one of 40 runs.
        (14, (5, 5, 4), "unclear", "too few requests: 14 of 14 tell of 76.8 to 100 %, and 368"),
        (13, (5, 5, 4), "unclear", "too few requests: 13 of 14"),
        (2, (5, 5, 4), "missed", ""),
        (400, (200, 200), "met", ""),
        (990, (500, 500), "unclear", "the interval holds the limit: 990 of 1,000"),
        (950, (500, 500), "missed", ""),
    ],
)
def test_a_share_of_requests_is_judged_by_how_many_there_were(
    hits: int, counts: tuple[int, ...], verdict: str, reason: str
) -> None:
    cells = judged.run(lambda _: FAST).cells
    left, measured = hits, []
    fours = [c for c in cells if c.cell.parameters["queue_depth"] == 4] * 2
    for count, cell in zip(counts, fours, strict=False):
        here = min(left, count)
        left -= here
        one = Measurement(
            stream="reads",
            direction="read",
            metric="deadline_hit_share",
            value=100 * here / count,
            io_count=count,
        )
        measured.append(replace(cell, measurements=(one,)))
    run = judged.run(lambda _: (100.0, 100.0), metric="deadline_hit_share")
    about = judged.subject(metric="deadline_hit_share")
    found = row(replace(run, cells=tuple(measured)), judged.requirement(about, limit=99.0))
    assert (found.verdict, found.reason.startswith(reason)) == (verdict, True)


def test_a_latency_that_the_host_adds_to_is_no_miss_of_the_drive() -> None:
    about = judged.subject(metric="latency_p99")
    asked = judged.requirement(about, bound="at_most", limit=1e-3)

    def found(values: Sequence[float], *findings: Finding) -> RequirementRow:
        return row(judged.run(lambda _: values, metric="latency_p99", findings=findings), asked)

    bound = found((0.005, 0.006), HOST_BOUND)
    assert (bound.verdict, bound.reason.partition(":")[0]) == ("not measurable", "host-bound")
    assert found((0.005, 0.006)).verdict == "missed"
    assert found((0.0005, 0.0006), HOST_BOUND).verdict == "met"


def test_a_host_bound_doubt_of_another_stream_changes_nothing() -> None:
    other = Finding(check="host-bound", severity="doubt", text="t", stream="another")
    assert row(judged.run(lambda _: SLOW, findings=(other,)), judged.requirement()).verdict == (
        "missed"
    )


def test_a_stream_that_the_page_cache_served_is_not_judged() -> None:
    cached = Finding(check="page-cache", severity="doubt", text="t", stream="reads")
    found = row(judged.run(lambda _: FAST, findings=(cached,)), judged.requirement())
    assert (found.verdict, found.reason.partition(":")[0]) == ("not measurable", "page cache")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"direct": False}, "page cache"),
        ({"written": Written(state="buffered", reason="r")}, "page cache"),
        ({"written": Written(state="unproven", reason="r")}, "target never proven written"),
    ],
)
def test_a_run_that_did_not_read_the_medium_is_not_judged(
    changes: dict[str, object], reason: str
) -> None:
    run = judged.run(lambda _: FAST, **changes)  # type: ignore[arg-type]
    found = row(run, judged.requirement())
    assert (found.verdict, found.reason.partition(":")[0]) == ("not measurable", reason)


def test_what_is_not_in_the_run_says_how_to_get_it_there() -> None:
    absent = judged.requirement(judged.subject(records.a_workload(name="w-2")))
    found = row(judged.run(lambda _: FAST), absent)
    assert found.reason == "not in this run: run --workload w-2"


def test_a_workload_that_was_left_out_keeps_its_reason() -> None:
    why = "its 512 B blocks are not a multiple of the device's 4096 B logical block"
    absent = judged.requirement(judged.subject(records.a_workload(name="w-2")))
    run = judged.run(lambda _: FAST, skipped=(Skipped(workload="w-2", reason=why),))
    assert row(run, absent).reason == f"left out: {why}"


def test_other_io_under_the_same_name_is_not_judged() -> None:
    larger = records.a_workload(streams=(records.a_stream(zipf_theta=0.9),))
    found = row(judged.run(lambda _: FAST, workload=larger), judged.requirement())
    assert found.reason.startswith("other I/O under this name")
    smaller_part = records.a_workload(streams=(records.a_stream(span_percent=50.0),))
    run = judged.run(lambda _: FAST, workload=smaller_part)
    assert row(run, judged.requirement()).verdict == "met"


def test_a_point_that_the_run_does_not_have_says_so() -> None:
    asked = judged.requirement(judged.subject(at={"queue_depth": 256}))
    assert row(judged.run(lambda _: FAST), asked).reason.startswith("no such point here")


def test_a_metric_that_no_cell_gave_says_why() -> None:
    asked = judged.requirement(judged.subject(metric="bandwidth"))
    assert row(judged.run(lambda _: FAST), asked).reason == "no cell gave this number"
    failed = judged.run(lambda _: FAST, outcome="failed")
    assert row(failed, asked).reason == "no valid cell: 2 failed"


def test_another_engine_is_a_doubt() -> None:
    found = row(judged.run(lambda _: FAST, engine="libaio"), judged.requirement())
    assert found.doubts[-1] == "engine libaio, not io_uring"


def test_a_level_is_met_when_all_its_rows_are_and_its_narrowest_row_decides() -> None:
    wide, narrow = judged.requirement(limit=100.0), judged.requirement(limit=1900.0)
    score = role(judged.run(lambda _: FAST), judged.card([wide, narrow])).levels[0].score
    assert score is not None
    assert (score.verdict, score.met, score.decided_by) == ("met", 2, 1)


def test_one_missed_row_misses_the_level_and_is_named() -> None:
    rows = [judged.requirement(), judged.requirement(limit=1e9), judged.requirement(limit=1e6)]
    score = role(judged.run(lambda _: FAST), judged.card(rows)).levels[0].score
    assert score is not None
    assert (score.verdict, score.missed, score.decided_by) == ("missed", 2, 1)


def test_a_row_without_an_answer_leaves_the_level_open() -> None:
    absent = judged.requirement(judged.subject(records.a_workload(name="w-2")))
    score = (
        role(judged.run(lambda _: FAST), judged.card([judged.requirement(), absent]))
        .levels[0]
        .score
    )
    assert score is not None
    assert (score.verdict, score.decided_by) == ("cannot say", 1)


def test_projected_rows_have_a_score_of_their_own_and_never_decide_the_level() -> None:
    projected = judged.requirement(limit=1e9, evidence="projected")
    found = role(judged.run(lambda _: FAST), judged.card([judged.requirement(), projected]))
    level = found.levels[0]
    assert level.score is not None
    assert level.projected is not None
    assert (level.score.verdict, level.score.met, level.score.missed) == ("met", 1, 0)
    assert (level.projected.verdict, level.projected.missed) == ("missed", 1)
    assert found.highest == "one"


def test_a_level_of_projected_rows_alone_is_never_the_highest_met() -> None:
    projected = judged.requirement(evidence="projected")
    found = role(judged.run(lambda _: FAST), judged.card([judged.requirement()], [projected]))
    assert found.levels[1].score is None
    assert found.levels[1].projected is not None
    assert found.levels[1].projected.verdict == "met"
    assert found.highest == "one"


def test_the_highest_level_met_is_the_last_in_the_cards_order() -> None:
    easy, hard = judged.requirement(limit=10.0), judged.requirement(limit=1e9)
    run = judged.run(lambda _: FAST)
    assert role(run, judged.card([easy], [easy], [hard])).highest == "two"
    assert role(run, judged.card([hard])).highest is None


def test_a_role_of_which_nothing_was_measured_says_so_in_one_line() -> None:
    absent = judged.requirement(judged.subject(records.a_workload(name="w-2")))
    found = role(judged.run(lambda _: FAST), judged.card([absent], [absent]))
    assert not found.measured
    assert found.reason == "no workload that its card asks for is in this run: run --role memory"
    cached = role(judged.run(lambda _: FAST, direct=False), judged.card([judged.requirement()]))
    assert cached.reason.startswith("page cache")


def test_the_base_of_a_ratio_has_no_number_and_needs_none() -> None:
    jobs = records.a_workload(sweep=(SweepAxis(stream="reads", field="jobs", values=(1, 2, 4)),))
    about = judged.subject(jobs, metric="iops_over_fewer_jobs", at={})

    def found(**values: Sequence[float] | str) -> RequirementRow:
        run = judged.run(
            lambda parameters: values[f"jobs{parameters['jobs']}"],
            workload=jobs,
            metric="iops_over_fewer_jobs",
        )
        return row(run, judged.requirement(about, limit=0.9))

    good = found(jobs1="it is the smallest", jobs2=(1.5, 1.5), jobs4=(1.0, 1.1))
    assert (good.verdict, good.points, good.parameters) == ("met", 2, {"jobs": 4})
    gap = found(jobs1="it is the smallest", jobs2=(1.5, 1.5), jobs4="no valid cell")
    assert (gap.verdict, gap.reason) == ("not measurable", "no valid cell")


def test_a_number_of_a_whole_curve_may_stand_at_one_of_its_points() -> None:
    about = judged.subject(metric="usable_iops", at={})
    run = judged.run(lambda _: FAST, metric="usable_iops")
    one = replace(run, summaries=run.summaries[:1])
    found = row(one, judged.requirement(about))
    assert (found.verdict, found.points) == ("met", 1)


def test_a_controller_requirement_shows_every_point_of_its_probes() -> None:
    there = Probe(subject=judged.subject(at={}), tells="t")
    absent = Probe(subject=judged.subject(records.a_workload(name="w-2")), tells="t")
    asked = ControllerRequirement(
        key=CONTROLLER_KEYS[0],
        title="t",
        asks="a",
        confounders="c",
        cannot_prove="p",
        source="s",
        probes=(there, absent),
    )
    reading = judge(judged.run(by_depth(depth1=SLOW, depth4=FAST)), [], [asked]).controller[0]
    assert [figure.value for figure in reading.probes[0].figures] == [550.0, 2050.0]
    assert reading.probes[1].figures == ()
    assert reading.probes[1].reason == "not in this run: run --workload w-2"
