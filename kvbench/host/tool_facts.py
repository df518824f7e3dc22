"""What nvme-cli and smartctl printed -> facts that sysfs does not tell.  Pure."""

from collections.abc import Callable, Mapping

from kvbench.host.model import Fact
from kvbench.host.nvme_json import parse_fw_log, parse_id_ctrl, parse_id_ns
from kvbench.host.smart_json import parse_smartctl_identity

Answer = Callable[[], str]  # the text of a tool; raises OSError or ValueError when it gave none


def nvme_facts(id_ctrl: Answer, id_ns: Answer, fw_log: Answer) -> tuple[Fact, ...]:
    """Return the facts of an NVMe drive; what a tool did not tell carries the reason."""
    return (
        *_of(id_ctrl, _CONTROLLER),
        *_of(id_ns, _NAMESPACE),
        *_of(fw_log, _FIRMWARE),
    )


def smartctl_facts(answer: Answer) -> tuple[Fact, ...]:
    """Return model, serial and firmware of a drive that sysfs does not name."""
    return _of(answer, _SMARTCTL)


def complete(facts: tuple[Fact, ...], more: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Return ``facts`` with those of ``more`` that are new, or known only there."""
    known = {fact.name: fact for fact in facts}
    for fact in more:
        there = known.get(fact.name)
        if there is None:
            known[fact.name] = fact
        elif there.value is None:
            reason = "" if fact.value else f"{there.reason}; {fact.reason}"
            known[fact.name] = Fact(name=fact.name, value=fact.value, reason=reason)
    return tuple(known.values())


def _of(answer: Answer, readers: Mapping[str, Callable[[str], Fact]]) -> tuple[Fact, ...]:
    try:
        text = answer()
        return tuple(read(text) for read in readers.values())
    except (OSError, ValueError) as error:
        return tuple(Fact(name=name, value=None, reason=str(error)) for name in readers)


def _fact(name: str, value: object, unknown: Mapping[str, str], field: str) -> Fact:
    if value is None:
        return Fact(name=name, value=None, reason=unknown.get(field, "the drive does not tell"))
    if isinstance(value, bool):
        return Fact(name=name, value="yes" if value else "no")
    return Fact(name=name, value=str(value))


def _controller(name: str, field: str) -> Callable[[str], Fact]:
    def read(text: str) -> Fact:
        found = parse_id_ctrl(text)
        return _fact(name, getattr(found, field), found.unknown, field)

    return read


def _namespace(name: str, field: str) -> Callable[[str], Fact]:
    def read(text: str) -> Fact:
        found = parse_id_ns(text)
        return _fact(name, getattr(found, field), found.unknown, field)

    return read


def _smartctl(name: str, field: str) -> Callable[[str], Fact]:
    def read(text: str) -> Fact:
        found = parse_smartctl_identity(text)
        return _fact(name, getattr(found, field), found.unknown, field)

    return read


def _slots(text: str) -> Fact:
    found = parse_fw_log(text)
    shown = ", ".join(
        f"{slot}: {revision}{' (runs)' if slot == found.active else ''}"
        for slot, revision in sorted(found.revisions.items())
    )
    return _fact("device_firmware_slots", shown or None, found.unknown, "revisions")


_CONTROLLER = {
    name: _controller(name, field)
    for name, field in (
        ("device_model", "model"),
        ("device_serial", "serial"),
        ("device_firmware", "firmware"),
        ("device_volatile_write_cache", "volatile_write_cache"),
        ("device_power_states", "power_states"),
        ("device_apst", "apst"),
        ("device_hmb_wanted_bytes", "hmb_wanted_bytes"),
        ("device_fdp", "fdp"),
        ("device_directives", "directives"),
    )
}
_NAMESPACE = {
    name: _namespace(name, field)
    for name, field in (
        ("device_eui", "eui64"),
        ("device_nguid", "nguid"),
        ("device_lba_format", "lba_format"),
        ("device_metadata_bytes", "metadata_bytes"),
        ("device_used_bytes", "used_bytes"),
    )
}
_FIRMWARE = {"device_firmware_slots": _slots}
_SMARTCTL = {
    name: _smartctl(name, field)
    for name, field in (
        ("device_model", "model"),
        ("device_serial", "serial"),
        ("device_firmware", "firmware"),
    )
}
