"""Ratios over a sweep and the knee of a span: the right base, or none with the reason."""

from collections.abc import Callable, Mapping, Sequence
from math import log2

import pytest

from kvbench.measure.model import Finding, MeasuredCell, Measurement, Outcome
from kvbench.measure.relations import FEW_SPANS, NO_KNEE, with_relations
from kvbench.measure.summarise import summarise
from kvbench.plan import Cell, Plan
from kvbench.units import KIB, MIB
from kvbench.workload.schema import Load, SweepAxis, SweepValue
from tests import records

SPANS = (1 * MIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB)


def a_plan(field: str, values: Sequence[SweepValue], repetitions: int = 1) -> Plan:
    """One stream that is swept along one axis."""
    axis = SweepAxis(stream="reads", field=field, values=tuple(values))
    return records.a_plan(records.a_workload(sweep=(axis,)), repetitions=repetitions)


def related(
    plan: Plan,
    field: str,
    metric: str,
    value: Callable[[SweepValue], float | None],
    *,
    outcomes: Mapping[SweepValue, Outcome] | None = None,
    doubts: Mapping[SweepValue, str] | None = None,
    absent: Sequence[SweepValue] = (),
    censored: Sequence[SweepValue] = (),
) -> list[MeasuredCell]:
    """The cells of a plan with one number each, brought together."""
    outcomes, doubts = outcomes or {}, doubts or {}

    def made(cell: Cell) -> MeasuredCell:
        at = cell.parameters[field]
        number = Measurement(
            stream="reads",
            direction="read",
            metric=metric,
            value=value(at),
            io_count=100,
            reason="" if value(at) is not None else "too few I/Os",
            censored=at in censored,
        )
        found = (
            (Finding(check="page-cache", severity="doubt", text=doubts[at]),)
            if at in doubts
            else ()
        )
        return MeasuredCell(
            cell=cell,
            outcome=outcomes.get(at, "doubtful" if found else "valid"),
            findings=found,
            measurements=(number,),
            histograms=(),
        )

    cells = [made(c) for c in plan.cells if c.purpose == "measure"]
    present = [c for c in cells if c.cell.parameters[field] not in absent]
    return list(with_relations(present, plan))


def numbers(cells: Sequence[MeasuredCell], field: str, metric: str) -> dict[object, Measurement]:
    """The numbers of one metric by the value of the swept field."""
    return {
        c.cell.parameters[field]: m for c in cells for m in c.measurements if m.metric == metric
    }


def over_4kib(**changes: object) -> dict[object, Measurement]:
    plan = a_plan("block_size", (16 * KIB, 512, 4 * KIB))
    cells = related(plan, "block_size", "iops", lambda size: 1e6 / float(size), **changes)  # type: ignore[arg-type]
    return numbers(cells, "block_size", "iops_over_4kib")


def test_rates_are_over_those_of_4_kib_and_4_kib_itself_has_no_ratio() -> None:
    assert {size: m.value for size, m in over_4kib().items()} == {512: 8.0, 16 * KIB: 0.25}


@pytest.mark.parametrize("outcome", ["invalid", "failed"])
def test_without_its_base_a_ratio_has_a_reason_and_no_other_base(outcome: Outcome) -> None:
    found = over_4kib(outcomes={4 * KIB: outcome})
    assert {m.value for m in found.values()} == {None}
    assert {m.reason for m in found.values()} == {
        f"the cell of 4 KiB is {outcome} in this repetition"
    }


def test_a_base_that_is_not_in_the_archive_is_told() -> None:
    found = over_4kib(absent=[4 * KIB])
    assert {m.reason for m in found.values()} == {"4 KiB was not measured in this repetition"}


def test_a_cell_that_does_not_count_gets_no_ratio() -> None:
    assert set(over_4kib(outcomes={512: "invalid"})) == {16 * KIB}


def test_a_sweep_without_4_kib_has_no_ratio_to_it() -> None:
    plan = a_plan("block_size", (512, 16 * KIB))
    cells = related(plan, "block_size", "iops", lambda _: 1.0)
    assert numbers(cells, "block_size", "iops_over_4kib") == {}


RATES = {1: 100.0, 2: 180.0, 4: 160.0, 8: 90.0}


