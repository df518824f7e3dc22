import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvbench.errors import EnvironmentMissing, StoreError
from kvbench.fio.launch import TOKEN, LaunchResult, LiveCounters, capture, launch
from kvbench.fio.output import parse
from kvbench.fio.processes import Family
from tests import direct_io

REPOSITORY = Path(__file__).resolve().parents[2]
HAS_FIO = shutil.which("fio") is not None
needs_fio = [pytest.mark.fio, pytest.mark.skipif(not HAS_FIO, reason="fio is not installed")]


def program(folder: Path, text: str) -> list[str]:
    """A Python program that stands for fio: it writes its pid to the file ``pid``, then runs."""
    path = folder / "program.py"
    start = "import os, signal, sys, time\nopen('pid', 'a').write(f'{os.getpid()}\\n')\n"
    path.write_text(start + textwrap.dedent(text))
    return [sys.executable, "-I", "-S", str(path)]


def run(folder: Path, argv: list[str], **options: Any) -> LaunchResult:  # noqa: ANN401 - passed on
    options = {"timeout_s": 20.0, "kill_wait_s": 0.5} | options
    return launch(argv, cwd=folder, stdout=folder / "out", stderr=folder / "err", **options)


def pids(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "pid").read_text().split()]


def living(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b") ")[2][:1] not in (b"Z", b"X")


def wait_for(condition: Callable[[], bool], timeout_s: float = 10.0) -> bool:
    until_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.01)
    return True


READY = "open('ready', 'w').close()\n"


def run_and_stop(folder: Path, argv: list[str], **options: Any) -> LaunchResult:  # noqa: ANN401
    """Run a program that makes the file ``ready`` and does not end, and stop it once it has."""
    stop = threading.Event()

    def when_ready() -> None:
        wait_for((folder / "ready").exists)
        stop.set()

    thread = threading.Thread(target=when_ready)
    thread.start()
    try:
        return run(folder, argv, stop=stop, **options)
    finally:
        thread.join()


# --- an ordinary end ------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 7, 128])
def test_the_exit_code_is_the_programs(tmp_path: Path, code: int) -> None:
    result = run(tmp_path, ["sh", "-c", f"echo said; echo told >&2; exit {code}"])
    assert result.end == "exited"
    assert result.exit_code == code
    assert result.survivors == ()
    assert result.escalation == ()
    assert result.wall_s > 0
    assert (tmp_path / "out").read_text() == "said\n"
    assert (tmp_path / "err").read_text() == "told\n"


def test_a_death_by_signal_is_a_negative_code(tmp_path: Path) -> None:
    assert run(tmp_path, ["sh", "-c", "kill -KILL $$"]).exit_code == -signal.SIGKILL


def test_the_program_speaks_english_reads_nothing_and_has_a_session_of_its_own(
    tmp_path: Path,
) -> None:
    argv = program(
        tmp_path,
        f"""
        print(os.environ["LANG"], os.environ["LC_ALL"], len(os.environ["{TOKEN}"]))
        print(repr(sys.stdin.read()), os.getsid(0) == os.getpid() == os.getpgid(0), os.getcwd())
        """,
    )
    run(tmp_path, argv)
    assert (tmp_path / "out").read_text() == f"C C 32\n'' True {tmp_path}\n"


def test_garbage_on_stdout_is_kept_byte_by_byte(tmp_path: Path) -> None:
    argv = program(tmp_path, r"os.write(1, bytes(range(256)) * 1000)")
    assert run(tmp_path, argv).exit_code == 0
    assert (tmp_path / "out").read_bytes() == bytes(range(256)) * 1000


@pytest.mark.parametrize("stale", ["out", "err"])
def test_an_old_result_cannot_pass_for_a_new_one(tmp_path: Path, stale: str) -> None:
    (tmp_path / stale).write_text("yesterday")
    with pytest.raises(StoreError, match="exists already"):
        run(tmp_path, program(tmp_path, ""))
    assert (tmp_path / stale).read_text() == "yesterday"
    assert not (tmp_path / "pid").exists()


def test_an_output_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be made"):
        launch(
            ["true"],
            cwd=tmp_path,
            timeout_s=1,
            stdout=tmp_path / "none" / "out",
            stderr=tmp_path / "err",
        )


def test_a_missing_program_is_told_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentMissing, match="no-such-program"):
        run(tmp_path, ["no-such-program"])
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_no_program_ends_with_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "fio"
    path.write_bytes(b"\x7fELF but no more")
    path.chmod(0o755)
    result = run(tmp_path, [str(path)])
    assert result.end == "exited"
    assert result.exit_code not in (0, None)
    assert "fio" in (tmp_path / "err").read_text()


