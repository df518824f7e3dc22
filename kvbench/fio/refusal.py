"""Why fio could not do its first reads, in words, and what mends it.  Pure.

``fio`` says only an errno and the function that got it.  The hint is written so that its first
part is the command to type, where there is one.
"""

import errno
import re

from kvbench.errors import EnvironmentMissing
from kvbench.fio.diagnostics import quote_errors, read_lines
from kvbench.fio.model import FioResult
from kvbench.units import format_size

_CAUSE = re.compile(r"\berr=(\d+)/file:[^,]*, func=(\S+?)(?:\(|,| error)")
_QUEUE = "io_queue_init"  # setting up the engine's queue, for io_uring and libaio
_ANOTHER = "--engine libaio measures without it, and says so in the report"
_SECCOMP = (
    "start the container with --security-opt seccomp=unconfined, or with a profile that allows "
    f"io_uring_setup, io_uring_enter and io_uring_register; {_ANOTHER}"
)


def explain_refusal(
    engine: str,
    said: FioResult | str,
    *,
    io_uring_disabled: int | None,
    memlock_bytes: int | None,
) -> EnvironmentMissing:
    """Return the error that names the cause and the remedy of a refused engine.

    Args:
        engine: the engine that was asked for.
        said: fio's result, or all that it printed where there is no result.
        io_uring_disabled: the sysctl ``kernel.io_uring_disabled``; None where there is none.
        memlock_bytes: RLIMIT_MEMLOCK; -1 is unlimited, None unknown.
    """
    lines = read_lines([said]) if isinstance(said, str) else said.diagnostics
    text = "\n".join(line.text for line in lines)
    quote = quote_errors(lines, most=1) or "fio gave no reason"
    if "not loadable" in text or "failed to load engine" in text:
        return EnvironmentMissing(
            f"this fio was built without the engine {engine}",
            hint="apt-get install --reinstall fio; fio --enghelp lists the engines that it has",
        )
    code, function = _cause(said, text)
    found = None
    if engine == "io_uring" and function in (_QUEUE, ""):
        found = _io_uring(code, io_uring_disabled, memlock_bytes)
    elif engine == "libaio" and function == _QUEUE:
        found = _libaio(code)
    found = found or _target(code, function, text)
    if found is None:
        name = f" ({errno.errorcode[code]})" if code in errno.errorcode else ""
        return EnvironmentMissing(f"fio read nothing through {engine}{name}: {quote}")
    message, hint = found
    return EnvironmentMissing(f"{message} [fio: {_short(quote)}]", hint=hint)


def _short(quote: str) -> str:
    return quote.removeprefix("fio: ")


def _cause(said: FioResult | str, text: str) -> tuple[int, str]:
    """Return the errno and the C function that got it; (0, "") where fio told neither."""
    match = _CAUSE.search(text)
    if match:
        return int(match[1]), match[2]
    if isinstance(said, FioResult):
        return max((job.error for job in said.jobs), default=0), ""
    return 0, ""


def _io_uring(
    code: int, io_uring_disabled: int | None, memlock_bytes: int | None
) -> tuple[str, str] | None:
    match code:
        case errno.EPERM if io_uring_disabled == 2:
            return (
                "io_uring is switched off on this machine: kernel.io_uring_disabled is 2",
                f"sysctl -w kernel.io_uring_disabled=0, as root of the host; {_ANOTHER}",
            )
        case errno.EPERM if io_uring_disabled == 1:
            return (
                "io_uring is kept for privileged users here: kernel.io_uring_disabled is 1",
                "sysctl -w kernel.io_uring_disabled=0, or run as root, or as a member of the group "
                f"in kernel.io_uring_group; {_ANOTHER}",
            )
        case errno.EPERM | errno.EACCES:
            sysctl = "" if io_uring_disabled is None else " (kernel.io_uring_disabled is 0)"
            return (
                "io_uring is refused by a seccomp or security profile, as container runtimes "
                f"set{sysctl}",
                _SECCOMP,
            )
        case errno.ENOSYS if io_uring_disabled is not None:
            return (
                "the kernel has io_uring, but a seccomp profile answers that it has not",
                _SECCOMP,
            )
        case errno.ENOSYS:
            return (
                "this kernel has no io_uring (before 5.1, built without it, or a sandbox hides it)",
                f"use a newer kernel; {_ANOTHER}",
            )
        case errno.ENOMEM:
            return (
                f"io_uring may not lock the memory that it needs: {_memlock(memlock_bytes)}",
                "ulimit -l unlimited (docker: --ulimit memlock=-1, systemd: "
                "LimitMEMLOCK=infinity), then run again",
            )
        case errno.EINVAL:
            return (
                "this kernel's io_uring does not know what fio asks of it",
                f"use a newer kernel; {_ANOTHER}",
            )
        case _:
            return None


def _memlock(memlock_bytes: int | None) -> str:
    if memlock_bytes is None:
        return "RLIMIT_MEMLOCK is too low"
    if memlock_bytes < 0:
        return "RLIMIT_MEMLOCK is unlimited, so memory itself is short"
    return f"RLIMIT_MEMLOCK is {format_size(memlock_bytes)}"


def _libaio(code: int) -> tuple[str, str] | None:
    match code:
        case errno.EAGAIN:
            return (
                "the kernel has no asynchronous I/O contexts left for libaio",
                "sysctl -w fs.aio-max-nr=1048576",
            )
        case errno.ENOSYS | errno.EPERM:
            return (
                "libaio is refused: a kernel without it, or a seccomp profile",
                "--engine psync measures without it at depth 1, and says so in the report",
            )
        case _:
            return None


def _target(code: int, function: str, text: str) -> tuple[str, str] | None:
    """Return why the target could not be opened or read, whatever the engine."""
    if "larger than data set range" in text or "need to specify size" in text:
        return "the target holds less than one block", "give a file or device that holds data"
    if "looks like your file system does not support" in text or "not support O_DIRECT" in text:
        return (
            "the target does not work with O_DIRECT: its file system has none",
            "use a target on a disk, or --buffered, which measures the page cache and says so",
        )
    match code:
        case errno.EINVAL if function == "io_u":
            return (
                "the target refuses these reads: they are smaller than its logical block, or its "
                "file system has no O_DIRECT",
                "use blocks that are a multiple of blockdev --getss, or --buffered, which measures "
                "the page cache and says so",
            )
        case errno.EACCES | errno.EPERM:
            return (
                "no permission to read the target",
                "run as a user that may read it (root, or group disk)",
            )
        case errno.ENOENT | errno.ENXIO | errno.ENODEV:
            return "the target is not there (any more)", "check its name and its connection"
        case errno.EIO:
            return (
                "the target answers reads with I/O errors",
                "dmesg | tail shows what the device said; do not measure a failing device",
            )
        case _:
            return None
