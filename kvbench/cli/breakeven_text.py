"""The answer of ``kvbench breakeven`` -> text for a terminal, at most 100 columns wide."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from kvbench.measure.breakeven import PACES, Winner
from kvbench.measure.reload import Figure
from kvbench.report.breakeven import (
    NOT_MEASURED,
    SLOW_WORDS,
    Answer,
    PointAnswer,
    needed_words,
    winning_words,
)
from kvbench.report.words import DASH, micro, quantity, sentence, short, spread
from kvbench.units import format_size, format_time

COLUMNS = 100
_ASCII = str.maketrans({DASH: "-", "\N{MICRO SIGN}": "u", "…": "~", "⟨": "<", "⟩": ">"})
_BASES = {
    "table": "table",
    "interpolated": "interpolated",
    "extrapolated": "extrapolated",
    "formula": "FLOPs formula",
    "given": "given",
}


def render(answer: Answer, *, ascii_only: bool = False) -> str:
    """Return the answer for a terminal; with ``ascii_only`` for one that shows nothing else."""
    text = micro("\n".join(_lines(answer)))
    if ascii_only:
        return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
    return text


def _lines(answer: Answer) -> Iterator[str]:
    where = f"{answer.gpu or 'a GPU of yours'}, tp {answer.tp}"
    yield from _wrapped(
        f"Reload or recompute: {answer.model}, {answer.dtype} KV of {answer.bytes_per_token:,} B "
        f"per token, on {where}; {short(answer.target)} (run {short(answer.run_id)})"
    )
    for alert in answer.alerts:
        yield from _wrapped(f"!! {alert}", "   ")
    yield ""
    yield from _contexts(answer)
    yield ""
    yield from _model(answer)
    for point in answer.points:
        yield ""
        yield from _point(answer, point)
    if answer.left_out:
        yield ""
        yield "Left out:"
        for left in answer.left_out:
            yield from _wrapped(
                f"- {short(left.workload)}, stream {short(left.stream)}: {left.reason}", "  "
            )


def _contexts(answer: Answer) -> Iterator[str]:
    ranged = _ranged(answer)
    rows = [("context", "KV", "recompute", *(("low to high",) if ranged else ()), "basis", "BW*")]
    for context in answer.contexts:
        limits = f"{format_time(context.prefill_low_s)} to {format_time(context.prefill_high_s)}"
        rows.append(
            (
                f"{context.tokens:,}",
                format_size(context.kv_bytes),
                format_time(context.prefill_s),
                *((limits,) if ranged else ()),
                _BASES[context.prefill_basis],
                needed_words(context),
            )
        )
    yield from _table(rows)
    for note in answer.prefill_notes:
        yield from _wrapped(f"recompute: {note}", "  ")
    ranks = f" of all {answer.tp} ranks together, each byte once" if answer.tp > 1 else ""
    less = f" less {format_time(answer.overhead_s)} of overhead" if answer.overhead_s else ""
    yield from _wrapped(
        f"KV: the bytes{ranks}. BW*: KV over recompute{less}, the bandwidth above which reloading "
        f"wins{'; never: the overhead alone takes as long' if less else ''}."
    )


def _ranged(answer: Answer) -> bool:
    return any(c.prefill_low_s != c.prefill_high_s for c in answer.contexts)


def _model(answer: Answer) -> Iterator[str]:
    overhead = f", and {format_time(answer.overhead_s)} of overhead" if answer.overhead_s else ""
    yield from _wrapped(
        "Model: a context of B bytes is ceil(B / request bytes) requests of a size that was "
        f"measured, so many in flight at a time, one round after the other{overhead}. Mean: every "
        "request takes the mean time, as many in turn do (requests in flight over requests per "
        f"second). {SLOW_WORDS} Take the point that has as many requests in flight as your "
        "software has for one context; with fewer requests than that, fewer are in flight and "
        "each may be quicker than is told."
    )
    if _ranged(answer):
        yield from _wrapped("unclear: the reload lies inside the range of the estimate.")
    if answer.ttft_s is not None:
        yield from _wrapped(
            f"Users: how many may reload at once within {format_time(answer.ttft_s)}, at the mean, "
            "sharing the bandwidth that was measured in the same point."
        )


def _point(answer: Answer, point: PointAnswer) -> Iterator[str]:
    evidence = point.evidence.upper() if point.evidence == "projected" else point.evidence
    beside = ", alone" if point.alone else ""
    if point.others:
        beside = f", beside {point.others} other stream{'' if point.others == 1 else 's'}"
    yield from _wrapped(
        f"{short(point.workload)} [{evidence}, {point.role}] {short(point.stream)}: "
        f"{point.stream_words}{beside}"
    )
    yield from _wrapped(
        f"request: {format_size(point.request_bytes)} = {point.request_tokens:.4g} tokens of this "
        f"model, {point.in_flight} in flight; so ceil(B / {point.request_bytes:,}) requests, "
        f"{point.in_flight} at a time",
        "  ",
        first="  ",
    )
    yield from _wrapped(f"mean {_figure('mean', point.mean)}", "    ", first="  ")
    yield from _wrapped(f"p50 {_figure('p50', point.p50)}", "    ", first="  ")
    yield from _wrapped(f"p99 {_figure('p99', point.p99)}", "    ", first="  ")
    yield from _wrapped(f"bandwidth {_figure('', point.bandwidth)}", "    ", first="  ")
    yield from _wrapped(_count(point), "    ", first="  ")
    for doubt in point.doubts:
        yield from _wrapped(f"! {sentence(doubt)}", "    ", first="  ")
    if point.mean.value is None and point.p99.value is None:
        return
    yield from _table(_reload_rows(answer, point))
    for pace in PACES:
        yield from _wrapped(winning_words(answer, point, pace), "    ", first="  ")


def _count(point: PointAnswer) -> str:
    excluded = f"; {point.excluded} repetitions do not count" if point.excluded else ""
    return f"over {point.request_count:,} requests in all{excluded}"


def _figure(percentile: str, figure: Figure) -> str:
    """Return a value with its spread and n, or why there is none."""
    if figure.value is None:
        return f"{NOT_MEASURED}: {sentence(figure.reason)}"
    metric = f"latency_{percentile}" if percentile else "bandwidth"
    text = quantity(metric, figure.unit, figure.value)
    if figure.interval == "none" or figure.low is None or figure.high is None:
        text += f" (n={figure.n}, no interval)"
    else:
        limits = spread(metric, figure.unit, figure.low, figure.value, figure.high)
        what = "95 % interval, " if figure.interval == "95 %" else "range of "
        text += f" ({limits}, {what}n={figure.n})"
    return f"{text}; {sentence(figure.reason)}" if figure.reason else text


def _reload_rows(answer: Answer, point: PointAnswer) -> list[tuple[str, ...]]:
    with_users = answer.ttft_s is not None
    head = ("context", "requests", "reload mean", "reload p99", "wins at mean", "wins at p99")
    rows: list[tuple[str, ...]] = [(*head, "users") if with_users else head]
    for row in point.reloads:
        users = NOT_MEASURED if row.users is None else f"{row.users:,}"
        cells = (
            f"{row.tokens:,}",
            f"{row.requests:,}",
            _time(row.reload_mean_s),
            _time(row.reload_p99_s),
            _wins(row.winner_mean),
            _wins(row.winner_p99),
        )
        rows.append((*cells, users) if with_users else cells)
    return rows


def _time(seconds: float | None) -> str:
    return NOT_MEASURED if seconds is None else format_time(seconds)


def _wins(winner: Winner | None) -> str:
    return NOT_MEASURED if winner is None else winner


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        cells = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}"


def _wrapped(text: str, indent: str = "", *, first: str = "") -> Iterable[str]:
    return wrap(
        text, COLUMNS, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False
    )
