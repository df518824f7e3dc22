"""The section "Reload or recompute": measured reloads against the time to compute.  Pure.

Every measured point stands in the table.  A few are drawn: of each workload the one with the
fewest requests in flight, which is what one context alone gets, then the quickest ones; of what
software does when there is any, else of probes.
"""

from collections.abc import Iterator, Sequence

from kvbench.errors import UsageError
from kvbench.measure.breakeven import PACES, Pace
from kvbench.measure.model import MeasuredRun
from kvbench.measure.reload import Figure as Number
from kvbench.measure.reload import find_reloads
from kvbench.report.breakeven import (
    NOT_MEASURED,
    SLOW_WORDS,
    Answer,
    PointAnswer,
    Subject,
    needed_words,
    winning_words,
)
from kvbench.report.model import Figure, LinePanel, LineSeries, PlainTable, ReloadView, Rule
from kvbench.report.words import (
    IN_DOUBT,
    micro,
    parameter_words,
    quantity,
    sentence,
    short,
    spread,
)
from kvbench.units import format_bandwidth, format_size, format_time

LINES_MAX = 4
RECOMPUTE_COLOUR = 6
BW_TOKENS = (2048, 8192, 32768, 131072)  # lengths whose BW* is told in words
NOT_THE_MEDIUM = ("unproven", "buffered")  # states of a target
NOTHING = (
    "No read of a KV block or chunk was measured in this run, so nothing can be said of reloading: "
    "`--workload vllm-block` measures one."
)
BASES = {
    "table": "table",
    "interpolated": "interpolated",
    "extrapolated": "extrapolated",
    "formula": "formula",
    "given": "given",
}


def reload_view(run: MeasuredRun, subject: Subject | None) -> ReloadView | None:
    """Return the section, None when nobody asked; without a reload it is one sentence."""
    if subject is None:
        return None
    reloads = find_reloads(run)
    if not any(point.mean.value is not None for point in reloads.points):
        return ReloadView(words=(NOTHING,), figure=None, tables=(), lines=(NOTHING,))
    try:
        answer = Answer.of(run, reloads, subject)
    except UsageError as error:
        text = f"No answer for {subject.model}: {sentence(str(error))}."
        return ReloadView(words=(text,), figure=None, tables=(), lines=(text,))
    drawn = _chosen(answer)
    head = _head(answer, subject)
    needed = ", ".join(
        f"{needed_words(c)} at {c.tokens:,} tokens"
        for c in answer.contexts
        if c.tokens in BW_TOKENS
    )
    if answer.overhead_s:
        head += f" A reload also has {_time(answer.overhead_s)} of overhead."
    head += f" Reloading wins above BW* = {needed}."
    warning = tuple(_warnings(run))
    lines = [f"{_label(answer, point)}: {_both(answer, point)}" for point in drawn]
    return ReloadView(
        words=(head, *warning, *_notes(answer)),
        figure=_figure(answer, drawn),
        tables=(_points_table(answer),),
        lines=(head, *warning, *_recompute_notes(answer), *lines),
        fact=f"{head.partition(';')[0]}; {lines[0]}" if lines else "",
    )


def _warnings(run: MeasuredRun) -> Iterator[str]:
    """Yield why the reads may not have come from the medium."""
    if run.record.written.state in NOT_THE_MEDIUM:
        yield f"Not to be relied on: {sentence(run.record.written.reason)}."


def _head(answer: Answer, subject: Subject) -> str:
    where = f"{answer.tp} x {answer.gpu}" if answer.gpu else "a GPU of yours"
    kind = "given" if answer.contexts[0].prefill_basis == "given" else "an estimate"
    text = (
        f"{short(answer.model)} with {answer.dtype} KV of {answer.bytes_per_token:,} B per token "
        f"on {where}; the time to recompute is {kind}, the reload follows from the request times "
        "of this run."
    )
    return f"{text} {subject.chosen}".rstrip()


def _both(answer: Answer, point: PointAnswer) -> str:
    """Return the measured bandwidth and where reloading wins, at the mean and at p99."""
    rate = point.bandwidth.value
    doubtful = f" {IN_DOUBT}" if point.doubts else ""
    has = [] if rate is None else [f"{format_bandwidth(rate)}{doubtful}"]
    return "; ".join([*has, *(winning_words(answer, point, p) for p in PACES)])


def _recompute_notes(answer: Answer) -> Iterator[str]:
    """Yield where the time to compute comes from."""
    notes = answer.prefill_notes
    for note in notes:
        if not any(other != note and other.startswith(note) for other in notes):
            yield f"Recompute: {note}."