def test_a_launch_from_another_thread_works(tmp_path: Path) -> None:
    results: list[LaunchResult] = []
    argv = ["sh", "-c", "sleep 0.2; exit 3"]
    thread = threading.Thread(target=lambda: results.append(run(tmp_path, argv)))
    thread.start()
    thread.join()
    assert results[0].exit_code == 3


def test_a_kernel_without_pidfd_is_served_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> int:
        raise PermissionError(1, "no pidfd here")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    assert run(tmp_path, ["sh", "-c", "sleep 0.05; exit 5"]).exit_code == 5
    again = tmp_path / "again"
    again.mkdir()
    assert run(again, ["sleep", "30"], timeout_s=0.1).end == "timeout"


# --- ending a program that does not end -----------------------------------------------------


def test_a_program_that_obeys_is_only_interrupted_and_its_last_words_are_kept(
    tmp_path: Path,
) -> None:
    argv = program(
        tmp_path,
        f"""
        def end(*_):
            print("partial result", flush=True)
            os._exit(128)
        signal.signal(signal.SIGINT, end)
        {READY}
        time.sleep(30)
        """,
    )
    result = run_and_stop(tmp_path, argv, kill_wait_s=5.0)
    assert (result.end, result.exit_code) == ("interrupted", 128)
    assert result.escalation == ("INT",)
    assert (tmp_path / "out").read_text() == "partial result\n"


def test_a_program_that_ignores_int_is_terminated(tmp_path: Path) -> None:
    argv = program(tmp_path, f"signal.signal(signal.SIGINT, signal.SIG_IGN)\n{READY}time.sleep(30)")
    result = run_and_stop(tmp_path, argv, kill_wait_s=0.2)
    assert (result.end, result.exit_code) == ("interrupted", -signal.SIGTERM)
    assert result.escalation == ("INT", "TERM")


def test_a_program_that_ignores_everything_is_killed(tmp_path: Path) -> None:
    argv = program(
        tmp_path,
        f"""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        {READY}
        time.sleep(30)
        """,
    )
    result = run_and_stop(tmp_path, argv, kill_wait_s=0.2)
    assert (result.end, result.exit_code) == ("interrupted", -signal.SIGKILL)
    assert result.escalation == ("INT", "TERM", "KILL")
    assert result.survivors == ()
    assert not any(map(living, pids(tmp_path)))


def test_a_program_that_stands_still_is_killed_at_its_time_out(tmp_path: Path) -> None:
    argv = program(tmp_path, f"{READY}os.kill(os.getpid(), signal.SIGSTOP)")
    result = run(tmp_path, argv, timeout_s=1.0, kill_wait_s=0.2)
    assert (result.end, result.exit_code) == ("timeout", -signal.SIGKILL)
    assert result.escalation == ("INT", "TERM", "KILL")
    assert result.survivors == ()
    assert not any(map(living, pids(tmp_path)))


DAEMON = """
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open('pid', 'a').write(f'{os.getpid()}\\n')
            while True:
                open('written', 'a').write('x')
                time.sleep(0.01)
        os._exit(0)
    os.wait()
    while not os.path.exists('written'):
        time.sleep(0.01)
"""


def test_a_daemon_that_left_the_session_does_not_outlive_its_launch(tmp_path: Path) -> None:
    result = run(tmp_path, program(tmp_path, f"{DAEMON}\ndaemon()"))
    assert (result.end, result.exit_code) == ("exited", 0)
    assert result.escalation == ("TERM",)
    assert result.survivors == ()
    assert len(pids(tmp_path)) == 2
    assert not any(map(living, pids(tmp_path)))


def test_a_daemon_is_ended_with_a_program_that_is_stopped(tmp_path: Path) -> None:
    argv = program(tmp_path, f"{DAEMON}\ndaemon()\n{READY}time.sleep(30)")
    result = run_and_stop(tmp_path, argv)
    assert result.end == "interrupted"
    assert result.escalation == ("INT", "TERM")
    assert len(pids(tmp_path)) == 2
    assert not any(map(living, pids(tmp_path)))
    size = (tmp_path / "written").stat().st_size
    time.sleep(0.1)
    assert (tmp_path / "written").stat().st_size == size


def test_a_process_that_goes_on_forking_is_ended(tmp_path: Path) -> None:
    argv = program(
        tmp_path,
        """
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for _ in range(200):
            time.sleep(0.05)
            if os.fork():
                os._exit(0)
            os.setsid()
            open('pid', 'a').write(f'{os.getpid()}\\n')
        """,
    )
    result = run(tmp_path, argv, kill_wait_s=0.3)
    assert result.end == "exited"
    assert result.escalation == ("TERM", "KILL")
    assert result.survivors == ()
    assert not any(map(living, pids(tmp_path)))


