"""What a redacted record still tells: which runs are of one drive, and nothing that names it."""

import msgspec
import pytest
from msgspec.structs import replace

from kvbench.compare.aspects import ASPECTS
from kvbench.errors import UsageError
from kvbench.gate.history_subject import subject_of
from kvbench.host.model import Fact, Identity
from kvbench.store.preparation import NOT_PREPARED
from kvbench.store.records import Pairing, RunRecord
from kvbench.store.redact import hidden, hider, is_redacted, redact, same_drive, with_hidden_names
from tests.records import a_plan, a_run_record, a_target

SERIAL, WWID, EUI, HOST = "S4EVNX0R123", "eui.0025385b91", "00 25 38 5b 91", "lab-host-7"
BY_ID = f"/dev/disk/by-id/nvme-FAST_{SERIAL}"


def a_drive(serial: str = SERIAL, path: str = BY_ID) -> RunRecord:
    record = a_run_record(a_plan(target=a_target(path)))
    identity = Identity(
        path=path,
        real_path="/dev/nvme0n1",
        kind="block",
        device_number="259:0",
        inode=3,
        size_bytes=2**26,
        serial=serial,
        wwid=f"{WWID}, nsid 1, partition 2",
    )
    return replace(
        record,
        identity=identity,
        label=f"fw2 on {serial}",
        command=("run", path, "--label", f"fw2 on {serial}"),
        facts=(
            Fact(name="device_serial", value=serial),
            Fact(name="device_wwid", value=WWID),
            Fact(name="device_eui", value=EUI),
            Fact(name="device_nguid", value=None, reason="the device does not tell"),
            Fact(name="device_nsid", value="1"),
            Fact(name="mount_source", value=f"{HOST}:/export"),
            Fact(name="kernel_command_line", value="root=/dev/disk/by-id/nvme-eui.0025385b91"),
        ),
        condition=replace(NOT_PREPARED, text=f"prepared (run prep-{HOST})", run_id=f"prep-{HOST}"),
        pairing=Pairing(kind="ab", pair_id="p", side="A", order="first", between=f"flash {serial}"),
    )


def test_nothing_that_names_the_drive_or_the_host_is_left() -> None:
    text = msgspec.json.encode(redact(a_drive(), HOST)).decode()
    for secret in (SERIAL, WWID, EUI, HOST, "0025385b91"):
        assert secret not in text
    assert hidden(SERIAL) in text
    assert "redacted-" in text


def test_what_tools_and_the_kernel_say_names_no_drive_whether_redacted_or_not() -> None:
    for record in (a_drive(), redact(a_drive(), HOST)):
        hide = hider(record.identity, HOST)
        said = f"nvme nvme0: no answer of {SERIAL} ({WWID}) on {HOST}: timeout"
        if is_redacted(record.identity):  # then a session does not know them either
            assert HOST not in hide(said)
            continue
        for secret in (SERIAL, WWID, HOST):
            assert secret not in hide(said)
        assert hide("nvme nvme0: timeout") == "nvme nvme0: timeout"


def test_the_namespace_and_the_partition_stay_readable() -> None:
    identity = redact(a_drive(), HOST).identity
    assert identity.wwid == f"{hidden(WWID)}, nsid 1, partition 2"
    assert identity.real_path == "/dev/nvme0n1"
    assert is_redacted(identity)
    assert not is_redacted(a_drive().identity)


def test_two_redacted_runs_of_one_drive_still_belong_together() -> None:
    one, again, other = (
        redact(a_drive(serial), HOST) for serial in (SERIAL, SERIAL, "S4EVNX0R124")
    )
    for name in ("serial", "namespace", "model", "capacity"):
        assert ASPECTS[name][1](one) == ASPECTS[name][1](again)
    assert ASPECTS["serial"][1](one) != ASPECTS["serial"][1](other)


def test_a_live_drive_is_known_again_in_a_redacted_record() -> None:
    live, other = a_drive().identity, a_drive("S4EVNX0R124").identity
    for stored in (live, redact(a_drive(), HOST).identity):
        assert same_drive(stored, live)
        assert not same_drive(stored, other)
        assert not same_drive(stored, replace(live, wwid=f"{WWID}, nsid 2, partition 2"))


def test_a_word_that_only_begins_like_the_serial_is_left_alone() -> None:
    record = replace(a_drive(), label=f"{SERIAL}9")
    assert redact(record, HOST).label == f"{SERIAL}9"


def test_a_serial_of_two_characters_is_hidden_where_it_stands_alone() -> None:
    found = redact(a_drive("12", "/dev/nvme0n1"), "h")
    assert found.identity.serial == hidden("12")
    assert {fact.name: fact.value for fact in found.facts}["device_serial"] == hidden("12")
    assert found.plan == a_drive("12", "/dev/nvme0n1").plan


def test_a_record_without_anything_to_hide_stays_as_it_is() -> None:
    record = a_run_record()
    assert redact(record, "") == record


LOOP_WWID = "backing file /srv/customer 7/disk.img (254:0 inode 5)"


def a_loop() -> RunRecord:
    record = a_run_record(a_plan(target=a_target("/dev/loop3")))
    identity = replace(
        record.identity, path="/dev/loop3", real_path="/dev/loop3", kind="block", wwid=LOOP_WWID
    )
    facts = (
        Fact(name="device_disk", value="loop3"),
        Fact(name="device_model", value="/srv/customer 7/disk.img"),
        Fact(name="mount_source", value="loop3 on /srv/customer 7/disk.img"),
    )
    return replace(record, identity=identity, facts=facts)


