"""The processes of one launch, as /proc shows them: who lives, what they moved, who must go."""

import os
import select
import signal
import time
from types import TracebackType

from kvbench.units import MS_PER_S

_LOOK_S = 0.005  # how often to look for a death where the kernel cannot wake us
_THREADS = 17  # the places of num_threads and starttime behind the name in /proc/<pid>/stat
_START = 19


class Family:
    """Every process that carries one launch's token, or is in its leader's session or group.

    The token is in the environment that a process was started with, which it cannot lose by fork,
    setsid or a dead parent.  The leader's pid stays taken until it is reaped, so its session and
    group cannot mean somebody else.
    """

    def __init__(self, mark: str) -> None:
        self.mark = mark.encode()
        self.leader: int | None = None
        self._since_ticks = 0

    def led_by(self, leader: int) -> None:
        """Tell the family its first process, which has just been started."""
        self.leader = leader
        fields = _stat(leader)
        if len(fields) > _START:
            self._since_ticks = int(fields[_START])

    def living(self) -> tuple[int, ...]:
        """Return the pids of the family that are alive; a zombie is not.

        Nobody is only believed when seen twice, because a process may fork and end while /proc is
        read, and so hide its child from one look.
        """
        return self._look() or self._look()

    def _look(self) -> tuple[int, ...]:
        here = os.getpid()
        return tuple(
            pid
            for entry in os.listdir("/proc")  # noqa: PTH208 - names are enough, and it is quick
            if entry.isdigit() and (pid := int(entry)) != here and self._is_living_member(pid)
        )

    def send(self, pid: int, number: signal.Signals) -> None:
        """Signal ``pid`` if it still belongs to the family."""
        if self._is_living_member(pid):
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                return  # gone, or not ours to end: the next look tells which

    def _is_living_member(self, pid: int) -> bool:
        fields = _stat(pid)
        if len(fields) <= _START or fields[0] == b"X":
            return False
        if fields[0] == b"Z" and int(fields[_THREADS]) <= 1:
            return False  # but a zombie with other threads still does I/O
        if int(fields[_START]) < self._since_ticks:
            return False  # older than the launch; most processes are, so this saves time
        if self.leader is not None and self.leader in (pid, int(fields[2]), int(fields[3])):
            return True
        return self.mark in _read(f"/proc/{pid}/environ").split(b"\0")


class Death:
    """Waits for the end of a child without reaping it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def __enter__(self) -> "Death":
        try:
            self._descriptor: int | None = os.pidfd_open(self.pid)
        except OSError:  # an old kernel, or a sandbox that knows no pidfd
            self._descriptor = None
        self._poll = select.poll()
        if self._descriptor is not None:
            self._poll.register(self._descriptor, select.POLLIN)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def wait(self, timeout_s: float) -> bool:
        """Return whether the child has ended, after at most about ``timeout_s``."""
        if self._descriptor is not None:
            return bool(self._poll.poll(timeout_s * MS_PER_S))
        if self._ended():
            return True
        time.sleep(min(timeout_s, _LOOK_S))
        return self._ended()

    def _ended(self) -> bool:
        flags = os.WEXITED | os.WNOWAIT | os.WNOHANG
        return os.waitid(os.P_PID, self.pid, flags) is not None


def moved_bytes(leader: int) -> tuple[int | None, int | None]:
    """Return bytes read from and written to devices by ``leader`` and its living descendants.

    Children that have ended are in their parent's count.  (None, None) when the leader's count
    cannot be read.
    """
    read_bytes = write_bytes = 0
    waiting = [leader]
    while waiting:
        pid = waiting.pop()
        counts = dict(line.split(b": ") for line in _read(f"/proc/{pid}/io").splitlines())
        if b"read_bytes" in counts:
            read_bytes += int(counts[b"read_bytes"])
            write_bytes += int(counts[b"write_bytes"])
        elif pid == leader:
            return None, None
        waiting += map(int, _read(f"/proc/{pid}/task/{pid}/children").split())
    return read_bytes, write_bytes


def _stat(pid: int) -> list[bytes]:
    """Return the fields behind the name, which may hold anything: state, ppid, group, session."""
    stat = _read(f"/proc/{pid}/stat")
    return stat[stat.rfind(b")") + 2 :].split()


def _read(path: str) -> bytes:
    """Return a file of /proc, b"" when its process is gone or may not be looked at."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - quicker, and read often
            return file.read() or b""
    except OSError:
        return b""
