"""Keep and find the stamps of prepared devices: ``<results>/stamps/<device>.json``.

A stamp that was made with ``--redact`` holds hashes in the place of serial and world-wide name, and
is found by them: whoever has the drive has what was hashed.
"""

import hashlib
import os
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kvbench.errors import StoreError
from kvbench.store.layout import STAMPS_FOLDER, fit_label
from kvbench.store.preparation import Binding, Preparation
from kvbench.store.read import read_record
from kvbench.store.redact import PREFIX, hidden_serial, hidden_wwid
from kvbench.store.write import sync, write_derived


def stamp_path(results: Path, binding: Binding) -> Path:
    """Return where the stamp of a device lies.  The name only finds it; the content binds it."""
    drawn = hashlib.sha256(msgspec.json.encode((binding.serial, binding.wwid))).hexdigest()[:12]
    named = fit_label(binding.serial or "device") or "device"
    return results / STAMPS_FOLDER / f"{named}-{drawn}.json"


def save_stamp(results: Path, preparation: Preparation) -> Path:
    """Keep a stamp in the place of an older one of the same device.

    Raises:
        StoreError: it cannot be written.
    """
    path = stamp_path(results, preparation.binding)
    write_derived(path, encode(preparation).decode())
    return path


def drop_stamp(results: Path, binding: Binding) -> None:
    """Forget what is known of a device, redacted or not, before it is changed.

    It is gone from the disk when this returns: after a loss of power during the fill that follows
    no old stamp may say what the device was.

    Raises:
        StoreError: the stamp cannot be removed, or its folder could not hold a new one.
    """
    for path in _paths(results, binding):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            sync(path.parent)
        except OSError as error:
            raise StoreError(
                f"no record of the device can be kept here: {error.strerror}", where=str(path)
            ) from error


def find_stamp(results: Path, binding: Binding) -> Preparation | None:
    """Return the stamp of a device, redacted or not, None when there is none.

    Raises:
        StoreError: there is one, and it cannot be used.
    """
    there = [path for path in _paths(results, binding) if os.path.lexists(path)]
    found = [read_record(path, Preparation) for path in there]
    return max(found, key=lambda one: one.made_at, default=None)


def hidden_binding(binding: Binding) -> Binding:
    """Return what a redacted stamp is bound to."""
    serial, wwid = hidden_serial(binding.serial), hidden_wwid(binding.wwid)
    return replace(binding, serial=serial, wwid=wwid)


def as_bound(stamp: Preparation, binding: Binding) -> Binding:
    """Return a device's binding as this stamp would have it, open or redacted."""
    named = (stamp.binding.serial or "", stamp.binding.wwid or "")
    return hidden_binding(binding) if any(PREFIX in one for one in named) else binding


def _paths(results: Path, binding: Binding) -> tuple[Path, ...]:
    both = (binding, hidden_binding(binding))
    return tuple(dict.fromkeys(stamp_path(results, one) for one in both))


def encode(preparation: Preparation) -> bytes:
    """Return the bytes of a stored preparation."""
    return msgspec.json.format(msgspec.json.encode(preparation), indent=1) + b"\n"
