"""What the drive showed during a cell, held against the cell."""

from pathlib import Path

import pytest
from msgspec import structs

from kvbench.host.health_model import CellHealth, HealthSample, KernelLine
from kvbench.host.model import Fact
from kvbench.host.smart_json import SmartLog, parse_smart_log
from kvbench.measure import health
from kvbench.measure.evidence import Evidence
from kvbench.measure.health import link_of, of_failed, unwatched
from kvbench.measure.model import Finding
from kvbench.measure.run import measure_cell
from tests import records
from tests.measure.builders import CASES, archive, cell, evidence, launch, stream

CASE = CASES / "24-nvme-cli-json-variants"


def smart(name: str = "smart-log-kelvin.json") -> SmartLog:
    return parse_smart_log((CASE / name).read_text())


def sample(at_s: float = 0.0, **changes: object) -> HealthSample:
    fields: dict[str, object] = {
        "at_s": at_s,
        "temperature_c": 45.0,
        "temperature_alarm": False,
        "state": "live",
        "link_speed": "8.0 GT/s",
        "link_width": 4,
    }
    return HealthSample(**(fields | changes))  # type: ignore[arg-type]


def watched(*samples: HealthSample, **fields: object) -> CellHealth:
    return CellHealth(samples=samples or (sample(), sample(1.0)), **fields)  # type: ignore[arg-type]


def found(
    seen: CellHealth | None, *, purpose: str = "measure", link: str | None = None
) -> Evidence:
    made = evidence(cell(stream(), purpose=purpose))
    record = structs.replace(made.record, health=seen)
    return structs.replace(made, record=record, link_at_start=link)


def findings(given: Evidence) -> list[Finding]:
    every = (
        health.throttled,
        health.retrained,
        health.reset,
        health.media_errors,
        health.kernel_log,
    )
    return [finding for check in every for finding in check(given)]


def only(given: Evidence) -> Finding:
    (finding,) = findings(given)
    return finding


def test_a_drive_that_is_well_gives_no_finding() -> None:
    assert findings(found(watched(smart_before=smart(), smart_after=smart()))) == []


def test_a_cell_of_an_older_version_and_one_that_saw_nothing_give_no_finding() -> None:
    assert findings(found(None)) == []
    nothing = watched(HealthSample(at_s=0.0), HealthSample(at_s=1.0), unknown={"state": "none"})
    assert findings(found(nothing)) == []


def test_the_drives_own_counters_of_heat_make_the_cell_invalid() -> None:
    hot = smart("smart-log-after-throttled-run.json")
    finding = only(found(watched(smart_before=smart(), smart_after=hot)))
    assert (finding.check, finding.severity) == ("throttled", "invalid")
    assert "4 thermal transitions" in finding.text
    assert "95 s throttled" in finding.text


def test_an_alarm_between_two_good_moments_makes_the_cell_invalid() -> None:
    alarm = sample(1.0, temperature_c=84.85, temperature_alarm=True)
    finding = only(found(watched(sample(), alarm, sample(2.0))))
    assert finding.severity == "invalid"
    assert "temperature alarm at 1 s, 85 C" in finding.text


def test_a_critical_warning_of_heat_makes_the_cell_invalid() -> None:
    warned = structs.replace(smart(), critical_warning=2)
    assert only(found(watched(smart_before=warned, smart_after=warned))).check == "throttled"


@pytest.mark.parametrize(("before", "severity"), [(0, "invalid"), (4, "doubt")])
def test_a_new_warning_is_invalid_and_an_old_one_a_doubt(before: int, severity: str) -> None:
    first = structs.replace(smart(), critical_warning=before)
    last = structs.replace(smart(), critical_warning=4)
    finding = only(found(watched(smart_before=first, smart_after=last)))
    assert (finding.check, finding.severity) == ("warning", severity)
    assert "reliability is degraded" in finding.text


