import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvbench import units
from kvbench.errors import UsageError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4KiB", 4096),
        ("4KB", 4000),
        ("4kB", 4000),
        ("2 MiB", 2 * 1024**2),
        ("2MB", 2_000_000),
        ("1GiB", 1024**3),
        ("1GB", 10**9),
        ("1TiB", 1024**4),
        ("1TB", 10**12),
        ("1.5MiB", 1_572_864),
        ("512", 512),
        ("512B", 512),
        (512, 512),
        (0, 0),
    ],
)
def test_ki_is_1024_and_k_is_1000(text: str | int, size: int) -> None:
    assert units.parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    ["64M", "4k", "4ki", "4 kib", "", "x", "-1", "1e3", "0.3B", "4KiB;rm", "٤KiB\n[x]", True, -1],
)
def test_what_is_ambiguous_or_no_size_is_refused(text: str | int) -> None:
    with pytest.raises(UsageError) as caught:
        units.parse_size(text, where="read.toml: stream[1].block_size")
    assert str(caught.value).startswith("read.toml: stream[1].block_size: ")


@given(st.integers(0, 2**50))
def test_a_plain_number_of_bytes_is_itself(size: int) -> None:
    assert units.parse_size(str(size)) == units.parse_size(size) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("2s", 2.0), ("1.5min", 90.0), ("1h", 3600.0), ("250us", 0.00025), (2, 2.0)],
)
def test_durations_are_seconds(text: str | float, seconds: float) -> None:
    assert units.parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["soon", "5m", "-1s", "", True, -1, float("nan"), float("inf")])
def test_what_is_no_duration_is_refused(text: str | float) -> None:
    with pytest.raises(UsageError, match="not a duration"):
        units.parse_duration(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (512, "512 B"),
        (4096, "4 KiB"),
        (1.5 * 1024**3, "1.5 GiB"),
        (2**40, "1 TiB"),
        (1000, "1000 B"),
    ],
)
def test_sizes_are_shown_in_binary_units(size: float, text: str) -> None:
    assert units.format_size(size) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3.124e9, "B/s", "3.12 GB/s"),
        (84.2e-6, "s", "84.2 us"),
        (1.31e-3, "s", "1.31 ms"),
        (2.5, "s", "2.50 s"),
        (5e-9, "s", "5.00 ns"),
        (812.0, "1/s", "812"),
        (19_100.0, "1/s", "19.1k"),
        (1_240_000.0, "1/s", "1.24M"),
        (70.04, "%", "70.0 %"),
        (0.0, "%", "0.00 %"),
        (0.0004, "%", "0.0004 %"),
        (99.94, "%", "99.9 %"),
        (99.96, "%", "99.96 %"),
        (99.9999, "%", "99.9999 %"),
        (100.0, "%", "100 %"),
        (100.4, "%", "100 %"),
        (4096.0, "B", "4 KiB"),
        (0.98765, "1", "0.988"),
    ],
)
def test_values_are_shown_with_three_digits_and_their_unit(
    value: float, unit: str, text: str
) -> None:
    assert units.format_value(value, unit) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(45.4, "45 s"), (125.0, "2 min 05 s"), (11_400.0, "3 h 10 min"), (-3.0, "0 s")],
)
def test_lengths_of_time_are_shown_for_people(seconds: float, text: str) -> None:
    assert units.format_clock(seconds) == text
