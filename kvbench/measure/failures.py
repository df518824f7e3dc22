"""Checks whose finding means that the cell failed: fio did not do what it was asked.  Pure.

Each is a small function that yields findings; ``checks`` runs them and gives the outcome.
"""

from collections.abc import Iterator
from signal import Signals, strsignal

from kvbench.measure.evidence import Evidence, StreamRows
from kvbench.measure.model import Finding
from kvbench.store.records import CellRecord
from kvbench.units import format_clock

# A job that should have done so many I/Os in a direction has done some: the chance of none is
# below exp(-30).
IOS_EXPECTED_MIN = 30


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
            if number or job.total_err:
                issued = sum(row.total_ios for row in job.directions().values())
                many = f"{job.total_err} of {issued} I/Os failed" if job.total_err else "it failed"
                yield _failure("errors", f"{many}, errno {number}", stream=rows.stream.name)
                break


def nothing_said(evidence: Evidence) -> Iterator[Finding]:
    """No line beside the JSON is an error."""
    for line in evidence.result.diagnostics:
        if line.level == "error":
            yield _failure("fio-said", f"fio said: {line.text}")


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
