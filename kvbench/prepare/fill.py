"""Write every block of a device: in order, then in random order; and prove that it was.

Source: SNIA Solid State Storage Performance Test Specification, workload independent
preconditioning: twice the user capacity, written in order.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from kvbench.fio.jobfile import FILL_BLOCK_BYTES, render_fill, render_random_fill
from kvbench.fio.launch import LiveCounters
from kvbench.fio.probe import FioTool
from kvbench.host import guard, lease, probe
from kvbench.host.model import Identity
from kvbench.host.samples import sample_offsets
from kvbench.prepare.marks import Found, look
from kvbench.store.preparation import Coverage, FillPass
from kvbench.target import write_all
from kvbench.units import SECTOR_BYTES, format_size

_COUNTED_SHARE_MIN = 0.999


class Pass(Struct, frozen=True, kw_only=True):
    """One pass to do: which pattern, in which blocks, and how many bytes."""

    pattern: Literal["sequential", "random"]
    block_bytes: int
    size_bytes: int


def passes(size_bytes: int, unit_bytes: int, sequential: int, randoms: int) -> tuple[Pass, ...]:
    """Return the passes over a target.

    A random pass leaves out what at the end is less than a unit; the sequential ones write it.
    """
    whole = size_bytes // unit_bytes * unit_bytes
    in_order = Pass(pattern="sequential", block_bytes=FILL_BLOCK_BYTES, size_bytes=size_bytes)
    at_random = Pass(pattern="random", block_bytes=unit_bytes, size_bytes=whole)
    return (in_order,) * sequential + (at_random,) * randoms


def fill_pass(
    identity: Identity,
    one: Pass,
    *,
    tool: FioTool,
    engine: str,
    seed: int,
    folder: Path,
    stop: threading.Event,
    on_tick: Callable[[LiveCounters], None] | None = None,
) -> FillPass:
    """Write a pass, and count what the device saw of it.

    Raises:
        Refused: the target is no longer the same thing.
        StoreError, EnvironmentMissing, Interrupted: as for ``target.write_all``.
    """
    guard.same_device(identity)
    device = probe.device_under(identity)
    before = probe.device_counters(device) if device else None
    with lease.opened(identity) as name:
        if one.pattern == "sequential":
            text = render_fill(name, one.size_bytes, direct=True, engine=engine)
        else:
            text = render_random_fill(
                name, one.size_bytes, block_bytes=one.block_bytes, seed=seed, engine=engine
            )
        path = Path(identity.real_path)
        wall_s = write_all(
            path, text, one.size_bytes, tool=tool, folder=folder, stop=stop, on_tick=on_tick
        )
    after = probe.device_counters(device) if device else None
    counted = None
    if before is not None and after is not None:
        counted = (after.write_sectors - before.write_sectors) * SECTOR_BYTES
    return FillPass(
        pattern=one.pattern,
        block_bytes=one.block_bytes,
        written_bytes=one.size_bytes,
        device_written_bytes=counted,
        wall_s=wall_s,
    )


def coverage(identity: Identity, fills: Sequence[FillPass], seed: int) -> Coverage:
    """Return whether every block was written: two counts, and reads at sampled places.

    The places are those that a purge with this seed has marked, so that a block which no pass
    reached is known by its mark, or by being empty.

    Raises:
        Refused: the target is no longer the same thing.
        EnvironmentMissing: a block cannot be read.
    """
    found = look(identity, sample_offsets(identity.size_bytes, seed), seed)
    return judge_coverage(identity.size_bytes, fills, found)


def judge_coverage(size_bytes: int, fills: Sequence[FillPass], found: Found) -> Coverage:
    """Return what counts and samples say together.  Pure."""
    empty = found.marked + found.empty
    whole = [one for one in fills if one.written_bytes == size_bytes]
    short = [
        one
        for one in fills
        if one.device_written_bytes is not None
        and one.device_written_bytes < _COUNTED_SHARE_MIN * one.written_bytes
    ]
    uncounted = any(one.device_written_bytes is None for one in fills)
    if not whole:
        text = "no pass wrote all of it"
    elif short:
        counted = short[0].device_written_bytes or 0
        text = (
            f"fio wrote {format_size(short[0].written_bytes)} in a {short[0].pattern} pass, and "
            f"the device counted {format_size(counted)}"
        )
    elif empty:
        text = f"{empty} of {found.sampled} sampled blocks were not reached by any pass"
    else:
        device = "the device has no counters" if uncounted else "the device counted as much"
        text = (
            f"fio wrote all {format_size(size_bytes)} in each of {len(fills)} passes, {device}, "
            f"and {found.sampled} of {found.sampled} sampled blocks hold new data"
        )
    return Coverage(
        proven=bool(whole) and not short and not empty,
        sampled=found.sampled,
        empty=empty,
        text=text,
    )
