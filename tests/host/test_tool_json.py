"""What nvme-cli and smartctl print, in every shape that was seen."""

import json
from pathlib import Path

import pytest

from kvbench.host.nvme_json import parse_fw_log, parse_id_ctrl, parse_id_ns, parse_list
from kvbench.host.smart_json import (
    parse_smart_log,
    parse_smartctl,
    parse_smartctl_identity,
    rises,
)
from kvbench.host.tool_json import document, number, words

CASE = Path(__file__).parents[1] / "fixtures" / "cases" / "24-nvme-cli-json-variants"
LISTS = sorted(path.name for path in CASE.glob("list-*.json"))


def text(name: str) -> str:
    return (CASE / name).read_text()


@pytest.mark.parametrize("name", LISTS)
def test_every_shape_of_the_list_names_the_same_namespace(name: str) -> None:
    (listed,) = parse_list(text(name))
    assert listed.node == "/dev/nvme0n1"
    assert listed.size_bytes == 960197124096
    assert listed.used_bytes == 960197124096
    assert listed.lba_bytes == 512
    assert listed.nsid == 1


def test_there_are_lists_of_every_shape() -> None:
    assert len(LISTS) == 5


@pytest.mark.parametrize("name", LISTS)
def test_a_serial_that_is_not_listed_is_unknown_with_a_reason(name: str) -> None:
    (listed,) = parse_list(text(name))
    if "no-controllers" in name:
        assert listed.serial is None
        assert "does not tell" in listed.unknown["serial"]
    else:
        assert (listed.serial, listed.firmware) == ("SNA0001", "EX1.02")
        assert "serial" not in listed.unknown


@pytest.mark.parametrize("name", [n for n in LISTS if "under" in n])
def test_the_controller_of_nvme0n1_may_be_nvme1(name: str) -> None:
    assert parse_list(text(name))[0].controller == "nvme1"


def test_a_flat_list_does_not_guess_the_controller_from_the_name() -> None:
    assert parse_list(text("list-flat.json"))[0].controller is None


def test_two_controllers_of_one_subsystem_leave_the_serial_open() -> None:
    twice = json.loads(text("list-nested-ns-under-subsystem-multipath.json"))
    controllers = twice["Devices"][0]["Subsystems"][0]["Controllers"]
    controllers.append({**controllers[0], "Controller": "nvme2", "SerialNumber": "OTHER"})
    assert parse_list(json.dumps(twice))[0].serial is None


def test_no_device_is_a_sentence_and_an_empty_list_is_empty() -> None:
    with pytest.raises(ValueError, match="nothing was printed"):
        parse_list(text("list-no-devices-stdout.txt"))
    with pytest.raises(ValueError, match="Failed to scan topology"):
        parse_list(text("list-no-devices-stderr.txt"))
    assert parse_list('{"Devices":[]}') == ()
    assert parse_list('{"Devices":null}') == ()


@pytest.mark.parametrize("name", ["smart-log-kelvin.json", "smartctl-exit-64-data-valid.json"])
def test_kelvin_and_celsius_are_the_same_temperature(name: str) -> None:
    log = (parse_smartctl if "smartctl" in name else parse_smart_log)(text(name))
    assert log.temperature_c == 45
    assert log.sensors_c == (45, 58)


def test_a_throttled_run_shows_in_the_drive_s_counters() -> None:
    before = parse_smart_log(text("smart-log-kelvin.json"))
    after = parse_smart_log(text("smart-log-after-throttled-run.json"))
    assert rises(before, after) == (
        "4 thermal transitions",
        "95 s throttled",
        "7 min over the warning temperature",
    )
    assert rises(before, before) == ()


def test_counters_are_strings_with_separators_or_larger_than_64_bits() -> None:
    log = parse_smart_log(text("smart-log-object-warning-string-counters.json"))
    assert log.critical_warning == 2
    assert log.read_bytes == 38_855_085 * 512_000
    assert log.host_reads == 2**128 - 1
    assert log.unknown == {}


@pytest.mark.parametrize("kelvin", [0xFFFF, 0, "65535", 9000])
def test_a_temperature_that_is_no_measurement_is_unknown(kelvin: object) -> None:
    log = parse_smart_log(json.dumps({"temperature": kelvin, "temperature_sensor_1": kelvin}))
    assert log.temperature_c is None
    assert "no measurement" in log.unknown["temperature_c"]
    assert log.sensors_c == ()


def test_missing_keys_are_unknown_and_never_zero() -> None:
    log = parse_smart_log("{}")
    fields = set(log.__struct_fields__) - {"sensors_c", "unknown", "notes"}
    assert {getattr(log, field) for field in fields} == {None}
    assert set(log.unknown) == fields


def test_the_exit_bits_of_smartctl_are_no_data_or_a_note() -> None:
    with pytest.raises(ValueError, match="Unable to detect device type"):
        parse_smartctl(text("smartctl-exit-1-no-data.json"))
    with pytest.raises(ValueError, match="Unable to detect device type"):
        parse_smartctl_identity(text("smartctl-exit-1-no-data.json"))
    log = parse_smartctl(text("smartctl-exit-64-data-valid.json"))
    assert log.notes == ("the drive's error log has entries",)
    assert log.error_log_entries == 12
    assert parse_smartctl_identity(text("smartctl-exit-64-data-valid.json")).serial == "SNA0001"


