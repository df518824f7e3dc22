"""A run that trims leaves written data everywhere, also when it was stopped or killed."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kvbench import session, target
from kvbench.errors import EnvironmentMissing, KvbenchError, StoreError
from kvbench.fio.launch import LaunchResult
from kvbench.fio.launch import launch as real_launch
from kvbench.fio.probe import FioTool, find_fio
from kvbench.host import guard
from kvbench.host.model import Identity
from kvbench.store import journal
from kvbench.store.read import read_run
from kvbench.store.write import RunWriter
from kvbench.units import KIB
from kvbench.workload.schema import Workload
from tests import real_runs
from tests.host.loops import loop_over, needs_loops
from tests.real_runs import SIZE_BYTES, go_on, plan_on, start
from tests.records import a_cell_record, a_plan, a_run_record, a_stream, a_target

pytestmark = pytest.mark.fio

BLOCK_BYTES = 256 * KIB
TRIM_START = SIZE_BYTES // 2


class Place:
    """A target and the file whose extents tell what of it is written."""

    def __init__(self, path: str, backing: Path) -> None:
        self.path = path
        self.backing = backing

    def hole_bytes(self) -> int:
        """What nothing is written to."""
        found = target.prove(self.backing, SIZE_BYTES, direct=True)
        assert found.hole_bytes is not None, found.reason
        return found.hole_bytes

    def state(self) -> str:
        """Whether all of it is written."""
        return target.prove(self.backing, SIZE_BYTES, direct=True).state


@pytest.fixture(
    params=["file", pytest.param("loop", marks=[pytest.mark.blockdev, needs_loops])],
)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A written file, or a loop device over one."""
    with real_runs.written_file() as path:
        if target.prove(path, SIZE_BYTES, direct=True).state != "proven":
            pytest.skip("the file system of /var/tmp does not tell what is written")
        if request.param == "file":
            yield Place(str(path), path)
        else:
            with loop_over(path) as device:
                yield Place(device, path)


def trims(*, ramp_s: float = 0.0, runtime_s: float = 0.3) -> Workload:
    """Deletes in the second half, beside reads in the first."""
    delete = a_stream(
        name="delete",
        direction="trim",
        pattern="sequential",
        block_mix=real_runs.fixed(BLOCK_BYTES),
        queue_depth=1,
        rate_iops=80.0,
        span_start_percent=50.0,
        span_percent=50.0,
    )
    reads = a_stream(span_percent=50.0)
    return real_runs.workload(delete, reads, ramp_s=ramp_s, runtime_s=runtime_s)


