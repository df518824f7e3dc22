"""What takes the place of a target's name after the last look at it is never written."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kvbench import session, target
from kvbench.errors import Refused
from kvbench.fio import launch as launching
from kvbench.fio.launch import LaunchResult
from kvbench.fio.probe import FioTool, find_fio
from kvbench.host import guard, lease
from kvbench.host.identity import identify
from kvbench.prepare.fill import Pass, fill_pass
from kvbench.prepare.marks import write_marks
from kvbench.units import MIB
from tests import real_runs

SIZE_BYTES = 4 * MIB


class Swap:
    """A target, and a victim of the same size that takes its name at a moment of the test's."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "target"
        self.aside = folder / "aside"
        self.victim = folder / "victim"
        self.before = os.urandom(SIZE_BYTES)
        self.path.write_bytes(self.before)
        self.victim.write_bytes(bytes(SIZE_BYTES))

    def there(self) -> None:
        """The name now leads to the victim."""
        self.path.rename(self.aside)
        self.path.symlink_to(self.victim)

    def back(self) -> None:
        """The name leads to the target again."""
        self.aside.rename(self.path)

    def assert_spared(self) -> None:
        """Nothing was written to the victim."""
        assert self.victim.read_bytes() == bytes(SIZE_BYTES)


@pytest.fixture
def swap(tmp_path: Path) -> Swap:
    folder = tmp_path / "place"
    folder.mkdir()
    return Swap(folder)


def launch_between(
    before: Callable[[], None], after: Callable[[], None]
) -> Callable[..., LaunchResult]:
    """A launch just before and after which something happens."""

    def run(*arguments: object, **options: object) -> LaunchResult:
        before()
        try:
            return launching.launch(*arguments, **options)  # type: ignore[arg-type]
        finally:
            after()

    return run


@pytest.mark.fio
def test_a_cell_writes_the_target_and_not_what_took_its_name(
    swap: Swap, fio: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "launch", launch_between(swap.there, swap.back))
    got = real_runs.run(swap.path, fio, tmp_path, real_runs.one(name="write", direction="write"))
    assert got.end.end == "complete"
    swap.assert_spared()
    assert swap.path.read_bytes() != swap.before
    cell = got.cells[0].folder
    assert f"filename={swap.path}\n" in (cell / "job.fio").read_text()
    assert not (cell / "launched.fio").exists()
    assert got.cells[0].record.argv[-1] == "job.fio"


@pytest.mark.fio
def test_a_run_ends_where_the_name_of_its_target_leads_elsewhere(
    swap: Swap, fio: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "launch", launch_between(swap.there, lambda: None))
    workload = real_runs.one(name="write", direction="write")
    record = real_runs.start(real_runs.plan_on(swap.path, workload, repetitions=2), tmp_path)
    got = real_runs.go_on(record, fio, tmp_path)
    swap.assert_spared()
    assert got.end.end == "failed"
    assert "the name now leads to something else" in got.end.reason
    assert not got.cells  # the launch that was followed by the swap was of the ceiling


@pytest.mark.fio
def test_a_fill_writes_the_target_and_not_what_took_its_name(
    swap: Swap, fio: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = identify(str(swap.path))
    monkeypatch.setattr(target, "launch", launch_between(swap.there, swap.back))
    target.fill(identity, SIZE_BYTES, tool=find_fio(fio), direct=False, engine="psync")
    swap.assert_spared()
    assert swap.path.read_bytes() != swap.before


def test_a_name_that_leads_elsewhere_is_not_opened_to_be_written(
    swap: Swap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = identify(str(swap.path))
    swap.there()
    with pytest.raises(Refused, match="something else"), lease.opened(identity):
        pass
    monkeypatch.setattr(guard, "same_device", lambda _: None)  # looked just before
    with pytest.raises(Refused, match="something else"):
        write_marks(identity, [0], 1)
    with pytest.raises(Refused, match="something else"):
        fill_pass(
            identity,
            Pass(pattern="sequential", block_bytes=MIB, size_bytes=SIZE_BYTES),
            tool=FioTool(path="fio", version_text="fio-3.33", version=(3, 33)),
            engine="psync",
            seed=1,
            folder=tmp_path / "fill",
            stop=threading.Event(),
        )
    swap.assert_spared()
