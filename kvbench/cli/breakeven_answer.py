"""The answer of ``kvbench breakeven`` as data: the document that ``--json`` prints."""

from collections.abc import Sequence

from msgspec import Struct

from kvbench.measure.breakeven import (
    Context,
    ContextReload,
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
from kvbench.workload.schema import Evidence, Role, SweepValue


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
    def of(
        cls,
        run: MeasuredRun,
        reloads: Reloads,
        question: Question,
        *,
        model: str,
        gpu: str | None,
        tp: int,
        dtype: str,
        bytes_per_token: int,
    ) -> "Answer":
        """Return the answer to ``question`` from the reloads of a run."""
        contexts = contexts_of(question)
        notes = dict.fromkeys(question.prefill(c.tokens).note for c in contexts)
        return cls(
            run_id=run.record.run_id,
            target=run.record.plan.target.path,
            alerts=alerts(run),
            damage=run.damage,
            model=model,
            gpu=gpu,
            tp=tp,
            dtype=dtype,
            bytes_per_token=bytes_per_token,
            overhead_s=question.overhead_s,
            ttft_s=question.ttft_s,
            prefill_notes=tuple(notes),
            contexts=contexts,
            points=tuple(
                _point_answer(question, point, contexts, bytes_per_token)
                for point in reloads.points
            ),
            left_out=reloads.left_out,
        )


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
        p50=point.p50,
        p99=point.p99,
        bandwidth=point.bandwidth,
        request_count=point.request_count,
        excluded=point.excluded,
        doubts=point.doubts,
        reloads=reloads_of(question, point, contexts),
        winning=winning_of(question, point, contexts),
    )
