"""Tenants together against each alone: pairs, mixed streams, and Jain's index."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvbench.measure.evidence import asked_directions
from kvbench.measure.model import Finding, MeasuredCell, Measurement, Outcome
from kvbench.measure.summarise import summarise
from kvbench.measure.tenants import with_tenants
from kvbench.plan import Cell, Plan
from kvbench.workload.schema import Stream
from tests import records

NAME = "small-reads"
RateOf = Callable[[Cell, str, str], float | None]  # cell, stream, direction


def a_plan(*streams: Stream, repetitions: int = 1) -> Plan:
    matrix = any(stream.side for stream in streams)
    workload = records.a_workload(streams=streams, sweep=(), isolate=not matrix, primary=())
    return records.a_plan(workload, repetitions=repetitions)


def together(
    plan: Plan,
    rate_of: RateOf,
    *,
    outcome: Callable[[Cell], Outcome] = lambda _: "valid",
    doubts: Callable[[Cell], Sequence[tuple[str, str]]] = lambda _: (),
) -> list[MeasuredCell]:
    cells = []
    for cell in plan.cells:
        if cell.purpose != "measure":
            continue
        numbers = [
            Measurement(
                stream=placed.stream.name, direction=d, metric="iops",
                value=rate_of(cell, placed.stream.name, d), io_count=10,
                reason="" if rate_of(cell, placed.stream.name, d) is not None else "nobody knows",
            )
            for placed in cell.placed
            for d in asked_directions(placed.stream)
        ]  # fmt: skip
        found = tuple(
            Finding(check="host-bound", severity="doubt", text=text, stream=name)
            for name, text in doubts(cell)
        )
        cells.append(
            MeasuredCell(
                cell=cell, outcome=outcome(cell), findings=found, measurements=tuple(numbers),
                histograms=(),
            )
        )  # fmt: skip
    return list(with_tenants(cells, [NAME]))


def of(cells: Sequence[MeasuredCell], metric: str) -> list[Measurement]:
    return [m for c in cells for m in c.measurements if m.metric == metric]


TWO = (records.a_stream(name="fetch"), records.a_stream(name="spill"))


def jain(*shares: float | None) -> Measurement:
    """Jain's index of streams that keep these shares of 1,000 I/Os per second."""
    streams = [records.a_stream(name=f"s{n}") for n in range(len(shares))]

    def rate(cell: Cell, stream: str, _: str) -> float | None:
        share = shares[int(stream[1:])]
        return 1000.0 if cell.alone else None if share is None else 1000.0 * share

    (found,) = of(together(a_plan(*streams), rate), "jain_index")
    return found


def test_the_index_is_that_of_its_paper() -> None:
    assert jain(0.5, 0.5).value == pytest.approx(1.0)
    assert jain(0.8, 0.0).value == pytest.approx(0.5)
    assert jain(1.0, 0.0, 0.0, 0.0).value == pytest.approx(0.25)
    assert jain(0.9, 0.3).value == pytest.approx(1.2**2 / (2 * (0.81 + 0.09)))


@given(st.lists(st.floats(0.001, 2.0), min_size=2, max_size=4), st.floats(0.1, 1.0))
def test_it_lies_between_one_nth_and_one_and_knows_no_scale(
    shares: list[float], scale: float
) -> None:
    value = jain(*shares).value
    assert value is not None
    assert 1 / len(shares) - 1e-9 <= value <= 1 + 1e-9
    assert jain(*(share * scale for share in shares)).value == pytest.approx(value)


def test_streams_that_keep_nothing_have_no_fairness() -> None:
    found = jain(0.0, 0.0)
    assert (found.value, found.reason) == (None, "no stream kept any of its own rate")


def test_a_share_that_is_not_known_leaves_no_index() -> None:
    found = jain(0.5, None)
    assert (found.value, found.reason) == (None, "s1: together: nobody knows")


def test_a_stream_that_reads_and_writes_has_one_share() -> None:
    streams = (records.a_stream(name="mix", direction="mixed", read_percent=70), TWO[0])
    kept = {"read": 0.2, "write": 0.6}

    def rate(cell: Cell, stream: str, direction: str) -> float:
        own = {"read": 700.0, "write": 300.0}[direction]
        return own * (1.0 if cell.alone else kept[direction] if stream == "mix" else 0.8)

    cells = together(a_plan(*streams), rate)
    (index,) = of(cells, "jain_index")
    share = (140 + 180) / 1000
    assert index.value == pytest.approx((share + 0.8) ** 2 / (2 * (share**2 + 0.64)))
    ratios = {(m.stream, m.direction): m.value for m in of(cells, "iops_mixed_over_alone")}
    assert ratios["mix", "read"] == pytest.approx(0.2)
    assert ratios["mix", "write"] == pytest.approx(0.6)


@pytest.mark.parametrize("outcome", ["invalid", "failed"])
def test_a_lost_cell_of_one_stream_alone_leaves_no_index(outcome: Outcome) -> None:
    cells = together(
        a_plan(*TWO),
        lambda *_: 5.0,
        outcome=lambda c: outcome if c.alone == "spill" else "valid",
    )
    (index,) = of(cells, "jain_index")
    reason = f"the cell that measured the stream alone is {outcome}"
    assert (index.value, index.reason) == (None, f"spill: {reason}")
    ratios = {m.stream: (m.value, m.reason) for m in of(cells, "iops_mixed_over_alone")}
    assert ratios == {"fetch": (1.0, ""), "spill": (None, reason)}


def test_doubts_of_every_cell_behind_the_index_reach_its_summary() -> None:
    def doubts(cell: Cell) -> Sequence[tuple[str, str]]:
        return [("spill", f"doubt of spill {'alone' if cell.alone else 'together'}")] * (
            cell.alone != "fetch"
        )

    plan = a_plan(*TWO, repetitions=2)
    summaries = summarise(plan, together(plan, lambda *_: 5.0, doubts=doubts))
    (index,) = [s for s in summaries if s.metric == "jain_index"]
    assert index.stream == "fetch"
    assert index.doubts == ("doubt of spill together", "doubt of spill alone")
    ratios = {s.stream: s.doubts for s in summaries if s.metric == "iops_mixed_over_alone"}
    assert ratios["fetch"] == ()
    assert ratios["spill"] == ("doubt of spill together", "doubt of spill alone")


def test_every_pair_is_held_against_its_own_streams_alone() -> None:
    streams = (
        records.a_stream(name="v1", side="victim"),
        records.a_stream(name="v2", side="victim"),
        records.a_stream(name="a1", side="aggressor"),
        records.a_stream(name="a2", side="aggressor"),
    )
    own = {"v1": 100.0, "v2": 200.0, "a1": 400.0, "a2": 800.0}
    kept = {("v1", "a1"): 0.9, ("v1", "a2"): 0.5, ("v2", "a1"): 0.4, ("v2", "a2"): 0.1}

    def rate(cell: Cell, stream: str, _: str) -> float:
        if cell.alone:
            return own[stream]
        pair = (str(cell.parameters["victim"]), str(cell.parameters["aggressor"]))
        return own[stream] * (kept[pair] if stream.startswith("v") else 1.0)

    cells = together(a_plan(*streams), rate)
    found = {
        (c.cell.parameters["victim"], c.cell.parameters["aggressor"]): m.value
        for c in cells
        for m in c.measurements
        if m.metric == "iops_mixed_over_alone" and m.stream.startswith("v")
    }
    assert found == {pair: pytest.approx(share) for pair, share in kept.items()}
    assert len(of(cells, "jain_index")) == 4
