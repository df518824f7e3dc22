"""Is this the target that a stored run wrote?  Known by serial or inode, never by its path.  Pure.

A run may be verified after a reboot or in another slot: then the path, the device's number and its
disk sequence may all be others while serial and namespace are the same, and that is the drive.
What has neither a serial nor a world-wide name can be told within one boot only, by the number
that the kernel gives to every disk once.  A file is its inode; after a reboot the number of its
file system may be another.
"""

from kvbench.errors import Refused
from kvbench.host.model import Identity
from kvbench.store.redact import is_redacted, same_drive


def check_same(stored: Identity, live: Identity, *, same_boot: bool) -> None:
    """Return when ``live`` is what the run of ``stored`` wrote.

    Args:
        stored: the identity in the run's record, perhaps redacted.
        live: what is there now.
        same_boot: whether the machine has not been booted since.

    Raises:
        Refused: it is another one, or nobody can tell.
    """
    why = _why_not(stored, live, same_boot=same_boot)
    if why:
        raise Refused(
            f"is not known to be what the run wrote: {why}",
            where=live.path,
            hint="name the right one: kvbench verify RUN TARGET",
        )


def _why_not(stored: Identity, live: Identity, *, same_boot: bool) -> str:
    if stored.kind != live.kind:
        words = {"file": "a file", "block": "a block device"}
        return f"the run wrote {words[stored.kind]}, this is {words[live.kind]}"
    if stored.size_bytes != live.size_bytes:
        return f"it had {stored.size_bytes} bytes, this has {live.size_bytes}"
    if stored.kind == "file":
        if stored.inode != live.inode:
            return f"it was inode {stored.inode}, this is inode {live.inode}"
        if same_boot and stored.device_number != live.device_number:
            return f"it was on file system {stored.device_number}, this is on {live.device_number}"
        return ""
    if None not in (stored.start_sector, live.start_sector) and (
        stored.start_sector != live.start_sector
    ):
        return (
            f"it began at sector {stored.start_sector} of its disk, this begins at "
            f"{live.start_sector}"
        )
    if stored.serial or stored.wwid:
        if same_drive(stored, live):
            return ""
        if is_redacted(stored):
            return "its serial or namespace (both redacted in the run) differ"
        return (
            f"it had serial {stored.serial or 'none'} and {stored.wwid or 'no world-wide name'}, "
            f"this has {live.serial or 'none'} and {live.wwid or 'no world-wide name'}"
        )
    if not same_boot:
        return "it has neither serial nor world-wide name, and the machine was booted since"
    if stored.diskseq is None:
        return "it has neither serial nor world-wide name nor disk sequence"
    if (stored.diskseq, stored.device_number) != (live.diskseq, live.device_number):
        return f"it was disk {stored.diskseq} of this boot, this is disk {live.diskseq}"
    return ""


def shown(identity: Identity) -> str:
    """Return a target in a few words."""
    if identity.kind == "file":
        return f"{identity.path} (file, inode {identity.inode})"
    return f"{identity.path} (block device, serial {identity.serial or 'unknown'})"