def over_fewer(**changes: object) -> dict[object, Measurement]:
    plan = a_plan("jobs", (8, 1, 4, 2))
    cells = related(plan, "jobs", "iops", lambda jobs: RATES[int(jobs)], **changes)  # type: ignore[arg-type]
    return numbers(cells, "jobs", "iops_over_fewer_jobs")


def test_more_submitters_are_compared_with_the_best_of_fewer() -> None:
    values = {jobs: m.value for jobs, m in over_fewer().items()}
    assert values == {2: 1.8, 4: pytest.approx(160 / 180), 8: 0.5}


@pytest.mark.parametrize(("lost", "without"), [(1, {2, 4, 8}), (2, {4, 8}), (4, {8})])
def test_the_best_of_fewer_is_not_known_when_one_of_them_is_lost(
    lost: int, without: set[int]
) -> None:
    found = over_fewer(outcomes={lost: "failed"})
    assert {jobs for jobs, m in found.items() if m.value is None} == without
    name = f"{lost} job{'s' if lost > 1 else ''}"
    assert {m.reason for m in found.values() if m.value is None} == {
        f"the cell of {name} is failed in this repetition"
    }


def test_a_doubtful_base_makes_the_ratio_doubtful_up_to_the_summary() -> None:
    plan = a_plan("jobs", (1, 2, 4), repetitions=2)
    cells = related(
        plan, "jobs", "iops", lambda jobs: RATES[int(jobs)], doubts={2: "the cache answered"}
    )
    doubts = {(s.parameters["jobs"], s.metric): s.doubts for s in summarise(plan, cells) if s.n}
    assert doubts[4, "iops_over_fewer_jobs"] == ("the cache answered",)
    assert doubts[4, "iops"] == ()
    assert doubts[2, "iops_over_fewer_jobs"] == ("the cache answered",)


def test_repetitions_are_not_compared_with_one_another() -> None:
    plan = a_plan("jobs", (1, 2), repetitions=2)
    cells = related(plan, "jobs", "iops", lambda jobs: RATES[int(jobs)])
    kept = [c for c in cells if (c.cell.repetition, c.cell.parameters["jobs"]) != (2, 1)]
    bare = [
        MeasuredCell(
            cell=c.cell, outcome=c.outcome, findings=(), measurements=c.measurements[:1],
            histograms=(),
        )
        for c in kept
    ]  # fmt: skip
    (summary,) = [
        s for s in summarise(plan, with_relations(bare, plan)) if s.metric == "iops_over_fewer_jobs"
    ]
    assert summary.median is None
    assert summary.reason == "1 job was not measured in this repetition (in 1 of 2 repetitions)"


def rising(span: SweepValue) -> float:
    """100 us up to 4 MiB, then 50 us more for every doubling."""
    return 1e-4 + 5e-5 * max(0.0, log2(float(span) / (4 * MIB)))


def over_spans(
    value: Callable[[SweepValue], float | None] = rising,
    spans: Sequence[SweepValue] = SPANS,
    **changes: object,
) -> tuple[dict[object, Measurement], dict[object, Measurement], dict[object, Measurement]]:
    cells = related(a_plan("span_size", spans), "span_size", "latency_p50", value, **changes)  # type: ignore[arg-type]
    ratios, knees, slopes = (
        numbers(cells, "span_size", metric)
        for metric in ("latency_over_smallest_span", "span_knee", "span_slope")
    )
    return ratios, knees, slopes


def test_the_knee_stands_with_the_largest_span_and_every_span_is_over_the_smallest() -> None:
    ratios, knees, slopes = over_spans()
    assert {span: m.value for span, m in ratios.items()} == {
        2 * MIB: 1.0, 4 * MIB: 1.0, 8 * MIB: pytest.approx(1.5), 16 * MIB: pytest.approx(2.0),
    }  # fmt: skip
    assert {span: m.value for span, m in knees.items()} == {16 * MIB: float(4 * MIB)}
    assert slopes[16 * MIB].value == pytest.approx(5e-5)


def test_without_the_smallest_span_there_is_neither_ratio_nor_knee() -> None:
    ratios, knees, _ = over_spans(outcomes={1 * MIB: "invalid"})
    reason = "the cell of 1 MiB is invalid in this repetition"
    assert {(m.value, m.reason) for m in ratios.values()} == {(None, reason)}
    assert (knees[16 * MIB].value, knees[16 * MIB].reason) == (None, reason)


