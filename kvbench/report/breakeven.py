"""Reload or recompute, answered for one model on one GPU from the reloads of a run.  Pure.

``Answer`` is also the document that ``kvbench breakeven --json`` prints.
"""

from collections.abc import Sequence

from msgspec import Struct

from kvbench.kv.breakeven import Interval
from kvbench.measure.breakeven import (
    Context,
    ContextReload,
    Pace,
    Question,
    Winning,
    contexts_of,
    reloads_of,
    winning_of,
)
from kvbench.measure.model import MeasuredRun
from kvbench.measure.reload import Figure, LeftOut, ReloadPoint, Reloads
from kvbench.report.doubts import alerts
from kvbench.report.words import stream_words
from kvbench.units import format_bandwidth
from kvbench.workload.schema import Evidence, Role, SweepValue

NOT_MEASURED = "not measured"
NEVER = "never"  # no bandwidth makes reloading win
SLOW_WORDS = (
    "p99: every request is as slow as the 99th percentile one, or takes the mean where that is "
    "longer. It is neither the p99 of a reload nor a bound: one request in a hundred is slower, "
    "and a single one that stands still makes its reload longer than this."
)
INTERVALS_SHOWN = 2


class Subject(Struct, frozen=True, kw_only=True):
    """Whose KV cache is asked about, and on what it would be recomputed.

    ``chosen`` says in words who chose the model and the GPU, "" where the user did.  ``source``
    names who made the table of times to compute, "" where the figure is the user's own.
    """

    model: str
    gpu: str | None
    tp: int
    dtype: str
    bytes_per_token: int
    question: Question
    chosen: str = ""
    source: str = ""


class PointAnswer(Struct, frozen=True, kw_only=True):
    """One measured point with what follows from it.  ``stream_words`` is what it did, in words."""

    workload: str
    role: Role
    evidence: Evidence
    parameters: dict[str, SweepValue]
    stream: str
    stream_words: str
    alone: bool
    others: int
    request_bytes: int
    request_tokens: float
    in_flight: int
    mean: Figure
    p50: Figure
    p99: Figure
    bandwidth: Figure
    request_count: int
    excluded: int
    doubts: tuple[str, ...]
    reloads: tuple[ContextReload, ...]
    winning: tuple[Winning, ...]


class Answer(Struct, frozen=True, kw_only=True):
    """Everything that the verb says.  Times in seconds, sizes in bytes.

    ``kv_bytes`` of a context is that of all ranks together, each byte once.
    """

    run_id: str
    target: str
    alerts: tuple[str, ...]
    damage: tuple[str, ...]
    model: str
    gpu: str | None
    tp: int
    dtype: str
    bytes_per_token: int
    overhead_s: float
    ttft_s: float | None
    prefill_notes: tuple[str, ...]
    contexts: tuple[Context, ...]
    points: tuple[PointAnswer, ...]
    left_out: tuple[LeftOut, ...]

    @classmethod
    def of(cls, run: MeasuredRun, reloads: Reloads, subject: Subject) -> "Answer":
        """Return the answer to the question of ``subject`` from the reloads of a run.

        Raises:
            UsageError: the prefill time of a length is not known.
        """
        question = subject.question
        contexts = contexts_of(question)
        notes = dict.fromkeys(question.prefill(c.tokens).note for c in contexts)
        if subject.source:
            notes[f"the table is of {subject.source}"] = None
        return cls(
            run_id=run.record.run_id,
            target=run.record.plan.target.path,
            alerts=alerts(run),
            damage=run.damage,
            model=subject.model,
            gpu=subject.gpu,
            tp=subject.tp,
            dtype=subject.dtype,
            bytes_per_token=subject.bytes_per_token,
            overhead_s=question.overhead_s,
            ttft_s=question.ttft_s,
            prefill_notes=tuple(notes),
            contexts=contexts,
            points=tuple(
                _point_answer(question, point, contexts, subject.bytes_per_token)
                for point in reloads.points
            ),
            left_out=reloads.left_out,
        )


