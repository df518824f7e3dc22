"""Cells that are read back and checked: what is as asked, and what makes them failed."""

import errno
from typing import Any

import pytest
from msgspec import structs

from kvbench.fio.diagnostics import read_lines
from kvbench.fio.model import FioJob
from kvbench.measure.checks import failures_of, findings_of
from kvbench.measure.evidence import Evidence
from kvbench.units import MIB
from tests.measure.builders import (
    UNPROVEN,
    cell,
    counters,
    direction,
    evidence,
    job,
    latency,
    stream,
)

BLOCKS = 64 * MIB // 4096
BAD = (
    "crc32c: verify failed at file /t.dat offset 409600, length 4096 "
    "(requested block: offset=409600, length=4096, flags=88)"
)
MISPLACED = (
    "verify: bad header offset 819200, wanted 1228800 at file /t.dat offset 1228800, length 4096 "
    "(requested block: offset=1228800, length=4096)"
)
WRITER = stream(direction="write", verify="crc32c")
READER = stream(verify="crc32c")


def a_job(written: int = BLOCKS, read: int = BLOCKS, **changes: object) -> FioJob:
    """A cell of 64 MiB in 4 KiB blocks that took three seconds."""
    rows: dict[str, Any] = {
        name: direction(ios, runtime_ms=3000.0, mean_us=150.0)
        for name, ios in (("write", written), ("read", read))
        if ios
    }
    return job(**(rows | changes))


def given(made: FioJob, *lines: str, reader: bool = False) -> Evidence:
    got = evidence(cell(READER if reader else WRITER), made)
    result = structs.replace(got.result, diagnostics=read_lines(lines))
    return structs.replace(got, result=result)


def texts(got: Evidence) -> list[str]:
    return [finding.text for finding in failures_of(got)]


def test_every_block_written_and_read_back_once_is_as_asked_however_long_it_took() -> None:
    got = given(a_job())
    before, after = counters(read_bytes=64 * MIB, write_bytes=64 * MIB)
    record = structs.replace(got.record, device="vda", before=before, after=after)
    got = structs.replace(got, record=record)
    assert failures_of(got) == ()
    assert findings_of(got) == ()


def test_bad_blocks_make_it_failed_with_their_places() -> None:
    wrong = a_job(total_err=2, first_error=errno.EILSEQ)
    assert texts(given(wrong, BAD, "       Expected CRC: c3aa6f5e", MISPLACED)) == [
        "2 of 16,384 blocks did not read back as written: offset 409600 (4 KiB): its checksum is "
        "wrong; offset 1228800 (4 KiB): it holds the block of offset 819200"
    ]


def test_many_bad_blocks_are_counted_beyond_the_first() -> None:
    lines = [BAD.replace("409600", str(4096 * n)) for n in range(1, 21)]
    (text,) = texts(given(a_job(total_err=20, first_error=errno.EILSEQ), *lines))
    assert text.startswith("20 of 16,384 blocks")
    assert text.endswith("and 15 more")
    assert text.count("its checksum is wrong") == 5


def test_an_error_without_a_place_is_told_as_well() -> None:
    (text,) = texts(given(a_job(error=errno.EILSEQ)))
    assert "fio did not say where" in text


def test_other_errors_of_such_a_cell_are_told_as_in_any_cell() -> None:
    (text,) = texts(given(a_job(written=7, read=0, total_err=3, first_error=errno.EIO)))
    assert text == "3 of 7 I/Os failed, errno 5"


@pytest.mark.parametrize(("written", "read"), [(BLOCKS - 1, BLOCKS), (BLOCKS, BLOCKS - 1)])
def test_a_block_that_was_left_out_makes_it_failed(written: int, read: int) -> None:
    (text,) = texts(given(a_job(written, read)))
    assert f"{written:,} were written and {read:,} read back" in text


def test_a_phase_that_reads_needs_no_writes_and_no_proof_that_they_were_made() -> None:
    got = given(a_job(written=0), reader=True)
    assert failures_of(got) == ()
    doubted = structs.replace(got, written=UNPROVEN)
    assert "never-written" not in {f.check for f in findings_of(doubted)}
    assert texts(given(a_job(written=0, read=5), reader=True))


def test_a_submitter_that_fills_and_sums_up_its_blocks_is_doubted_at_most() -> None:
    busy = stream(direction="write", verify="crc32c", queue_depth=8)
    row = direction(BLOCKS, runtime_ms=1000.0, mean_us=480.0)
    slow = structs.replace(row, slat=latency(60.0, BLOCKS))
    got = evidence(cell(busy), a_job(write=slow))
    found = {(f.check, f.severity) for f in findings_of(got)}
    assert ("submission-bound", "doubt") in found
    assert not [check for check, severity in found if severity == "invalid"]


def test_a_queue_that_such_a_submitter_does_not_keep_full_is_doubted_at_most() -> None:
    busy = stream(direction="write", verify="crc32c", queue_depth=16)
    row = direction(BLOCKS, runtime_ms=3000.0, mean_us=300.0)
    for levels in ({}, {"1": 100.0}):
        got = evidence(cell(busy), a_job(write=row, depth_percent=levels))
        found = {f.check: f.severity for f in findings_of(got)}
        assert found["depth"] == "doubt"
        assert "invalid" not in found.values()
