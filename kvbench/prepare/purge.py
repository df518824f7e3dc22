"""Remove all data from a device, and prove with sampled reads that it is gone.

The method is chosen by what the device can do *and* by what else it would hit: a format or a
sanitize may erase every namespace of a drive, of which only one was named.
Source: NVM Express Base specification, Format NVM, Sanitize and the FNA field; blkdiscard(8).
"""

import fcntl
import json
import os
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

from kvbench.errors import EnvironmentMissing, Interrupted, Refused, UsageError
from kvbench.fio.launch import launch
from kvbench.host import guard, lease, probe
from kvbench.host.model import EraseAbilities, Identity
from kvbench.host.samples import sample_offsets
from kvbench.prepare.marks import look, write_marks
from kvbench.store.preparation import Purge, PurgeMethod
from kvbench.units import GIB

_BLKDISCARD = 0x1277
_DISCARD_STEP_BYTES = 4 * GIB  # so that a stop is seen in time
_COMMAND_TIMEOUT_S = 4 * 3600.0  # sanitizing a large drive may take hours
_SANITIZE_BLOCK_ERASE = 2
_SANITIZE_DONE, _SANITIZE_GOING_ON, _SANITIZE_FAILED = (1, 4), 2, 3  # SSTAT, bits 2:0
_LOOK_S = 1.0


def choose(asked: PurgeMethod | None, abilities: EraseAbilities) -> tuple[PurgeMethod, str]:
    """Return the method and why it is this one; ``asked`` None chooses.

    Raises:
        UsageError: what was asked for cannot be done here, or would hit more than the target.
    """
    why_not = {
        "sanitize": _why_no_sanitize(abilities),
        "format": _why_no_format(abilities),
        "discard": "" if abilities.discards else "the device takes no discards",
        "none": "",
    }
    if asked is not None:
        if why_not[asked]:
            raise UsageError(f"cannot be done here: {why_not[asked]}", where=f"--purge {asked}")
        return asked, "as asked"
    for method in ("format", "discard"):  # never sanitize unasked: it hits the whole drive
        if not why_not[method]:
            return ("format" if method == "format" else "discard"), "chosen"
    return "none", f"{why_not['format']}; {why_not['discard']}"


def _why_no_format(abilities: EraseAbilities) -> str:
    if not abilities.whole_namespace:
        return "a format takes a whole NVMe namespace"
    if not abilities.nvme_tool:
        return "there is no nvme-cli"
    if abilities.format_hits_all is None:
        return "the drive does not tell whether a format hits its other namespaces"
    if abilities.format_hits_all and abilities.namespaces != 1:
        return "a format of this drive hits all of its namespaces"
    return ""


def _why_no_sanitize(abilities: EraseAbilities) -> str:
    if not abilities.whole_namespace:
        return "a sanitize takes a whole NVMe drive"
    if not abilities.nvme_tool:
        return "there is no nvme-cli"
    if abilities.namespaces != 1:
        return "a sanitize hits every namespace of the drive, and it has (or may have) others"
    return ""


def purge(
    identity: Identity,
    method: PurgeMethod,
    abilities: EraseAbilities,
    *,
    why: str,
    seed: int,
    folder: Path,
    stop: threading.Event,
    look_again: Callable[[Identity], EraseAbilities] = probe.erase_abilities,
    clock: Callable[[], float] = time.monotonic,
) -> Purge:
    """Mark blocks, purge, and look what the marked blocks hold.

    A method that the device refuses, or that leaves old data, is told in the result.

    ``abilities`` are those that the method was chosen from, perhaps long ago: the user was asked
    since.  They are looked up again before the first mark, and at once before the purge.

    Raises:
        Refused: the target is no longer the same thing, or a purge of it may hit something else
            than when the method was chosen.
        EnvironmentMissing: its blocks cannot be written or read at all.
        Interrupted: ``stop`` was set.
    """
    if method != "none":
        _refuse_changed(identity, abilities, look_again(identity))
    offsets = sample_offsets(identity.size_bytes, seed)
    write_marks(identity, offsets, seed)
    before = look(identity, offsets, seed)
    if before.marked != before.sampled:
        raise EnvironmentMissing(
            f"only {before.marked} of {before.sampled} blocks hold what was just written to them",
            where=identity.path,
            hint="this device does not keep data; nothing can be measured on it",
        )
    if method != "none":
        _refuse_changed(identity, abilities, look_again(identity))
    begin_s = clock()
    failed = ""
    guard.same_device(identity)
    try:
        if method == "discard":
            _discard(identity, stop)
        elif method == "format":
            _format(identity, abilities, folder, stop)
        elif method == "sanitize":
            _sanitize(identity, abilities, folder, stop)
    except (OSError, EnvironmentMissing) as error:
        failed = error.message if isinstance(error, EnvironmentMissing) else str(error.strerror)
    wall_s = clock() - begin_s
    after = look(identity, offsets, seed)
    return Purge(
        method=method,
        verified=method != "none" and not failed and after.marked == 0,
        sampled=after.sampled,
        held=after.marked,
        empty=after.empty,
        wall_s=wall_s,
        text=_words(method, why, failed, after.sampled, after.marked, after.empty),
    )


