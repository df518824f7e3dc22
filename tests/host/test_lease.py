"""Holding a target: one kvbench at a time, gone with the process, no hindrance to fio."""

import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kvbench.errors import ExitCode, Refused, UsageError
from kvbench.host import guard, lease
from tests.host.loops import call, fingerprint, loop_over, make_backing, needs_loops, partition_on
from tests.host.loops import mounted as mounted_at

CHILD = """
import sys
from kvbench.host import guard, lease
with lease.hold(guard.check_readable(sys.argv[2]), exclusive=False):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "target"
    path.write_bytes(b"x" * 65536)
    return path


@contextmanager
def held_by_another(path: Path | str, name: str) -> Iterator[subprocess.Popen[str]]:
    """Have another process hold the target; ``name`` stands in its command line."""
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), name, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            yield other
        finally:
            other.kill()


def test_a_second_kvbench_is_told_the_pid_of_the_first(target: Path) -> None:
    identity = guard.check_readable(str(target))
    with held_by_another(target, "kvbench") as other:
        expected = rf"another kvbench \(pid {other.pid}\) is using this target"
        with (
            pytest.raises(UsageError, match=expected) as caught,
            lease.hold(identity, exclusive=False),
        ):
            pass
        assert caught.value.exit_code == ExitCode.USAGE
        with pytest.raises(UsageError, match=expected):
            guard.check_writable(identity, str(target), own_file=False)


def test_another_program_that_locked_the_target_is_named(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "_TRY_PAUSE_S", 0.01)
    with held_by_another(target, "other") as other:
        expected = rf"another program \(.*, pid {other.pid}\)"
        with (
            pytest.raises(UsageError, match=expected),
            lease.hold(guard.check_readable(str(target)), exclusive=False),
        ):
            pass


def test_the_lock_is_given_back_and_can_be_taken_again(target: Path) -> None:
    identity = guard.check_readable(str(target))
    for _ in range(2):
        with lease.hold(identity, exclusive=True):
            pass
    with pytest.raises(ZeroDivisionError), lease.hold(identity, exclusive=False):
        _ = 1 / 0
    with lease.hold(identity, exclusive=False):
        pass


def test_a_killed_kvbench_leaves_no_lock_behind(target: Path) -> None:
    identity = guard.check_readable(str(target))
    with held_by_another(target, "kvbench") as other:
        other.send_signal(signal.SIGKILL)
        other.wait(timeout=10)
        with lease.hold(identity, exclusive=False):
            pass


def test_a_child_process_does_not_keep_the_lock(target: Path) -> None:
    identity = guard.check_readable(str(target))
    with lease.hold(identity, exclusive=False):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with lease.hold(identity, exclusive=False):
            pass
    finally:
        child.kill()
        child.wait()


def test_a_target_that_was_replaced_before_it_was_locked_is_refused(
    target: Path, tmp_path: Path
) -> None:
    identity = guard.check_readable(str(target))
    (tmp_path / "other").write_bytes(b"y" * 65536)
    (tmp_path / "other").rename(target)
    with pytest.raises(Refused, match="something else"), lease.hold(identity, exclusive=False):
        pass
    target.unlink()
    with pytest.raises(Refused, match="has gone"), lease.hold(identity, exclusive=False):
        pass


@pytest.mark.blockdev
@needs_loops
def test_a_mounted_device_cannot_be_held_alone_but_can_be_read(tmp_path: Path) -> None:
    with (
        loop_over(make_backing(tmp_path / "backing")) as loop,
        mounted_at(loop, tmp_path / "point"),
    ):
        identity = guard.check_readable(loop)
        with lease.hold(identity, exclusive=False):
            pass
        with pytest.raises(Refused, match="EBUSY"), lease.hold(identity, exclusive=True):
            pass


@pytest.mark.blockdev
@needs_loops
def test_nobody_can_mount_a_device_that_is_held_alone(tmp_path: Path) -> None:
    point = tmp_path / "point"
    point.mkdir()
    with loop_over(make_backing(tmp_path / "backing")) as loop:
        call("mkfs.ext4", "-q", "-E", "nodiscard", loop)
        before = fingerprint(loop)
        with lease.hold(guard.check_readable(loop), exclusive=True):
            mount = subprocess.run(["mount", loop, point], capture_output=True, check=False)
            assert mount.returncode != 0
        assert fingerprint(loop) == before


@pytest.mark.blockdev
@needs_loops
def test_a_disk_and_its_partition_are_not_held_at_once(tmp_path: Path) -> None:
    with (
        loop_over(make_backing(tmp_path / "backing")) as loop,
        partition_on(loop) as partition,
        lease.hold(guard.check_readable(loop), exclusive=False),
        pytest.raises(UsageError),
        lease.hold(guard.check_readable(partition), exclusive=False),
    ):
        pass


@pytest.mark.fio
@pytest.mark.blockdev
@needs_loops
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_reads_and_writes_a_device_that_is_held_alone(tmp_path: Path) -> None:
    with loop_over(make_backing(tmp_path / "backing")) as loop:
        identity = guard.check_readable(loop)
        before = fingerprint(loop)
        with lease.hold(identity, exclusive=True):
            done = subprocess.run(
                [
                    "fio",
                    "--name=t",
                    f"--filename={loop}",
                    "--thread=1",
                    "--rw=randrw",
                    "--bs=4096",
                    "--direct=1",
                    "--time_based=1",
                    "--runtime=300ms",
                    "--allow_file_create=0",
                    "--refill_buffers=1",
                ],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=20,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            guard.same_device(identity)
        assert fingerprint(loop) != before
