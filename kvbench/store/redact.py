"""A run's record without what names one drive or one host.  Pure.

Serial numbers, world-wide names, UUIDs, the file behind a loop device, the name of a mapped device,
names in /dev that are chosen (by-id, by-uuid, LVM) and the host's name become ``redacted-`` and the
first twelve hex digits of their SHA-256, wherever they stand.  There is no salt, so that two
redacted runs of one drive still belong together; whoever can guess a serial number can therefore
check the guess.
"""

import hashlib
import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from kvbench.errors import UsageError
from kvbench.host.model import Fact, Identity
from kvbench.store.records import RunRecord

PREFIX = "redacted-"
SECRET_CHARS_MIN = 4  # a shorter one is hidden where it stands alone: "1" is everywhere
NAMING_FACTS = ("device_serial", "device_wwid", "device_eui", "device_nguid")
_BACKING = "backing file "  # of a loop device; after it stand a path and what binds that file
_BACKING_PATH = re.compile(
    rf"{_BACKING}(.*?)(?: \(\d+:\d+ inode \d+\))?(?:, partition \d+)?", re.DOTALL
)
_NAMED_BY_OWNER = re.compile(r"loop|dm-|md")  # their "model" is a path, or a name somebody chose
_UUID = re.compile(
    r"(?i)(?<![0-9a-z])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-z])"
)
# words of the kernel's command line whose values name a disk, a host or an address
_BOOT_NAMES = re.compile(
    r"(?<!\S)(root|resume|nfsroot|netroot|ip|cryptdevice|zfs|hostname|systemd\.hostname|ifname"
    r"|[a-z.]*uuid|[a-z.]*\.lv|rd\.luks\.[a-z]+|rd\.iscsi[a-z._]*)=(\S+)",
    re.IGNORECASE,
)
_PLAIN_DEVICE = re.compile(r"/dev/(?:sd|vd|xvd|nvme|mmcblk|md|ram)[a-z0-9]*")
_PLAIN_LINKS = "/dev/disk/by-path/"  # they name a slot


def hidden(value: str) -> str:
    """Return what stands in the place of a serial or a name."""
    return PREFIX + hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def redact(record: RunRecord, host_name: str) -> RunRecord:
    """Return the record with all that names the drive and the host hidden.

    Raises:
        UsageError: the path of the target itself holds it, and fio's job files need that path.
    """
    secrets = _secrets(record, host_name)
    if _without(record.identity.real_path, secrets) != record.identity.real_path:
        raise UsageError(
            "the target's path holds the host's name, a serial or another name that would be "
            "hidden, and fio's files keep the path",
            where="--redact",
            hint="choose another path, or leave --redact out",
        )

    def clean(text: str) -> str:
        return _without(text, secrets)

    identity, target, pairing = record.identity, record.plan.target, record.pairing
    return replace(
        record,
        label=clean(record.label),
        command=tuple(clean(word) for word in record.command),
        plan=replace(record.plan, target=replace(target, path=clean(target.path))),
        identity=replace(
            identity,
            path=clean(identity.path),
            serial=hidden_serial(identity.serial),
            wwid=_wwid(identity.wwid, secrets),
        ),
        written=replace(record.written, reason=clean(record.written.reason)),
        facts=tuple(_fact(fact, secrets, record.facts) for fact in record.facts),
        caveats=tuple(clean(caveat) for caveat in record.caveats),
        condition=record.condition
        and replace(
            record.condition,
            text=clean(record.condition.text),
            run_id=clean(record.condition.run_id),
        ),
        pairing=pairing and replace(pairing, between=clean(pairing.between)),
        boot_id="",
    )


def hider(identity: Identity, host_name: str) -> Callable[[str], str]:
    """Return what hides the serial and the names of one drive and host in a text.

    For what tools and the kernel say during a run: nobody needs a serial there, so it is hidden
    whether the run is redacted or not.
    """
    wwid = identity.wwid if identity.wwid and not is_redacted(identity) else None
    names = {identity.serial or "", _name_of(wwid), _backing_path(wwid), host_name} - {""}
    secrets = sorted(names, key=lambda one: (-len(one), one))
    return lambda text: _without(text, secrets)


def hidden_serial(serial: str | None) -> str | None:
    """Return what a redacted record has for a serial, None where there is none."""
    return hidden(serial) if serial else None


def hidden_wwid(wwid: str | None) -> str | None:
    """Return what a redacted record has for a world-wide name; namespace and partition stay."""
    return _wwid(wwid, [])


