"""nbdkit as a device whose every request is in a log of its own: when it began, when it ended.

The log is the truth, not the delay that was configured: on a busy machine the two differ.  All is
made of nbdkit's own plugins and filters, so no code of these tests stands between request and log.
"""

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from msgspec import Struct
from numpy.typing import NDArray

from kvbench.units import KIB

BLOCK_BYTES = 64 * KIB  # of the filter that tells fast places from slow ones
BLOCKS = 1024  # whole MiB, or a plan would leave the end of the device out, where the slow ones are
DEVICE_BYTES = BLOCKS * BLOCK_BYTES
_START_S_MAX = 10.0
_READ = re.compile(r"^(\S+ \S+) connection=(\d+) (\.\.\.)?Read id=(\d+)", re.MULTILINE)


class Server(Struct, frozen=True, kw_only=True):
    """A running server: its address, its log, and the socket of its pause filter."""

    uri: str
    log: Path
    control: Path

    def reads(self) -> "Reads":
        """Return the reads that were answered so far."""
        begun: dict[tuple[str, str], float] = {}
        rows = []
        for stamp, connection, ended, number in _READ.findall(self.log.read_text()):
            at_s = datetime.fromisoformat(stamp).timestamp()
            key = (connection, number)
            if ended:
                rows.append((int(connection), begun.pop(key), at_s))
            else:
                begun[key] = at_s
        rows.sort(key=lambda row: row[1])
        table = np.array(rows, dtype=np.float64).reshape(-1, 3)
        return Reads(
            connection=table[:, 0].astype(np.int64), begin_s=table[:, 1], end_s=table[:, 2]
        )


class Reads(Struct, frozen=True, kw_only=True, eq=False):
    """The reads that a server answered, in the order in which they began.

    Each field has shape (reads,).
    """

    connection: NDArray[np.int64]
    begin_s: NDArray[np.float64]
    end_s: NDArray[np.float64]

    @property
    def latency_s(self) -> NDArray[np.float64]:
        """How long each took inside the server."""
        return self.end_s - self.begin_s

    def after(self, seconds: float) -> "Reads":
        """Return those that began so long after the first one."""
        late = self.begin_s >= self.begin_s.min() + seconds
        return Reads(
            connection=self.connection[late], begin_s=self.begin_s[late], end_s=self.end_s[late]
        )

    def slowest_of(self, group: int) -> NDArray[np.float64]:
        """Return the slowest of every ``group`` reads that a connection got one after the other.

        A connection is a job of fio's, and behind a barrier it sends nothing until all have come.
        """
        slowest = []
        for connection in np.unique(self.connection):
            own = self.latency_s[self.connection == connection]
            whole = own.size // group * group
            slowest.append(own[:whole].reshape(-1, group).max(axis=1))
        return np.concatenate(slowest)


@cache
def first_in_line() -> tuple[str, ...]:
    """Return what goes before a command so that it need not wait for a core; () if not allowed.

    fio and the server sleep nearly always.  When one wakes up while others compute, it waits some
    ms, which is no latency of the device and more than 3 % of 50 ms.
    """
    words = ("chrt", "--fifo", "10")
    if shutil.which(words[0]) is None:
        return ()
    done = subprocess.run([*words, "true"], capture_output=True, timeout=10, check=False)
    return words if done.returncode == 0 else ()


@cache
def why_no_servers() -> str:
    """Return why there can be no such device here, "" when there can."""
    if shutil.which("nbdkit") is None:
        return "nbdkit is not installed"
    fio = shutil.which("fio")
    if fio is None:
        return "fio is not installed"
    known = subprocess.run(
        [fio, "--enghelp=nbd"], capture_output=True, text=True, timeout=10, check=False
    )
    return "" if "uri" in known.stdout else "this fio has no nbd engine"


needs_servers = pytest.mark.skipif(bool(why_no_servers()), reason=why_no_servers() or "they run")


@contextmanager
def fixed(delay_ms: int, *, threads: int) -> Iterator[Server]:
    """Every read takes ``delay_ms``.

    threads: the most requests of one connection that are served at a time.
    """
    with _serve("delay", f"rdelay={delay_ms}ms", threads=threads) as server:
        yield server


