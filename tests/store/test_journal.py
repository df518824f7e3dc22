"""The journal of writing cells: each line is there, whole, before its cell begins."""

from pathlib import Path

import pytest

from kvbench.errors import StoreError
from kvbench.store import journal

FIRST = journal.Begun(cell_id="0001", boot_id="boot", begin_s=1.5)
SECOND = journal.Begun(cell_id="0002", boot_id="boot", begin_s=2.5)


def test_what_is_appended_is_read_in_its_order(tmp_path: Path) -> None:
    assert journal.read(tmp_path) == ()
    journal.append(tmp_path, FIRST)
    journal.append(tmp_path, SECOND)
    assert journal.read(tmp_path) == (FIRST, SECOND)


def test_a_line_that_a_power_cut_left_half_written_is_no_cell_and_spoils_no_other(
    tmp_path: Path,
) -> None:
    journal.append(tmp_path, FIRST)
    path = tmp_path / journal.FILE
    path.write_bytes(path.read_bytes() + b'{"cell_id":"00')
    assert journal.read(tmp_path) == (FIRST,)
    journal.append(tmp_path, SECOND)
    assert journal.read(tmp_path) == (FIRST, SECOND)


def test_a_cell_must_not_begin_when_it_cannot_be_noted(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nothing was written to the target"):
        journal.append(tmp_path / "gone", FIRST)


def test_a_journal_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / journal.FILE).mkdir()
    with pytest.raises(StoreError, match="cannot be read"):
        journal.read(tmp_path)
