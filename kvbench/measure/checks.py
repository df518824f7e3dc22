"""The asked-against-got checks as two lists, and the outcome that follows from them.

Add a check by writing a small function in ``failures``, ``asked``, ``identities``, ``slowest``,
``device`` or ``health`` and naming it here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from kvbench.measure import asked, condition, device, failures, health, identities, slowest
from kvbench.measure.evidence import Evidence
from kvbench.measure.model import Finding, Outcome
from kvbench.store.records import CellRecord

LaunchCheck = Callable[[CellRecord], Iterator[Finding]]
Check = Callable[[Evidence], Iterator[Finding]]

# A finding of one of these makes the cell failed.
LAUNCH_CHECKS: tuple[LaunchCheck, ...] = (failures.ended, failures.left_over)
FAILURE_CHECKS: tuple[Check, ...] = (
    failures.rows_present,
    failures.no_errors,
    failures.nothing_said,
    failures.read_back,
    failures.did_io,
)
# These make it invalid or doubtful, or only tell.
CHECKS: tuple[Check, ...] = (
    asked.stale,
    asked.runtime,
    asked.direction,
    asked.engine,
    asked.block_size,
    asked.depth,
    asked.submission,
    asked.overloaded,
    asked.held_back,
    asked.busy_submitters,
    slowest.stalled,
    identities.whole_ios,
    identities.rates,
    identities.counts,
    identities.completion_within_total,
    identities.latency_within_run,
    identities.littles_law,
    device.device_bytes,
    device.foreign_io,
    device.never_written,
    condition.settled,
    device.page_cache,
    device.other_devices,
    health.throttled,
    health.retrained,
    health.reset,
    health.media_errors,
    health.kernel_log,
    device.latency_section,
    device.said,
)


def launch_failures(record: CellRecord) -> tuple[Finding, ...]:
    """Return what is wrong with the launch itself."""
    return tuple(finding for check in LAUNCH_CHECKS for finding in check(record))


def failures_of(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings that make the cell failed."""
    return _run(FAILURE_CHECKS, evidence)


def findings_of(evidence: Evidence) -> tuple[Finding, ...]:
    """Return what all other checks found."""
    return _run(CHECKS, evidence)


def outcome_of(findings: Iterable[Finding], *, failed: bool) -> Outcome:
    """Return the outcome that the worst finding stands for."""
    if failed:
        return "failed"
    severities = {finding.severity for finding in findings}
    if "invalid" in severities:
        return "invalid"
    return "doubtful" if "doubt" in severities else "valid"


def _run(checks: Sequence[Check], evidence: Evidence) -> tuple[Finding, ...]:
    return tuple(finding for check in checks for finding in check(evidence))
