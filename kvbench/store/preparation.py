"""What ``kvbench prepare`` did to a device, and whether that still holds.  Pure.

A *preparation* is kept twice: in the run folder of its rounds, and as a *stamp* that later runs on
the same device find.  A *condition* is what a run says of the stamp that it found.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from kvbench.host.model import Identity, WriteHistory
from kvbench.host.samples import SAMPLES
from kvbench.stats.steady import State
from kvbench.units import SECTOR_BYTES, format_size

FORMAT = 1
# Journals of tools that look, and rounding of the drive's own count; a fill is far beyond it.
WRITTEN_SHARE_MAX = 0.001
SMART_STEP_BYTES = 512_000

STATE_WORDS: dict[State, str] = {
    "steady": "until it was steady",
    "not steady": "but did not become steady",
    "too few rounds": "but in too few rounds to tell whether it was steady",
}

PurgeMethod = Literal["sanitize", "format", "discard", "none"]


class Binding(Struct, frozen=True, kw_only=True):
    """Which device a stamp belongs to: never its path.

    A drive is bound by serial and world-wide name with namespace (and partition); without a serial
    by its world-wide name, which for a loop device names the file behind it.  A partition also by
    where it begins: another one may have got its number.
    """

    serial: str | None
    wwid: str | None
    size_bytes: int
    logical_block_bytes: int
    start_sector: int | None = None


class Purge(Struct, frozen=True, kw_only=True):
    """How the old data was removed, and what sampled reads said of it.

    Before it, ``sampled`` blocks were marked; ``held`` of them still had the mark afterwards and
    ``empty`` were of one byte throughout.  ``verified`` is true only when no mark was left.
    """

    method: PurgeMethod
    verified: bool
    sampled: int
    held: int
    empty: int
    wall_s: float
    text: str


class FillPass(Struct, frozen=True, kw_only=True):
    """One pass over the whole device.

    ``device_written_bytes`` is what the kernel's counters of the device rose by, None where it has
    none.
    """

    pattern: Literal["sequential", "random"]
    block_bytes: int
    written_bytes: int
    device_written_bytes: int | None
    wall_s: float


class Coverage(Struct, frozen=True, kw_only=True):
    """Whether every block was written: counts of fio and of the device, and sampled reads.

    Of ``sampled`` blocks, ``empty`` were all zeroes or still had the mark of before the fill.
    """

    proven: bool
    sampled: int
    empty: int
    text: str


class SteadyMetric(Struct, frozen=True, kw_only=True):
    """One metric over all rounds, and the criterion over the last of them.

    ``values`` has shape (rounds,), in ``unit``; None for a round without a value.
    """

    metric: str
    unit: str
    values: tuple[float | None, ...]
    state: State
    first_round: int
    mean: float | None
    range_share: float | None
    slope_share: float | None
    reason: str = ""


def overall(metrics: Sequence[SteadyMetric]) -> State:
    """Return what all metrics together are."""
    states = {metric.state for metric in metrics} or {"too few rounds"}
    if "not steady" in states:
        return "not steady"
    return "too few rounds" if "too few rounds" in states else "steady"


class Preparation(Struct, frozen=True, kw_only=True):
    """prepare.json, and the stamp."""

    format: int
    run_id: str
    made_at: str  # ISO 8601, UTC: after the last round
    binding: Binding
    history: WriteHistory  # after the last round
    purge: Purge
    fills: tuple[FillPass, ...]
    coverage: Coverage
    workload: str  # of the rounds
    workload_digest: str
    round_s: float
    metrics: tuple[SteadyMetric, ...]

    @property
    def state(self) -> State:
        """Whether every metric was steady; "too few rounds" where one has no window."""
        return overall(self.metrics)


class Condition(Struct, frozen=True, kw_only=True):
    """What a run knows of the preparation of its target when it begins.

    holds: the stamp is of this device, and nothing wrote to it or deallocated on it since.
    broken: something did.  unknown: nobody can tell.  none: there is no stamp.
    ``covered`` says whether every block still is known to be written.  That needs a proof: a count
    that went on from the stamp to now without a gap, beside sampled blocks that all hold data.
    """

    state: Literal["holds", "broken", "unknown", "none"]
    text: str
    covered: bool = False
    steady: State | None = None
    run_id: str = ""
    written_since_bytes: int | None = None

    @property
    def doubt(self) -> str:
        """Why figures are not those of a steady device, "" when they are."""
        if self.state == "holds" and self.steady == "steady":
            return ""
        return self.text


NOT_PREPARED = Condition(
    state="none", text="no record says that it was prepared, so it may not be in its steady state"
)


def binding_of(identity: Identity, logical_block_bytes: int) -> Binding:
    """Return what a stamp of this block device is bound to."""
    return Binding(
        serial=identity.serial,
        wwid=identity.wwid,
        size_bytes=identity.size_bytes,
        logical_block_bytes=logical_block_bytes,
        start_sector=identity.start_sector,
    )


def can_be_bound(binding: Binding) -> bool:
    """Return whether anything but size, namespace and partition tells this device from another."""
    named = binding.wwid and not binding.wwid.startswith(("nsid ", "partition "))
    return bool(binding.serial or named)


def judge(
    stamp: Preparation, binding: Binding, now: WriteHistory, *, empty_samples: int
) -> Condition:
    """Return whether the state that ``stamp`` records still holds.

    Args:
        stamp: of the same device, or of another.
        binding: what the target is bound to now.
        now: what it has counted so far.
        empty_samples: how many of the blocks that were read at random are empty.
    """
    if stamp.binding != binding:
        return Condition(state="none", text=_other_device(stamp.binding, binding))
    settled = f"it was prepared at {stamp.made_at} (run {stamp.run_id}) {STATE_WORDS[stamp.state]}"
    since = _since(stamp.history, now)
    condition = Condition(
        state="holds",
        text=f"{settled}{_cycles(stamp, now)}",
        covered=stamp.coverage.proven
        and not empty_samples
        and since.proves_no_discard
        and not _past_partition(since, binding),
        steady=stamp.state,
        run_id=stamp.run_id,
        written_since_bytes=since.written,
    )
    if since.discarded:
        text = f"{settled}; {format_size(since.discarded)} were deallocated since"
        return replace(condition, state="broken", text=text)
    if empty_samples:
        text = f"{settled}; by now {empty_samples} of {SAMPLES} sampled blocks are empty"
        return replace(condition, state="broken", text=text)
    if since.written is not None and since.written > _written_max(binding):
        share = 100 * since.written / binding.size_bytes
        text = (
            f"{settled}; {format_size(since.written)} were written since "
            f"({_share_words(share)} of it)"
        )
        return replace(condition, state="broken", text=text)
    past = _past_partition(since, binding)
    if past:
        text = f"{settled}; {past}"
        return replace(condition, state="unknown", text=text, written_since_bytes=None)
    if since.written is None or since.backwards:
        why = now.reason or "the drive does not tell"
        if since.backwards:
            why = f"{' and '.join(since.backwards)} ran backwards"
        elif now.boot_id == stamp.history.boot_id and now.diskseq == stamp.history.diskseq:
            why = f"{why}, and the kernel does not count"
        else:
            why = f"{why}, and the kernel's counters began anew"
        text = f"{settled}; whether anything wrote to it since is not known: {why}"
        return replace(condition, state="unknown", text=text, written_since_bytes=None)
    return condition


def _past_partition(since: "_Since", binding: Binding) -> str:
    """Say that its disk counted more than the partition itself; "" when it did not.

    It may have gone to another partition, or to this one past its own node: nobody can tell.
    """
    wrote = (since.disk_wrote or 0) - max(since.wrote or 0, 0)
    discarded = (since.disk_discarded or 0) - (since.discarded or 0)
    if since.disk_discarded is not None and discarded > 0:
        more = f"deallocated {format_size(discarded)}"
    elif since.disk_wrote is not None and wrote > _written_max(binding):
        more = f"wrote {format_size(wrote)}"
    else:
        return ""
    return (
        f"its whole disk {more} more since than this partition, and whether that was here is not "
        "known"
    )


def _written_max(binding: Binding) -> float:
    return max(SMART_STEP_BYTES, WRITTEN_SHARE_MAX * binding.size_bytes)


def _share_words(percent: float) -> str:
    return f"{percent:.2g} %" if percent < 100 else f"{percent / 100:.1f} times all"


def _other_device(then: Binding, now: Binding) -> str:
    changed = [
        name.replace("_", " ")
        for name in Binding.__struct_fields__
        if getattr(then, name) != getattr(now, name)
    ]
    return f"the stamp is of another device: it differs in {', '.join(changed)}"


class _Since(Struct, frozen=True, kw_only=True):
    """What was counted since a stamp.

    ``written`` is the larger of the counts that went on, None where none did; ``discarded`` is
    None where no count went on.  ``backwards`` names the counts that are less than they were: such
    a one began anew or was edited.  It says nothing any more, and the others still say theirs.
    """

    written: int | None
    discarded: int | None
    backwards: tuple[str, ...]
    proves_no_discard: bool
    wrote: int | None  # through the target itself, as the kernel counted
    disk_wrote: int | None  # through the whole disk of a partition and its partitions
    disk_discarded: int | None


def _since(then: WriteHistory, now: WriteHistory) -> _Since:
    """Return what each count says that went on; the kernel's do so in one boot, of one device."""
    smart = _rise(then.smart_written_bytes, now.smart_written_bytes, 1)
    wrote = discarded = disk_wrote = disk_discarded = None
    one_boot = (then.boot_id, then.diskseq) == (now.boot_id, now.diskseq)
    if then.boot_id is not None and one_boot:
        wrote = _rise(then.write_sectors, now.write_sectors, SECTOR_BYTES)
        discarded = _rise(then.discard_sectors, now.discard_sectors, SECTOR_BYTES)
        disk_wrote = _rise(then.disk_write_sectors, now.disk_write_sectors, SECTOR_BYTES)
        disk_discarded = _rise(then.disk_discard_sectors, now.disk_discard_sectors, SECTOR_BYTES)
    counts = {
        "the drive's count of writes": smart,
        "the kernel's count of writes": wrote,
        "the kernel's count of deallocations": discarded,
        "the kernel's count of writes of the whole disk": disk_wrote,
        "the kernel's count of deallocations of the whole disk": disk_discarded,
    }
    backwards = tuple(name for name, rise in counts.items() if rise is not None and rise < 0)
    forward = [rise for rise in (smart, wrote) if rise is not None and rise >= 0]
    # No drive counts deallocations.  Where another boot lies between, its count of writes stands
    # for them, as what deallocates writes too, and the samples; of one boot the kernel knows.
    proof = bool(forward) and not discarded and (disk_discarded or 0) >= 0
    return _Since(
        written=max(forward, default=None),
        discarded=discarded if discarded is not None and discarded >= 0 else None,
        backwards=backwards,
        proves_no_discard=proof,
        wrote=wrote,
        disk_wrote=disk_wrote,
        disk_discarded=disk_discarded,
    )


def _rise(then: int | None, now: int | None, unit_bytes: int) -> int | None:
    return None if then is None or now is None else (now - then) * unit_bytes


def _cycles(stamp: Preparation, now: WriteHistory) -> str:
    then, later = stamp.history.power_cycles, now.power_cycles
    if then is None or later is None or then >= later:
        return ", nothing wrote to it since"
    return f", nothing wrote to it since, through {later - then} power cycles"