def needed_words(context: Context) -> str:
    """Return BW* of a context: ``5.38 GB/s``, or ``never``."""
    needed = context.bandwidth_needed_bytes_per_s
    return NEVER if needed is None else format_bandwidth(needed)


def winning_words(answer: Answer, point: PointAnswer, pace: Pace, *, with_ends: bool = True) -> str:
    """Return where reloading wins: ``at the mean reloading wins from 9,000 tokens on``.

    Args:
        answer: what the point is of.
        point: the measured point.
        pace: the time that each request takes.
        with_ends: also where it wins at the ends of the interval of that time.
    """
    found = [w for w in point.winning if w.pace == pace]
    at = "at the mean" if pace == "mean" else f"at {pace}"
    ends = f"{answer.contexts[0].tokens:,} to {answer.contexts[-1].tokens:,} tokens"
    texts = []
    for winning in found:
        if winning.intervals is None:
            return f"{at} reloading was {NOT_MEASURED}"
        where = _intervals(winning.intervals, ends)
        estimate = "" if winning.prefill == "estimate" else f"by the {winning.prefill} estimate "
        told = _ends_words(point, winning) if with_ends and winning.prefill == "estimate" else ""
        texts.append(f"{estimate}{where}{told}")
    return f"{at} reloading wins {'; '.join(texts)}"


def _point_answer(
    question: Question, point: ReloadPoint, contexts: Sequence[Context], bytes_per_token: int
) -> PointAnswer:
    return PointAnswer(
        workload=point.workload,
        role=point.role,
        evidence=point.evidence,
        parameters=point.parameters,
        stream=point.stream.name,
        stream_words=stream_words(point.stream),
        alone=point.alone,
        others=point.others,
        request_bytes=point.request_bytes,
        request_tokens=point.request_bytes / bytes_per_token,
        in_flight=point.in_flight,
        mean=point.mean,
        p50=point.p50,
        p99=point.p99,
        bandwidth=point.bandwidth,
        request_count=point.request_count,
        excluded=point.excluded,
        doubts=point.doubts,
        reloads=reloads_of(question, point, contexts),
        winning=winning_of(question, point, contexts),
    )


def _intervals(intervals: Sequence[Interval], ends: str) -> str:
    if not intervals:
        return f"at no length from {ends}"
    if len(intervals) > INTERVALS_SHOWN:  # whole requests make a staircase around the crossing
        *before, last = intervals
        parts = f"in parts from {before[0].low_tokens:,} to {before[-1].high_tokens:,} tokens"
        return f"{_interval(last, ends)} and {parts}"
    return " and ".join(_interval(interval, ends) for interval in intervals)


def _ends_words(point: PointAnswer, winning: Winning) -> str:
    """Return where it wins at the ends of the measured interval, quick end first; "" for none."""
    if winning.low is None or winning.high is None:
        return ""
    figure = point.mean if winning.pace == "mean" else point.p99
    kind = "range" if figure.interval == "range" else f"{figure.interval} interval"
    if winning.low == winning.intervals == winning.high:
        return f" (as at the ends of its {kind})"
    quick, slow = (_briefly(found) for found in (winning.low, winning.high))
    return f" (at the ends of its {kind}: {quick}, {slow})"


def _briefly(intervals: Sequence[Interval]) -> str:
    if not intervals:
        return "at no length"
    last = intervals[-1]
    match last.from_start, last.to_end:
        case True, True:
            text = "at every length"
        case True, False:
            text = f"up to {last.high_tokens:,}"
        case False, True:
            text = f"from {last.low_tokens:,} on"
        case _:
            text = f"from {last.low_tokens:,} to {last.high_tokens:,}"
    return f"{text} and in parts below" if len(intervals) > 1 else text


def _interval(interval: Interval, ends: str) -> str:
    match interval.from_start, interval.to_end:
        case True, True:
            return f"at every length from {ends}"
        case True, False:
            return f"up to {interval.high_tokens:,} tokens"
        case False, True:
            return f"from {interval.low_tokens:,} tokens on"
        case _:
            return f"from {interval.low_tokens:,} to {interval.high_tokens:,} tokens"