def test_other_processes_are_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "30"]) as bystander:
        try:
            run(tmp_path, ["sleep", "30"], timeout_s=0.1)
            assert bystander.poll() is None
        finally:
            bystander.kill()


def test_a_survivor_is_told_by_its_pid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Family, "send", lambda *_: None)  # nothing can end it
    monkeypatch.setattr("kvbench.fio.launch._KILL_WAIT_S_MIN", 0.0)
    argv = program(tmp_path, f"{READY}time.sleep(30)")
    result = run_and_stop(tmp_path, argv, kill_wait_s=0.05)
    (pid,) = pids(tmp_path)
    try:
        assert result.survivors == (pid,)
        assert result.exit_code is None
        assert result.escalation == ("INT", "TERM", "KILL")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_stop_ends_a_launch_like_ctrl_c(tmp_path: Path) -> None:
    stop = threading.Event()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    result = run(tmp_path, ["sleep", "30"], stop=stop)
    timer.join()
    assert (result.end, result.exit_code) == ("interrupted", -signal.SIGINT)


def test_the_clock_is_the_callers(tmp_path: Path) -> None:
    times = iter(range(0, 10**9, 100))
    result = run(tmp_path, ["sleep", "30"], timeout_s=50, clock=lambda: float(next(times)))
    assert result.end == "timeout"
    assert result.wall_s >= 50


# --- ticks ----------------------------------------------------------------------------------


def test_ticks_tell_elapsed_time_and_bytes(tmp_path: Path) -> None:
    ticks: list[LiveCounters] = []
    run(tmp_path, ["sleep", "0.5"], on_tick=ticks.append, tick_s=0.1)
    assert 2 <= len(ticks) <= 5
    elapsed = [tick.elapsed_s for tick in ticks]
    assert elapsed == sorted(elapsed)
    assert elapsed[0] >= 0.1
    assert all(tick.read_bytes is not None and tick.write_bytes is not None for tick in ticks)


def test_a_failing_tick_does_not_leave_the_program_behind(tmp_path: Path) -> None:
    def fail(_: LiveCounters) -> None:
        assert wait_for((tmp_path / "pid").exists)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(tmp_path, program(tmp_path, "time.sleep(30)"), on_tick=fail, tick_s=0.05)
    assert not any(map(living, pids(tmp_path)))


# --- Ctrl-C and the death of kvbench --------------------------------------------------------

KVBENCH = """
import sys
from pathlib import Path
from kvbench.fio.launch import launch

folder = Path(sys.argv[1])
result = launch(sys.argv[2:], cwd=folder, timeout_s=60, stdout=folder / "out",
                stderr=folder / "err", kill_wait_s=20)
print(result.end, result.exit_code, ",".join(result.escalation), len(result.survivors))
"""


def kvbench(folder: Path, argv: list[str], **environment: str) -> subprocess.Popen[str]:
    """A process that does nothing but launch ``argv``."""
    return subprocess.Popen(
        [sys.executable, "-c", KVBENCH, str(folder), *argv],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def test_ctrl_c_ends_the_program_in_order(tmp_path: Path) -> None:
    argv = program(
        tmp_path,
        f"""
        signal.signal(signal.SIGINT, lambda *_: (print("partial", flush=True), os._exit(128)))
        {READY}
        time.sleep(30)
        """,
    )
    with kvbench(tmp_path, argv) as process:
        assert wait_for((tmp_path / "ready").exists)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=20)
    assert said == "interrupted 128 INT 0\n"
    assert (tmp_path / "out").read_text() == "partial\n"


def test_more_ctrl_c_ends_a_stubborn_program_sooner(tmp_path: Path) -> None:
    argv = program(
        tmp_path,
        f"""
        signal.signal(signal.SIGINT, lambda *_: open('int', 'w').close())
        signal.signal(signal.SIGTERM, lambda *_: open('term', 'w').close())
        {READY}
        while True:
            time.sleep(30)
        """,
    )
    with kvbench(tmp_path, argv) as process:
        for sign in ("ready", "int", "term"):
            assert wait_for((tmp_path / sign).exists)
            process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=15)  # each signal alone would have 20 s
    assert said == f"interrupted {-signal.SIGKILL} INT,TERM,KILL 0\n"


@pytest.mark.parametrize("how", ["setpriv", "trampoline"])
def test_the_program_dies_with_a_killed_kvbench(tmp_path: Path, how: str) -> None:
    if how == "setpriv" and not shutil.which("setpriv"):
        pytest.skip("setpriv is not installed")
    search = os.environ["PATH"] if how == "setpriv" else str(tmp_path)
    argv = program(
        tmp_path, f"signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{READY}time.sleep(30)"
    )
    with kvbench(tmp_path, argv, PATH=search) as process:
        assert wait_for((tmp_path / "ready").exists)
        process.kill()
        process.wait()
    (pid,) = pids(tmp_path)
    assert wait_for(lambda: not living(pid))