def _notes(answer: Answer) -> Iterator[str]:
    yield from _recompute_notes(answer)
    yield (
        "A context of B bytes is ceil(B / request bytes) requests, so many in flight at a time, "
        "one round after the other. Mean: every request takes the mean time, as many in turn do: "
        "requests in flight over requests per second, so that the reload and the bandwidth agree. "
        f"{SLOW_WORDS} With fewer requests than are in flight each may be quicker than is told."
    )
    if answer.ttft_s is not None:
        yield (
            f"Users: how many may reload at once within {_time(answer.ttft_s)}, at the mean, "
            "sharing the bandwidth that was measured in the same point."
        )
    else:
        yield "Users within a budget: `kvbench report RUN --ttft-ms Y` tells how many."


def _chosen(answer: Answer) -> list[PointAnswer]:
    """Return the points to draw, in the order of the plan."""
    known = [p for p in answer.points if p.mean.value is not None]
    software = [p for p in known if p.evidence in ("shipping", "trace")] or known
    by_itself = [p for p in software if not p.others] or software
    workloads: dict[str, list[PointAnswer]] = {}
    for point in by_itself:
        workloads.setdefault(point.workload, []).append(point)
    fewest = [min(own, key=lambda p: p.in_flight) for own in workloads.values()]
    quickest = [
        min(own, key=lambda p: p.reloads[-1].reload_mean_s or 0.0) for own in workloads.values()
    ]
    wanted: list[PointAnswer] = []
    for point in (*fewest, *quickest):
        if point not in wanted:
            wanted.append(point)
    wanted = wanted[:LINES_MAX]
    return [point for point in known if point in wanted]


def _label(answer: Answer, point: PointAnswer) -> str:
    """Return what tells a point from the others: its workload, what was swept, how many at once."""
    name = short(point.workload, 24)
    same = [p for p in answer.points if p.workload == point.workload]
    if len({p.stream for p in same}) > 1:
        name += f" {short(point.stream, 20)}"
    words = parameter_words(
        {k: v for k, v in point.parameters.items() if k.rpartition(".")[2] not in _COUNTED}
    )
    parts = [name, *([words] if words else []), f"{point.in_flight} in flight"]
    if point.alone:
        parts.append("alone")
    elif point.others:
        parts.append("beside others")
    return ", ".join(parts)


_COUNTED = ("queue_depth", "jobs")  # said by how many are in flight


def _figure(answer: Answer, drawn: Sequence[PointAnswer]) -> Figure:
    tokens = tuple(float(context.tokens) for context in answer.contexts)
    ranged = any(c.prefill_low_s != c.prefill_high_s for c in answer.contexts)
    computed = LineSeries(
        label=f"recompute ({'estimate' if _estimated(answer) else 'given'})",
        colour=RECOMPUTE_COLOUR,
        variant=1,
        x=tokens,
        median=tuple(context.prefill_s for context in answer.contexts),
        low=tuple(c.prefill_low_s for c in answer.contexts) if ranged else (),
        high=tuple(c.prefill_high_s for c in answer.contexts) if ranged else (),
    )
    series = [computed]
    rules: list[Rule] = []
    for colour, point in enumerate(drawn):
        usual = [row.reload_mean_s or 0.0 for row in point.reloads]
        slow = [row.reload_p99_s for row in point.reloads]
        series.append(
            LineSeries(
                label=_label(answer, point),
                colour=colour,
                variant=0,
                x=tokens,
                median=tuple(usual),
                high=tuple(s or 0.0 for s in slow) if None not in slow else (),
            )
        )
        rules += _crossings(answer, point, colour)
    name = f"{short(answer.model)} on {answer.gpu or 'a GPU of yours'}"
    extra = "; a band around recompute is the range of the estimate" if ranged else ""
    return Figure(
        figure_id="reload-or-recompute",
        title=f"Reload or recompute: {name}",
        question="From which length of context on is it faster to read the KV cache than to "
        "compute it again?",
        how_to_read="Solid: typical, every request at the mean; the band reaches up to "
        f"every request at its p99, or at the mean where that is longer{extra}. "
        "A vertical line marks where the winner changes. "
        f"{len(drawn)} of {len(answer.points)} points are drawn: of each workload the one with the "
        "fewest requests in flight, then the quickest; what software does before probes.",
        panels=(
            LinePanel(
                title=f"Reload or recompute: {name}",
                description=" ".join(
                    [
                        *(_describe(one) for one in series),
                        *(f"{rule.label}." for rule in rules),
                        *(f"{winning_words(answer, p, 'mean', with_ends=False)}." for p in drawn),
                    ]
                ),
                x_label="context (tokens)",
                y_label="time to have the KV cache (log scale)",
                x_unit="tokens",
                unit="s",
                from_zero=False,
                series=tuple(series),
                rules=tuple(rules),
            ),
        ),
        table=_data_table(answer, drawn),
    )


def _estimated(answer: Answer) -> bool:
    return any(context.prefill_basis != "given" for context in answer.contexts)


