"""The file that kvbench makes for itself: made whole or not at all, and never mistaken."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kvbench import target
from kvbench.errors import Refused, StoreError, UsageError
from kvbench.fio.probe import find_fio
from kvbench.host import lease, ownership
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


KILLED_AT_EVERY_STEP = """
import os, pathlib, shutil, sys

from kvbench import target
from kvbench.units import MIB

STEPS = ("open", "setxattr", "posix_fallocate", "fsync", "replace", "rename", "unlink")
path = target.default_path(pathlib.Path(sys.argv[1]))
earlier = sys.argv[2] == "earlier"


def die_at(number):
    left = [number]

    def dying(real):
        def call(*arguments, **options):
            left[0] -= 1
            if left[0] == 0:
                os._exit(9)
            return real(*arguments, **options)

        return call

    for name in STEPS:
        setattr(os, name, dying(getattr(os, name)))


for number in range(1, 100):
    shutil.rmtree(path.parent, ignore_errors=True)
    path.parent.mkdir()
    if earlier:
        target.make(path, MIB)
    child = os.fork()
    if child == 0:
        die_at(number)
        target.make(path, 2 * MIB)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert target.size_there(path) in ((0, MIB, 2 * MIB) if earlier else (0, 2 * MIB))
    if target.size_there(path) < 2 * MIB:
        target.make(path, 2 * MIB)
    assert target.is_own(path), number
    found = sorted(one.name for one in path.parent.iterdir())
    assert found == ["target.dat", "target.json"], (number, found)
    if code == 0:
        print(number)
        break
"""


@pytest.mark.parametrize("before", ["nothing", "earlier"])
def test_a_kill_at_any_step_of_making_leaves_nothing_in_the_way(
    tmp_path: Path, before: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED_AT_EVERY_STEP, str(tmp_path / "results"), before],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10, "so many steps can be killed at"


def test_what_is_not_provably_left_by_a_making_stays(tmp_path: Path) -> None:
    token = "0" * 32
    (tmp_path / f".kvbench-target-{token}").write_text("somebody's data")
    (tmp_path / ".kvbench-target-notes").write_text("")
    (tmp_path / f".kvbench-target-{'1' * 32}").symlink_to(tmp_path / "elsewhere")
    (tmp_path / f".kvbench-target-{'2' * 32}").mkdir()
    before = sorted(tmp_path.iterdir())
    path = target.default_path(tmp_path)
    target.make(path, MIB)
    assert sorted(tmp_path.iterdir()) == sorted([*before, path, tmp_path / "target.json"])


def test_a_target_whose_record_is_empty_is_known_by_its_mark_and_a_copy_is_not(
    tmp_path: Path,
) -> None:
    path = target.default_path(tmp_path)
    target.make(path, MIB)
    (tmp_path / "target.json").write_text("")
    assert target.size_there(path) == MIB
    copy = tmp_path / "copy"
    shutil.copy2(path, copy)  # with its extended attributes
    assert os.getxattr(copy, ownership.ATTRIBUTE) == os.getxattr(path, ownership.ATTRIBUTE)
    copy.replace(path)
    with pytest.raises(Refused, match="did not make it"):
        target.size_there(path)
    (tmp_path / "target.json").write_text("null")
    assert not target.is_own(path)


def test_what_a_killed_fill_left_goes_with_its_file(tmp_path: Path) -> None:
    path = target.default_path(tmp_path)
    target.make(path, MIB)
    (tmp_path / f".kvbench-fill-{path.stat().st_ino}").mkdir()
    target.make(path, 2 * MIB)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["target.dat", "target.json"]


def test_an_empty_file_of_its_own_counts_as_not_there(tmp_path: Path) -> None:
    path = target.default_path(tmp_path)
    target.make(path, MIB)
    os.truncate(path, 0)
    assert target.is_own(path)
    assert target.size_there(path) == 0
    target.make(path, MIB)
    assert target.size_there(path) == MIB


def test_two_that_make_their_file_do_not_meet(tmp_path: Path) -> None:
    path = target.default_path(tmp_path)
    with (
        lease.hold_folder(tmp_path, "making its file here"),
        pytest.raises(UsageError, match="is making its file here"),
    ):
        target.make(path, MIB)
    assert list(tmp_path.iterdir()) == []


def test_a_target_that_does_not_fit_is_not_begun(tmp_path: Path) -> None:
    path = target.default_path(tmp_path)
    with pytest.raises(StoreError, match="is free"):
        target.make(path, 2**60)
    assert not path.exists()
