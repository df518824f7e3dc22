"""kvbench as a program of its own, and the small workloads that tests run through it."""

import atexit
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from tests.cli.forks import MESSAGE_BYTES_MAX, READY

ROOT = Path(__file__).resolve().parents[2]
SMALL = Path(__file__).with_name("small.toml")
LONG = Path(__file__).with_name("long.toml")
WRITES = Path(__file__).with_name("writes.toml")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")


def command(*arguments: str | Path) -> list[str]:
    """Return the command line of kvbench with ``arguments``."""
    return [sys.executable, "-m", "kvbench", *map(str, arguments)]


def kvbench(
    *arguments: str | Path, cwd: Path, timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run kvbench to its end, without a terminal."""
    argv = command(*arguments)
    calls = _forks()
    asked = json.dumps({"arguments": argv[3:], "cwd": str(cwd)}).encode()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        socket.send_fds(calls, [asked], [out.fileno(), err.fileno()])
        pid = int(calls.recv(MESSAGE_BYTES_MAX))
        calls.settimeout(timeout_s)
        try:
            code = int(calls.recv(MESSAGE_BYTES_MAX))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            calls.settimeout(None)
            calls.recv(MESSAGE_BYTES_MAX)
            raise subprocess.TimeoutExpired(argv, timeout_s) from None
        calls.settimeout(None)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(io.TextIOWrapper(io.BytesIO(stream.read()), encoding="utf-8").read())
    return subprocess.CompletedProcess(argv, code, *texts)


@cache
def _forks() -> socket.socket:
    """Start the process that forks, which ends with this one, and return the way to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.forks", str(theirs.fileno())],
            cwd=ROOT,
            env=ENVIRONMENT | {"OPENBLAS_NUM_THREADS": "1"},  # threads cannot be forked
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        process.wait(30)

    atexit.register(end)
    assert ours.recv(MESSAGE_BYTES_MAX) == READY, "the process that forks did not start"
    return ours


@contextmanager
def started(*arguments: str | Path, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """A kvbench in the background, killed and reaped at the end whatever happened."""
    with subprocess.Popen(
        command(*arguments),
        cwd=cwd,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate(timeout=30)
