"""A stored run -> a measured run.  Reads the archive; a cell that cannot be used says why."""

from msgspec.structs import replace

from kvbench.document import brief
from kvbench.errors import CellFailed, StoreError
from kvbench.fio import output
from kvbench.measure import health
from kvbench.measure.ceiling import host_ceilings, with_ceiling
from kvbench.measure.checks import failures_of, findings_of, launch_failures, outcome_of
from kvbench.measure.evidence import Evidence, gather
from kvbench.measure.load import with_usable
from kvbench.measure.model import Finding, MeasuredCell, MeasuredRun
from kvbench.measure.relations import with_relations
from kvbench.measure.requests import Requests, gather_requests
from kvbench.measure.summarise import summarise, with_lacking
from kvbench.measure.tenants import with_tenants
from kvbench.measure.values import measure_values
from kvbench.measure.windows import windows_without_io
from kvbench.store import layout
from kvbench.store.read import ArchivedCell, RunArchive
from kvbench.store.records import RunRecord


def measure_run(archive: RunArchive) -> MeasuredRun:
    """Return everything that may be said of a stored run.

    Raises:
        StoreError: its records name things that no plan of kvbench can hold.
    """
    try:
        return _measured(archive)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise StoreError(
            f"its records cannot be what kvbench wrote: {brief(str(error))}",
            where=archive.record.run_id,
            hint="restore run.json from a copy",
        ) from error


def _measured(archive: RunArchive) -> MeasuredRun:
    cells = [measure_cell(archived, archive.record) for archived in archive.cells]
    ceilings = host_ceilings(cells)
    bounded = [with_ceiling(cell, ceilings) for cell in cells]
    plan = archive.record.plan
    isolated = [w.name for w in plan.workloads if w.isolate or w.matrix]
    related = with_relations(with_usable(with_tenants(bounded, isolated), plan), plan)
    measured = with_lacking(related)
    return MeasuredRun(
        record=archive.record,
        end=archive.end,
        cells=measured,
        summaries=summarise(plan, measured),
        damage=archive.damage,
        health=archive.health,
        unwatched=health.unwatched(cell.record for cell in archive.cells),
    )


def measure_cell(archived: ArchivedCell, record: RunRecord) -> MeasuredCell:
    """Return one cell, measured by itself; what needs other cells is added by ``measure_run``.

    A cell whose output cannot be used is failed, with the reason as its finding.
    """
    launch = launch_failures(archived.record)
    if archived.record.end == "not-run":
        return _failed(archived, launch)
    try:
        result = output.parse(archived.output_text(), stderr=archived.stderr_text())
    except CellFailed as error:
        unusable = Finding(check="output", severity="invalid", text=str(error))
        return _failed(archived, (*launch, unusable))
    except OSError as error:
        text = f"fio's output cannot be read: {error.strerror or error}"
        return _failed(archived, (*launch, Finding(check="output", severity="invalid", text=text)))
    evidence = replace(
        gather(archived.record, result, record.written, record.condition),
        link_at_start=health.link_of(record.facts),
    )
    failures = launch + failures_of(evidence)
    requests = _requests(archived, evidence)
    findings = (
        failures
        + findings_of(evidence)
        + _windows(archived, evidence)
        + tuple(finding for found in requests.values() for finding in found.findings)
    )
    values = measure_values(evidence, findings, requests)
    return MeasuredCell(
        cell=archived.record.cell,
        outcome=outcome_of(findings, failed=bool(failures)),
        findings=findings,
        measurements=values.measurements,
        histograms=values.histograms,
        after_trim=archived.record.after_trim,
    )


def _requests(archived: ArchivedCell, evidence: Evidence) -> dict[str, Requests]:
    """Return the requests of each barrier stream; a ceiling cell has none worth the name."""
    barriers = [
        rows for rows in evidence.streams if rows.stream.barrier and len(rows.directions) == 1
    ]
    if not barriers or not evidence.measures_target:
        return {}
    logs = {layout.log_job_number(path): path for path in archived.latency_logs()}
    return {rows.stream.name: gather_requests(rows, logs) for rows in barriers}


def _windows(archived: ArchivedCell, evidence: Evidence) -> tuple[Finding, ...]:
    """Return what the logs of the open loops say; nothing waits for time in a ceiling cell."""
    if not evidence.measures_target:
        return ()
    logs = {layout.log_job_number(path): path for path in archived.window_logs()}
    return windows_without_io(evidence, logs)


def _failed(archived: ArchivedCell, findings: tuple[Finding, ...]) -> MeasuredCell:
    return MeasuredCell(
        cell=archived.record.cell,
        outcome="failed",
        findings=findings + health.of_failed(archived.record),
        measurements=(),
        histograms=(),
    )
