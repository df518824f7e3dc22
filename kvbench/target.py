"""Make, fill and prove the file that kvbench uses when it is given no target.

The file and its record lie in the results folder.  ``host.ownership`` tells it from a file of
somebody else under the same name.
"""

import errno
import os
import re
import secrets
import shutil
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from kvbench.errors import (
    EnvironmentMissing,
    Interrupted,
    KvbenchError,
    Refused,
    StoreError,
    UsageError,
)
from kvbench.fio.jobfile import escape_path, render_fill
from kvbench.fio.launch import LiveCounters, launch
from kvbench.fio.output import parse
from kvbench.fio.probe import FioTool
from kvbench.host import lease, ownership
from kvbench.host.extents import prove_written
from kvbench.host.model import Identity, Written
from kvbench.host.probe import identify
from kvbench.units import GIB, MIB, format_size

DEFAULT_SIZE_BYTES = 2 * GIB
_FILE = "target.dat"
_UNFINISHED = ".kvbench-target-"  # and a token: the target while it is made
_TOKEN = re.compile(r"[0-9a-f]{32}", re.ASCII)
_SPARE_BYTES = 64 * MIB  # left free beside the file, so that results can still be stored
_HELD_NAME = re.compile(r"/proc/\d+/fd/\d+")  # by which fio was given the target
_FILL_RATE_MIN = 10 * MIB  # bytes per second; a slower fill is taken for a hang


def default_path(results: Path) -> Path:
    """Return where the embedded default target lies.

    Raises:
        UsageError: the folder cannot be reached by its name.
    """
    try:
        return results.resolve() / _FILE
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of symbolic links
        raise UsageError(f"this results folder cannot be reached: {error}") from None


def is_own(path: Path) -> bool:
    """Return whether kvbench made this very file."""
    try:
        return path.name == _FILE and ownership.is_own(identify(str(path)))
    except (OSError, KvbenchError):
        return False


def size_there(path: Path) -> int:
    """Return the size of the default target, 0 when it is not there yet.

    Raises:
        Refused: something that kvbench did not make stands in its place.
    """
    if not path.exists() and not path.is_symlink():
        return 0
    if not is_own(path):
        raise Refused(
            "is in the place of kvbench's own target, but kvbench did not make it",
            where=str(path),
            hint="move it away, or name it as TARGET to read from it",
        )
    return path.stat().st_size


def make(path: Path, size_bytes: int) -> None:
    """Create the default target with its space reserved, not yet filled.

    It gets its name last, when it is marked, reserved and recorded: whatever ends kvbench meanwhile
    leaves nothing in its place, and what is left beside it is removed by the next one.

    Raises:
        StoreError: no space, or the folder cannot be written.
        UsageError: another kvbench is making its file here.
        Refused: fio could not be given this path, so nothing is made.
    """
    escape_path(str(path))
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lease.hold_folder(folder, "making its file here"):
            _drop_unfinished(folder)
            # A smaller file of an earlier run gives its space back, once it is known to suffice.
            free = shutil.disk_usage(folder).free + size_there(path)
            if free < size_bytes + _SPARE_BYTES:
                raise _no_space(path, size_bytes, free)
            if path.exists():
                shutil.rmtree(_fill_folder(path, path.stat().st_ino), ignore_errors=True)
                path.unlink()
            _make_held(path, size_bytes)
    except OSError as error:
        raise StoreError(
            f"the default target cannot be made: {error.strerror}",
            where=str(path),
            hint="choose another folder with --results, or a smaller --span",
        ) from error