@pytest.mark.parametrize("changes", [{"link_speed": "2.5 GT/s"}, {"link_width": 1}])
def test_a_link_that_changes_makes_the_cell_invalid(changes: dict[str, object]) -> None:
    finding = only(found(watched(sample(), sample(1.0, **changes))))
    assert (finding.check, finding.severity) == ("link", "invalid")
    assert "8.0 GT/s x4, then" in finding.text


def test_a_link_that_changed_between_cells_is_held_against_the_start_of_the_run() -> None:
    assert findings(found(watched(), link="8.0 GT/s x4")) == []
    finding = only(found(watched(), link="16.0 GT/s x4"))
    assert finding.text == "the PCIe link is 8.0 GT/s x4, and was 16.0 GT/s x4 when the run began"


def test_the_link_of_the_start_is_read_from_the_facts() -> None:
    told = [Fact(name="pcie_link", value="8.0 GT/s x4 (of 16.0 GT/s x4)")]
    assert link_of(told) == "8.0 GT/s x4"
    assert link_of([Fact(name="pcie_link", value=None, reason="none")]) is None
    assert link_of([]) is None


def test_a_controller_that_resets_or_goes_makes_the_cell_invalid() -> None:
    finding = only(found(watched(sample(), sample(3.0, state="resetting"), sample(4.0))))
    assert (finding.check, finding.severity) == ("controller", "invalid")
    assert "'resetting' at 3 s" in finding.text
    gone = watched(sample(), sample(1.0, state=None), unknown={"state": "it has gone: ENOENT"})
    assert "gone at its end: it has gone: ENOENT" in only(found(gone)).text
    assert findings(found(watched(sample(state="running"), sample(1.0, state="running")))) == []


def test_new_media_errors_make_the_cell_invalid() -> None:
    last = structs.replace(smart(), media_errors=3)
    finding = only(found(watched(smart_before=smart(), smart_after=last)))
    assert (finding.check, finding.severity) == ("media-errors", "invalid")
    assert "3 media errors" in finding.text


def test_trouble_in_the_kernel_log_makes_the_cell_invalid_and_is_quoted() -> None:
    line = KernelLine(
        at_s=1.0, priority=4, text="nvme nvme0: I/O 7 QID 1 timeout, reset controller"
    )
    finding = only(found(watched(kernel=(line, line), kernel_dropped=3000)))
    assert (finding.check, finding.severity) == ("kernel-log", "invalid")
    assert "3,002 lines" in finding.text
    assert line.text in finding.text


def test_a_ceiling_is_not_held_against_the_drive() -> None:
    line = KernelLine(at_s=1.0, priority=3, text="nvme nvme0: timeout")
    bad = watched(sample(state="dead"), kernel=(line,))
    assert findings(found(bad, purpose="ceiling")) == []
    assert of_failed(records.a_cell_record(cell(stream(), purpose="ceiling"), health=bad)) == ()


def test_what_was_not_watched_is_told_with_how_often() -> None:
    hung = {"temperature_c": "the drive did not answer in time"}
    late = watched(sample(), sample(1.0, temperature_c=None), unknown=hung)
    never = watched(sample(temperature_c=None), unknown=hung)
    by_purpose = (("measure", late), ("measure", watched()), ("ceiling", never))
    kept = [
        records.a_cell_record(cell(stream(), purpose=purpose), health=seen)
        for purpose, seen in by_purpose
    ]
    assert unwatched(kept) == {
        "temperature_c": "the drive did not answer in time (at times, in 1 of 2 cells)"
    }
    alone = [records.a_cell_record(cell(stream()), health=never)]
    assert unwatched(alone) == hung
    assert unwatched([records.a_cell_record(cell(stream()))]) == {}


def test_a_cell_without_usable_output_still_tells_what_the_kernel_said(tmp_path: Path) -> None:
    line = KernelLine(at_s=1.0, priority=4, text="nvme nvme0: resetting controller")
    record = launch(cell(stream()), health=watched(kernel=(line,)))
    measured = measure_cell(archive(tmp_path, record, "no JSON"), records.a_run_record())
    assert measured.outcome == "failed"
    assert {"output", "kernel-log"} <= {finding.check for finding in measured.findings}
