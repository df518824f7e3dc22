"""What a target must hold after a run, also after one that was cut off."""

from kvbench.integrity.expected import SLACK_S, expected_regions, verifiable
from kvbench.integrity.model import Region
from kvbench.plan import Cell, Plan
from kvbench.store.journal import Begun
from kvbench.store.records import CellRecord
from kvbench.units import KIB, MIB
from kvbench.workload.schema import BlockShare, Stream, Timing
from tests import records

SPAN = 32 * MIB  # half of the target


def writer(name: str, **changes: object) -> Stream:
    fields: dict[str, object] = {
        "name": name,
        "direction": "write",
        "span_percent": 50.0,
        "verify": "crc32c",
    }
    return records.a_stream(**(fields | changes))


def a_plan(*streams: Stream) -> Plan:
    workload = records.a_workload(
        streams=streams,
        sweep=(),
        primary=(),
        in_order=len(streams) > 1,
        timing=Timing(runtime_s=1.0, ramp_s=0.0),
    )
    return records.a_plan(workload, repetitions=1)


def measuring(plan: Plan) -> list[Cell]:
    return [cell for cell in plan.cells if cell.purpose == "measure"]


def begun(cells: list[Cell]) -> list[Begun]:
    return [
        Begun(cell_id=cell.cell_id, boot_id="boot", begin_s=100.0 * place)
        for place, cell in enumerate(cells, start=1)
    ]


def regions(plan: Plan, *, stored: int, started: int | None = None) -> tuple[Region, ...]:
    """What must be there when so many cells were stored, and so many were begun."""
    cells = measuring(plan)
    done: list[CellRecord] = [records.a_cell_record(cell) for cell in cells[:stored]]
    return expected_regions(records.a_run_record(plan), begun(cells[: started or stored]), done)


def ids(region: Region) -> list[str]:
    return [layer.stream for layer in region.layers]


BIG = (BlockShare(size_bytes=64 * KIB, percent=100),)


def test_the_last_cell_that_ended_is_what_must_be_there() -> None:
    (region,) = regions(a_plan(writer("first"), writer("second")), stored=2)
    assert (region.start_bytes, region.end_bytes, region.block_bytes) == (0, SPAN, 4096)
    assert ids(region) == ["second"]
    assert region.settled
    (layer,) = region.layers
    assert (layer.begin_s, layer.end_s) == (200.0, 200.6 + SLACK_S)


def test_a_cell_that_was_cut_off_leaves_its_blocks_or_those_of_before() -> None:
    (region,) = regions(a_plan(writer("first"), writer("second")), stored=1, started=2)
    assert ids(region) == ["second", "first"]
    assert region.settled
    assert [layer.end_s for layer in region.layers] == [None, 100.6 + SLACK_S]


def test_nothing_is_known_of_what_stood_before_the_first_cell() -> None:
    (region,) = regions(a_plan(writer("first"), writer("second")), stored=0, started=1)
    assert ids(region) == ["first"]
    assert not region.settled


def test_blocks_of_another_size_under_a_cut_cannot_be_judged() -> None:
    plan = a_plan(writer("first", block_mix=BIG), writer("second"))
    (region,) = regions(plan, stored=1, started=2)
    assert (ids(region), region.settled) == (["second"], False)


def test_what_was_trimmed_or_written_otherwise_is_left_out() -> None:
    trim = records.a_stream(
        name="trim",
        direction="trim",
        pattern="sequential",
        block_mix=(BlockShare(size_bytes=MIB, percent=100),),
        queue_depth=1,
        rate_iops=8.0,
        span_start_percent=25.0,
        span_percent=12.5,
    )
    parts = regions(a_plan(writer("first"), trim), stored=2)
    assert [(r.start_bytes // MIB, r.end_bytes // MIB) for r in parts] == [(0, 16), (24, 32)]
    plain = writer("plain", verify=None, span_percent=50.0)
    assert regions(a_plan(writer("first"), plain), stored=2) == ()


def test_a_cut_over_parts_of_two_older_regions_keeps_both_and_the_gap() -> None:
    plan = a_plan(
        writer("left", span_percent=25.0),
        writer("right", span_start_percent=37.5, span_percent=12.5),
        writer("over", span_percent=50.0),
    )
    parts = regions(plan, stored=2, started=3)
    found = [(r.start_bytes // MIB, r.end_bytes // MIB, ids(r), r.settled) for r in parts]
    assert found == [
        (0, 16, ["over", "left"], True),
        (16, 24, ["over"], False),
        (24, 32, ["over", "right"], True),
    ]


def test_a_cell_that_was_begun_again_counts_by_its_last_beginning() -> None:
    plan = a_plan(writer("first"), writer("second"))
    cells = measuring(plan)
    twice = [*begun(cells), Begun(cell_id=cells[1].cell_id, boot_id="later", begin_s=5.0)]
    record = records.a_run_record(plan)
    (cut,) = expected_regions(record, twice, [records.a_cell_record(cells[0])])
    assert [(layer.stream, layer.boot_id) for layer in cut.layers] == [
        ("second", "later"),
        ("second", "boot"),
        ("first", "boot"),
    ]
    (whole,) = expected_regions(record, twice, [records.a_cell_record(cell) for cell in cells])
    assert [(layer.begin_s, layer.boot_id) for layer in whole.layers] == [(5.0, "later")]


def test_a_launch_that_did_not_end_in_order_is_a_cut() -> None:
    plan = a_plan(writer("first"), writer("second"))
    cells = measuring(plan)
    for changes in ({"exit_code": 1}, {"end": "interrupted"}, {"exit_code": None}):
        done = [
            records.a_cell_record(cells[0]),
            records.a_cell_record(cells[1], **changes),
        ]
        (region,) = expected_regions(records.a_run_record(plan), begun(cells), done)
        assert ids(region) == ["second", "first"], changes


def test_only_plans_that_write_with_headers_can_be_verified() -> None:
    assert verifiable(a_plan(writer("first"), writer("second")))
    assert not verifiable(a_plan(writer("plain", verify=None), records.a_stream(name="other")))