def _make_held(path: Path, size_bytes: int) -> None:
    """Make the target under a name of its own, record it, and give it its name."""
    folder = path.parent
    token = secrets.token_hex(16)
    new = folder / f"{_UNFINISHED}{token}"
    record = new.with_name(f"{new.name}.json")
    descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        own = ownership.mark_own(descriptor, token)
        _reserve(descriptor, size_bytes)
        os.fsync(descriptor)
        with record.open("xb") as file:
            file.write(msgspec.json.encode(own))
            file.flush()
            os.fsync(file.fileno())
        record.replace(folder / ownership.RECORD)
        _sync_folder(folder)
        new.rename(path)
        _sync_folder(folder)
    except BaseException:  # raised again: Ctrl-C leaves nothing behind either
        with suppress(OSError):
            record.unlink(missing_ok=True)
            new.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _drop_unfinished(folder: Path) -> None:
    """Remove what a killed kvbench left of a file that it was making; the folder is held.

    Only what is proven to be kvbench's: marked with the token of its own name, or still empty.
    """
    for path in folder.glob(f"{_UNFINISHED}*"):
        token = path.name.removeprefix(_UNFINISHED)
        if _TOKEN.fullmatch(token) is None:
            continue
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags)
        except OSError:
            continue  # a link, or a folder that may not be read: not ours
        try:
            status = os.fstat(descriptor)
            empty = stat.S_ISREG(status.st_mode) and status.st_size == 0
            if empty or ownership.is_marked(descriptor, token):
                path.with_name(f"{path.name}.json").unlink(missing_ok=True)
                path.unlink()
        finally:
            os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fill(
    identity: Identity,
    size_bytes: int,
    *,
    tool: FioTool,
    direct: bool,
    engine: str,
    stop: threading.Event | None = None,
    offset_bytes: int = 0,
    folder: Path | None = None,
) -> None:
    """Write a file once, in order, with incompressible data; or a part of a target.

    Args:
        identity: what is written; the caller holds it.
        size_bytes: how much.
        tool: the fio to do it with.
        direct: O_DIRECT, or the page cache.
        engine: fio's engine.
        stop: ends it as Ctrl-C does, once set.
        offset_bytes: where it begins.
        folder: where fio's job and output lie meanwhile; None is beside the file.

    Raises:
        Refused: the target is no longer the same thing; nothing was written.
        StoreError: the disk is full, or the folder beside the file cannot be written.
        EnvironmentMissing: fio could not; the message is fio's own.
        Interrupted: ``stop`` was set.
    """
    path = Path(identity.real_path)
    escape_path(str(path))
    with lease.opened(identity) as name:
        write_all(
            path,
            render_fill(name, size_bytes, direct=direct, engine=engine, offset_bytes=offset_bytes),
            size_bytes,
            tool=tool,
            stop=stop,
            folder=folder or _fill_folder(path, identity.inode),
        )


def _fill_folder(path: Path, inode: int) -> Path:
    """Name it after the file, which is held: what a killed fill left is found and removed."""
    return path.parent / f".kvbench-fill-{inode}"


def write_all(
    path: Path,
    job_text: str,
    size_bytes: int,
    *,
    tool: FioTool,
    folder: Path,
    stop: threading.Event | None = None,
    on_tick: Callable[[LiveCounters], None] | None = None,
) -> float:
    """Run a job that writes ``size_bytes``, see that it did, and return how long it took.

    Raises:
        StoreError: the disk is full, or ``folder`` cannot be written.
        EnvironmentMissing: fio could not; the message is fio's own.
        Interrupted: ``stop`` was set.
    """
    shutil.rmtree(folder, ignore_errors=True)
    try:
        job = folder / "fill.fio"
        try:
            folder.mkdir()
            job.write_text(job_text)
        except OSError as error:
            raise StoreError(
                f"cannot be written: {error.strerror}", where=str(folder), hint="free space"
            ) from error
        result = launch(
            [tool.path, "--output-format=json", job.name],
            cwd=folder,
            timeout_s=60 + size_bytes / _FILL_RATE_MIN,
            stdout=folder / "out.json",
            stderr=folder / "err.txt",
            stop=stop,
            on_tick=on_tick,
        )
        if result.end == "interrupted":
            raise Interrupted("interrupted while the target was filled", where=str(path))
        said = (folder / "out.json").read_text(errors="replace")
        errors = (folder / "err.txt").read_text(errors="replace")
        if result.end != "exited" or result.exit_code != 0:
            lines = [line for line in (said + errors).splitlines() if line.startswith("fio:")]
            cause = lines[0] if lines else f"fio ended with {result.end}, code {result.exit_code}"
            cause = _HELD_NAME.sub(lambda _: str(path), cause)
            full = os.strerror(errno.ENOSPC) in cause
            raise (StoreError if full else EnvironmentMissing)(
                f"the target could not be filled: {cause}",
                where=str(path),
                hint="free space, or choose another folder with --results",
            )
        written = sum(job.write.io_bytes for job in parse(said, stderr=errors).jobs if job.write)
        if written != size_bytes:
            raise EnvironmentMissing(
                f"the fill wrote {written} of {size_bytes} bytes", where=str(path)
            )
        return result.wall_s
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def prove(path: Path, size_bytes: int, *, direct: bool) -> Written:
    """Return whether the first ``size_bytes`` of a file are known to hold written data."""
    if not direct:
        return Written(
            state="buffered", reason="the page cache serves the reads; this is not the device"
        )
    return prove_written(str(path), 0, size_bytes)


def _reserve(descriptor: int, size_bytes: int) -> None:
    """Reserve the blocks first: a full disk shows before anything is written, not at 90 %."""
    try:
        os.posix_fallocate(descriptor, 0, size_bytes)
    except OSError as error:
        if error.errno in {errno.EOPNOTSUPP, errno.EINVAL}:  # no fallocate here
            os.ftruncate(descriptor, size_bytes)
        else:
            raise


def _no_space(path: Path, size_bytes: int, free_bytes: int) -> StoreError:
    return StoreError(
        f"the default target needs {format_size(size_bytes)} and {format_size(_SPARE_BYTES)} to "
        f"spare, and {format_size(free_bytes)} is free",
        where=str(path),
        hint="free space, choose another folder with --results, or give a smaller --span",
    )
