"""What the probes that write say: write unit, cache, trims, and whether data is kept.  Pure."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import log
from statistics import median

import numpy as np
from msgspec import Struct

from kvbench.measure.probed import Probed, range_words
from kvbench.measure.reading_model import Answer, Reading
from kvbench.stats.drop import VALUES_MIN, find_drop
from kvbench.stats.student import p_below_zero
from kvbench.stats.two_sample import holm
from kvbench.units import format_bandwidth, format_clock, format_size

FELL_MIN = 2  # repetitions with a cliff; one alone may be chance
ONCE_SHARE_MAX = 0.5  # of the level before it: a cliff that a run of one repetition may call seen
STEP_SHARE_MAX = 0.85  # of the rate of the next larger writes: below it is a step
STEP_REPETITIONS_MIN = 3  # with fewer, one slow second makes a step
APART_MIN = 1.5  # by so much the repetitions of a long write differ for it to be told
STEP_WORST_MAX = 0.95  # in the repetition that shows it least
CHANCE_MAX = 0.05  # of one step or more where there is none, over all neighbours together


class _Neighbours(Struct, frozen=True, kw_only=True):
    """Two sizes of writes; ``shares`` is the rate of the smaller over that of the larger."""

    small: int
    large: int
    shares: tuple[float, ...]  # one per repetition that has both

    @property
    def is_step(self) -> bool:
        """Whether every repetition shows clearly fewer of the smaller writes."""
        return median(self.shares) <= STEP_SHARE_MAX and max(self.shares) <= STEP_WORST_MAX

    @property
    def words(self) -> str:
        """The share with its range."""
        return (
            f"writes of {format_size(self.small)} reach {median(self.shares):.2f} of the rate of "
            f"writes of {format_size(self.large)} ({range_words(self.shares)})"
        )


def _neighbours(rates: Mapping[int, Mapping[int, float]]) -> Iterator[_Neighbours]:
    """Yield the sizes that follow one another, from their rates by repetition."""
    for small, large in pairwise(rates):
        both = sorted(rates[small].keys() & rates[large].keys())
        shares = [rates[small][r] / rates[large][r] for r in both if rates[large][r] > 0]
        shares = [share for share in shares if share > 0]
        if shares:
            yield _Neighbours(small=small, large=large, shares=tuple(shares))


def indirection_unit(probed: Probed) -> Iterator[Reading]:
    """The size below which a write costs more than a whole unit."""
    question = "In which unit does the drive write?"
    axis = next((a for a in probed.workload.sweep if a.field == "block_size"), None)
    stream = probed.workload.streams[0].name
    rates: dict[int, dict[int, float]] = {}
    for value in sorted(int(v) for v in axis.values) if axis is not None else ():
        found = probed.by_repetition("iops", stream, {"block_size": value})
        if found:
            rates[value] = found
    missing = [
        f"{format_size(int(one.cell.parameters['block_size']))} is not supported here: "
        f"{one.reason}."
        for one in probed.plan.unsupported
        if one.cell.workload == probed.workload.name and "block_size" in one.cell.parameters
    ]
    own = probed.number("physical_block_bytes")
    if own:
        missing.append(f"The device itself names a physical block of {format_size(own)}.")
    more = (
        ["the drive's write cache is on"] if probed.facts.get("write_cache") == "write back" else []
    )
    sizes = list(rates)
    if len(sizes) < 2:
        text = "Fewer than two sizes gave a rate, and a step needs two."
        yield probed.reading(question, "cannot-say", text, *missing, more=more)
        return
    pairs = list(_neighbours(rates))
    chances = holm(p_below_zero([[log(share) for share in pair.shares] for pair in pairs]))
    steps = [pair for pair in pairs if pair.is_step]
    sure = [pair for pair, chance in zip(pairs, chances, strict=True) if chance <= CHANCE_MAX]
    told = [pair for pair in steps if pair in sure and len(pair.shares) >= STEP_REPETITIONS_MIN]
    if steps and not told:
        last = steps[-1]
        few = max(len(pair.shares) for pair in pairs) < STEP_REPETITIONS_MIN
        why = (
            f"With fewer than {STEP_REPETITIONS_MIN} repetitions it cannot be told from chance."
            if few
            else "The repetitions vary so much that it cannot be told from chance: give more "
            "--repetitions, or a longer --runtime."
        )
        text = f"Perhaps a step at {format_size(last.large)}: {last.words}. {why}"
        yield probed.reading(question, "cannot-say", text, *missing, more=more)
        return
    if told:
        unit = told[-1]
        text = (
            f"A step at {format_size(unit.large)}: {unit.words}. The drive seems to write whole "
            "units of it."
        )
        others = [
            f"{'Also' if pair in told else 'Perhaps, or by chance'}: {pair.words}."
            for pair in steps
            if pair is not unit
        ]
        yield probed.reading(question, "seen", text, *others, *missing, more=more)
        return
    least = min(pairs, key=lambda pair: median(pair.shares), default=None)
    low = f" The least: {least.words}." if least and median(least.shares) < 1 else ""
    text = (
        f"No step seen: from {format_size(sizes[0])} to {format_size(sizes[-1])} smaller writes "
        f"are never clearly rarer than larger ones.{low} The unit may be the smallest size, or a "
        "cache hides it."
    )
    yield probed.reading(question, "not-seen", text, *missing, more=more)


def deallocated(probed: Probed) -> Iterator[Reading]:
    """What trimmed blocks return."""
    question = "What do trimmed blocks return?"
    looks = [look for cell in probed.cells for look in cell.after_trim]
    read = [look for look in looks if look.units]
    more = []
    if probed.plan.target.kind == "file":
        more.append(
            "on a file a hole is punched, and its zeroes are the file system's, not the drive's"
        )
    if not read:
        reasons = "; ".join(dict.fromkeys(look.reason for look in looks)) or "no cell read them"
        yield probed.reading(question, "cannot-say", f"Nothing was read after a trim: {reasons}.")
        return
    units = sum(look.units for look in read)
    unit = format_size(read[0].unit_bytes)
    kinds = (
        ("zeroes", sum(look.zero for look in read)),
        ("ones", sum(look.ones for look in read)),
        ("what stood there before", sum(look.old for look in read)),
        ("something else", sum(look.other for look in read)),
    )
    parts = [f"{count:,} return {what}" for what, count in kinds if count]
    changed = sum(look.changed for look in read)
    again = (
        f"{changed:,} did not return the same in every one of {read[0].reads} reads: not "
        "deterministic."
        if changed
        else f"Each returned the same in {read[0].reads} reads."
    )
    before = sum(look.zero_before for look in read)
    if before:
        more.append(f"{before:,} of the blocks were zeroes before the trim and tell nothing")
    old = sum(look.old for look in read)
    warns = [f"{old:,} blocks were not emptied: another tenant could read them."] if old else []
    yield probed.reading(
        question,
        "cannot-say" if before == units else "seen",
        f"Of {units:,} trimmed blocks of {unit}, {'; '.join(parts)}.",
        again,
        *warns,
        more=more,
        own=not any(stream.once for stream in probed.workload.streams),
    )


def sustained_write(probed: Probed) -> Iterator[Reading]:
    """Where a long write falls to a lower speed."""
    question = "Where does the write cache end?"
    sentences: list[str] = []
    levels: list[float] = []  # the median of each repetition
    fell = whole = clear = 0
    least_bytes: float | None = None
    stream = probed.workload.streams[0]
    for one in probed.timeline.cells:
        if one.cell.workload != probed.workload.name or one.cell.purpose != "measure":
            continue
        windows = [w for s in one.streams if s.stream == stream.name for w in s.windows]
        if len(windows) < VALUES_MIN:
            continue
        whole += 1
        rates = np.array([w.rate * stream.mean_block_bytes for w in windows])
        lengths = np.array([w.end_s - w.begin_s for w in windows])
        levels.append(float(np.median(rates)))
        written = float((rates * lengths).sum())
        least_bytes = written if least_bytes is None else min(least_bytes, written)
        drop = find_drop(rates)
        number = one.cell.repetition
        if drop is None:
            low, high = np.quantile(rates, (0.1, 0.9))
            sentences.append(
                f"Repetition {number}: no cliff within {format_size(written)} "
                f"({format_clock(float(lengths.sum()))}); "
                f"{format_bandwidth(float(np.median(rates)))} in the median window, 80 % of "
                f"{rates.size} windows between "
                f"{format_bandwidth(float(low))} and {format_bandwidth(float(high))}."
            )
            continue
        fell += 1
        clear += drop.after <= ONCE_SHARE_MAX * drop.before
        until = float((rates * lengths)[: drop.place].sum())
        sentences.append(
            f"Repetition {number}: after {format_size(until)} "
            f"({format_clock(float(lengths[: drop.place].sum()))}) it falls from "
            f"{format_bandwidth(drop.before)} to {format_bandwidth(drop.after)} "
            f"({drop.after / drop.before:.0%}), medians of {drop.place} and "
            f"{rates.size - drop.place} windows."
        )
    if not whole:
        text = f"No repetition has {VALUES_MIN} windows of bandwidth: give a longer --runtime."
        yield probed.reading(question, "cannot-say", text)
        return
    if min(levels) > 0 and max(levels) / min(levels) >= APART_MIN:
        sentences.append(
            f"The repetitions themselves differ by a factor of {max(levels) / min(levels):.2g}: "
            "a cliff may lie between them, or something else changed."
        )
    answer: Answer = "seen"
    head = f"A cliff in {fell} of {whole} repetitions."
    if not fell:
        answer = "not-seen"
        head = (
            f"No cliff was seen in {whole} repetitions, each of at least "
            f"{format_size(least_bytes or 0.0)}: a cache that holds more cannot be told from none."
        )
    elif whole == 1 and clear:
        sentences.append("It was seen once: a second repetition would confirm it.")
    elif fell < FELL_MIN:
        answer = "cannot-say"
        others = ", or the cache was still full in the others" if whole > 1 else ""
        sentences.append(
            f"One alone may be chance{others}: give more --repetitions, on a drive that was idle "
            "before."
        )
    yield probed.reading(question, answer, head, *sentences)


def integrity(probed: Probed) -> Iterator[Reading]:
    """Whether all that was written was read back as it was."""
    question = "Was other data read back than was written?"
    good = bad = blocks = 0
    wrong: list[str] = []
    for cell in probed.cells:
        once = [one for one in cell.cell.placed if one.stream.once]
        if not once:
            continue
        texts = [f.text for f in cell.findings if f.check == "read-back"]
        if texts:
            bad += 1
            wrong += [f"Cell {cell.cell.cell_id}: {text}." for text in texts]
        elif cell.outcome != "failed":
            good += 1
            blocks += sum(one.size_bytes // one.stream.max_block_bytes for one in once)
    if bad:
        text = f"YES: in {bad} of {good + bad} cells other data came back than was written."
        yield probed.reading(question, "seen", text, *wrong)
    elif good:
        text = (
            f"No: {blocks:,} blocks in {good} cells were read back once each, with the right "
            "checksum (CRC32C) and in their place."
        )
        yield probed.reading(question, "not-seen", text)
    else:
        yield probed.reading(question, "cannot-say", "No cell was read back to its end.")
