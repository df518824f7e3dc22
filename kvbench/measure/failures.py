"""Checks whose finding means that the cell failed: fio did not do what it was asked.  Pure.

Each is a small function that yields findings; ``checks`` runs them and gives the outcome.
"""

import errno
from collections.abc import Iterator
from signal import Signals, strsignal

from kvbench.fio.verify_messages import VerifyError, is_verify_line, verify_errors
from kvbench.measure.evidence import Evidence, StreamRows
from kvbench.measure.model import Finding
from kvbench.store.records import CellRecord
from kvbench.units import format_clock, format_size

# A job that should have done so many I/Os in a direction has done some: the chance of none is
# below exp(-30).
IOS_EXPECTED_MIN = 30
PLACES_MAX = 5  # bad blocks whose places are told


def _failure(check: str, text: str, stream: str | None = None) -> Finding:
    return Finding(check=check, severity="invalid", text=text, stream=stream)


def ended(record: CellRecord) -> Iterator[Finding]:
    """How the launch ended: by itself, with exit code 0."""
    if record.end == "timeout":
        yield _failure("end", f"fio did not end within {format_clock(record.wall_s)}; stopped")
    elif record.end == "interrupted":
        yield _failure("end", f"interrupted after {record.wall_s:.1f} s; its numbers are partial")
    elif record.end == "not-run":
        yield _failure("end", f"not run: {record.note}")
    elif record.exit_code is None:
        yield _failure("end", "fio never started")
    elif record.exit_code < 0:
        yield _failure("end", f"fio died of {_signal_name(-record.exit_code)}")
    elif record.exit_code != 0:
        yield _failure("end", f"fio ended with exit code {record.exit_code}, asked for was 0")


def left_over(record: CellRecord) -> Iterator[Finding]:
    """Whether every process of the launch is gone."""
    if record.survivors:
        pids = ", ".join(str(pid) for pid in record.survivors)
        yield _failure("survivors", f"processes of this fio were still there after KILL: {pids}")


def rows_present(evidence: Evidence) -> Iterator[Finding]:
    """One row for each job of each stream, under the stream's name, and no other row."""
    for rows in evidence.streams:
        got, asked = len(rows.jobs), rows.stream.jobs
        if got != asked:
            yield _failure(
                "rows", f"asked for {asked} jobs, fio reports {got}", stream=rows.stream.name
            )
    names = {index: rows.stream.name for index, rows in enumerate(evidence.streams)}
    strange = [j.name for j in evidence.result.jobs if names.get(j.group_id) != j.name]
    if strange:
        yield _failure("rows", f"fio reports jobs that were not asked for: {', '.join(strange)}")


def no_errors(evidence: Evidence) -> Iterator[Finding]:
    """No failed I/O is counted.  The exit code alone may be 0 beside thousands of them."""
    for rows in evidence.streams:
        for job in rows.jobs:
            number = job.error or job.first_error
            if rows.stream.once and number == errno.EILSEQ:
                continue  # said by read_back
            if number or job.total_err:
                issued = sum(row.total_ios for row in job.directions().values())
                many = f"{job.total_err} of {issued} I/Os failed" if job.total_err else "it failed"
                yield _failure("errors", f"{many}, errno {number}", stream=rows.stream.name)
                break


def nothing_said(evidence: Evidence) -> Iterator[Finding]:
    """No line beside the JSON is an error."""
    for line in evidence.result.diagnostics:
        if line.level == "error" and not is_verify_line(line.text):
            yield _failure("fio-said", f"fio said: {line.text}")


def read_back(evidence: Evidence) -> Iterator[Finding]:
    """Every block that was written once was read back and is as it was written, in its place."""
    bad = verify_errors(line.text for line in evidence.result.diagnostics)
    for rows, placed in zip(evidence.streams, evidence.cell.placed, strict=True):
        if not rows.stream.once or not evidence.measures_target:
            continue
        blocks = placed.size_bytes // rows.stream.max_block_bytes
        ios = {name: _ios(rows, name) for name in ("write", "read")}
        numbers = {job.error or job.first_error for job in rows.jobs} - {0}
        wrong = errno.EILSEQ in numbers
        counted = max(len(bad), sum(job.total_err for job in rows.jobs) if wrong else 0)
        if counted or wrong:
            first = [f"{_place(one)}: {one.what}" for one in bad[:PLACES_MAX]]
            more = [f"and {counted - len(first):,} more"] if counted > len(first) else []
            where = "; ".join([*first, *more]) if first else "fio did not say where"
            text = f"{counted:,} of {blocks:,} blocks did not read back as written: {where}"
            yield _failure("read-back", text, stream=rows.stream.name)
        elif not numbers and (ios["read"] != blocks or ios["write"] != blocks * rows.stream.writes):
            text = (
                f"{blocks:,} blocks were to be done and read back once each, "
                f"{ios['write']:,} were written and {ios['read']:,} read back"
            )
            yield _failure("read-back", text, stream=rows.stream.name)


def _ios(rows: StreamRows, direction: str) -> int:
    found = (job.directions() for job in rows.jobs)
    return sum(row.total_ios for done in found for name, row in done.items() if name == direction)


def _place(error: VerifyError) -> str:
    return f"offset {error.offset_bytes} ({format_size(error.length_bytes)})"


def did_io(evidence: Evidence) -> Iterator[Finding]:
    """Every job did I/O, and each direction that was asked for saw some."""
    for rows in evidence.streams:
        if not rows.jobs:
            continue  # said by rows_present
        busy = {job.index for job, _, row in rows.rows() if row.total_ios > 0}
        idle = [job.index + 1 for job in rows.jobs if job.index not in busy]
        if idle:
            which = ", ".join(str(number) for number in idle)
            yield _failure(
                "idle",
                f"{len(idle)} of {len(rows.jobs)} jobs did no I/O (fio's job {which})",
                stream=rows.stream.name,
            )
            continue
        yield from _idle_directions(rows)


def _idle_directions(rows: StreamRows) -> Iterator[Finding]:
    """Each direction was done, by every job that did enough I/O to have met it by chance."""
    reads = (rows.stream.read_percent or 0) / 100
    for direction in rows.directions:
        share = 1.0 if len(rows.directions) == 1 else reads if direction == "read" else 1 - reads
        without: list[int] = []
        for job in rows.jobs:
            done = {name: row.total_ios for name, row in job.directions().items()}
            if not done.get(direction) and sum(done.values()) * share >= IOS_EXPECTED_MIN:
                without.append(job.index + 1)
        if not any(name == direction and row.total_ios for _, name, row in rows.rows()):
            yield _failure("idle", f"not one {direction} was done", stream=rows.stream.name)
        elif without:
            which = ", ".join(str(number) for number in without)
            text = f"{len(without)} of {len(rows.jobs)} jobs did no {direction} (fio's job {which})"
            yield _failure("idle", text, stream=rows.stream.name)


def _signal_name(number: int) -> str:
    try:
        name = Signals(number).name
    except ValueError:
        return f"signal {number}"
    return f"{name} ({strsignal(number)})"
