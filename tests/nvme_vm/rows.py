"""Runs of known devices -> rows of percentile, configured and measured latency.  Pure."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kvbench.measure.run import measure_run
from kvbench.metrics import ios_needed, percentile_name
from kvbench.store.read import RunArchive
from tests.nvme_vm.known import MARGIN, PERCENTILES, Device, Load, configured_s, off

SAME_P50 = 0.01
SAME = 0.016  # the next bin of fio's histogram


class Row(Struct, frozen=True, kw_only=True):
    """One percentile of one device under one load, in each of several boots."""

    device: Device
    load: Load
    percentile: float
    configured_s: tuple[float, ...]
    values_s: tuple[float, ...]
    io_counts: tuple[int, ...]

    @property
    def worst_off(self) -> float:
        """The largest relative difference to what was configured."""
        return max((off(value, self.configured_s) for value in self.values_s), key=abs)

    @property
    def spread(self) -> float:
        """By how much the largest value is above the smallest."""
        return max(self.values_s) / min(self.values_s) - 1

    @property
    def right(self) -> bool:
        """Whether every boot saw what was configured, and all saw the same."""
        same = SAME_P50 if self.percentile == 50 else SAME
        return abs(self.worst_off) <= MARGIN and self.spread <= same


class Unmeasured(Exception):
    """A cell has no usable numbers."""


def rows_of(device: Device, loads: Sequence[Load], boots: Sequence[RunArchive]) -> Iterator[Row]:
    """Yield a row for each percentile that the I/Os of each load are enough for.

    Raises:
        Unmeasured: a cell is missing, or kvbench itself says that its numbers do not count.
    """
    runs = [_percentiles(archive) for archive in boots]
    for load in loads:
        for percentile in PERCENTILES:
            if load.ios < ios_needed(percentile):
                continue
            key = (load.name, f"latency_{percentile_name(percentile)}")
            found = [run.get(key) for run in runs]
            known = [one for one in found if one is not None]
            if len(known) < len(found):
                raise Unmeasured(f"{device.name}: {key[0]} has no {key[1]}")
            fewest = min(count for _, count in known)
            yield Row(
                device=device,
                load=load,
                percentile=percentile,
                configured_s=configured_s(device, percentile, fewest),
                values_s=tuple(value for value, _ in known),
                io_counts=tuple(count for _, count in known),
            )


def _percentiles(archive: RunArchive) -> dict[tuple[str, str], tuple[float, int]]:
    """Return workload and metric -> the value and the I/Os behind it."""
    run = measure_run(archive)
    found = {}
    for cell in run.cells:
        if cell.cell.purpose != "measure":
            continue
        if cell.outcome in ("failed", "invalid"):
            texts = "; ".join(finding.text for finding in cell.findings)
            raise Unmeasured(f"{cell.cell.workload} is {cell.outcome}: {texts}")
        for one in cell.measurements:
            if one.value is not None:
                found[cell.cell.workload, one.metric] = (one.value, one.io_count)
    return found
