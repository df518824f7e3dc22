"""What speaks against writing to a regular file, worst first.  Reads only."""

from collections.abc import Iterator

from msgspec import Struct

from kvbench.host import facts, processes, topology
from kvbench.host.machine import Machine
from kvbench.host.model import Identity

_SYSTEM_FOLDERS = ("/boot", "/dev", "/efi", "/etc", "/proc", "/sys")
_FREE_FOLDERS = ("/dev/shm",)  # noqa: S108 - a name to compare with, no file is made
_LOOKS, _LOOK_PAUSE_S = 3, 0.3


class Objection(Struct, frozen=True, kw_only=True):
    """One reason not to write, and what the user can do about it."""

    text: str
    hint: str = ""


def file_objections(
    identity: Identity, machine: Machine, *, own: bool = False, held: int | None = None
) -> Iterator[Objection]:
    """Yield what speaks against writing; ``OSError`` or ``ValueError`` when it cannot be told.

    Args:
        identity: the file.
        machine: where to look.
        own: kvbench made it, so it is enough that no user of it is seen where a file system
            does not let the kernel tell.
        held: the descriptor with which this process holds it, which does not count as a use.
    """
    path = identity.real_path
    if _inside(path, _SYSTEM_FOLDERS) and not _inside(path, _FREE_FOLDERS):
        yield Objection(
            text="lies in a folder of the system", hint="put the file on a data file system"
        )
    links = machine.node(path).links
    if links != 1:
        yield Objection(
            text=f"has {links} names (hard links), so another file would change too",
            hint="copy it, and use the copy",
        )
    yield from file_use(path, machine, ignore_loop=None)
    yield from _opened(path, machine, own=own, held=held)


def _opened(path: str, machine: Machine, *, own: bool, held: int | None) -> Iterator[Objection]:
    """Ask the kernel first; the list of processes then only tells who."""
    seen: tuple[str, ...] = ()
    for _ in range(_LOOKS):
        elsewhere = machine.is_open_elsewhere(path, held)
        if elsewhere is False:
            return
        found = processes.openers(machine, file=machine.node(path).file_key)
        seen = found.seen
        if elsewhere is None and not seen:
            if found.hidden and not own:
                raise PermissionError(
                    "neither the kernel nor /proc tells whether the file is in use"
                )
            return
        machine.pause(_LOOK_PAUSE_S)  # perhaps a backup or an indexer that passes by
    who = ", ".join(seen) or "the kernel, or a process that is not seen from here"
    yield Objection(text=f"is in use by {who}", hint="end what uses it first")


def file_use(path: str, machine: Machine, *, ignore_loop: str | None) -> Iterator[Objection]:
    """Yield the kernel's uses of a file: swap, and loop devices but for ``ignore_loop``."""
    key = machine.node(path).file_key
    _, swap_files = topology.swap_numbers_and_files(machine)
    if key in swap_files:
        yield Objection(
            text="is a swap file in use", hint=f"swapoff {swap_files[key]}, if you can do without"
        )
    for loop, backing in topology.attached_loops(machine).items():
        if loop.number != ignore_loop and backing.file_key == key:
            yield Objection(
                text=f"is shown as the block device /dev/{loop.name}",
                hint=f"losetup -d /dev/{loop.name}, when nothing uses that device",
            )


def memory_or_kernel(mount: facts.Mount) -> bool:
    """Whether no disk is behind a mount."""
    return mount.in_memory or mount.of_the_kernel or mount.on_network


def _inside(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
