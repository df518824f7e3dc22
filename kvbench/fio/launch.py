"""Start one process, watch it, end it, and prove that nothing of it is left.

fio's workers leave the process group of their parent, and a daemon leaves its session, so a group
is not enough to find everybody: each launch also gives its children a token in the environment,
and ``/proc`` is searched for it.  Nothing is ever killed by name.

The child dies when kvbench dies (``PR_SET_PDEATHSIG``).  The kernel ties that to the *thread* that
started the child; ``launch`` stays in this thread until the child is gone, so the thread outlives
it.  A small program sets it between fork and exec, because Python code after fork
(``preexec_fn``) can hang where other threads run.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from msgspec import Struct

from kvbench.errors import EnvironmentMissing, Interrupted, StoreError
from kvbench.fio.processes import Death, Family, moved_bytes

LaunchEnd = Literal["exited", "timeout", "interrupted"]

TOKEN = "KVBENCH_LAUNCH"  # noqa: S105 - a mark to find processes by, not a secret
_LOOK_S = 0.01  # how often to look whether told processes have gone
_STOP_S = 0.1  # how often to look at ``stop``
_KILL_WAIT_S_MIN = 1.0  # at least this long for the kernel to clear away what was killed
_TRAMPOLINE = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execvp(sys.argv[1], sys.argv[1:])"
)


class LiveCounters(Struct, frozen=True, kw_only=True):
    """What the live processes of a launch have moved to and from block devices so far.

    The bytes are None when the kernel does not tell them.
    """

    elapsed_s: float
    read_bytes: int | None
    write_bytes: int | None


class LaunchResult(Struct, frozen=True, kw_only=True):
    """How a launch ended.

    ``exit_code`` is negative for a death by signal, and None when it was never learned.
    ``escalation`` names the signals that were needed ("INT", "TERM", "KILL"); ``survivors`` are
    the pids that were there after all of them: () is the proof that nobody is left.
    """

    end: LaunchEnd
    exit_code: int | None
    wall_s: float
    survivors: tuple[int, ...]
    escalation: tuple[str, ...]


class Captured(Struct, frozen=True, kw_only=True):
    """A short command's result with all that it printed."""

    result: LaunchResult
    stdout: str
    stderr: str