# --- capture --------------------------------------------------------------------------------


def test_capture_returns_what_a_command_printed() -> None:
    said = capture(["sh", "-c", r"printf 'a\377b'; echo c >&2; exit 4"], timeout_s=10)
    assert (said.stdout, said.stderr, said.result.exit_code) == ("a\ufffdb", "c\n", 4)


def test_capture_does_not_wait_for_ever() -> None:
    with pytest.raises(EnvironmentMissing, match=r"no answer in 0\.2 s"):
        capture(["sleep", "30"], timeout_s=0.2)


# --- the real fio ---------------------------------------------------------------------------


def fio_writes(folder: Path, *options: str) -> list[str]:
    return [
        "fio",
        "--name=w",
        f"--filename={folder / 'target'}",
        "--size=16M",
        "--rw=randwrite",
        "--bs=4k",
        "--rate_iops=500",
        "--runtime=30",
        "--time_based",
        "--ioengine=psync",
        "--refill_buffers",
        "--output-format=json",
        *options,
    ]


class TestRealFio:
    pytestmark = needs_fio

    @pytest.mark.parametrize("options", [["--thread=1"], ["--numjobs=2"]])
    def test_nobody_goes_on_writing_after_a_time_out(
        self, tmp_path: Path, options: list[str]
    ) -> None:
        result = run(tmp_path, fio_writes(tmp_path, *options), timeout_s=1.2, kill_wait_s=3.0)
        assert result.end == "timeout"
        assert result.survivors == ()
        target = tmp_path / "target"
        before = (target.stat().st_mtime_ns, target.read_bytes())
        time.sleep(0.3)
        assert (target.stat().st_mtime_ns, target.read_bytes()) == before
        # fio had its chance to say what it did until then.
        said = parse((tmp_path / "out").read_text(), stderr=(tmp_path / "err").read_text())
        assert all(job.write is not None for job in said.jobs)
        assert any("terminating on signal" in line.text for line in said.diagnostics)

    def test_workers_of_a_killed_front_end_are_ended_too(self, tmp_path: Path) -> None:
        front: list[int] = []

        def kill_front_end(_: LiveCounters) -> None:
            for entry in Path("/proc").iterdir():
                if not entry.name.isdigit() or front:
                    continue
                mine = str(tmp_path / "target").encode() in (entry / "cmdline").read_bytes()
                if mine and f"PPid:\t{os.getpid()}\n" in (entry / "status").read_text():
                    front.append(int(entry.name))
                    os.kill(front[0], signal.SIGKILL)

        argv = fio_writes(tmp_path, "--numjobs=2")
        result = run(tmp_path, argv, on_tick=kill_front_end, tick_s=0.8, kill_wait_s=2.0)
        assert (result.end, result.exit_code) == ("exited", -signal.SIGKILL)
        assert result.escalation[:1] == ("TERM",)
        assert result.survivors == ()
        size = (tmp_path / "target").stat().st_mtime_ns
        time.sleep(0.3)
        assert (tmp_path / "target").stat().st_mtime_ns == size

    def test_fio_dies_with_a_killed_kvbench(self, tmp_path: Path) -> None:
        target = tmp_path / "target"
        with kvbench(tmp_path, fio_writes(tmp_path, "--thread=1")) as process:
            assert wait_for(target.exists)
            process.kill()
            process.wait()

        def quiet() -> bool:
            before = target.stat().st_mtime_ns
            time.sleep(0.2)
            return target.stat().st_mtime_ns == before

        assert wait_for(quiet)

    def test_live_counters_follow_direct_reads(self, tmp_path: Path) -> None:
        target = tmp_path / "target"
        target.write_bytes(os.urandom(2**20) * 16)
        if not direct_io.works(target):
            pytest.skip("the temporary folder has no O_DIRECT")
        os.sync()
        ticks: list[LiveCounters] = []
        argv = [
            "fio",
            "--name=r",
            f"--filename={target}",
            "--rw=randread",
            "--bs=4k",
            "--direct=1",
            "--runtime=700ms",
            "--time_based",
            "--thread=1",
            "--output-format=json",
        ]
        run(tmp_path, argv, on_tick=ticks.append, tick_s=0.1)
        seen = [tick.read_bytes for tick in ticks if tick.read_bytes is not None]
        if not any(seen):
            pytest.skip("the temporary folder is not on a block device")
        assert seen == sorted(seen)
        (job,) = parse((tmp_path / "out").read_text()).jobs
        assert job.read is not None
        assert 0 < seen[-1] <= job.read.io_bytes * 1.1 + 2**24