def same_drive(stored: Identity, live: Identity) -> bool:
    """Return whether a live device has the serial, wwid, namespace and place of a stored one.

    It does not matter whether the stored one was redacted.
    """
    if is_redacted(stored):
        live = replace(live, serial=hidden_serial(live.serial), wwid=_wwid(live.wwid, []))
    if stored.start_sector is None:  # no partition, or an archive that did not keep it
        live = replace(live, start_sector=None)
    return (stored.kind, stored.serial, stored.wwid, stored.start_sector) == (
        live.kind,
        live.serial,
        live.wwid,
        live.start_sector,
    )


def with_hidden_names(record: RunRecord) -> RunRecord:
    """Return the record with serial and world-wide names as a redacted one has them.

    All else stays, so that a redacted and an open run of one drive can be held against each other.
    """
    if is_redacted(record.identity) or any(_is_hidden(fact) for fact in record.facts):
        return record
    serial, wwid = record.identity.serial, record.identity.wwid
    return replace(
        record,
        identity=replace(record.identity, serial=hidden_serial(serial), wwid=_wwid(wwid, [])),
        facts=tuple(
            replace(fact, value=hidden(fact.value))
            if fact.value and _names_one(fact, record.facts)
            else fact
            for fact in record.facts
        ),
    )


def _is_hidden(fact: Fact) -> bool:
    return fact.name in NAMING_FACTS and (fact.value or "").startswith(PREFIX)


def is_redacted(identity: Identity) -> bool:
    """Return whether an identity was stored with something hidden."""
    return any(PREFIX in (text or "") for text in (identity.serial, identity.wwid, identity.path))


def _secrets(record: RunRecord, host_name: str) -> list[str]:
    """Return what is hidden, the longest first: a world-wide name may hold the serial."""
    found = {fact.value for fact in record.facts if fact.name in NAMING_FACTS and fact.value}
    found |= {re.sub(r"[\s-]", "", value) for value in found}  # "00 25 38" is 002538 in a path
    identity = record.identity
    found |= {identity.serial or "", _name_of(identity.wwid), _backing_path(identity.wwid)}
    found |= {host_name, host_name.partition(".")[0], _chosen_name(identity)}
    for fact in record.facts:
        if fact.value and _names_one(fact, record.facts):
            found.add(fact.value)
        found.update(_UUID.findall(fact.value or ""))
        if fact.name == "kernel_command_line":
            values = (match[2] for match in _BOOT_NAMES.finditer(fact.value or ""))
            found.update(value for value in values if not _PLAIN_DEVICE.fullmatch(value))
    return sorted((one for one in found if one), key=lambda one: (-len(one), one))


def _name_of(wwid: str | None) -> str:
    """Return the world-wide name alone: "eui.00, nsid 1" also tells the namespace."""
    if wwid is None or wwid.startswith((_BACKING, "nsid ", "partition ")):
        return ""
    return re.split(r", (?:nsid|partition) ", wwid)[0]


def _backing_path(wwid: str | None) -> str:
    """Return the path of the file behind a loop device, "" for anything else."""
    match = _BACKING_PATH.fullmatch(wwid or "")
    return match[1] if match else ""


def _chosen_name(identity: Identity) -> str:
    """Return the name below /dev under which a device was given, "" for one of the kernel's own."""
    path = identity.path
    chosen = path.startswith("/dev/") and path != identity.real_path
    return path.removeprefix("/dev/") if chosen and not path.startswith(_PLAIN_LINKS) else ""


def _names_one(fact: Fact, facts: Sequence[Fact]) -> bool:
    """Return whether a fact's value names one drive, or one file in its place."""
    if fact.name == "device_model":
        disk = next((one.value for one in facts if one.name == "device_disk"), None)
        return _NAMED_BY_OWNER.match(disk or "") is not None
    return fact.name in NAMING_FACTS


def _wwid(wwid: str | None, secrets: list[str]) -> str | None:
    backing = _backing_path(wwid)
    if wwid is not None and backing:  # the file's number stays: it binds, and names nothing
        return f"{_BACKING}{hidden(backing)}{wwid.removeprefix(_BACKING + backing)}"
    name = _name_of(wwid)
    if wwid is None or not name:
        return wwid if wwid is None else _without(wwid, secrets)
    return hidden(name) + wwid.removeprefix(name)


def _fact(fact: Fact, secrets: list[str], facts: Sequence[Fact]) -> Fact:
    value = fact.value
    if value is not None:
        value = hidden(value) if _names_one(fact, facts) else _without(value, secrets)
    return replace(fact, value=value, reason=_without(fact.reason, secrets))


def _without(text: str, secrets: list[str]) -> str:
    """Return a text in which every secret that stands as a word of its own is hidden."""
    long = [re.escape(one) for one in secrets if len(one) >= SECRET_CHARS_MIN]
    if not long:
        return text
    word = rf"(?<![A-Za-z0-9])(?:{'|'.join(long)})(?![A-Za-z0-9])"
    return re.sub(word, lambda match: hidden(match[0]), text)
