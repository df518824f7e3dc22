"""What a run was made with, aspect by aspect, and in which of them runs differ.  Pure.

A drive is known by model, serial and namespace; a path says nothing, because it moves at a reboot.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence

import msgspec

from kvbench.compare.model import Difference
from kvbench.compare.policy import Policy
from kvbench.plan import Plan
from kvbench.store.records import RunRecord
from kvbench.units import format_size

_Read = Callable[[RunRecord], str | None]


def _fact(name: str) -> _Read:
    def read(record: RunRecord) -> str | None:
        return next((fact.value for fact in record.facts if fact.name == name), None)

    return read


def _serial(record: RunRecord) -> str | None:
    return record.identity.serial or _fact("device_serial")(record)


def _capacity(record: RunRecord) -> str | None:
    return _fact("device_bytes")(record) or _fact("target_bytes")(record)


def _file(record: RunRecord) -> str | None:
    """Return which file it is by what binds it; a block device is none."""
    identity = record.identity
    if identity.kind != "file":
        return None
    return f"inode {identity.inode} on {identity.device_number}"


def _preparation(record: RunRecord) -> str:
    """Return how the data came there, and of a block device whether it was steady."""
    written, condition = record.written.state, record.condition
    if condition is None or condition.state == "none":
        return written
    if condition.state == "holds":
        return f"{written} and {condition.steady}"
    return f"{written} ({condition.state} since it was prepared)"


def _io_mode(record: RunRecord) -> str:
    return "O_DIRECT" if record.plan.direct else "page cache"


def plan_digest(plan: Plan) -> str:
    """Return what a plan does in one word: its points, where they lie, and how long they run.

    The order, the seeds and the number of repetitions are no part of it.
    """
    cells = {cell.point_id: cell for cell in plan.cells if cell.purpose != "ceiling"}
    points = sorted(
        msgspec.json.encode(
            (
                *(cell.workload, cell.workload_digest, cell.parameters, cell.alone, cell.timing),
                [(one.offset_bytes, one.size_bytes) for one in cell.placed],
            ),
            order="sorted",
        )
        for cell in cells.values()
    )
    return hashlib.sha256(b"\n".join(points)).hexdigest()[:12]


def _plan(record: RunRecord) -> str:
    """Return what a plan does, and its digest, as plans of equal numbers may still differ."""
    plan = record.plan
    cells = {c.point_id: c for c in plan.cells if c.purpose != "ceiling"}.values()
    if not cells:
        return f"no points, {plan_digest(plan)}"
    times = sorted({cell.timing.runtime_s for cell in cells})
    shown = f"{times[0]:g} s" if len(times) == 1 else f"{times[0]:g} to {times[-1]:g} s"
    span = max(one.offset_bytes + one.size_bytes for cell in cells for one in cell.placed)
    names = [workload.name for workload in plan.workloads]
    what = names[0] if len(names) == 1 else f"{len(names)} workloads"
    return f"{what}, {len(cells)} points of {shown} on {format_size(span)}, {plan_digest(plan)}"


# name -> what it is called, and how it is read; policies name them
ASPECTS: dict[str, tuple[str, _Read]] = {
    "label": ("label", lambda record: record.label or None),
    "model": ("model", _fact("device_model")),
    "serial": ("serial", _serial),
    "namespace": ("namespace", lambda record: record.identity.wwid),
    "firmware": ("firmware", _fact("device_firmware")),
    "capacity": ("capacity (bytes)", _capacity),
    "lba_format": ("logical block (bytes)", _fact("logical_block_bytes")),
    "pcie_link": ("PCIe link", _fact("pcie_link")),
    "target_kind": ("kind of target", lambda record: record.plan.target.kind),
    "file": ("file", _file),
    "file_system": ("file system", _fact("file_system")),
    "scheduler": ("I/O scheduler", _fact("scheduler")),
    "preparation": ("written before", _preparation),
    "plan": ("plan", _plan),
    "engine": ("I/O engine", lambda record: record.plan.engine),
    "io_mode": ("I/O mode", _io_mode),
    "fio": ("fio", lambda record: record.fio_version),
    "kernel": ("kernel", _fact("kernel")),
    "kvbench": ("kvbench", lambda record: record.kvbench_version),
    "cpu": ("CPU", _fact("cpu")),
    "cpus": ("CPUs", _fact("cpus_online")),
    "memory": ("memory (bytes)", _fact("memory_bytes")),
    "governor": ("CPU governor", _fact("cpu_governor")),
    "repetitions": ("repetitions", lambda record: str(record.plan.repetitions)),
}


# What a gate's policy says must not differ, unless it is edited; a fingerprint is over these.
FINGERPRINTED = (
    *("model", "serial", "namespace", "capacity", "lba_format", "pcie_link", "target_kind"),
    *("preparation", "plan", "engine", "io_mode", "fio", "kernel", "kvbench"),
)


def fingerprint(record: RunRecord) -> str:
    """Return what must not differ between two runs in one word of 12 hex digits.

    Equal ones need no look at the aspects; ``differences`` says in what unequal ones differ.
    """
    values = [(name, ASPECTS[name][1](record)) for name in FINGERPRINTED]
    return hashlib.sha256(msgspec.json.encode(values)).hexdigest()[:12]


def device_of(record: RunRecord) -> str:
    """Return the drive's model, serial and namespace in one line, "" where none is known."""
    parts = [ASPECTS[name][1](record) for name in ("model", "serial", "namespace")]
    return " ".join(dict.fromkeys(part for part in parts if part))