def _refuse_changed(identity: Identity, then: EraseAbilities, now: EraseAbilities) -> None:
    """Refuse a purge whose reach was judged by what is not so any more, e.g. a new namespace.

    Raises:
        Refused: with what was and what is.
    """
    changed = [
        f"{name.replace('_', ' ')} was {_said(getattr(then, name))}, is {_said(getattr(now, name))}"
        for name in EraseAbilities.__struct_fields__
        if getattr(then, name) != getattr(now, name)
    ]
    if changed:
        raise Refused(
            f"what it can be purged with changed since the purge was chosen: {'; '.join(changed)}",
            where=identity.path,
            hint="nothing was purged; prepare again, and read what will be done",
        )


def _said(value: object) -> str:
    if value is None:
        return "unknown"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value) or "absent"


def _words(
    method: PurgeMethod, why: str, failed: str, sampled: int, marked: int, empty: int
) -> str:
    if method == "none":
        return f"not purged: {why}"
    if failed:
        return f"not purged: {method} failed: {failed}"
    if marked:
        return (
            f"not purged: after the {method}, {marked} of {sampled} sampled blocks still hold "
            "what was written before it"
        )
    return (
        f"purged by {method} ({why}): of {sampled} sampled blocks none holds what was written "
        f"before it, {empty} are empty"
    )


def _discard(identity: Identity, stop: threading.Event) -> None:
    descriptor = lease.open_to_write(identity)
    try:
        for offset in range(0, identity.size_bytes, _DISCARD_STEP_BYTES):
            if stop.is_set():
                raise Interrupted("interrupted while it was purged", where=identity.path)
            length = min(_DISCARD_STEP_BYTES, identity.size_bytes - offset)
            fcntl.ioctl(descriptor, _BLKDISCARD, struct.pack("=QQ", offset, length))
    finally:
        os.close(descriptor)


def _format(
    identity: Identity, abilities: EraseAbilities, folder: Path, stop: threading.Event
) -> None:
    """Erase user data; without a format named, nvme-cli keeps the LBA format that is in use."""
    _nvme(
        (abilities.nvme_tool, "format", identity.real_path, "--ses=1", "--force"),
        "format",
        folder,
        stop,
    )


def _sanitize(
    identity: Identity, abilities: EraseAbilities, folder: Path, stop: threading.Event
) -> None:
    """Block-erase the drive, which goes on by itself once it was started, and wait for its end."""
    action = f"--sanact={_SANITIZE_BLOCK_ERASE}"
    _nvme((abilities.nvme_tool, "sanitize", identity.real_path, action), "sanitize", folder, stop)
    while True:
        said = _nvme(
            (abilities.nvme_tool, "sanitize-log", identity.real_path, "-o", "json"),
            "sanitize-log",
            folder,
            stop,
        )
        status = sanitize_status(said)
        if status in _SANITIZE_DONE:
            return
        if status != _SANITIZE_GOING_ON:
            raise EnvironmentMissing(f"the drive reports sanitize status {status}")
        if stop.wait(_LOOK_S):
            raise Interrupted("interrupted; the drive goes on with its sanitize by itself")


def sanitize_status(text: str) -> int:
    """Return bits 2:0 of SSTAT out of ``nvme sanitize-log -o json``, in either of its shapes.

    Raises:
        EnvironmentMissing: it is not there.
    """
    try:
        found = _first(json.loads(text), "sstat")
    except ValueError:
        found = None
    if isinstance(found, dict):  # newer: {"status": ..., "str": ...}
        found = next((v for v in found.values() if isinstance(v, int)), None)
    if isinstance(found, str) and found.isdigit():
        found = int(found)
    if not isinstance(found, int):
        raise EnvironmentMissing("the drive does not tell how its sanitize goes")
    return found & 0b111


def _first(document: object, key: str) -> object:
    if isinstance(document, dict):
        if key in document:
            return document[key]
        for value in document.values():
            found = _first(value, key)
            if found is not None:
                return found
    return None


def _nvme(argv: tuple[str, ...], name: str, folder: Path, stop: threading.Event) -> str:
    out, err = folder / f"{name}.out", folder / f"{name}.err"
    for path in (out, err):
        path.unlink(missing_ok=True)
    result = launch(
        argv, cwd=folder, timeout_s=_COMMAND_TIMEOUT_S, stdout=out, stderr=err, stop=stop
    )
    if result.end == "interrupted":
        raise Interrupted(f"interrupted during nvme {name}")
    said = out.read_text(errors="replace")
    if result.end != "exited" or result.exit_code != 0:
        lines = [line.strip() for line in (err.read_text(errors="replace") + said).splitlines()]
        cause = next((line for line in lines if line), f"exit code {result.exit_code}")
        raise EnvironmentMissing(f"nvme {name}: {cause[:200]}")
    return said
