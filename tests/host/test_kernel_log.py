"""The kernel log: which lines are trouble with a device, and reading it without waiting."""

import os
import uuid
from pathlib import Path

import pytest

from kvbench.host.kernel_log import (
    PATH,
    KernelLog,
    Record,
    is_trouble,
    names_in_path,
    names_pattern,
    parse_record,
)
from kvbench.host.machine import MACHINE
from tests.host.fakes import FakeMachine

DRIVE = names_pattern(["nvme0n1", "nvme0", "0000:01:00.0"])


def said(priority: int, text: str) -> Record:
    return Record(facility=0, priority=priority, text=text)


@pytest.mark.parametrize(
    ("priority", "text"),
    [
        (4, "nvme nvme0: I/O 12 (I/O Cmd) QID 1 timeout, aborting"),
        (4, "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff"),
        (6, "nvme nvme0: resetting controller"),
        (6, "nvme nvme0: 2/0/0 default/read/poll queues"),
        (3, "I/O error, dev nvme0n1, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"),
        (3, "critical medium error, dev nvme0n1, sector 2048 op 0x0:(READ)"),
        (3, "Buffer I/O error on dev nvme0n1p2, logical block 0, async page read"),
        (6, "nvme0n1: I/O Cmd(0x2) @ LBA 2048, 8 blocks, I/O Error (sct 0x2 / sc 0x81) DNR"),
        (4, "pcieport 0000:00:1c.0: AER: Corrected error received: 0000:01:00.0"),
        (4, "nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer"),
        (2, "EXT4-fs (nvme0n1p1): unable to read superblock"),
    ],
)
def test_trouble_with_the_drive_is_found(priority: int, text: str) -> None:
    assert is_trouble(said(priority, text), DRIVE)


@pytest.mark.parametrize(
    ("priority", "text"),
    [
        (6, "nvme nvme0: Shutdown timeout set to 10 seconds"),
        (6, "nvme0n1: detected capacity change from 0 to 2048"),
        (6, " nvme0n1: p1 p2"),
        (3, "I/O error, dev nvme10n1, sector 2048 op 0x0:(READ)"),
        (3, "I/O error, dev nvme0n12, sector 2048 op 0x0:(READ)"),
        (4, "nvme nvme01: I/O 12 QID 1 timeout, aborting"),
        (3, "pcieport 0000:01:00.1: AER: Uncorrected error"),
        (6, "EXT4-fs (nvme0n1p1): mounted filesystem with ordered data mode, errors=remount-ro"),
    ],
)
def test_what_is_harmless_or_of_another_device_is_not(priority: int, text: str) -> None:
    if "nvme0n12" in text:  # a namespace of the same controller: its errors concern it
        assert not is_trouble(said(priority, text), names_pattern(["nvme0n1"]))
        return
    assert not is_trouble(said(priority, text), DRIVE)


def test_disks_are_known_by_their_port_and_partitions() -> None:
    folder = "/sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda"
    assert names_in_path(folder) == ("0000:00:17.0", "ata3")
    disk = names_pattern(["sda", *names_in_path(folder)])
    assert is_trouble(said(3, "ata3.00: failed command: READ FPDMA QUEUED"), disk)
    assert is_trouble(said(3, "sd 2:0:0:0: [sda] tag#3 FAILED Result: hostbyte=DID_OK"), disk)
    assert is_trouble(said(3, "Buffer I/O error on dev sda2, logical block 1"), disk)
    assert not is_trouble(said(3, "I/O error, dev sdaa, sector 1"), disk)
    assert not is_trouble(said(3, "ata31.00: failed command: READ"), disk)


def test_a_record_is_its_first_line_without_what_hides() -> None:
    raw = b"12,345,678,-;loop0: a \x1b[31mline\n SUBSYSTEM=block\n DEVICE=b7:0\n"
    assert parse_record(raw) == Record(facility=1, priority=4, text="loop0: a  [31mline")
    assert parse_record(b"no record") is None
    assert parse_record(b"x,1,2,-;text") is None


def test_a_log_that_may_not_be_read_is_a_reason(tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path / "machine")
    log = KernelLog(["vda"], machine)
    assert "No such file" in log.reason
    assert log.new_lines(0.0) == []
    assert KernelLog([], machine).reason == "no device under the target is known"


@pytest.mark.skipif(not os.access(PATH, os.R_OK | os.W_OK), reason=f"{PATH} is not ours to write")
def test_lines_from_now_on_are_read_from_the_real_log() -> None:
    name = f"kvtest{uuid.uuid4().hex[:8]}"
    before, after = (f"{name}: {word} timeout" for word in ("old", "new"))
    _say(before)
    log = KernelLog([name], MACHINE, facilities=frozenset({1}))  # of programs, as this test is
    if log.reason:
        pytest.skip(log.reason)
    kernel_only = KernelLog([name], MACHINE)
    try:
        assert log.new_lines(0.0) == []
        _say(after)
        _say(f"{name}: all is well", priority=6)
        (line,) = log.new_lines(2.5)
        assert (line.at_s, line.text) == (2.5, after)
        assert log.new_lines(3.0) == []
        assert kernel_only.new_lines(3.0) == []
    finally:
        log.close()
        kernel_only.close()
    assert log.new_lines(4.0) == []


def _say(text: str, priority: int = 4) -> None:
    Path(PATH).write_text(f"<{priority}>{text}\n")