def launch(
    argv: Sequence[str],
    *,
    cwd: Path,
    timeout_s: float,
    stdout: Path,
    stderr: Path,
    on_tick: Callable[[LiveCounters], None] | None = None,
    tick_s: float = 0.5,
    stop: threading.Event | None = None,
    kill_wait_s: float = 3.0,
    environment: Mapping[str, str] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> LaunchResult:
    """Run ``argv`` to its end, and return how it ended.

    The process gets a session of its own, so a Ctrl-C at the terminal reaches kvbench only, which
    then ends fio in order (INT: fio still prints what it has).

    Args:
        argv: the program and its arguments.
        cwd: the folder that it runs in.
        timeout_s: after this long it is ended.
        stdout: a file to make for its output; it must not exist, so that no old result is read.
        stderr: likewise.
        on_tick: is told the live counters every ``tick_s``.
        tick_s: seconds between two ticks.
        stop: ends the launch as Ctrl-C does, once set.
        kill_wait_s: how long INT, TERM and KILL each have to work.
        environment: variables beside those of this process.
        clock: seconds that never go back.

    Raises:
        EnvironmentMissing: there is no such program.
        StoreError: an output file exists already or cannot be made.
    """
    program = shutil.which(argv[0])
    if program is None:
        raise EnvironmentMissing(f"there is no program {argv[0]!r} that may be run")
    token = uuid.uuid4().hex
    family = Family(f"{TOKEN}={token}")
    end: LaunchEnd = "interrupted"
    child: subprocess.Popen[bytes] | None = None
    with _fresh(stdout) as out, _fresh(stderr) as err, _HeldInterrupt() as interrupt:
        begin_s = clock()
        try:
            child = subprocess.Popen(
                [*_die_with_parent(), str(Path(program).absolute()), *argv[1:]],
                cwd=cwd,
                env={
                    **os.environ,
                    **(environment or {}),
                    TOKEN: token,
                    "LANG": "C",
                    "LC_ALL": "C",
                },
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            family.led_by(child.pid)
            ticks = None if on_tick is None else _Ticks(child.pid, on_tick, tick_s, begin_s)
            with interrupt.allowed():
                end = _watch(child.pid, begin_s + timeout_s, ticks=ticks, stop=stop, clock=clock)
        except KeyboardInterrupt:
            end = "interrupted"
        finally:
            # Also when on_tick raised: whatever happens here, fio does not go on alone.
            end_s = clock()
            escalation, survivors = _end_all(
                family, gentle=end != "exited", wait_s=kill_wait_s, hurry=interrupt, clock=clock
            )
            exit_code = _reap(child)
            if end != "exited":
                end_s = clock()
            elif interrupt.count:
                end = "interrupted"  # too late for the program, but the caller must hear of it
    return LaunchResult(
        end=end,
        exit_code=exit_code,
        wall_s=end_s - begin_s,
        survivors=survivors,
        escalation=escalation,
    )


def capture(argv: Sequence[str], *, timeout_s: float, cwd: Path | None = None) -> Captured:
    """Run a short command and return what it printed; broken UTF-8 is replaced.

    Raises:
        EnvironmentMissing: there is no such program, or it does not end in ``timeout_s``.
        Interrupted: by Ctrl-C.
    """
    with tempfile.TemporaryDirectory(prefix="kvbench-") as name:
        folder = Path(name)
        out, err = folder / "stdout", folder / "stderr"
        result = launch(argv, cwd=cwd or folder, timeout_s=timeout_s, stdout=out, stderr=err)
        if result.end == "interrupted":
            raise Interrupted("stopped by the user", where=argv[0])
        if result.end == "timeout":
            raise EnvironmentMissing(f"gave no answer in {timeout_s:g} s", where=" ".join(argv))
        return Captured(
            result=result,
            stdout=out.read_text(encoding="utf-8", errors="replace"),
            stderr=err.read_text(encoding="utf-8", errors="replace"),
        )


def run_operators_command(
    command: str, environment: Mapping[str, str], *, told: Callable[[int], None] = lambda _: None
) -> int:
    """Run a shell command of the operator's own and return its exit code, negative for a signal.

    Unlike fio it is never ended by kvbench, which waits for it: it may be writing firmware.
    Ctrl-C reaches it from the terminal, and it decides itself what that means.  What it prints
    goes to standard error.

    Args:
        command: for /bin/sh.
        environment: is added to that of this process.
        told: called with the number of the first signal that asks kvbench to end; it runs in a
            signal handler.

    Raises:
        EnvironmentMissing: there is no shell.
        Interrupted: by INT, TERM or HUP, which the command outlived; it has ended.
    """
    pressed = 0

    def note(number: int, _frame: object) -> None:
        nonlocal pressed
        pressed += 1
        if pressed == 1:
            told(number)

    # A handler is not inherited, as ignoring would be; what the caller ignores stays ignored.
    noted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {
        number: signal.signal(number, note)
        for number in noted
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        child = subprocess.Popen(
            ["/bin/sh", "-c", command], env={**os.environ, **environment}, stdout=sys.stderr
        )
        code = child.wait()
    except OSError as error:
        raise EnvironmentMissing(f"/bin/sh cannot be run: {error.strerror}") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if pressed:
        raise Interrupted(
            f"stopped by the user once the command had ended (with {code})", where=command
        )
    return code


@contextmanager
def _fresh(path: Path) -> Iterator[int]:
    """Make a file that did not exist, open for writing inside a ``with``."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        raise StoreError(
            "exists already, and an old result must not pass for a new one", where=str(path)
        ) from None
    except OSError as error:
        raise StoreError(f"cannot be made: {error.strerror}", where=str(path)) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class _HeldInterrupt:
    """Ctrl-C is counted; inside ``allowed()`` the first one also raises KeyboardInterrupt.

    So it can neither lose a process that has just been started nor stop the ending of one.
    Where the caller has a handler of its own, or runs in another thread, nothing is changed.
    """

    def __init__(self) -> None:
        self.count = 0
        self._may_raise = False
        self._taken = False

    def __enter__(self) -> "_HeldInterrupt":
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._on_interrupt)
            self._taken = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._taken:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        self._may_raise = True
        try:
            if self.count:
                raise KeyboardInterrupt
            yield
        finally:
            self._may_raise = False

    def _on_interrupt(self, *_: object) -> None:
        self.count += 1
        if self._may_raise:
            self._may_raise = False
            raise KeyboardInterrupt


def _die_with_parent() -> list[str]:
    """Return the words before a command that make it die by KILL when this thread dies."""
    setpriv = shutil.which("setpriv")
    if setpriv and Path(setpriv).resolve().name == "setpriv":  # busybox's has no --pdeathsig
        return [setpriv, "--pdeathsig", "KILL", "--"]
    return [sys.executable, "-I", "-S", "-c", _TRAMPOLINE]


class _Ticks:
    """Tells the live counters at even intervals."""

    def __init__(
        self, pid: int, tell: Callable[[LiveCounters], None], every_s: float, begin_s: float
    ) -> None:
        self.pid = pid
        self.tell = tell
        self.every_s = every_s
        self.begin_s = begin_s
        self.next_s = begin_s + every_s

    def look(self, now_s: float) -> float:
        """Tell them if it is time, and return when it is time again."""
        if now_s >= self.next_s:
            read_bytes, write_bytes = moved_bytes(self.pid)
            elapsed_s = now_s - self.begin_s
            self.tell(
                LiveCounters(elapsed_s=elapsed_s, read_bytes=read_bytes, write_bytes=write_bytes)
            )
            self.next_s = max(self.next_s + self.every_s, now_s)
        return self.next_s


def _watch(
    pid: int,
    timeout_at_s: float,
    *,
    ticks: _Ticks | None,
    stop: threading.Event | None,
    clock: Callable[[], float],
) -> LaunchEnd:
    """Sleep until the child has ended (it is not reaped), the time is over or ``stop`` is set."""
    with Death(pid) as death:
        while not death.wait(0):
            now_s = clock()
            if stop is not None and stop.is_set():
                return "interrupted"
            if now_s >= timeout_at_s:
                return "timeout"
            until_s = timeout_at_s
            if ticks is not None:
                until_s = min(until_s, ticks.look(now_s))
            if stop is not None:
                until_s = min(until_s, now_s + _STOP_S)
            death.wait(max(0.0, until_s - now_s))
    return "exited"


def _end_all(
    family: Family,
    *,
    gentle: bool,
    wait_s: float,
    hurry: _HeldInterrupt,
    clock: Callable[[], float],
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """End every living process of the family; return the signals that it took, and who is left.

    INT goes to the leader alone: fio then ends its own workers and prints its result.  Another
    Ctrl-C in the meantime goes on to the next signal at once.
    """
    used: list[str] = []
    left = family.living()
    for name in ("INT", "TERM", "KILL") if gentle else ("TERM", "KILL"):
        told: set[int] = set()
        presses = hurry.count
        until_s = clock() + (max(wait_s, _KILL_WAIT_S_MIN) if name == "KILL" else wait_s)
        while left:
            members = {pid for pid in left if name != "INT" or pid == family.leader}
            for pid in members - told:
                family.send(pid, signal.Signals[f"SIG{name}"])
            told |= members
            pressed = hurry.count > presses and name != "KILL"
            if not members or pressed or clock() >= until_s:
                break
            time.sleep(_LOOK_S)
            left = family.living()
        if told:
            used.append(name)
    return tuple(used), left


def _reap(child: subprocess.Popen[bytes] | None) -> int | None:
    """Return the exit code of a child that has ended; None when it could not be ended."""
    if child is None:
        return None
    code = child.poll()
    if code is None:
        child.returncode = 0  # a survivor is told in the result; Python need not warn as well
    return code
