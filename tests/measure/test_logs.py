"""Columns of fio's logs, plain, compressed and damaged."""

import gzip
from pathlib import Path

import pytest

from kvbench.measure import logs

LINES = "1, 1146743, 0, 1024, 0\n1, 1145684, 0, 512, 0\n2, 77, 1, 1536, 0\n"


def test_columns_stand_in_the_order_asked_for(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.log", tmp_path / "a.log.gz"
    plain.write_text(LINES)
    packed.write_bytes(gzip.compress(LINES.encode()))
    for path in (plain, packed):
        assert logs.read_columns(path, (2, 0)).tolist() == [[0, 1], [0, 1], [1, 2]]


@pytest.mark.parametrize("text", ["one, two, three\n", "1, 2.5, 0\n", "1\n", f"1, {2**64}, 0\n"])
def test_what_is_no_log_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.log"
    path.write_text(text)
    with pytest.raises(ValueError, match=r".+"):
        logs.read_columns(path, (1,))


@pytest.mark.parametrize("cut", [9, 60])
def test_a_compressed_log_that_breaks_off_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(LINES.encode() * 100)[:-cut])
    with pytest.raises(ValueError, match="damaged"):
        logs.read_columns(path, (1,))


def test_a_compressed_log_with_other_bytes_in_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.log.gz"
    raw = bytearray(gzip.compress(LINES.encode() * 100))
    raw[20:30] = bytes(10)
    path.write_bytes(raw)
    with pytest.raises((OSError, ValueError), match=r".+"):
        logs.read_columns(path, (1,))


def test_an_empty_log_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.touch()
    assert logs.read_columns(path, (0, 2)).shape == (0, 2)


def test_a_log_that_unpacks_to_one_endless_line_is_refused_before_it_fills_the_memory(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(b"1" * 20_000_000))
    with pytest.raises(ValueError, match="a line is longer than 65536 bytes"):
        logs.read_columns(path, (1,))


def test_a_log_that_packs_very_well_is_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(b"1, 2, 0, 512, 0\n" * 100_000))
    assert logs.read_columns(path, (1, 3)).sum(axis=0).tolist() == [200_000, 51_200_000]


def test_a_compressed_log_without_lines_has_none_and_warns_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(b""))
    assert logs.read_columns(path, (0, 2)).shape == (0, 2)


def test_a_long_log_of_histograms_is_read_piece_by_piece(tmp_path: Path) -> None:
    line = "1, 0, 4096" + ", 0" * 1855 + ", 7\n"  # as fio writes them, of 5,6 KB
    path = tmp_path / "histogram_clat_hist.1.log.gz"
    path.write_bytes(gzip.compress(line.encode() * 300))
    assert logs.read_columns(path, (0, 1858)).sum(axis=0).tolist() == [300, 2100]
