"""Watching a drive: what it shows, what it does not, and that nothing of it stops a run."""

import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kvbench.host import probe, sensors
from kvbench.host.health import HealthWatch
from kvbench.host.health_model import CellHealth
from kvbench.units import MIB
from tests.host import drives
from tests.host.drives import CASE, CONTROLLER, HWMON, PCI, identity_of, prints, tool
from tests.host.fakes import FakeMachine

KELVIN = CASE / "smart-log-kelvin.json"


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path / "machine")


def watch(machine: FakeMachine, device: str | None = "nvme0n1") -> HealthWatch:
    return HealthWatch(
        identity_of("/dev/nvme0n1"), device, machine=machine, now=lambda: datetime.now(UTC)
    )


def a_cell(watched: HealthWatch) -> CellHealth:
    cell = watched.cell(measures=True)
    cell.tick(0.5)
    cell.tick(1.0)
    return cell.end(1.8)


def test_a_sample_a_second_shows_temperature_state_link_and_counters(machine: FakeMachine) -> None:
    drives.nvme(machine)
    health = a_cell(watch(machine))
    assert [sample.at_s for sample in health.samples] == [0.0, 1.0, 1.8]
    for sample in health.samples:
        assert (sample.temperature_c, sample.temperature_alarm) == (45.0, False)
        assert sample.state == "live"
        assert (sample.link_speed, sample.link_width) == ("8.0 GT/s", 4)
        assert sample.counters is not None
        assert sample.counters.read_ios == 1
    assert "no nvme-cli" in health.unknown["smart"]
    assert "temperature_c" not in health.unknown


@pytest.mark.parametrize("told_mc", [-273_150, 65_535_000 - 273_150, 999_000])
def test_a_sensor_that_measures_nothing_gives_no_temperature(
    machine: FakeMachine, told_mc: int
) -> None:
    drives.nvme(machine, temperature_mc=told_mc)
    health = a_cell(watch(machine))
    assert {sample.temperature_c for sample in health.samples} == {None}
    assert "no measurement" in health.unknown["temperature_c"]
    assert {sample.temperature_alarm for sample in health.samples} == {False}


@pytest.mark.parametrize("parent", [f"{CONTROLLER}/hwmon", f"{CONTROLLER}/device/hwmon"])
def test_kernels_hang_the_sensor_in_different_places(machine: FakeMachine, parent: str) -> None:
    drives.nvme(machine)
    for name in ("temp1_input", "temp1_alarm"):
        machine.at(f"{HWMON}/{name}").unlink()
    machine.at(HWMON).rmdir()
    machine.write(f"{parent}/hwmon0/temp1_input", "50850\n")
    sample = a_cell(watch(machine)).samples[0]
    assert sample.temperature_c == 50.85
    assert sample.temperature_alarm is None


def test_missing_entries_of_sysfs_are_reasons(machine: FakeMachine) -> None:
    machine.add_disk("nvme0n1", "259:0")
    machine.sysfs("nvme0n1", "device/queue_count", "2\n")
    health = a_cell(watch(machine))
    for name in ("temperature_c", "temperature_alarm", "state", "link_speed", "link_width"):
        assert "sysfs shows none" in health.unknown[name]
    assert health.samples[0].counters is not None


def test_a_drive_that_vanishes_during_a_cell_is_a_reason_and_no_error(machine: FakeMachine) -> None:
    drives.nvme(machine)
    tool(machine, {"smart-log": prints(KELVIN)})
    watched = watch(machine)
    watched.begin()
    cell = watched.cell(measures=True)
    machine.at("/sys/class/block/nvme0n1").unlink()
    machine.at(f"{CONTROLLER}/state").unlink()
    machine.at(f"{HWMON}/temp1_input").unlink()
    machine.at(f"{PCI}/current_link_speed").unlink()
    tool(machine, {"smart-log": "echo 'No such device' >&2; exit 1"})
    health = cell.end(1.0)
    last = health.samples[-1]
    assert (last.state, last.temperature_c, last.link_speed, last.counters) == (None,) * 4
    assert "gone" in health.unknown["state"]
    assert "cannot be read" in health.unknown["temperature_c"]
    assert "No such device" in health.unknown["smart_after"]
    after = watched.finish().after
    assert after is not None
    assert after.smart is None
    assert "No such device" in after.unknown["smart"]


