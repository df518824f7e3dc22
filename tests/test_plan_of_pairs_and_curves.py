"""Plans whose cells belong together: victims beside aggressors, load curves, spans that fit."""

from collections import Counter

import msgspec
import pytest

from kvbench.errors import Refused
from kvbench.host.model import Identity
from kvbench.plan import Cell, Plan, ceiling_shape, check_stored
from kvbench.units import GIB, MIB
from kvbench.workload.schema import BlockShare, Load, Stream, SweepAxis, Workload
from tests.records import a_plan, a_stream, a_target, a_workload


def sided(name: str, side: str, **changes: object) -> Stream:
    return a_stream(name=name, side=side, **changes)


PAIRS = a_workload(
    streams=(
        sided("rows", "victim"),
        sided("blocks", "victim"),
        sided("flush", "aggressor", direction="write"),
        sided("trim", "aggressor", direction="trim", pattern="sequential", queue_depth=1,
              rate_iops=4.0),
    ),
    sweep=(),
)  # fmt: skip
CURVE = a_workload(load=Load(percents=(10, 50, 90), queue_depth=256, limit_s=0.001, search_steps=2))
SPANS = a_workload(
    sweep=(
        SweepAxis(stream="reads", field="queue_depth", values=(1, 4)),
        SweepAxis(stream="reads", field="span_size", values=(16 * MIB, GIB, 64 * GIB, 1024 * GIB)),
    )
)


def measured(plan: Plan, repetition: int = 1) -> list[Cell]:
    return [c for c in plan.cells if c.repetition == repetition and c.purpose != "ceiling"]


def test_every_victim_meets_every_aggressor_and_everyone_is_alone_once() -> None:
    cells = measured(a_plan(PAIRS))
    pairs = Counter(tuple(p.stream.name for p in c.placed) for c in cells if len(c.placed) == 2)
    assert pairs == Counter(
        [("rows", "flush"), ("rows", "trim"), ("blocks", "flush"), ("blocks", "trim")]
    )
    assert sorted(c.alone or "" for c in cells if len(c.placed) == 1) == sorted(
        ["rows", "blocks", "flush", "trim"]
    )
    assert len({c.point_id for c in cells}) == len(cells)


def test_a_pair_is_named_by_its_parameters_and_a_stream_alone_has_none() -> None:
    for cell in measured(a_plan(PAIRS)):
        names = [placed.stream.name for placed in cell.placed]
        if len(names) == 2:
            assert cell.parameters == {"victim": names[0], "aggressor": names[1]}
        else:
            assert cell.parameters == {}


def test_trims_punch_holes_in_a_file_and_nowhere_else() -> None:
    for kind in ("file", "block"):
        target = msgspec.structs.replace(a_target(), kind=kind)
        for cell in measured(a_plan(PAIRS, target=target)):
            trims = any(placed.stream.trims for placed in cell.placed)
            assert cell.trims_by_holes == (trims and kind == "file")
            assert cell.writes == any(p.stream.name in ("flush", "trim") for p in cell.placed)


def test_a_peak_stands_before_its_shares_and_they_before_the_search() -> None:
    plan = a_plan(CURVE, repetitions=3)
    for repetition in (1, 2, 3):
        for depth in (1, 4):
            curve = [c for c in measured(plan, repetition) if c.parameters["queue_depth"] == depth]
            kinds = [c.load.kind if c.load else None for c in curve]
            assert kinds == ["peak", "share", "share", "share", "search", "search"]
            places = [plan.cells.index(c) for c in curve]
            assert places == list(range(places[0], places[0] + 6)), "a curve stays together"


