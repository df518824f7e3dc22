"""The check of what state the device was in when the run began.  Pure."""

from collections.abc import Iterator

from kvbench.measure.evidence import Evidence
from kvbench.measure.model import Finding


def settled(evidence: Evidence) -> Iterator[Finding]:
    """A device that is not known to be in its steady state may be faster, or slower, later."""
    condition = evidence.condition
    if not evidence.measures_target or condition is None or not condition.doubt:
        return
    check = "not-prepared" if condition.state == "none" else "not-steady"
    yield Finding(check=check, severity="doubt", text=condition.doubt)