def test_without_the_largest_span_the_knee_moves_to_no_other() -> None:
    ratios, knees, slopes = over_spans(outcomes={16 * MIB: "failed"})
    assert set(ratios) == {2 * MIB, 4 * MIB, 8 * MIB}
    assert knees == slopes == {}


def test_a_lost_span_in_between_leaves_the_knee_if_enough_are_left() -> None:
    _, knees, _ = over_spans(outcomes={2 * MIB: "invalid"})
    assert knees[16 * MIB].value == 4 * MIB
    _, knees, _ = over_spans(outcomes={2 * MIB: "invalid"}, absent=[8 * MIB])
    assert knees[16 * MIB].value is None
    assert knees[16 * MIB].reason == (
        f"{FEW_SPANS}, and only 3 of 5 have a latency in this repetition"
    )


def test_a_plan_with_few_spans_and_a_flat_curve_say_why_there_is_no_knee() -> None:
    _, knees, slopes = over_spans(spans=SPANS[:3])
    assert (knees[4 * MIB].reason, slopes[4 * MIB].reason) == (FEW_SPANS, FEW_SPANS)
    _, knees, slopes = over_spans(lambda _: 1e-4)
    assert (knees[16 * MIB].reason, slopes[16 * MIB].reason) == (NO_KNEE, NO_KNEE)


def test_a_single_span_has_no_relation_at_all() -> None:
    assert over_spans(spans=SPANS[:1]) == ({}, {}, {})


def test_no_number_of_a_relation_is_missing_without_a_reason() -> None:
    def known(span: SweepValue) -> float | None:
        return None if span in (1 * MIB, 4 * MIB) else rising(span)

    for found in (
        *over_spans(known),
        *over_spans(censored=[1 * MIB, 8 * MIB]),
        *over_spans(censored=[16 * MIB]),
        *over_spans(lambda _: None),
        *over_spans(lambda _: 0.0),
        over_4kib(absent=[512, 4 * KIB]),
    ):
        for measurement in found.values():
            assert (measurement.value is None) == bool(measurement.reason)


def test_a_latency_beyond_what_fio_sees_is_no_point_of_the_curve() -> None:
    _, knees, _ = over_spans(censored=[2 * MIB, 8 * MIB])
    assert knees[16 * MIB].reason.endswith("only 3 of 5 have a latency in this repetition")


def test_open_loops_have_no_ratio_as_their_rate_was_set() -> None:
    axis = SweepAxis(stream="reads", field="jobs", values=(1, 2))
    load = Load(percents=(50,), queue_depth=64, limit_s=0.001, search_steps=1)
    plan = records.a_plan(records.a_workload(sweep=(axis,), load=load), repetitions=1)
    number = Measurement(stream="reads", direction="read", metric="iops", value=5.0, io_count=1)
    cells = [
        MeasuredCell(cell=c, outcome="valid", findings=(), measurements=(number,), histograms=())
        for c in plan.cells
    ]
    having = [
        c.cell.parameters
        for c in with_relations(cells, plan)
        if any(m.metric == "iops_over_fewer_jobs" for m in c.measurements)
    ]
    assert having == [{"jobs": 2, "load": "peak"}]


def test_a_knee_carries_the_doubts_of_every_span() -> None:
    _, knees, _ = over_spans(doubts={2 * MIB: "the cache answered"})
    assert knees[16 * MIB].doubts == ("the cache answered",)


def test_the_other_streams_keep_their_numbers_out_of_it() -> None:
    streams = (records.a_stream(name="hot"), records.a_stream(name="cold"))
    axis = SweepAxis(stream="cold", field="jobs", values=(1, 2))
    plan = records.a_plan(records.a_workload(streams=streams, sweep=(axis,), primary=()))
    cells = [
        MeasuredCell(
            cell=c,
            outcome="valid",
            findings=(),
            measurements=tuple(
                Measurement(stream=name, direction="read", metric="iops", value=rate, io_count=1)
                for name, rate in (("hot", 7.0), ("cold", 10.0 * float(c.parameters["cold.jobs"])))
            ),
            histograms=(),
        )
        for c in plan.cells
        if c.purpose == "measure"
    ]
    found = [
        (m.stream, m.value)
        for c in with_relations(cells, plan)
        for m in c.measurements
        if m.metric == "iops_over_fewer_jobs"
    ]
    assert found == [("cold", 2.0)] * 2