def test_the_shares_of_a_curve_have_no_rate_yet_and_the_depth_of_the_open_loop() -> None:
    plan = a_plan(CURVE)
    for cell in measured(plan):
        (placed,) = cell.placed
        assert placed.stream.rate_iops is None
        open_loop = cell.load is not None and cell.load.kind != "peak"
        assert cell.undecided == open_loop
        assert (placed.stream.queue_depth == 256) == open_loop
        assert (ceiling_shape(cell) == "") == open_loop
    shapes = [c for c in plan.cells if c.purpose == "ceiling"]
    assert len(shapes) == 2, "only the peaks have a ceiling"
    assert {c.purpose for c in measured(plan) if c.load and c.load.kind == "search"} == {"search"}


def test_the_order_of_shares_differs_between_repetitions_but_not_between_plans() -> None:
    def orders(plan: Plan) -> list[tuple[float | None, ...]]:
        return [
            tuple(c.load.percent for c in measured(plan, r) if c.load and c.load.percent)
            for r in range(1, 9)
        ]

    first = orders(a_plan(CURVE, repetitions=8))
    assert len(set(first)) > 1
    assert first == orders(a_plan(CURVE, repetitions=8))


def test_spans_end_with_the_target_and_say_their_real_size() -> None:
    plan = a_plan(SPANS, target=a_target(size_bytes=2 * GIB))
    spans = sorted({int(c.parameters["span_size"]) for c in measured(plan)})
    assert spans == [16 * MIB, GIB, 2 * GIB]
    for cell in measured(plan):
        assert cell.placed[0].size_bytes == cell.parameters["span_size"]
    (fitted,) = plan.workloads
    assert fitted.digest == SPANS.digest
    assert fitted.sweep[1].values == (16 * MIB, GIB, 2 * GIB)
    (told,) = plan.scaled
    assert "spans end at 2 GiB" in told.text


def test_a_target_that_holds_every_span_is_not_said_to_be_fitted() -> None:
    plan = a_plan(SPANS, target=a_target(size_bytes=2048 * GIB))
    assert not plan.scaled
    assert plan.workloads == (SPANS,)


def identity_of(plan: Plan) -> Identity:
    return Identity(
        path=plan.target.path,
        real_path=plan.target.path,
        kind=plan.target.kind,
        device_number="254:0",
        inode=1,
        size_bytes=plan.target.size_bytes,
    )


@pytest.mark.parametrize("workload", [PAIRS, CURVE, SPANS], ids=["pairs", "curve", "spans"])
def test_such_a_plan_may_be_resumed(workload: Workload) -> None:
    plan = a_plan(workload)
    check_stored(plan, identity_of(plan))


def test_a_stored_plan_cannot_decide_rates_or_how_to_trim() -> None:
    curve = a_plan(CURVE)
    at = next(n for n, c in enumerate(curve.cells) if c.undecided)
    (placed,) = curve.cells[at].placed
    stream = msgspec.structs.replace(placed.stream, rate_iops=7.0)
    forged = msgspec.structs.replace(
        curve.cells[at], placed=(msgspec.structs.replace(placed, stream=stream),)
    )
    assert forged.as_planned == curve.cells[at]
    refuse(curve, at, forged, "yet to be decided")
    pairs = a_plan(PAIRS)
    at = next(n for n, c in enumerate(pairs.cells) if c.trims_by_holes)
    other = msgspec.structs.replace(pairs.cells[at], trims_by_holes=False)
    refuse(pairs, at, other, "trims in another way")


def refuse(plan: Plan, at: int, cell: Cell, says: str) -> None:
    cells = (*plan.cells[:at], cell, *plan.cells[at + 1 :])
    with pytest.raises(Refused, match=says):
        check_stored(msgspec.structs.replace(plan, cells=cells), identity_of(plan))


def test_a_workload_of_mixed_sizes_needs_room_for_its_largest() -> None:
    mix = (BlockShare(size_bytes=4096, percent=90), BlockShare(size_bytes=8 * MIB, percent=10))
    (scaled,) = a_plan(
        a_workload(streams=(a_stream(block_mix=mix),)), target=a_target(size_bytes=32 * MIB)
    ).scaled
    assert "4 x 8 MiB for 1 job" in scaled.text
