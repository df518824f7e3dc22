"""What is recognised on a device, against what the real tools write and against noise."""

import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from kvbench.host.signatures import Signature, find_signatures
from kvbench.units import KIB, MIB

SIZE = 64 * MIB


class Image:
    """A device of zeros with a few bytes in it."""

    def __init__(self, size_bytes: int = SIZE) -> None:
        self.size_bytes = size_bytes
        self.places: dict[int, bytes] = {}

    def read(self, offset: int, length: int) -> bytes:
        got = bytearray(max(0, min(length, self.size_bytes - offset)))
        for at, data in self.places.items():
            for index, byte in enumerate(data, at - offset):
                if 0 <= index < len(got):
                    got[index] = byte
        return bytes(got)

    def find(self) -> tuple[Signature, ...]:
        return find_signatures(self.read, self.size_bytes)


@pytest.mark.parametrize(
    ("offset", "data", "name"),
    [
        (0x438, b"\x53\xef", "ext2/3/4"),
        (0, b"XFSB", "XFS"),
        (0x10040, b"_BHRfS_M", "btrfs"),
        (0x52, b"FAT32   ", "FAT"),
        (3, b"NTFS    ", "NTFS"),
        (4096 - 10, b"SWAPSPACE2", "swap"),
        (65536 - 10, b"SWAPSPACE2", "swap"),
        (512, b"LABELONE" + bytes(16) + b"LVM2 001", "LVM"),
        (0, b"LUKS\xba\xbe\x00\x02", "LUKS"),
        (0x4000, b"SKUL\xba\xbe", "LUKS2"),
        (0, bytes.fromhex("fc4e2ba9"), "md RAID member (1.1)"),
        (4096, bytes.fromhex("fc4e2ba9"), "md RAID member (1.2)"),
        (SIZE - 8 * KIB, bytes.fromhex("fc4e2ba9"), "md RAID member (1.0)"),
        (SIZE - 64 * KIB, bytes.fromhex("fc4e2ba9"), "md RAID member (0.90)"),
        (SIZE - 64 * KIB, bytes.fromhex("a92b4efc"), "md RAID member (0.90)"),
        (128 * KIB + 3 * KIB, struct.pack("<Q", 0x00BAB10C), "ZFS"),
        (SIZE - 128 * KIB, struct.pack(">Q", 0x00BAB10C), "ZFS"),
        (4096 + 24, bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81"), "bcache"),
        (0, b"bluestore block device\n", "BlueStore"),
        (0, b"SPDKBLOB", "SPDK"),
        (512, b"EFI PART", "GPT"),
        (4096, b"EFI PART", "GPT"),
        (SIZE - 512, b"EFI PART", "GPT partition table (backup)"),
        (510, b"\x55\xaa", "MBR"),
    ],
)
def test_each_mark_is_found_where_its_format_puts_it(offset: int, data: bytes, name: str) -> None:
    image = Image()
    image.places[offset] = data
    found = image.find()
    assert found
    assert any(name in each.name for each in found)


def test_an_empty_device_holds_nothing_whatever_its_size() -> None:
    for size in (0, 512, 4096, 4096 + 512, 100 * KIB, MIB, SIZE, 1 << 44):
        assert Image(size).find() == ()


def test_random_data_holds_nothing() -> None:
    data = random.Random(1).randbytes(2 * MIB)  # noqa: S311
    assert find_signatures(lambda at, length: data[at : at + length], len(data)) == ()


def test_a_boot_mark_with_flags_that_are_none_is_noise() -> None:
    image = Image()
    image.places[446] = b"\x13"
    image.places[510] = b"\x55\xaa"
    assert image.find() == ()


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("mkfs.ext4 -q -F {}", "ext2/3/4"),
        ("mkswap {}", "swap"),
        ("mkfs.xfs -q -f {}", "XFS"),
        ("mkfs.btrfs -q -f {}", "btrfs"),
        ("mkfs.vfat {}", "FAT"),
        (
            "cryptsetup -q luksFormat --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "
            "--key-file /etc/hostname {}",
            "LUKS",
        ),
        ("parted -s {} mklabel gpt", "GPT"),
        ("parted -s {} mklabel msdos", "MBR"),
    ],
)
def test_what_the_real_tools_write_is_found(tmp_path: Path, tool: str, name: str) -> None:
    path = tmp_path / "image"
    with path.open("wb") as file:
        file.truncate(320 * MIB)  # XFS wants 300 MiB; it stays sparse
    argv = tool.format(path).split()
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    subprocess.run(argv, check=True, capture_output=True, timeout=60)

    def read(offset: int, length: int) -> bytes:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    assert any(name in each.name for each in find_signatures(read, path.stat().st_size))
