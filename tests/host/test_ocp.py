"""The OCP log pages, from the bytes that nvme-cli dumps."""

from collections.abc import Callable

import pytest

from kvbench.host.ocp import parse_dump, parse_extended, parse_latency
from tests.host.drives import dump, page


def number(value: int, length: int) -> bytes:
    return value.to_bytes(length, "little")


def test_a_dump_is_read_back_byte_by_byte() -> None:
    data = bytes(range(256)) * 2
    assert parse_dump(dump(data)) == data


def test_a_dump_with_a_hole_is_refused() -> None:
    lines = dump(bytes(512)).splitlines()
    with pytest.raises(ValueError, match="leaves out"):
        parse_dump("\n".join(lines[:5] + lines[6:]))
    with pytest.raises(ValueError, match="no page"):
        parse_dump("NVMe status: INVALID_LOG_PAGE\n")


def test_the_extended_page_tells_bytes_on_the_medium_beyond_64_bits() -> None:
    data = page(
        0xC0,
        at_0=number(2**65 + 5, 16),
        at_16=number(7, 16),
        at_32=number(3, 6),
        at_96=b"\x04\x01",
        at_120=b"\x62",
        at_192=number(11, 8),
    )
    found = parse_extended(data)
    assert found.media_written_bytes == 2**65 + 5
    assert found.media_read_bytes == 7
    assert found.bad_user_blocks == 3
    assert (found.throttling_events, found.throttling_now) == (4, 1)
    assert found.free_blocks_percent == 98
    assert found.link_retrainings == 11


def test_an_older_extended_page_does_not_tell_retrainings() -> None:
    assert parse_extended(page(0xC0, version=2)).link_retrainings is None


def test_a_page_of_the_vendors_own_is_not_taken_for_the_ocps() -> None:
    with pytest.raises(ValueError, match="its own"):
        parse_extended(bytes(512))
    with pytest.raises(ValueError, match="its own"):
        parse_latency(page(0xC0))
    with pytest.raises(ValueError, match="100 of 512"):
        parse_extended(bytes(100))


@pytest.mark.parametrize("length", [0, 1, 16, 495, 496, 511])
@pytest.mark.parametrize(
    ("kind", "parse"), [(0xC0, parse_extended), (0xC3, parse_latency)], ids=["C0h", "C3h"]
)
def test_a_page_that_is_cut_short_tells_nothing_and_says_how_much_came(
    kind: int, parse: Callable[[bytes], object], length: int
) -> None:
    with pytest.raises(ValueError, match=f"{kind:X}h has {length} of 512 bytes"):
        parse(page(kind)[:length])


def test_a_page_that_is_longer_than_asked_is_read_by_its_first_512_bytes() -> None:
    extended = page(0xC0, at_96=b"\x04\x01")
    latency = page(0xC3, at_0=b"\x01")
    assert parse_extended(extended + b"\xff" * 3584) == parse_extended(extended)
    assert parse_latency(latency + b"\xff" * 3584) == parse_latency(latency)


def test_a_dump_whose_last_line_is_short_gives_the_bytes_that_there_are() -> None:
    data = bytes(range(250))
    assert parse_dump(dump(data)) == data
    cut = dump(bytes(512))[:-40]  # the tool was ended while it printed
    assert 496 <= len(parse_dump(cut)) < 512


def test_the_latency_monitor_tells_slow_commands_by_threshold() -> None:
    bucket = number(0, 4) + number(1, 4) + number(2, 4) + number(9, 4)
    found = parse_latency(page(0xC3, at_0=b"\x01", at_6=b"\x00\x03\x07\xff", at_32=bucket))
    assert found.enabled
    assert found.thresholds_ms == (5, 20, 40, 1280)
    assert (found.reads[0], found.writes[0], found.trims[0]) == (9, 2, 1)
    assert found.reads[1:] == (0, 0, 0)
