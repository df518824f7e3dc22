"""Keep and find the stamps of prepared devices: ``<results>/stamps/<device>.json``."""

import hashlib
import os
from pathlib import Path

import msgspec

from kvbench.errors import StoreError
from kvbench.store.layout import STAMPS_FOLDER, fit_label
from kvbench.store.preparation import Binding, Preparation
from kvbench.store.read import read_record
from kvbench.store.write import write_derived


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
    """Forget what is known of a device, before it is changed.

    Raises:
        StoreError: the stamp cannot be removed, or its folder could not hold a new one.
    """
    path = stamp_path(results, binding)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(
            f"no record of the device can be kept here: {error.strerror}", where=str(path)
        ) from error


def find_stamp(results: Path, binding: Binding) -> Preparation | None:
    """Return the stamp of a device, None when there is none.

    Raises:
        StoreError: there is one, and it cannot be used.
    """
    path = stamp_path(results, binding)
    return read_record(path, Preparation) if os.path.lexists(path) else None


def encode(preparation: Preparation) -> bytes:
    """Return the bytes of a stored preparation."""
    return msgspec.json.format(msgspec.json.encode(preparation), indent=1) + b"\n"