@pytest.fixture
def holes(place: Place, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of holes each time before they are written again."""
    seen: list[int] = []
    write_again = session._write_again

    def watched(*arguments: object, **options: object) -> None:
        seen.append(place.hole_bytes())
        write_again(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(session, "_write_again", watched)
    return seen


@pytest.mark.parametrize("ramp_s", [0.0, 0.2])
def test_what_fio_says_is_trimmed_and_all_is_written_again(
    place: Place, holes: list[int], ramp_s: float, fio: str, tmp_path: Path
) -> None:
    got = real_runs.run(place.path, fio, tmp_path, trims(ramp_s=ramp_s))
    (row,) = [job.trim for job in got.result().jobs if job.trim is not None]
    assert row.io_bytes == row.total_ios * BLOCK_BYTES > 0
    assert holes[-1] >= row.io_bytes if ramp_s else holes[-1] == row.io_bytes
    assert got.measured().outcome in ("valid", "doubtful"), got.measured().findings
    assert place.state() == "proven"
    assert place.backing.stat().st_size == SIZE_BYTES
    assert not list(got.folder.glob("rewrite-*"))


def test_only_the_part_of_the_stream_is_trimmed_and_from_its_start(
    place: Place, fio: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_write_again", lambda *_, **__: None)
    before = place.backing.read_bytes()
    got = real_runs.run(place.path, fio, tmp_path, trims())
    (row,) = [job.trim for job in got.result().jobs if job.trim is not None]
    after = place.backing.read_bytes()
    end = TRIM_START + row.io_bytes
    assert after[TRIM_START:end] == bytes(row.io_bytes)
    assert (after[:TRIM_START], after[end:]) == (before[:TRIM_START], before[end:])


def test_a_stop_during_a_trim_is_followed_by_the_writing(
    place: Place, holes: list[int], fio: str, tmp_path: Path
) -> None:
    stop = threading.Event()
    record = start(plan_on(place.path, trims(runtime_s=5.0)), tmp_path)

    def stop_once_trimmed() -> None:
        if place.hole_bytes():
            stop.set()

    got = go_on(record, fio, tmp_path, while_running=stop_once_trimmed, stop=stop)
    assert got.end.end == "interrupted"
    assert holes[-1] > 0
    assert place.state() == "proven"


@pytest.mark.parametrize("repetitions", [1, 2])
def test_a_run_that_was_killed_before_the_writing_writes_when_it_goes_on(
    repetitions: int, place: Place, fio: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """Nothing in the product may take it for an error of its own."""

    def killed(*_: object, **__: object) -> None:
        if place.hole_bytes():
            raise Killed

    record = start(plan_on(place.path, trims(), repetitions=repetitions), tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(session, "_write_again", killed)
        with pytest.raises(Killed):
            go_on(record, fio, tmp_path)
    assert place.state() == "unproven"
    states = _states_at_launch(place, monkeypatch)
    assert go_on(record, fio, tmp_path).end.end == "complete"
    assert states == ["proven"] * (repetitions - 1)
    assert place.state() == "proven"


@pytest.mark.parametrize("repetitions", [1, 2])
def test_a_run_that_was_killed_in_a_cell_that_trims_writes_when_it_goes_on(
    repetitions: int, place: Place, fio: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """Nothing in the product may take it for an error of its own."""

    def killed(*arguments: Any, **options: Any) -> LaunchResult:  # noqa: ANN401 - what it takes
        ended = real_launch(*arguments, **options)
        if place.hole_bytes():
            raise Killed
        return ended

    record = start(plan_on(place.path, trims(), repetitions=repetitions), tmp_path)
    folder = tmp_path / record.run_id
    with monkeypatch.context() as patched:
        patched.setattr(session, "launch", killed)
        with pytest.raises(Killed):
            go_on(record, fio, tmp_path)
    assert place.state() == "unproven"
    (left,) = journal.left_trimmed(folder)
    assert left not in {cell.record.cell.cell_id for cell in read_run(folder).cells}
    with monkeypatch.context() as patched:  # no more than the pace allows is enough
        patched.setattr(session, "TIMEOUT_SPARE_S", 0.0)
        filled = _filled(patched)
        tool = find_fio(fio)
        session.write_left_trimmed(record.plan, record.identity, tool=tool, folder=folder)
    assert filled == [(TRIM_START, 38 * BLOCK_BYTES)], "80 a second for 0.3 s, and some to spare"
    assert place.state() == "proven"
    journal.append(folder, journal.Trimmed(cell_id=left, written=False))
    states = _states_at_launch(place, monkeypatch)
    RunWriter.reopen(folder)
    assert go_on(record, fio, tmp_path).end.end == "complete"
    assert states == ["proven"] * repetitions
    assert place.state() == "proven"
    assert journal.left_trimmed(folder) == ()


@pytest.mark.parametrize(("survivors", "blocks"), [((), 48), ((4711,), 64)])
def test_of_a_cell_that_fio_outlived_all_of_the_span_is_written(
    survivors: tuple[int, ...], blocks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = a_run_record(a_plan(trims(), target=a_target(size_bytes=SIZE_BYTES), repetitions=1))
    writer = RunWriter.create(tmp_path, record)
    cell = next(cell for cell in record.plan.cells if cell.trims)
    writer.begin_cell(cell.cell_id, "[a]\n")
    ended = {"end": "timeout", "exit_code": None, "wall_s": 0.4, "survivors": survivors}
    writer.commit_cell(a_cell_record(cell, **ended))
    journal.append(writer.folder, journal.Trimmed(cell_id=cell.cell_id, written=False))
    monkeypatch.setattr(guard, "same_device", lambda _: None)
    monkeypatch.setattr(target, "fill", lambda *_, **__: None)
    filled = _filled(monkeypatch)
    tool = FioTool(path="fio", version_text="fio-3.33", version=(3, 33))
    session.write_left_trimmed(record.plan, record.identity, tool=tool, folder=writer.folder)
    assert filled == [(TRIM_START, blocks * BLOCK_BYTES)]


@pytest.mark.parametrize("error", [EnvironmentMissing("no fio"), StoreError("no room")])
def test_what_could_not_be_written_again_is_said_and_written_when_the_run_goes_on(
    error: KvbenchError,
    place: Place,
    fio: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    record = start(plan_on(place.path, trims()), tmp_path)
    folder = tmp_path / record.run_id
    with monkeypatch.context() as patched:
        patched.setattr(target, "fill", failing)
        if isinstance(error, StoreError):
            with pytest.raises(StoreError, match="holds no data until --resume"):
                go_on(record, fio, tmp_path)
        else:
            end = go_on(record, fio, tmp_path).end
            assert end.end == "failed"
            assert "holds no data until --resume has written it again" in end.reason
    assert len(journal.left_trimmed(folder)) == 1
    assert place.state() == "unproven"
    tool = find_fio(fio)
    session.write_left_trimmed(record.plan, record.identity, tool=tool, folder=folder)
    assert place.state() == "proven"
    assert journal.left_trimmed(folder) == ()


def _filled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Where each filling begins, and how much it writes."""
    filled: list[tuple[int, int]] = []
    fill = target.fill

    def watched(identity: Identity, size_bytes: int, **options: Any) -> None:  # noqa: ANN401
        filled.append((options["offset_bytes"], size_bytes))
        fill(identity, size_bytes, **options)

    monkeypatch.setattr(target, "fill", watched)
    return filled


def _states_at_launch(place: Place, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the target is each time that the session launches a cell."""
    states: list[str] = []
    launch: Callable[..., LaunchResult] = real_launch

    def watched(*arguments: object, **options: object) -> LaunchResult:
        states.append(place.state())
        return launch(*arguments, **options)

    monkeypatch.setattr(session, "launch", watched)
    return states
