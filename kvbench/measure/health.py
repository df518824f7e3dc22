"""Checks of what the drive showed during a cell: was it hot, retrained, reset, failing?  Pure.

A drive that throttles or comes back from a reset answers well again a second later, and fio ends
in order: only what was seen meanwhile tells that the numbers are of another drive's state.
What was not seen says nothing here; the report tells once for the run what is not watched.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from kvbench.host.health_model import CellHealth, HealthSample
from kvbench.host.model import Fact
from kvbench.host.smart_json import RISES_OF_HEAT, RISES_OF_TROUBLE, rises
from kvbench.measure.evidence import Evidence
from kvbench.measure.model import Finding
from kvbench.store.records import CellRecord

GOOD_STATES = ("live", "running")  # of an NVMe controller, of a SCSI or SATA disk
SHOWN_CHARS_MAX = 160
_Check = Callable[[CellHealth], Iterator[Finding]]
_TEMPERATURE_BIT = 1
_WARNINGS = {
    0: "its spare blocks run out",
    1: "it is too hot or too cold",
    2: "its reliability is degraded",
    3: "it has become read-only",
    4: "the backup of its volatile memory failed",
    5: "its persistent memory region is read-only",
}


def throttled(evidence: Evidence) -> Iterator[Finding]:
    """The drive did not throttle itself, and was not over its warning temperature."""
    yield from _if_watched(evidence, _throttled)


def retrained(evidence: Evidence) -> Iterator[Finding]:
    """The PCIe link kept its speed and width."""
    yield from _if_watched(evidence, _retrained)
    health = _health(evidence)
    links = _links(health.samples) if health is not None else []
    at_start = evidence.link_at_start
    if at_start and len(links) == 1 and links[0] != at_start:
        text = f"the PCIe link is {links[0]}, and was {at_start} when the run began"
        yield Finding(check="link", severity="invalid", text=text)


def reset(evidence: Evidence) -> Iterator[Finding]:
    """The controller was there and live all the time."""
    yield from _if_watched(evidence, _reset)


def media_errors(evidence: Evidence) -> Iterator[Finding]:
    """The drive counted no new errors of its medium, and no new warning."""
    yield from _if_watched(evidence, _media_errors)


def kernel_log(evidence: Evidence) -> Iterator[Finding]:
    """The kernel had no trouble with the devices under the target."""
    yield from _if_watched(evidence, _kernel_log)


def link_of(facts: Iterable[Fact]) -> str | None:
    """Return the PCIe link of a run's facts, "8.0 GT/s x4" of "8.0 GT/s x4 (of 16.0 GT/s x4)"."""
    told = next((fact.value for fact in facts if fact.name == "pcie_link"), None)
    return told.partition(" (")[0] if told else None


def unwatched(records: Iterable[CellRecord]) -> dict[str, str]:
    """Return what was not watched in cells that measured, or not always, and why, by its name."""
    seen = [
        record.health
        for record in records
        if record.health is not None and record.cell.purpose != "ceiling"
    ]
    reasons: dict[str, str] = {}
    missing: Counter[str] = Counter()
    at_times: Counter[str] = Counter()
    for one in seen:
        reasons |= one.unknown
        for name in one.unknown:
            partly = any(getattr(sample, name, None) is not None for sample in one.samples)
            (at_times if partly else missing)[name] += 1
    return {
        name: reason + _how_often(missing[name], at_times[name], len(seen))
        for name, reason in reasons.items()
    }


def _how_often(missing: int, at_times: int, cells: int) -> str:
    if missing == cells:
        return ""
    if at_times == cells:
        return " (at times)"
    return f" ({'at times, ' if at_times else ''}in {missing + at_times} of {cells} cells)"


def of_failed(record: CellRecord) -> tuple[Finding, ...]:
    """Return what was seen beside a cell whose output cannot be used."""
    health = record.health
    if health is None or record.cell.purpose == "ceiling":
        return ()
    every = (_throttled, _retrained, _reset, _media_errors, _kernel_log)
    return tuple(finding for check in every for finding in check(health))


def _if_watched(evidence: Evidence, check: _Check) -> Iterator[Finding]:
    health = _health(evidence)
    if health is not None:
        yield from check(health)


def _health(evidence: Evidence) -> CellHealth | None:
    return evidence.record.health if evidence.measures_target else None


def _throttled(health: CellHealth) -> Iterator[Finding]:
    before, after = health.smart_before, health.smart_after
    said = list(rises(before, after, RISES_OF_HEAT)) if before and after else []
    alarms = [sample for sample in health.samples if sample.temperature_alarm]
    if alarms:
        first = alarms[0]
        heat = "" if first.temperature_c is None else f", {first.temperature_c:.0f} C"
        said.append(f"its temperature alarm at {first.at_s:.0f} s{heat}")
    told = [log.critical_warning for log in (before, after) if log is not None]
    if any(bits is not None and bits >> _TEMPERATURE_BIT & 1 for bits in told):
        said.append("a critical warning of its temperature")
    if said:
        text = f"the drive was hot or throttled itself: {', '.join(said)}"
        yield Finding(check="throttled", severity="invalid", text=text)


def _retrained(health: CellHealth) -> Iterator[Finding]:
    links = _links(health.samples)
    if len(links) > 1:
        text = f"the PCIe link changed during the cell: {', then '.join(links)}"
        yield Finding(check="link", severity="invalid", text=text)


def _links(samples: tuple[HealthSample, ...]) -> list[str]:
    """Return the links that were seen, each change once."""
    seen: list[str] = []
    for one in samples:
        if one.link_speed is None or one.link_width is None:
            continue
        link = f"{one.link_speed} x{one.link_width}"
        if not seen or seen[-1] != link:
            seen.append(link)
    return seen


def _reset(health: CellHealth) -> Iterator[Finding]:
    states = [(sample.at_s, sample.state) for sample in health.samples]
    bad = next(((at, state) for at, state in states if state and state not in GOOD_STATES), None)
    if bad is not None:
        text = f"the controller was not live but {bad[1][:40]!r} at {bad[0]:.0f} s"
        yield Finding(check="controller", severity="invalid", text=text)
    elif states and states[0][1] and states[-1][1] is None:
        why = health.unknown.get("state", "its state cannot be read any more")
        text = f"the controller was there at the start of the cell and gone at its end: {why}"
        yield Finding(check="controller", severity="invalid", text=text)


def _media_errors(health: CellHealth) -> Iterator[Finding]:
    before, after = health.smart_before, health.smart_after
    if before is None or after is None:
        return
    found = rises(before, after, RISES_OF_TROUBLE)
    if found:
        text = f"the drive counted during the cell: {', '.join(found)}"
        yield Finding(check="media-errors", severity="invalid", text=text)
    first, last = before.critical_warning or 0, after.critical_warning or 0
    for bit, words in _WARNINGS.items():
        if bit != _TEMPERATURE_BIT and last >> bit & 1:
            new = not first >> bit & 1
            text = f"the drive warns that {words}{', since this cell' if new else ''}"
            yield Finding(check="warning", severity="invalid" if new else "doubt", text=text)


def _kernel_log(health: CellHealth) -> Iterator[Finding]:
    count = len(health.kernel) + health.kernel_dropped
    if count:
        first = health.kernel[0].text if health.kernel else ""
        shown = first if len(first) <= SHOWN_CHARS_MAX else f"{first[:SHOWN_CHARS_MAX]}..."
        lines = "1 line" if count == 1 else f"{count:,} lines"
        text = f"the kernel log has {lines} of trouble with the device, first: {shown}"
        yield Finding(check="kernel-log", severity="invalid", text=text)
