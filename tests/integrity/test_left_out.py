"""Judged and not judged add up to the whole target, each part with its reason."""

from kvbench.integrity.expected import expected_regions
from kvbench.integrity.left_out import LeftOut, left_out
from kvbench.integrity.model import RegionCheck
from kvbench.integrity.words import judged_bytes, lines
from kvbench.plan import Plan
from kvbench.units import KIB, MIB
from kvbench.workload.schema import BlockShare
from tests import records
from tests.integrity.test_expected import a_plan, begun, measuring, writer

TARGET = 64 * MIB


def answer(plan: Plan, *, stored: int, started: int) -> dict[str, LeftOut]:
    """What is not judged when so many cells were stored and begun, and every block is good."""
    cells = measuring(plan)
    entries = begun(cells[:started])
    done = [records.a_cell_record(cell) for cell in cells[:stored]]
    regions = expected_regions(records.a_run_record(plan), entries, done)
    checks = []
    for one in regions:
        blocks = (one.end_bytes - one.start_bytes) // one.block_bytes
        unknown = 0 if one.settled else blocks // 4
        counts = {"good": blocks - unknown} | ({"unwritten": unknown} if unknown else {})
        checks.append(RegionCheck(region=one, counts=counts, spans=(), more_spans=0))  # type: ignore[arg-type]
    parts = left_out(plan, entries, regions, checks, TARGET)
    assert judged_bytes(checks) + sum(part.bytes for part in parts) == TARGET
    told = "\n".join(lines(checks, parts, TARGET))
    assert f"of {TARGET // MIB} MiB" in told
    assert told.count("not judged  ") == max(1, len(parts))
    return {part.why: part for part in parts}


def test_what_no_cell_writes_is_outside_also_between_two_regions() -> None:
    plan = a_plan(
        writer("left", span_percent=12.5), writer("right", span_start_percent=25, span_percent=12.5)
    )
    parts = answer(plan, stored=2, started=2)
    assert set(parts) == {"outside"}
    assert parts["outside"].places == ((8 * MIB, 16 * MIB), (24 * MIB, TARGET))


def test_what_a_cell_that_has_not_begun_was_to_write_is_told_apart() -> None:
    plan = a_plan(writer("left", span_percent=25.0), writer("both", span_percent=50.0))
    parts = answer(plan, stored=1, started=1)
    assert parts["not begun"].places == ((16 * MIB, 32 * MIB),)
    assert parts["outside"].places == ((32 * MIB, TARGET),)


def test_what_a_later_cell_changed_without_headers_is_told() -> None:
    plan = a_plan(
        writer("first"),
        writer("plain", verify=None, span_start_percent=25.0, span_percent=12.5),
    )
    parts = answer(plan, stored=2, started=2)
    assert parts["changed"].places == ((16 * MIB, 24 * MIB),)


def test_a_region_that_is_shorter_than_was_asked_says_so() -> None:
    big = (BlockShare(size_bytes=192 * KIB, percent=100),)
    plan = a_plan(
        writer("big", block_mix=big, span_percent=50.0), writer("over", span_percent=25.0)
    )
    parts = answer(plan, stored=2, started=2)
    cut = parts["partial"].bytes
    assert 0 < cut < 192 * KIB


def test_blocks_of_which_nobody_knows_count_as_not_judged() -> None:
    parts = answer(a_plan(writer("first")), stored=0, started=1)
    assert parts["unknown"].bytes == 8 * MIB


def test_a_target_that_is_judged_whole_says_that_nothing_is_left_out() -> None:
    parts = answer(a_plan(writer("all", span_percent=100.0)), stored=1, started=1)
    assert parts == {}
