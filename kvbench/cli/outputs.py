"""Where results may be written: never over what was measured, is measured, or was read."""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from kvbench.errors import UsageError
from kvbench.host import ownership
from kvbench.store import layout


def check_outputs(
    outputs: Mapping[str, Path | None],
    *,
    kept: Iterable[Path | None] = (),
    derived: Iterable[Path] = (),
) -> None:
    """Refuse to write over anything that must stay.

    Args:
        outputs: option -> file, None where it was not given.
        kept: files that are read or measured; a hard link to one is that file.
        derived: files inside an archive that may be rebuilt.

    Raises:
        UsageError: two outputs of one name, a folder, a device or other special file, a part of
            an archive, a record of kvbench's own, or one of ``kept``.
    """
    stays = [path for path in kept if path is not None]
    allowed = {path.resolve() for path in derived}
    seen: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        where = f"{option} {path}"
        try:
            resolved = path.resolve()
            status = path.lstat() if os.path.lexists(path) else None
        except (OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"cannot be written: {reason}", where=where) from None
        if resolved in seen:
            raise UsageError(f"{seen[resolved]} and {option} name the same file", where=str(path))
        seen[resolved] = option
        if status is not None and not stat.S_ISREG(status.st_mode):
            raise UsageError("is not a regular file, so it is not replaced", where=where)
        for one in stays:
            if one.resolve() == resolved or _same_file(one, path):
                raise UsageError("is read or measured, so it is not replaced", where=where)
        if status is not None and _is_record(resolved):
            raise UsageError("is a record that kvbench needs, so it is not replaced", where=where)
        if resolved not in allowed and _archive_of(resolved) is not None:
            raise UsageError("would become a part of the archive", where=where)
        nearest = next(parent for parent in resolved.parents if parent.exists())
        if not nearest.is_dir():
            raise UsageError(f"cannot be written: {nearest} is no folder", where=where)


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _is_record(path: Path) -> bool:
    """Return whether a file tells of a preparation, or which file kvbench made for itself."""
    return path.name == ownership.RECORD or path.parent.name == layout.STAMPS_FOLDER


def _archive_of(path: Path) -> Path | None:
    """Return the run folder that holds ``path``, None when it is in none."""
    return next((p for p in path.parents if os.path.lexists(p / layout.RUN_FILE)), None)