def _crossings(answer: Answer, point: PointAnswer, colour: int) -> Iterator[Rule]:
    """Yield the lengths at which the winner changes, with every request at its mean."""
    for winning in point.winning:
        if (winning.pace, winning.prefill) != ("mean", "estimate"):
            continue
        for interval in (winning.intervals or ())[-1:]:  # before it there may be a staircase
            ends = (
                (interval.low_tokens, "from", not interval.from_start),
                (interval.high_tokens, "up to", not interval.to_end),
            )
            for tokens, word, inside in ends:
                if inside:
                    yield Rule(
                        axis="x",
                        value=float(tokens),
                        label=f"{_label(answer, point)}: reload wins {word} {tokens:,} tokens",
                        short_label=f"{word} {tokens:,}",
                        colour=colour,
                        variant=2,
                    )


def _describe(series: LineSeries) -> str:
    first, last = _time(series.median[0]), _time(series.median[-1])
    low, high = (f"{series.x[i]:,.0f}" for i in (0, -1))
    return f"{series.label}: {first} at {low} tokens, {last} at {high}."


def _points_table(answer: Answer) -> PlainTable:
    """Return one row per measured point: what was read, how quickly, and where it wins."""
    longest = len(answer.contexts) - 1
    shown = sorted({longest // 2, 3 * longest // 4, longest})
    users = [answer.contexts[i].tokens for i in shown] if answer.ttft_s is not None else []
    doubted = any(point.doubts for point in answer.points)
    rows = []
    for point in answer.points:
        request = f"{format_size(point.request_bytes)} = {point.request_tokens:.4g} tokens"
        row = [
            _label(answer, point),
            request,
            _number("latency_mean", point.mean),
            _number("latency_p50", point.p50),
            _number("latency_p99", point.p99),
            _number("bandwidth", point.bandwidth),
            *(["; ".join(short(doubt, 80) for doubt in point.doubts) or "none"] if doubted else []),
            *(_where(answer, point, pace) for pace in PACES),
        ]
        by_tokens = {r.tokens: r.users for r in point.reloads}
        for tokens in users:
            count = by_tokens[tokens]
            row.append(NOT_MEASURED if count is None else f"{count:,}")
        rows.append(tuple(row))
    return PlainTable(
        caption="Every measured reload",
        head=(
            "point",
            "request",
            "request mean",
            "request p50",
            "request p99",
            "bandwidth",
            *(["doubts"] if doubted else []),
            "reload wins, at the mean",
            "reload wins, at p99",
            *(f"users at {tokens // 1024}k" for tokens in users),
        ),
        rows=tuple(rows),
    )


def _where(answer: Answer, point: PointAnswer, pace: Pace) -> str:
    words = winning_words(answer, point, pace)
    _, _, rest = words.partition("reloading wins ")
    return rest or NOT_MEASURED


def _data_table(answer: Answer, drawn: Sequence[PointAnswer]) -> PlainTable:
    head = ["context", "KV", "recompute", "basis", "BW* (reload wins above)"]
    for point in drawn:
        label = _label(answer, point)
        head += [f"{label}: typical (mean of requests)", "p99 for each"]
        if answer.ttft_s is not None:
            head.append("users")
    rows = []
    for place, context in enumerate(answer.contexts):
        seconds = _time(context.prefill_s)
        if context.prefill_low_s != context.prefill_high_s:
            seconds += f" ({_time(context.prefill_low_s)} to {_time(context.prefill_high_s)})"
        row = [
            f"{context.tokens:,}",
            format_size(context.kv_bytes),
            seconds,
            BASES[context.prefill_basis],
            needed_words(context),
        ]
        for point in drawn:
            own = point.reloads[place]
            row += [
                f"{_known(own.reload_mean_s)} ({own.winner_mean or NOT_MEASURED})",
                f"{_known(own.reload_p99_s)} ({own.winner_p99 or NOT_MEASURED})",
            ]
            if answer.ttft_s is not None:
                row.append(NOT_MEASURED if own.users is None else f"{own.users:,}")
        rows.append(tuple(row))
    return PlainTable(
        caption="Time to have the KV cache of a context, and who is faster",
        head=tuple(head),
        rows=tuple(rows),
    )


def _number(metric: str, figure: Number) -> str:
    if figure.value is None:
        return f"{NOT_MEASURED}: {sentence(figure.reason)}"
    text = quantity(metric, figure.unit, figure.value)
    if figure.interval == "none" or figure.low is None or figure.high is None:
        return f"{text} (n={figure.n})"
    limits = spread(metric, figure.unit, figure.low, figure.value, figure.high)
    what = "95 % interval, " if figure.interval == "95 %" else "range of "
    return f"{text} ({limits}, {what}n={figure.n})"


def _known(seconds: float | None) -> str:
    return NOT_MEASURED if seconds is None else _time(seconds)


def _time(seconds: float) -> str:
    return micro(format_time(seconds))
