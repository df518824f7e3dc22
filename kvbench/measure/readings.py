"""A measured run -> what its probes say, in plain language, each with what can mislead it.  Pure.

A reading claims no more than the numbers carry: a step counts only where every repetition shows it
and all that is compared together tells it from chance, "not seen" names how far was looked, and
where the run does not tell it says so.  Add a probe by
writing a function and naming it in ``PROBES``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log

from msgspec.structs import replace

from kvbench.measure.model import MeasuredRun, Summary
from kvbench.measure.probed import Probed, spread, with_spread
from kvbench.measure.reading_model import Answer, Reading
from kvbench.measure.timeline import Timeline, gather_timeline
from kvbench.measure.write_readings import (
    deallocated,
    indirection_unit,
    integrity,
    sustained_write,
)
from kvbench.stats.knee import RISE_MIN
from kvbench.stats.student import p_larger
from kvbench.stats.two_sample import holm
from kvbench.store.read import RunArchive
from kvbench.units import MIB, format_count, format_size, format_time, format_value
from kvbench.workload.schema import SweepValue

WINDOWED = ("sustained-write",)  # workloads that are looked at second by second
REPETITIONS_MIN = 3  # with fewer, one slow second makes a difference
CHANCE_MAX = 0.05  # of a difference where there is none, over all that one probe compares
IDLE_RATIO_MIN = 1.5  # of the latency without a pause
SLOT_BYTES = 32 * MIB
SCANNED_BYTES = 1_000_000_000_000

Probe = Callable[[Probed], Iterator[Reading]]


def windows_of_probes(archive: RunArchive) -> Timeline:
    """Return the windows of time of the cells whose probes look at them, and of no others."""
    cells = tuple(one for one in archive.cells if one.record.cell.workload in WINDOWED)
    return gather_timeline(replace(archive, cells=cells))


def read_probes(run: MeasuredRun, timeline: Timeline) -> tuple[Reading, ...]:
    """Return what the probes of a run say, in the order of its workloads."""
    facts = {fact.name: fact.value for fact in run.record.facts}
    found: list[Reading] = []
    for workload in run.record.plan.workloads:
        probes = [PROBES[workload.name]] if workload.name in PROBES else []
        if any(stream.once for stream in workload.streams):
            probes.append(integrity)
        if any(stream.verify == "deallocated" for stream in workload.streams):
            probes.append(deallocated)
        mine = [c for c in run.cells if c.cell.workload == workload.name]
        probed = Probed(
            workload=workload,
            plan=run.record.plan,
            cells=tuple(c for c in mine if c.cell.purpose == "measure"),
            summaries=tuple(
                s for s in run.summaries if s.workload == workload.name and s.purpose == "measure"
            ),
            timeline=timeline,
            facts=facts,
        )
        for probe in probes:
            found += probe(probed)
    return tuple(found)


def map_span(probed: Probed) -> Iterator[Reading]:
    """From which span on a read takes longer: the drive looks its map up in flash."""
    question = "Does the drive's map of blocks fit its memory?"
    axis = next((a for a in probed.workload.sweep if a.field == "span_size"), None)
    if axis is None or len(axis.values) < 2:
        text = "The target holds one span only, and one span shows no growth."
        yield probed.reading(question, "cannot-say", text)
        return
    first, last = int(axis.values[0]), int(axis.values[-1])
    reach = f"from {format_size(first)} to {format_size(last)}"
    knees, flat, unclear, unknown = [], [], [], []
    for parameters in _parameters(probed, "span_size", last):
        line = _line_words(parameters)
        knee = probed.summary("span_knee", parameters)
        slope = probed.summary("span_slope", parameters)
        ratio = probed.summary("latency_over_smallest_span", parameters)
        if knee is not None:
            rise = f", by {with_spread(slope)} with every doubling" if slope is not None else ""
            knees.append(f"{line}: the median latency rises from {with_spread(knee)} on{rise}.")
        elif ratio is not None and (ratio.median or 0.0) >= 1 + RISE_MIN:
            unclear.append(
                f"{line}: the last span is {with_spread(ratio)} times the first, and yet not every "
                f"repetition has a knee {reach}: the rise is not steady."
            )
        elif ratio is not None:
            flat.append(
                f"{line}: no knee {reach}; the last is {with_spread(ratio)} times the first."
            )
        else:
            unknown.append(f"{line}: no number {reach}.")
    sure = flat and not unclear and not unknown
    answer: Answer = "seen" if knees else "not-seen" if sure else "cannot-say"
    beyond = f"A map that reaches {format_size(last)} may still end beyond it."
    sentences = (*knees, *unclear, *flat, *unknown)
    yield probed.reading(question, answer, *sentences, more=(beyond,))


def restart_scan(probed: Probed) -> Iterator[Reading]:
    """How long it takes to find out what a drive holds."""
    question = "How long does a restart take to find out what the drive holds?"
    rate = probed.summary("iops")
    if rate is None or not rate.median:
        yield probed.reading(question, "cannot-say", "No repetition gave a rate of headers.")
        return
    scan = format_value(SCANNED_BYTES / SLOT_BYTES / rate.median, "s")
    text = (
        f"{format_count(rate.median)} headers per second ({spread(rate)}): a full terabyte in "
        f"slots of {format_size(SLOT_BYTES)} is known after {scan}."
    )
    yield probed.reading(question, "seen", text)


def read_under_write(probed: Probed) -> Iterator[Reading]:
    """What a writer costs the reads beside it."""
    question = "What does a writer cost the reads beside it?"
    sentences, slower, unsure = [], False, False
    pairs: dict[str, tuple[Summary, Summary]] = {}
    for metric in ("latency_p50", "latency_p99"):
        alone = _first(probed, metric, "read", alone=True)
        beside = _first(probed, metric, "read", alone=False)
        if alone is not None and beside is not None and alone.median:
            pairs[metric] = alone, beside
    chances = dict(zip(pairs, _chances(list(pairs.values())), strict=True))
    for metric, words in (("latency_p50", "median"), ("latency_p99", "p99")):
        if metric not in pairs:
            unsure = True  # where one is the same the other may still be longer
            sentences.append(f"No {words} to compare: {_why_none(probed, metric)}.")
            continue
        alone, beside = pairs[metric]
        ratio = (beside.median or 0.0) / (alone.median or 1.0)
        apart = (beside.low or 0.0) > (alone.high or 0.0) and ratio > 1
        if min(alone.n, beside.n) < REPETITIONS_MIN:
            unsure = True
            far = f"and fewer than {REPETITIONS_MIN} repetitions cannot tell it from chance"
        elif apart and chances[metric] > CHANCE_MAX:
            unsure = True
            far = "and though the two do not overlap, so few repetitions may differ so by chance"
        else:
            slower = slower or apart
            far = "and the two do not overlap" if apart else "within what the repetitions vary by"
        sentences.append(
            f"The {words} of reads is {with_spread(beside)} beside the writer and "
            f"{with_spread(alone)} alone: {ratio:.3g} times, {far}."
        )
    answer: Answer = "seen" if slower else "cannot-say" if unsure else "not-seen"
    yield probed.reading(question, answer, *sentences)


def idle_then_read(probed: Probed) -> Iterator[Reading]:
    """What the first read after a pause costs."""
    question = "What does the first read after a quiet spell cost?"
    axis = next((a for a in probed.workload.sweep if a.field == "pause"), None)
    pauses = sorted(float(v) for v in axis.values) if axis is not None else []
    rows: list[tuple[float, Summary]] = []
    for pause in pauses:
        mean = _at(probed, "latency_mean", "pause", pause)
        if mean is not None and mean.median:
            rows.append((pause, mean))
    if len(rows) < 2:
        text = "Fewer than two pauses gave a latency, so nothing can be compared."
        yield probed.reading(question, "cannot-say", text)
        return
    (shortest, base), rest = rows[0], rows[1:]
    told, seen, unsure = [], False, False
    few = min(mean.n for _, mean in rows) < REPETITIONS_MIN
    chances = _chances([(base, mean) for _, mean in rest])
    for (pause, mean), chance in zip(rest, chances, strict=True):
        ratio = (mean.median or 0.0) / (base.median or 1.0)
        apart = ratio >= IDLE_RATIO_MIN and (mean.low or 0.0) > (base.high or 0.0)
        costs = apart and not few and chance <= CHANCE_MAX
        seen, unsure = seen or costs, unsure or (apart and not costs)
        told.append(
            f"after {format_time(pause)} a read takes {with_spread(mean)}, {ratio:.2g} times"
            f"{'' if costs else ' (no clear difference)'}"
        )
    begin = f"With pauses of {format_time(shortest)} a read takes {with_spread(base)} on average"
    more = []
    wake = probed.number("cpu_idle_exit_us")
    if wake:
        more.append(
            f"the host's own deepest idle state takes {wake} us to leave, and is in these times"
        )
    reads = f"behind the longest pause stand {rows[-1][1].io_count} reads in all."
    if few:
        reads += f" Fewer than {REPETITIONS_MIN} repetitions cannot tell a difference from chance."
    elif unsure and not seen:
        reads += " The repetitions vary so much that a difference may be chance: give more of them."
    answer: Answer = "seen" if seen else "cannot-say" if few or unsure else "not-seen"
    yield probed.reading(question, answer, f"{begin}; {'; '.join(told)}; {reads}", more=more)


PROBES: dict[str, Probe] = {
    "map-span": map_span,
    "restart-scan": restart_scan,
    "read-under-write": read_under_write,
    "indirection-unit": indirection_unit,
    "idle-then-read": idle_then_read,
    "sustained-write": sustained_write,
}


def _chances(pairs: Sequence[tuple[Summary, Summary]]) -> list[float]:
    """Return of each pair the chance that the second is so much larger by luck.

    Corrected for their number, as one that is larger is enough for an answer.
    """
    found = []
    for base, other in pairs:
        values = (*base.values, *other.values)
        if min(base.n, other.n) < 2 or min(values) <= 0:
            found.append(1.0)
        else:
            found.append(p_larger([log(v) for v in base.values], [log(v) for v in other.values]))
    return holm(found)


def _parameters(probed: Probed, field: str, value: SweepValue) -> list[dict[str, SweepValue]]:
    """Return the points at one value of a swept field."""
    found: list[dict[str, SweepValue]] = []
    for cell in probed.plan.cells:
        mine = cell.workload == probed.workload.name and cell.purpose == "measure"
        if mine and cell.parameters.get(field) == value and cell.parameters not in found:
            found.append(cell.parameters)
    return sorted(found, key=lambda p: [str(v).zfill(20) for v in p.values()])


def _line_words(parameters: Mapping[str, SweepValue]) -> str:
    size, depth = parameters.get("block_size"), parameters.get("queue_depth")
    size_words = f"{format_size(float(size))} reads" if isinstance(size, int) else "Reads"
    return f"{size_words} at depth {depth}" if depth is not None else size_words


def _first(probed: Probed, metric: str, stream: str, *, alone: bool) -> Summary | None:
    for one in probed.summaries:
        if (one.metric, one.stream) == (metric, stream) and (one.alone is not None) == alone:
            return one if one.median is not None else None
    return None


def _at(probed: Probed, metric: str, field: str, value: float) -> Summary | None:
    for one in probed.summaries:
        if one.metric == metric and one.parameters.get(field) == value:
            return one if one.median is not None else None
    return None


def _why_none(probed: Probed, metric: str) -> str:
    """Return why one of the two latencies is not known."""
    reasons = [
        one.reason for one in probed.summaries if one.metric == metric and one.stream == "read"
    ]
    return next((reason for reason in reasons if reason), "no cell of both counts")
