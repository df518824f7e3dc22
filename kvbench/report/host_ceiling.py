"""Measured rates beside what this host generates without any device: was it the host?  Pure.

Of each workload the point that came nearest to its ceiling is shown; where only one workload has
ceilings, each of its points.  With fewer than two rows there is no figure: the table has the share.
"""

from collections.abc import Iterator

from msgspec import Struct

from kvbench.measure.ceiling import HOST_BOUND_PERCENT, Ceilings, host_ceilings
from kvbench.plan import ceiling_shape
from kvbench.report.model import DotPanel, DotRow, Figure, PlainTable
from kvbench.report.points import Index, Point, directions
from kvbench.report.words import parameter_words, quantity, short
from kvbench.workload.schema import Workload

FIGURE_ID = "host-ceiling"
ROWS_MIN, ROWS_MAX = 2, 12
SHARE_SHOWN_MIN = 0.1  # percent
TWO_DIGITS_MAX = 99.5  # %; from here on two digits say 100


class _Near(Struct, frozen=True):
    workload: str
    words: str  # the point and the stream
    share: float  # percent
    ceiling: float  # I/Os per second

    @property
    def rate(self) -> float:
        return self.ceiling * self.share / 100


def ceiling_figure(index: Index) -> Figure | None:
    """Return the figure, None without ceilings or with one row only."""
    ceilings = host_ceilings(index.run.cells)
    found = [one for w in index.run.record.plan.workloads for one in _points(index, w, ceilings)]
    names = list(dict.fromkeys(one.workload for one in found))
    if len(names) > 1:
        of_each = ([one for one in found if one.workload == name] for name in names)
        found = [max(own, key=lambda one: one.share) for own in of_each]
    nearest = sorted(found, key=lambda one: -one.share)[:ROWS_MAX]
    drawn = [one for one in found if any(one is other for other in nearest)]
    if len(drawn) < ROWS_MIN:
        return None
    left_out = f" The {len(drawn)} nearest of {len(found)}." if len(drawn) < len(found) else ""
    which = "Of each workload, the point that came nearest." if len(names) > 1 else "Each point."
    limit = f"{HOST_BOUND_PERCENT:.0f} %"
    return Figure(
        figure_id=FIGURE_ID,
        title="Measured rates and the host's ceilings",
        question="Was it the host?",
        how_to_read=f"{which}{left_out} The stroke is what this host generates with fio's null "
        f"engine and the same job shape; a rate in the orange stretch, from {limit} of it on, is "
        "doubted as host-bound. The axis is logarithmic.",
        panels=(
            DotPanel(
                title="Measured rates and the host's ceilings",
                description=" ".join(f"{_label(one)}: {_says(one)}." for one in drawn),
                x_label="IOPS (1/s, log scale)",
                unit="1/s",
                limit_label=f"from {limit} on: doubted",
                rows=tuple(
                    DotRow(
                        label=_label(one),
                        value=one.rate,
                        limit=one.ceiling * HOST_BOUND_PERCENT / 100,
                        end=one.ceiling,
                        text=_percent(one.share),
                        says=f"{_label(one)}\n{_says(one)}",
                    )
                    for one in drawn
                ),
            ),
        ),
        table=PlainTable(
            caption="Measured rates and the host's ceilings",
            head=("point", "measured", "ceiling", "share"),
            rows=tuple(
                (
                    _label(one),
                    _rate(one.rate),
                    _rate(one.ceiling),
                    _percent(one.share) + (" (doubted)" if one.share >= HOST_BOUND_PERCENT else ""),
                )
                for one in drawn
            ),
        ),
    )


def _points(index: Index, workload: Workload, ceilings: Ceilings) -> Iterator[_Near]:
    for point in index.points(workload):
        known = ceilings.get(ceiling_shape(point.cell), {})
        for place, placed in enumerate(point.cell.placed):
            share = _share(index, point, place)
            if share is None or not known.get(place):
                continue
            words = [parameter_words(point.cell.parameters), point.setting]
            if len(point.cell.placed) > 1 or len(workload.streams) > 1:
                words.insert(0, short(placed.stream.name, 20))
            shown = ", ".join(word for word in words if word)
            yield _Near(short(workload.name, 28), shown, share, known[place])


def _share(index: Index, point: Point, place: int) -> float | None:
    stream = point.cell.placed[place].stream
    for direction in directions(stream):
        found = index.summary(point, stream.name, direction, "host_ceiling_share")
        if found is not None and found.median is not None:
            return found.median
    return None


def _label(one: _Near) -> str:
    return f"{one.workload}: {one.words}" if one.words else one.workload


def _says(one: _Near) -> str:
    return f"{_rate(one.rate)}, {_percent(one.share)} of the host's {_rate(one.ceiling)}"


def _percent(share: float) -> str:
    if 0 < share < SHARE_SHOWN_MIN:
        return f"under {SHARE_SHOWN_MIN:g} %"
    return f"{share:.2g} %" if share < TWO_DIGITS_MAX else quantity("", "%", share)


def _rate(value: float) -> str:
    return quantity("iops", "1/s", value)