def test_real_output_of_nvme_cli_2_3_is_read() -> None:
    controller = parse_id_ctrl(text("qemu-id-ctrl.json"))
    assert (controller.serial, controller.model) == ("FAST0001", "QEMU NVMe Ctrl")
    assert controller.firmware == "7.2.22"
    assert controller.volatile_write_cache is True
    assert controller.apst is False
    assert controller.power_states == 1
    assert controller.warning_temperature_c == 70
    assert controller.unknown == {}
    log = parse_smart_log(text("qemu-smart-log.json"))
    assert (log.temperature_c, log.host_reads, log.media_errors) == (50, 3, 0)
    assert parse_smartctl(text("qemu-smartctl.json")).temperature_c == 50
    nodes = [listed.node for listed in parse_list(text("qemu-list.json"))]
    assert nodes == ["/dev/nvme1n1", "/dev/nvme0n1"]


@pytest.mark.parametrize("lba", [512, 4096])
def test_a_namespace_is_counted_in_the_blocks_of_the_format_in_use(lba: int) -> None:
    detail = parse_id_ns(text(f"qemu-id-ns-{lba}.json"))
    assert detail.lba_bytes == lba
    assert detail.metadata_bytes == 0
    assert detail.size_bytes == detail.used_bytes == 2**30
    assert detail.eui64 is None
    assert detail.unknown["eui64"] == "the drive has none"


def test_a_format_above_fifteen_takes_its_high_bits() -> None:
    formats = [{"ms": 0, "ds": 9}] * 17 + [{"ms": 8, "ds": 12}]
    detail = parse_id_ns(json.dumps({"nsze": 2, "flbas": 1 << 5 | 1, "lbafs": formats}))
    assert (detail.lba_format, detail.lba_bytes, detail.metadata_bytes) == (17, 4096, 8)
    few = parse_id_ns(json.dumps({"nsze": 2, "flbas": 1 << 5 | 1, "lbafs": formats[:2]}))
    assert few.lba_format == 1


def test_firmware_that_is_shown_as_a_number_is_its_text() -> None:
    slots = parse_fw_log(text("qemu-fw-log.json"))
    assert slots.active == 1
    assert slots.revisions == {1: "1.0"}
    plain = '{"nvme0":{"Active Firmware Slot (afi)":"0x22","Firmware Rev Slot 2":"AB12"}}'
    assert parse_fw_log(plain).active == 2
    assert parse_fw_log(plain).revisions == {2: "AB12"}
    assert parse_fw_log("{}").active is None


def test_a_serial_of_blanks_is_unknown() -> None:
    controller = parse_id_ctrl('{"sn":"                    ","mn":null}')
    assert controller.serial is None
    assert "only blanks" in controller.unknown["serial"]
    assert controller.model is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, 7),
        ("7", 7),
        (" 1,234,567 ", 1234567),
        ("0x10", 16),
        ([3], 3),
        ([1, 2], None),
        ({"value": 2}, 2),
        (7.0, 7),
        (7.5, None),
        (-1, None),
        (True, None),
        (None, None),
        ("", None),
        ("n/a", None),
        ("9" * 5000, None),
        ("1,2", None),
    ],
)
def test_a_number_is_read_however_it_was_printed(value: object, expected: int | None) -> None:
    assert number(value) == expected


def test_padding_and_control_characters_are_no_words() -> None:
    assert words("S4\0\0  ") == "S4"
    assert words("\0 ") is None
    assert words(4) is None


def test_lines_around_the_document_are_passed_over() -> None:
    assert document('WARNING: old {kernel}\n{"a": 1}\ntrailer\n') == {"a": 1}
    for broken in ("", "{", "[1]", "{" * 5000):
        with pytest.raises(ValueError, match=r"nothing was printed|no JSON"):
            document(broken)


@pytest.mark.parametrize("parse", [parse_list, parse_id_ctrl, parse_id_ns, parse_fw_log])
@pytest.mark.parametrize("wrong", [None, [], {}, "x", 7, [[]], [None], True])
def test_values_of_another_kind_are_unknown_and_no_error(parse: object, wrong: object) -> None:
    keys = ("Devices", "sn", "vwc", "nsze", "flbas", "lbafs", "nvme0", "eui64")
    assert callable(parse)
    parse(json.dumps(dict.fromkeys(keys, wrong)))


def test_smartctl_tells_less_of_a_sata_drive_and_the_rest_has_a_reason() -> None:
    told = {
        "smartctl": {"exit_status": 64},
        "temperature": {"current": 34},
        "power_cycle_count": 12,
        "power_on_time": {"hours": 1000},
        "ata_smart_attributes": {
            "table": [
                {"id": 5, "name": "Reallocated_Sector_Ct", "raw": {"value": 7, "string": "7"}},
                {"id": 187, "name": "Reported_Uncorrect", "raw": {"value": 3, "string": "3"}},
            ]
        },
    }
    log = parse_smartctl(json.dumps(told))
    assert (log.temperature_c, log.power_cycles, log.power_on_hours) == (34, 12, 1000)
    assert log.media_errors == 3
    assert log.written_bytes is None
    assert "does not tell" in log.unknown["written_bytes"]
    assert log.notes == ("the drive's error log has entries",)
    with pytest.raises(ValueError, match="no health log"):
        parse_smartctl(json.dumps({"smartctl": {"exit_status": 0}}))
