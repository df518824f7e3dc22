"""A data file is read up to a limit, and every refusal is one printable sentence."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kvbench import document
from kvbench.errors import UsageError


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        document.read_toml(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def write(folder: Path, raw: bytes) -> Path:
    path = folder / "file.toml"
    path.write_bytes(raw)
    return path


def test_a_file_of_this_format_is_its_values(tmp_path: Path) -> None:
    assert document.read_toml(write(tmp_path, b"format = 1\na = 2\n")) == {"format": 1, "a": 2}


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "the key 'format' is missing"),
        (b"format = 2", "the key 'format' must be 1, not 2"),
        (b"format = true", "must be 1, not true"),
        (b"format = [1]", "must be 1, not a list"),
        (b"format = ", "is not TOML"),
        (b"x = " + b"9" * 5000, "is not usable TOML"),
        (b"\xff", "is not UTF-8 text (byte 0)"),
        (b"#" * (document.FILE_BYTES_MAX + 1), "is larger than 1048576 bytes"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, raw: bytes, says: str) -> None:
    assert says in refusal(write(tmp_path, raw))


def test_a_folder_and_a_name_that_no_file_has_are_refused(tmp_path: Path) -> None:
    assert "it is a folder" in refusal(tmp_path)
    assert "no such file" in refusal(tmp_path / "none")
    assert "cannot be read" in refusal(Path("a\0b"))


def test_an_unknown_key_is_told_short_and_with_what_is_near() -> None:
    with pytest.raises(UsageError, match=r"unknown key 'dept' \(did you mean 'depth'\?\)"):
        document.allow_only({"dept": 1}, ("depth", "jobs"), "file")
    with pytest.raises(UsageError, match=r"\(known: depth, jobs\)"):
        document.allow_only({"zzz": 1}, ("depth", "jobs"), "file")
    with pytest.raises(UsageError) as caught:
        document.allow_only({"\x1b" * 10_000: 1}, ("depth",), "file")
    assert len(caught.value.message) < 2 * document.SHOWN_MAX
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        ({}, "a table"),
        (10**40, "a number of more than 30 digits"),
        ("a\u202eb", "'a\\u202eb'"),
        ("x" * 100, "'" + "x" * 56 + "..."),
    ],
)
def test_what_was_found_fits_a_sentence(value: object, text: str) -> None:
    assert document.found(value) == text


@pytest.mark.parametrize("read", [document.read_toml, document.read_bytes])
def test_what_is_no_regular_file_is_refused_and_not_waited_for(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    (tmp_path / "folder.toml").mkdir()
    for path, says in (
        (tmp_path / "pipe.toml", "it is a pipe"),
        (tmp_path / "loop.toml", "symbolic links"),
        (tmp_path / "folder.toml", "it is a folder"),
        (Path("/dev/zero"), "it is a device"),
    ):
        with pytest.raises(UsageError, match=f"cannot be read: .*{says}"):
            read(path)


def test_a_link_to_a_regular_file_is_read(tmp_path: Path) -> None:
    write(tmp_path, b"format = 1\n")
    (tmp_path / "link.toml").symlink_to("file.toml")
    assert document.read_toml(tmp_path / "link.toml") == {"format": 1}
