"""How near each closed-loop stream came to what this host can generate.  Pure.

The ceiling cells drive fio's null engine with the same job shape.  A stream that comes close to
its ceiling tells more of this host than of the target.
"""

from collections.abc import Iterable, Mapping
from statistics import median

from msgspec import structs

from kvbench.measure.checks import outcome_of
from kvbench.measure.model import Finding, MeasuredCell, Measurement
from kvbench.plan import ceiling_shape
from kvbench.units import format_count

HOST_BOUND_PERCENT = 70.0
CEILING_PERCENT_MAX = 120.0  # of a ceiling that was measured while the host was busy

Ceilings = Mapping[str, Mapping[int, float]]  # job shape -> place of the stream -> I/Os per second


def host_ceilings(cells: Iterable[MeasuredCell]) -> Ceilings:
    """Return the rate of each stream of each job shape, from the ceiling cells that count."""
    rates: dict[str, dict[int, list[float]]] = {}
    for cell in cells:
        if cell.cell.purpose != "ceiling" or cell.outcome not in ("valid", "doubtful"):
            continue
        shape = rates.setdefault(ceiling_shape(cell.cell), {})
        for index, rate in _stream_rates(cell).items():
            shape.setdefault(index, []).append(rate)
    return {
        shape: {index: median(found) for index, found in streams.items()}
        for shape, streams in rates.items()
    }


def with_ceiling(cell: MeasuredCell, ceilings: Ceilings) -> MeasuredCell:
    """Return the cell with its share of the host's ceiling, and the doubt when it is large.

    A paced cell has no ceiling and is returned as it is.
    """
    shape = ceiling_shape(cell.cell)
    if cell.cell.purpose == "ceiling" or not shape:
        return cell
    known = ceilings.get(shape, {})
    rates = _stream_rates(cell)
    measurements: list[Measurement] = []
    findings: list[Finding] = []
    for index, placed in enumerate(cell.cell.placed):
        if index not in rates:
            continue
        own = [m for m in cell.measurements if m.stream == placed.stream.name]
        ceiling = known.get(index)
        share = 100 * rates[index] / ceiling if ceiling else None
        measurements.append(
            Measurement(
                stream=placed.stream.name,
                direction=own[0].direction,
                metric="host_ceiling_share",
                value=share,
                io_count=sum(m.io_count for m in own if m.metric == "iops"),
                reason="" if ceiling else "the host's ceiling for this job shape is not known",
            )
        )
        if ceiling and share is not None and share >= HOST_BOUND_PERCENT:
            per_second = f"{format_count(rates[index])} I/Os per second"
            text = (
                f"the host's ceiling is too low to be right: it generated {format_count(ceiling)} "
                f"I/Os per second without a device and {format_count(rates[index])} with it"
                if share > CEILING_PERCENT_MAX
                else f"host-bound: {per_second} are {share:.0f} % of "
                f"the {format_count(ceiling)} that this host generates without any device"
            )
            findings.append(
                Finding(check="host-bound", severity="doubt", text=text, stream=placed.stream.name)
            )
    together = cell.findings + tuple(findings)
    return structs.replace(
        cell,
        findings=together,
        measurements=cell.measurements + tuple(measurements),
        outcome=outcome_of(together, failed=cell.outcome == "failed"),
    )


def _stream_rates(cell: MeasuredCell) -> dict[int, float]:
    """Return each stream's I/Os per second over both directions, by its place in the cell."""
    rates = {}
    for index, placed in enumerate(cell.cell.placed):
        own = [
            m.value
            for m in cell.measurements
            if m.stream == placed.stream.name and m.metric == "iops" and m.value is not None
        ]
        if own:
            rates[index] = sum(own)
    return rates