def in_turns(a: RunRecord, b: RunRecord) -> bool:
    """Whether two runs were measured turn by turn, so that both drifted together."""
    ours, theirs = a.pairing, b.pairing
    if ours is None or theirs is None or ours.kind != "ab" or ours.pair_id != theirs.pair_id:
        return False
    return ours.order == theirs.order == "turns"


def differences(records: Sequence[RunRecord], policy: Policy) -> Iterator[Difference]:
    """Yield the aspects in which the runs differ, what blocks first.

    An aspect that some run does not know cannot be compared; it is told where it must not differ.
    """
    found = [d for name in ASPECTS if (d := _difference(name, records, policy)) is not None]
    order = ("blocks", "allowed", "noted")
    yield from sorted(found, key=lambda difference: order.index(difference.effect))


def blocked(differences: Sequence[Difference], side: int) -> str:
    """Return why one side cannot be held against the first, "" when it can."""
    found = [
        d.text
        for d in differences
        if d.effect == "blocks" and d.values[side] != d.values[0] and None not in _pair(d, side)
    ]
    return "; ".join(found)


def _pair(difference: Difference, side: int) -> tuple[str | None, str | None]:
    return difference.values[0], difference.values[side]


def _difference(name: str, records: Sequence[RunRecord], policy: Policy) -> Difference | None:
    title, read = ASPECTS[name]
    values = tuple(read(record) for record in records)
    if len(set(values)) == 1:
        known = values[0] is not None
        if known or name not in policy.must_not_differ:
            return None
        text = f"{title}: no run knows it, so nobody can say that it is the same"
        return Difference(aspect=name, values=values, effect="noted", text=text)
    shown = ", ".join("unknown" if value is None else value for value in dict.fromkeys(values))
    if name in policy.must_not_differ:
        if len({value for value in values if value is not None}) < 2:
            text = f"{title}: not known of every run ({shown})"
            return Difference(aspect=name, values=values, effect="noted", text=text)
        text = f"{name} must not differ and does ({shown})"
        return Difference(aspect=name, values=values, effect="blocks", text=text)
    effect = "allowed" if name in policy.may_differ else "noted"
    return Difference(
        aspect=name,
        values=values,
        effect="allowed" if effect == "allowed" else "noted",
        text=f"{title}: {shown}",
    )
