"""The texts of /proc and /sys, as kernels write them."""

import pytest

from kvbench.host import facts


def test_mountinfo_keeps_numbers_sources_and_odd_names() -> None:
    text = (
        "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"
        "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=x\n"
        "40 27 0:44 /@home /home rw - btrfs /dev/sdb2 rw,subvol=/@home\n"
    )
    root, odd, btrfs = facts.parse_mountinfo(text)
    assert (root.number, root.point, root.file_system, root.source) == (
        "254:0",
        "/",
        "ext4",
        "/dev/vda",
    )
    assert odd.point == "/mnt 2"
    assert odd.options == ("rw", "noatime")
    assert odd.super_options == ("rw", "errors=x")
    assert btrfs.number == "0:44"


@pytest.mark.parametrize("line", ["nonsense", "1 2 3:4 / / rw ext4 /dev/x rw", "1 2 - ext4 a b"])
def test_a_line_that_is_no_mount_is_an_error_and_not_left_out(line: str) -> None:
    with pytest.raises(ValueError, match="not a line of mountinfo"):
        facts.parse_mountinfo(f"{line}\n")


def test_a_path_lies_on_the_deepest_and_latest_mount() -> None:
    mounts = facts.parse_mountinfo(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "2 1 8:2 / /data rw - ext4 /dev/sda2 rw\n"
        "3 2 8:3 / /data rw - xfs /dev/sda3 rw\n"
    )
    found = facts.mount_of("/data/x", mounts)
    assert found is not None
    assert found.number == "8:3"
    beside = facts.mount_of("/database", mounts)
    assert beside is not None
    assert beside.number == "8:1"
    assert facts.mount_of("/x", mounts[1:]) is None


def test_swaps_are_unescaped_and_a_deleted_file_is_marked() -> None:
    text = (
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        "/dev/sda2                               partition\t65532\t\t0\t\t-2\n"
        "/my\\040swap\\040(deleted)                file\t\t65532\t\t0\t\t-3\n"
    )
    assert [(s.path, s.deleted) for s in facts.parse_swaps(text)] == [
        ("/dev/sda2", False),
        ("/my swap", True),
    ]
    with pytest.raises(ValueError, match="swaps"):
        facts.parse_swaps("")


def test_locks_are_keyed_by_file_and_waiters_are_left_out() -> None:
    text = (
        "1: FLOCK  ADVISORY  WRITE 9651 fe:00:402117 0 EOF\n"
        "1: -> FLOCK  ADVISORY  WRITE 9700 fe:00:402117 0 EOF\n"
        "2: POSIX  ADVISORY  READ  -1 00:1b:7 0 EOF\n"
    )
    first, second = facts.parse_locks(text)
    assert (first.kind, first.pid, first.file_key) == ("FLOCK", 9651, ("254:0", 402117))
    assert (second.kind, second.pid, second.file_key) == ("POSIX", None, ("0:27", 7))


def test_meminfo_is_in_bytes() -> None:
    fields = facts.parse_meminfo_bytes("MemTotal:       16 kB\nHugePages_Total:       3\n")
    assert fields == {"MemTotal": 16 * 1024, "HugePages_Total": 3}


def test_cpuinfo_is_of_the_first_processor() -> None:
    text = "processor\t: 0\nmodel name\t: A: b\n\nprocessor\t: 1\nmodel name\t: C\n"
    assert facts.parse_cpuinfo(text) == {"processor": "0", "model name": "A: b"}


def test_os_release_loses_its_quotes() -> None:
    text = "# x=y\nPRETTY_NAME=\"Debian GNU/Linux 12\"\nID='debian'\n"
    assert facts.parse_os_release(text) == {"PRETTY_NAME": "Debian GNU/Linux 12", "ID": "debian"}


def test_limits_are_the_soft_ones() -> None:
    text = (
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max locked memory         8388608              unlimited            bytes     \n"
    )
    assert facts.parse_limits(text) == {"Max locked memory": "8388608"}


def test_a_stat_of_any_kernel_gives_the_four_counters() -> None:
    for text in ("1 2 3 4 5 6 7 8 9 10 11\n", " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n"):
        counters = facts.parse_stat(text)
        assert (counters.read_ios, counters.read_sectors) == (1, 3)
        assert (counters.write_ios, counters.write_sectors) == (5, 7)
    with pytest.raises(ValueError, match="not a stat"):
        facts.parse_stat("1 2 3\n")


def test_the_chosen_word_is_the_bracketed_one() -> None:
    assert facts.chosen("none [mq-deadline] kyber\n") == "mq-deadline"
    assert facts.chosen("none\n") == "none"