def test_the_file_behind_a_loop_device_is_hidden_and_still_binds_it() -> None:
    record, other = a_loop(), a_loop()
    other = replace(other, identity=replace(other.identity, wwid=LOOP_WWID.replace("5)", "6)")))
    closed = redact(record, "")
    assert "customer" not in msgspec.json.encode(closed).decode()
    assert closed.identity.wwid == (
        f"backing file {hidden('/srv/customer 7/disk.img')} (254:0 inode 5)"
    )
    assert subject_of(closed) == subject_of(record)
    assert same_drive(closed.identity, record.identity)
    assert not same_drive(closed.identity, other.identity)
    assert is_redacted(closed.identity)
    assert ASPECTS["model"][1](closed) == ASPECTS["model"][1](with_hidden_names(record))
    assert "customer" not in hider(record.identity, "")("loop3: /srv/customer 7/disk.img: EIO")


def test_the_model_of_a_drive_is_no_name_of_one_drive() -> None:
    facts = (
        Fact(name="device_disk", value="nvme0n1"),
        Fact(name="device_model", value="FAST 990"),
    )
    assert redact(replace(a_drive(), facts=facts), HOST).facts == facts
    mapped = (Fact(name="device_disk", value="dm-0"), Fact(name="device_model", value="vg-secret"))
    assert redact(replace(a_drive(), facts=mapped), HOST).facts[1].value == hidden("vg-secret")


ROOT = "0f1e2d3c-1111-4222-8333-445566778899"


@pytest.mark.parametrize(
    ("command_line", "hidden_words"),
    [
        (f"root=UUID={ROOT} ro quiet", [ROOT]),
        (f"root=PARTUUID=1a2b3c4d-02 resume=UUID={ROOT}", [ROOT, "1a2b3c4d-02"]),
        ("root=/dev/mapper/vg0-customer rd.lvm.lv=vg0/customer", ["customer"]),
        (
            "rd.luks.name=luks-secret ip=10.1.2.3::10.1.2.1:255.0.0.0:node9:eth0",
            ["secret", "node9"],
        ),
        (f"rd.md.uuid={ROOT} cryptdevice=/dev/sda2:cryptsecret", [ROOT, "cryptsecret"]),
    ],
)
def test_the_kernel_s_command_line_tells_neither_root_disk_nor_host(
    command_line: str, hidden_words: list[str]
) -> None:
    fact = Fact(name="kernel_command_line", value=f"quiet {command_line} mitigations=auto")
    (found,) = redact(replace(a_drive(), facts=(fact,)), HOST).facts
    assert found.value is not None
    for word in hidden_words:
        assert word not in found.value
    assert found.value.startswith("quiet ")
    assert found.value.endswith(" mitigations=auto")
    plain = Fact(name="kernel_command_line", value="root=/dev/sda2 ro splash")
    assert redact(replace(a_drive(), facts=(plain,)), HOST).facts == (plain,)


def test_a_uuid_in_any_fact_is_hidden_wherever_it_stands() -> None:
    record = replace(
        a_drive(),
        facts=(Fact(name="mount_source", value=f"/dev/disk/by-uuid/{ROOT}"),),
        command=("run", f"/dev/disk/by-uuid/{ROOT}"),
    )
    assert ROOT not in msgspec.json.encode(redact(record, HOST)).decode()


@pytest.mark.parametrize(
    "path",
    ["/dev/disk/by-id/scsi-1ATA_QX_77", "/dev/disk/by-label/customer", "/dev/vg0/customer"],
)
def test_a_chosen_name_below_dev_is_hidden_and_the_kernel_s_own_stays(path: str) -> None:
    found = redact(a_drive(path=path), HOST)
    text = msgspec.json.encode(found).decode()
    assert path.rpartition("/")[2] not in text
    assert found.identity.path == f"/dev/{hidden(path.removeprefix('/dev/'))}"
    assert found.identity.real_path == "/dev/nvme0n1"


def test_a_name_by_the_slot_stays() -> None:
    path = "/dev/disk/by-path/pci-0000:01:00.0-nvme-1"
    assert redact(a_drive(path=path), HOST).identity.path == path


def test_a_host_of_a_domain_is_hidden_with_and_without_it() -> None:
    record = replace(a_drive(), label="on rack12 and rack12.example.org")
    assert redact(record, "rack12.example.org").label.count("redacted-") == 2


def test_a_path_that_fio_s_files_would_keep_is_refused() -> None:
    record = a_drive()
    identity = replace(record.identity, real_path=f"/mnt/{HOST}/file")
    with pytest.raises(UsageError, match="fio's files keep the path"):
        redact(replace(record, identity=identity), HOST)


def test_an_open_record_gets_the_names_that_a_redacted_one_has() -> None:
    record = a_drive(path="/dev/nvme0n1")
    closed, named = redact(record, HOST), with_hidden_names(record)
    assert (named.identity.serial, named.identity.wwid) == (
        closed.identity.serial,
        closed.identity.wwid,
    )
    names = ("serial", "namespace", "model")
    assert [ASPECTS[n][1](named) for n in names] == [ASPECTS[n][1](closed) for n in names]
    assert named.label == record.label
    assert with_hidden_names(closed) == closed
    assert with_hidden_names(named) == named
