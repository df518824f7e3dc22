"""The file that kvbench makes for itself: made whole or not at all, and never mistaken."""

import shutil
from pathlib import Path

import pytest

from kvbench import target
from kvbench.errors import Refused, StoreError
from kvbench.fio.probe import find_fio
from kvbench.host.identity import identify
from kvbench.units import MIB


def test_a_made_target_is_reserved_and_recognised(tmp_path: Path) -> None:
    path = target.default_path(tmp_path / "results")
    assert target.size_there(path) < 2 * MIB
    target.make(path, 2 * MIB)
    status = path.stat()
    assert (status.st_size, status.st_mode & 0o777) == (2 * MIB, 0o600)
    assert target.is_own(path)
    assert target.size_there(path) == 2 * MIB
    assert target.size_there(path) < 4 * MIB


def test_a_file_of_another_in_its_place_is_refused(tmp_path: Path) -> None:
    path = target.default_path(tmp_path)
    target.make(path, MIB)
    copy = tmp_path / "copy"
    shutil.copyfile(path, copy)
    copy.replace(path)
    assert not target.is_own(path)
    with pytest.raises(Refused, match="did not make it"):
        target.size_there(path)


def test_a_symlink_to_nothing_in_its_place_is_refused(tmp_path: Path) -> None:
    path = target.default_path(tmp_path)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="did not make it"):
        target.size_there(path)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["a;b", "a#b", "a$b", "a\nb"])
def test_nothing_is_made_where_fio_could_not_be_led(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match="fio cannot be given this path"):
        target.make(target.default_path(tmp_path / name), MIB)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fio
def test_a_fill_removes_what_a_killed_one_left_and_leaves_nothing(tmp_path: Path, fio: str) -> None:
    path = target.default_path(tmp_path)
    target.make(path, MIB)
    left = tmp_path / f".kvbench-fill-{path.stat().st_ino}"
    left.mkdir()
    (left / "out.json").write_text("half of a docu")
    target.fill(identify(str(path)), MIB, tool=find_fio(fio), direct=False, engine="psync")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["target.dat", "target.json"]
    data = path.read_bytes()
    assert len({data[at : at + 4096] for at in range(0, MIB, 4096)}) == MIB // 4096
    assert target.is_own(path)


def test_a_target_that_does_not_fit_is_not_begun(tmp_path: Path) -> None:
    path = target.default_path(tmp_path)
    with pytest.raises(StoreError, match="is free"):
        target.make(path, 2**60)
    assert not path.exists()