@contextmanager
def slow_places(fast_ms: int, slow_ms: int, permille: int, *, threads: int) -> Iterator[Server]:
    """Reads of a share of the device's places take ``slow_ms``, all others ``fast_ms``.

    What was written is in the overlay of the outer server; the rest it has to read from another.
    """
    with ExitStack() as stack:
        rest_ms = slow_ms - fast_ms
        inner = stack.enter_context(_serve("delay", f"rdelay={rest_ms}ms", threads=256))
        outer = stack.enter_context(
            _serve("delay", "cow", f"rdelay={fast_ms}ms", plugin=inner.uri, threads=threads)
        )
        written = DEVICE_BYTES - round(permille * BLOCKS / 1000) * BLOCK_BYTES
        fill = ["fio", "--name=fill", "--thread=1", "--ioengine=nbd", f"--uri={outer.uri}"]
        fill += ["--rw=write", f"--bs={BLOCK_BYTES}", f"--size={written}", "--iodepth=8"]
        subprocess.run(fill, cwd=outer.log.parent, check=True, timeout=30, capture_output=True)
        yield outer


@contextmanager
def sometimes_slow(fast_ms: int, more_s: int, percent: float, *, threads: int) -> Iterator[Server]:
    """Every read takes ``fast_ms``, and by chance some take ``more_s`` longer."""
    words = (f"rdelay={fast_ms}ms", f"error-pread-rate={percent}%", f"retry-request-delay={more_s}")
    with _serve("retry-request", "error", "delay", *words, threads=threads) as server:
        yield server


@contextmanager
def pausable(delay_ms: int, *, threads: int) -> Iterator[Server]:
    """Every read takes ``delay_ms``, and the whole stands still between 'p' and 'r'."""
    with _serve("pause", "delay", f"rdelay={delay_ms}ms", threads=threads) as server:
        yield server


@contextmanager
def bad_places(begin_bytes: int, size_bytes: int) -> Iterator[Server]:
    """Reads of a range fail with EIO."""
    with TemporaryDirectory(prefix="kvbench-bad-") as folder:
        end = begin_bytes + size_bytes
        areas = [(0, begin_bytes, "+"), (begin_bytes, size_bytes, "-")]
        areas += [(end, DEVICE_BYTES - end, "+")] if end < DEVICE_BYTES else []
        lines = ["0x0 ?", *(f"{at:#x} {size:#x} {state}" for at, size, state in areas)]
        mapfile = Path(folder) / "map"
        mapfile.write_text("".join(f"{line}\n" for line in lines))
        with _serve("ddrescue", f"ddrescue-mapfile={mapfile}", threads=16) as server:
            yield server


def stand_still(server: Server, seconds: float) -> None:
    """Let the server finish what it has, then answer nothing for a while."""
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(str(server.control))
        control.sendall(b"p")
        assert control.recv(1) == b"P"
        time.sleep(seconds)
        control.sendall(b"r")
        assert control.recv(1) == b"R"


@contextmanager
def _serve(*words: str, threads: int, plugin: str = "memory") -> Iterator[Server]:
    """Run nbdkit with these filters and ``key=value`` parameters, outermost first.

    plugin: "memory", or the address of another server, whose data it serves.
    """
    filters = [f"--filter={word}" for word in words if "=" not in word]
    parameters = [word for word in words if "=" in word]
    source = ["memory", f"{DEVICE_BYTES}"] if plugin == "memory" else ["nbd", f"uri={plugin}"]
    with TemporaryDirectory(prefix="kvbench-nbd-") as name:  # short: a socket's path is bounded
        folder = Path(name)
        place, log, control = folder / "socket", folder / "log", folder / "control"
        if "pause" in words:
            parameters.append(f"pause-control={control}")
        argv = [*first_in_line(), "nbdkit", "--foreground", "--exit-with-parent", "--newstyle"]
        argv += ["--unix", str(place), "--threads", str(threads), "--filter=log", *filters]
        argv += [*source, f"logfile={log}", *parameters]
        with (folder / "stderr").open("w") as stderr:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=stderr)
        try:
            _wait_for(place, child, folder / "stderr")
            yield Server(uri=f"nbd+unix:///?socket={place}", log=log, control=control)
        finally:
            child.terminate()
            child.wait(timeout=10)


def _wait_for(place: Path, child: subprocess.Popen[bytes], stderr: Path) -> None:
    until_s = time.monotonic() + _START_S_MAX
    while not place.exists():
        assert child.poll() is None, stderr.read_text()
        assert time.monotonic() < until_s, "nbdkit did not start"
        time.sleep(0.02)
