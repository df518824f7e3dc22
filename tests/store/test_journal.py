"""The journal of writing cells: each line is there, whole, before its cell begins."""

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
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


def test_what_was_trimmed_is_left_until_it_is_written_again(tmp_path: Path) -> None:
    def note(cell_id: str, *, written: bool) -> None:
        journal.append(tmp_path, journal.Trimmed(cell_id=cell_id, written=written))

    assert journal.left_trimmed(tmp_path) == ()
    note("0001", written=False)
    note("0001", written=True)
    note("0002", written=False)
    assert journal.left_trimmed(tmp_path) == ("0002",)
    note("0002", written=True)
    note("0001", written=False)  # it was measured anew
    assert journal.left_trimmed(tmp_path) == ("0001",)
    assert journal.read(tmp_path) == (), "which cells write what is verified is another question"


@contextmanager
def file_limit(size_bytes: int) -> Iterator[None]:
    """No file may grow beyond this, as on a disk that is full in the middle of a line."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.parametrize("room_bytes", [0, 1, 20])
def test_a_line_that_fits_in_part_is_refused_and_taken_back(
    tmp_path: Path, room_bytes: int
) -> None:
    journal.append(tmp_path, FIRST)
    path = tmp_path / journal.FILE
    whole = path.read_bytes()
    with (
        file_limit(len(whole) + room_bytes),
        pytest.raises(StoreError, match="nothing was written to the target"),
    ):
        journal.append(tmp_path, SECOND)
    assert path.read_bytes() == whole
    journal.append(tmp_path, SECOND)
    assert journal.read(tmp_path) == (FIRST, SECOND)


def test_a_line_is_written_to_its_end_where_the_system_takes_it_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    journal.append(tmp_path, FIRST)
    assert journal.read(tmp_path) == (FIRST,)


def test_a_journal_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / journal.FILE).mkdir()
    with pytest.raises(StoreError, match="cannot be read"):
        journal.read(tmp_path)


@pytest.mark.parametrize("entry", [FIRST, journal.Trimmed(cell_id="0001", written=False)])
@pytest.mark.parametrize("kind", ["link", "second name", "pipe", "folder"])
def test_nothing_is_written_through_what_stands_in_the_place_of_the_file(
    tmp_path: Path, kind: str, entry: journal.Begun | journal.Trimmed
) -> None:
    run, precious = tmp_path / "run", tmp_path / "precious"
    run.mkdir()
    precious.write_text("precious\n")
    path = run / (journal.FILE if isinstance(entry, journal.Begun) else journal.TRIMS_FILE)
    if kind == "link":
        path.symlink_to(precious)
    elif kind == "second name":
        path.hardlink_to(precious)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        journal.append(run, entry)
    assert precious.read_text() == "precious\n"


def test_no_file_is_made_where_a_link_leads(tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    run.mkdir()
    (run / journal.FILE).symlink_to(elsewhere)
    with pytest.raises(StoreError, match="cannot be written"):
        journal.append(run, FIRST)
    assert not elsewhere.exists()
