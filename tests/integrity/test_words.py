"""The answer of ``kvbench verify`` in words."""

from kvbench.integrity.model import Kind, Region, RegionCheck, Span
from kvbench.integrity.words import ATOMIC, lines, verdict
from tests.integrity.blocks import BLOCK_BYTES, a_layer, a_region

CUT = a_layer(150.0, None, cell_id="0002")


def checked(region: Region, counts: dict[Kind, int], *spans: Span, **more: int) -> RegionCheck:
    return RegionCheck(
        region=region,
        counts=counts,
        spans=spans,
        more_spans=more.get("more_spans", 0),
        lost_durable=more.get("lost_durable", 0),
    )


def test_what_is_whole_is_counted_and_what_nobody_knows_is_not() -> None:
    assert verdict([checked(a_region(), {"good": 1000})]) == (
        "INTACT: 1,000 of 1,000 blocks are whole and in their place"
    )
    got = verdict([checked(a_region(), {"good": 3, "older": 2, "unwritten": 5})])
    assert got == ("INTACT: 5 of 10 blocks are whole and in their place; of 5 nothing can be said")
    assert verdict([checked(a_region(), {"unwritten": 5})]).startswith("NOTHING TO JUDGE")


def test_one_bad_block_of_one_region_is_the_verdict() -> None:
    checks = [checked(a_region(), {"good": 9}), checked(a_region(), {"good": 8, "stale": 1})]
    assert verdict(checks) == "FAILED: 1 of 18 blocks are not what they must be"
    lost = [checked(a_region(), {"good": 9}, lost_durable=2)]
    assert verdict(lost).startswith("FAILED: 2 of 9")
    assert any("2 at least, of the writes that had returned" in line for line in lines(lost))


def test_places_are_told_with_what_they_hold_and_how_many_follow() -> None:
    spans = (
        Span(kind="lost", start_bytes=0, end_bytes=3 * BLOCK_BYTES),
        Span(kind="misplaced", start_bytes=40960, end_bytes=45056, holds_offset_bytes=8192),
    )
    text = "\n".join(
        lines([checked(a_region(), {"lost": 3, "misplaced": 1}, *spans, more_spans=7)])
    )
    assert "lost at offset 0 (3 blocks)" in text
    assert "misplaced at offset 40960: it holds the block of offset 8192" in text
    assert "and 7 more places" in text


def test_a_torn_block_of_a_cell_that_was_cut_off_comes_with_what_a_drive_may_do() -> None:
    cut = checked(a_region(CUT, a_layer()), {"good": 3, "torn": 1})
    assert any(ATOMIC in line for line in lines([cut]))
    whole = checked(a_region(), {"good": 3, "torn": 1})
    assert not any(ATOMIC in line for line in lines([whole]))
    assert any("before it cell 0001" in line for line in lines([cut]))
    open_region = checked(a_region(CUT, settled=False), {"good": 1})
    assert any("before it: nothing that is known" in line for line in lines([open_region]))