def test_a_link_that_is_down_is_not_a_link(machine: FakeMachine) -> None:
    drives.nvme(machine)
    watched = watch(machine)
    drives.link(machine, "Unknown", "255")
    health = a_cell(watched)
    assert health.samples[0].link_speed is None
    assert "does not tell" in health.unknown["link_speed"]


def test_a_sensor_that_hangs_holds_nobody_and_says_so(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    drives.nvme(machine)
    monkeypatch.setattr(sensors, "TEMPERATURE_WAIT_S", 0.02)
    watched = watch(machine)
    pipe = machine.at(f"{HWMON}/temp1_input")
    pipe.unlink()
    os.mkfifo(pipe)  # opening it waits for a writer
    health = a_cell(watched)
    assert {sample.temperature_c for sample in health.samples} == {None}
    assert {sample.state for sample in health.samples} == {"live"}
    assert health.unknown["temperature_c"] == "the drive did not answer in time"
    waiting = [t for t in threading.enumerate() if t.name.startswith("Thread-") and t.daemon]
    assert len(waiting) >= 1
    with pipe.open("w") as writer:
        writer.write("41000\n")
    for thread in waiting:
        thread.join(5)
    pipe.unlink()
    drives.heat(machine, 41_000, alarm=False)
    again = a_cell(watched)  # what one cell missed is not held against the next
    assert {sample.temperature_c for sample in again.samples} == {41.0}
    assert "temperature_c" not in again.unknown


def test_smart_is_asked_before_and_after_each_cell_that_measures(machine: FakeMachine) -> None:
    drives.nvme(machine)
    asked = tool(machine, {"smart-log": prints(KELVIN)})
    watched = watch(machine)
    before = watched.begin().before
    assert before.smart is not None
    assert before.smart.temperature_c == 45
    health = a_cell(watched)
    assert health.smart_before is not None
    assert health.smart_after is not None
    count = asked.read_text().count("smart-log")
    assert count == 3
    ceiling = watched.cell(measures=False).end(0.5)
    assert ceiling.smart_before is None
    assert ceiling.unknown["smart"]
    assert asked.read_text().count("smart-log") == count


def test_smartctl_is_asked_where_nvme_cli_has_no_answer(machine: FakeMachine) -> None:
    drives.nvme(machine)
    tool(machine, {"-j": prints(CASE / "smartctl-exit-64-data-valid.json")}, "smartctl")
    told = watch(machine).begin().before.smart
    assert told is not None
    assert told.temperature_c == 45
    assert told.notes


def test_a_tool_that_hangs_is_given_up_for_the_whole_run(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    drives.nvme(machine)
    monkeypatch.setattr(probe, "OPTIONAL_TOOL_TIMEOUT_S", 0.3)
    asked = tool(machine, {"smart-log": "sleep 60"})
    watched = watch(machine)
    assert "did not answer" in watched.begin().before.unknown["smart"]
    assert "did not answer" in a_cell(watched).unknown["smart"]
    watched.finish()
    assert len(asked.read_text().splitlines()) == 1


def test_a_drive_without_the_pages_of_the_ocp_says_why(machine: FakeMachine) -> None:
    drives.nvme(machine)
    said = "echo 'NVMe status: INVALID_LOG_PAGE: The log page is invalid(0x109)' >&2; exit 1"
    tool(machine, {"smart-log": prints(KELVIN), "get-log": said})
    before = watch(machine).begin().before
    assert before.extended is None
    assert "INVALID_LOG_PAGE" in before.unknown["extended"]
    assert "INVALID_LOG_PAGE" in before.unknown["latency_monitor"]


def test_the_pages_of_the_ocp_are_read_where_the_drive_has_them(machine: FakeMachine) -> None:
    drives.nvme(machine)
    places = {}
    for number in (0xC0, 0xC3):
        page = drives.page(number, at_0=(5 * MIB + 1).to_bytes(16, "little"))
        places[number] = machine.write(f"/pages/{number}", drives.dump(page))
    script = f'case "$2" in --log-id=192) cat {places[0xC0]};; *) cat {places[0xC3]};; esac; exit 0'
    tool(machine, {"smart-log": prints(KELVIN), "get-log": script})
    before = watch(machine).begin().before
    assert before.extended is not None
    assert before.extended.media_written_bytes == 5 * MIB + 1
    assert before.latency_monitor is not None
    assert before.latency_monitor.enabled


@pytest.mark.parametrize(
    ("length", "reason"), [(496, "C0h has 496 of 512 bytes"), (0, "shows no page"), (4096, "")]
)
def test_a_page_of_another_length_than_asked_is_no_reason_to_stop(
    machine: FakeMachine, length: int, reason: str
) -> None:
    drives.nvme(machine)
    sent = (drives.page(0xC0, at_0=(9).to_bytes(16, "little")) + bytes(4096))[:length]
    place = machine.write("/pages/c0", drives.dump(sent))
    tool(machine, {"smart-log": prints(KELVIN), "get-log": prints(place)})
    before = watch(machine).begin().before
    assert before.smart is not None
    assert before.latency_monitor is None
    assert (before.extended is None) == bool(reason)
    assert reason in before.unknown.get("extended", "")


def test_other_devices_are_not_asked_and_say_in_a_sentence_why(machine: FakeMachine) -> None:
    asked = tool(machine, {"smart-log": prints(KELVIN)})
    watched = watch(machine, "vda")
    session = watched.begin()
    assert session.drive is None
    assert session.devices == ("vda",)
    assert session.before.unknown["smart"] == (
        "vda is not an NVMe, SATA or SAS drive, and tells nothing of its health"
    )
    health = a_cell(watched)
    assert health.samples[0].counters is not None
    assert not asked.exists()


def test_a_target_without_a_device_is_watched_by_nothing(machine: FakeMachine) -> None:
    watched = watch(machine, None)
    assert "no single device" in watched.begin().before.unknown["smart"]
    health = a_cell(watched)
    assert health.samples[0].counters is None
    assert health.unknown["kernel_log"] == "no device under the target is known"


def test_a_partition_is_watched_through_its_disk(machine: FakeMachine) -> None:
    drives.nvme(machine)
    machine.add_partition("nvme0n1", "nvme0n1p1", "259:1", 1)
    tool(machine, {"smart-log": prints(KELVIN)})
    session = watch(machine, "nvme0n1p1").begin()
    assert session.drive == "nvme0n1"
    assert session.before.smart is not None
    assert set(session.devices) >= {"nvme0n1p1", "nvme0n1"}


def test_several_drives_below_are_not_mixed_up(machine: FakeMachine) -> None:
    drives.nvme(machine)
    machine.add_disk("nvme1n1", "259:5")
    machine.add_disk("md0", "9:0")
    for member in ("nvme0n1", "nvme1n1"):
        machine.hold_by(member, "md0")
    session = watch(machine, "md0").begin()
    assert session.drive is None
    assert "several drives" in session.before.unknown["smart"]
    assert {"md0", "nvme0n1", "nvme1n1"} <= set(session.devices)


def test_what_is_kept_of_a_tools_words_hides_the_serial(machine: FakeMachine) -> None:
    drives.nvme(machine)
    tool(machine, {"smart-log": "echo 'no log on SNSECRET01' >&2; exit 1"})
    watched = HealthWatch(
        identity_of("/dev/nvme0n1"),
        "nvme0n1",
        machine=machine,
        now=lambda: datetime.now(UTC),
        clean=lambda text: text.replace("SNSECRET01", "hidden"),
    )
    assert "no log on hidden" in watched.begin().before.unknown["smart"]
    assert "no log on hidden" in a_cell(watched).unknown["smart"]
