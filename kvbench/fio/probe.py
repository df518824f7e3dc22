"""Find fio, and learn by doing whether it can read the target with the engine that was asked for.

Nothing falls back to another engine: numbers of two engines do not compare.
"""

import re
import resource
import shutil
import tempfile
from pathlib import Path

from msgspec import Struct

from kvbench.errors import EnvironmentMissing, Interrupted, UsageError
from kvbench.fio.jobfile import escape_path
from kvbench.fio.launch import capture, launch
from kvbench.fio.model import FioResult
from kvbench.fio.output import FioOutputError, parse
from kvbench.fio.refusal import explain_refusal
from kvbench.host.model import Fact

__all__ = ["FioTool", "check_engine", "engines_fact", "explain_refusal", "find_fio", "supports"]

VERSION_MIN = (3, 28)
_VERSION = re.compile(r"^fio-(\d+)\.(\d+)", re.MULTILINE)
_ASK_S = 20.0  # for an answer that should take milliseconds
_PROBE_S = 60.0
_INSTALL = "apt-get install fio"
_IO_URING_DISABLED = Path("/proc/sys/kernel/io_uring_disabled")


class FioTool(Struct, frozen=True, kw_only=True):
    """The fio that is used: ``version_text`` as it says it (fio-3.33), ``version`` as (3, 33)."""

    path: str
    version_text: str
    version: tuple[int, int]


def find_fio(path: str | None = None) -> FioTool:
    """Return the fio at ``path``, or the one that the shell would find.

    Raises:
        EnvironmentMissing: there is none, it is too old, or it does not tell its version.
    """
    found = shutil.which(path or "fio")
    if found is None:
        raise EnvironmentMissing("fio was not found", where=path or "", hint=_INSTALL)
    said = capture([found, "--version"], timeout_s=_ASK_S)
    match = _VERSION.search(said.stdout)
    if not match or said.result.exit_code != 0:
        shown = (said.stdout + said.stderr).strip().splitlines()
        answer = f": it answers {shown[0]!r}" if shown else ""
        raise EnvironmentMissing(f"does not tell its version{answer}", where=found, hint=_INSTALL)
    version = int(match[1]), int(match[2])
    text = said.stdout[match.start() :].split()[0]
    if version < VERSION_MIN:
        least = ".".join(map(str, VERSION_MIN))
        raise EnvironmentMissing(
            f"is {text}, and kvbench needs fio {least} or newer", where=found, hint=_INSTALL
        )
    return FioTool(path=found, version_text=text, version=version)


def supports(tool: FioTool, option: str, *, engine: str | None = None) -> bool:
    """Return whether ``tool`` knows ``option``, as an option of ``engine`` where one is given.

    fio exits 0 and offers its closest match for an option that it does not know, so only the
    option's own name counts.
    """
    ask = f"--cmdhelp={option}" if engine is None else f"--enghelp={engine},{option}"
    said = capture([tool.path, ask], timeout_s=_ASK_S)
    own = re.compile(rf"^\s*({re.escape(option)}: |alias: {re.escape(option)}$)", re.MULTILINE)
    return own.search(said.stdout) is not None and "closest match" not in said.stdout


def engines_fact(tool: FioTool) -> Fact:
    """Return the I/O engines that this fio was built with, by name."""
    said = capture([tool.path, "--enghelp"], timeout_s=_ASK_S)
    names = [line.strip() for line in said.stdout.splitlines() if line.startswith(("\t", " "))]
    if not names:
        return Fact(name="fio_engines", value=None, reason="fio --enghelp lists none")
    return Fact(name="fio_engines", value=", ".join(names))


def check_engine(
    tool: FioTool,
    engine: str,
    *,
    target_path: str,
    direct: bool,
    workdir: Path,
    registered: bool,
    block_bytes: int = 4096,
    queue_depth: int = 1,
) -> None:
    """Read a few blocks of the target with exactly this engine.

    Args:
        tool: the fio to use.
        engine: its I/O engine.
        target_path: a file or block device that exists; it is only read.
        direct: O_DIRECT, or the page cache.
        workdir: a folder to work in.
        registered: with registered buffers and files (io_uring only).
        block_bytes: size of one read; locked memory grows with it when registered.
        queue_depth: reads in flight.

    Raises:
        EnvironmentMissing: it cannot; the message says why and the hint what mends it.
        Refused: fio cannot be given such a path.
        UsageError: there is no such target.
        Interrupted: by Ctrl-C.
    """
    if not Path(target_path).exists():
        raise UsageError("there is no such file or device", where=target_path)
    argv = [
        tool.path,
        "--output-format=json",
        "--name=probe",
        f"--ioengine={engine}",
        f"--filename={escape_path(target_path)}",
        "--readonly",
        "--allow_file_create=0",
        "--create_on_open=1",  # else fio replaces a file that it finds too short
        "--rw=randread",
        "--norandommap=1",
        f"--bs={block_bytes}",
        f"--number_ios={max(8, queue_depth)}",
        f"--iodepth={queue_depth}",
        f"--direct={int(direct)}",
        "--invalidate=0",
        "--thread=1",
    ]
    if registered and engine == "io_uring":
        argv += ["--fixedbufs=1", "--registerfiles=1"]
    with tempfile.TemporaryDirectory(prefix="probe-", dir=workdir) as name:
        folder = Path(name)
        out, err = folder / "stdout", folder / "stderr"
        result = launch(argv, cwd=folder, timeout_s=_PROBE_S, stdout=out, stderr=err)
        text, errors = (path.read_text(encoding="utf-8", errors="replace") for path in (out, err))
    if result.end == "interrupted":
        raise Interrupted("stopped by the user", where="probe of the engine")
    if result.end == "timeout":
        raise EnvironmentMissing(
            f"a few reads with {engine} did not end in {_PROBE_S:g} s",
            where=target_path,
            hint="dmesg | tail shows whether the device hangs",
        )
    said: FioResult | str
    try:
        said = parse(text, stderr=errors)
    except FioOutputError:
        said = text + errors
    if isinstance(said, FioResult) and result.exit_code == 0 and _has_read(said):
        return
    raise explain_refusal(
        engine, said, io_uring_disabled=_io_uring_disabled(), memlock_bytes=_memlock_bytes()
    )


def _has_read(result: FioResult) -> bool:
    return all(job.error == 0 and job.read is not None for job in result.jobs)


def _io_uring_disabled() -> int | None:
    """Return the sysctl, which kernels have from 6.6 on."""
    try:
        return int(_IO_URING_DISABLED.read_text())
    except (OSError, ValueError):
        return None


def _memlock_bytes() -> int:
    """Return the soft limit of locked memory; -1 is unlimited."""
    return resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
