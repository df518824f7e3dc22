"""MeasuredRun -> ReportView: everything that a reader sees, before any drawing.  Pure."""

from collections.abc import Iterator, Mapping, Sequence
from shlex import join

from msgspec.structs import replace

from kvbench.host.model import Fact
from kvbench.measure.model import MeasuredRun
from kvbench.measure.reading_model import Reading
from kvbench.measure.roles import Judgement
from kvbench.report.breakeven import Subject
from kvbench.report.cells import list_cells, list_jobs, list_problems
from kvbench.report.curves import curve_figure
from kvbench.report.doubts import Marks, alerts, cells_words, collect_marks, end_words, list_doubts
from kvbench.report.first import first_facts, role_verdicts
from kvbench.report.health import health_view
from kvbench.report.host_ceiling import ceiling_figure
from kvbench.report.load import load_figures
from kvbench.report.matrix import matrix_figure
from kvbench.report.method import method_words
from kvbench.report.model import (
    FactGroup,
    FactView,
    Figure,
    Level,
    ReportView,
    RoleView,
)
from kvbench.report.points import Index
from kvbench.report.preparation import preparation_view
from kvbench.report.readings import reading_views
from kvbench.report.reload import reload_view
from kvbench.report.roles import card_views, controller_views
from kvbench.report.steady import state_mark, steady_mark, with_mark
from kvbench.report.sweeps import sweep_figures
from kvbench.report.tables import result_tables
from kvbench.report.tenants import tenant_figures
from kvbench.report.usable import usable_figure
from kvbench.report.words import (
    ROLE_WORDS,
    micro,
    sentence,
    short,
    visible,
)
from kvbench.store.preparation import Condition, Preparation
from kvbench.units import format_clock, format_size
from kvbench.workload.schema import ROLES, Role

TARGET_NAME_CHARS_MAX = 2000
FACT_CHARS_MAX = 2000
SAID_ALREADY = ("target_kind", "target_bytes", "logical_block_bytes")
TARGET_FACTS = (  # how the names of the target's facts begin; all others are of the host
    *("target", "device", "file_system", "mount", "pcie"),
    *("physical_block", "rotational", "scheduler", "nr_requests", "max_sectors", "max_segments"),
    *("write_cache", "read_ahead"),
)


def build(
    run: MeasuredRun,
    jobs: Mapping[str, str],
    judgement: Judgement | None = None,
    subject: Subject | None = None,
    preparation: Preparation | None = None,
    readings: Sequence[Reading] = (),
) -> ReportView:
    """Return the report of ``run``.

    Args:
        run: the measured run.
        jobs: cell id -> the exact job text that fio was given.
        judgement: the run held against the role cards; None shows no card.
        subject: whose KV cache is reloaded or recomputed; None asks no such question.
        preparation: what was done to the target, where this run prepared it.
        readings: what the probes say.
    """
    index = Index(run)
    marks = collect_marks(run)
    plan = run.record.plan
    doubts = list_doubts(run, marks)
    cards = card_views(judgement or Judgement())
    reload = reload_view(run, subject)
    mark = steady_mark(run.record.condition)
    if preparation is not None:  # its rounds are of a device that settled, or did not
        mark = state_mark(preparation.state)
    prepared = preparation_view(preparation) if preparation is not None else None
    if reload is not None:
        reload = replace(reload, figure=with_mark(reload.figure, mark))
    state: Level = doubts[0].level if doubts else "note"
    return ReportView(
        title=f"kvbench: {short(run.record.label or plan.target.path)}",
        verdict=_verdict(run),
        state=state,
        alerts=alerts(run),
        doubts=doubts,
        facts=_facts(run),
        roles=tuple(_roles(index, marks, mark)),
        reload=reload,
        problems=tuple(list_problems(run)),
        method=method_words(run),
        cells=tuple(list_cells(index)),
        jobs=list_jobs(run, jobs),
        command=visible(join(run.record.command)),
        repeat=_repeat(run),
        cards=cards,
        role_verdicts=role_verdicts(cards),
        first_facts=first_facts(run, marks, reload),
        controller=controller_views(judgement or Judgement()),
        readings=reading_views(readings),
        health=health_view(run, index),
        preparation=prepared,
        mark=mark,
        ceilings=with_mark(ceiling_figure(index), mark),
    )


def _verdict(run: MeasuredRun) -> str:
    """Return what was tested and how it went, in one line."""
    plan = run.record.plan
    kind = "file" if plan.target.kind == "file" else "block device"
    what = f"suite {short(plan.suite)}, " if plan.suite else ""
    count = len(plan.workloads)
    tested = (
        f"{short(plan.target.path)} ({kind}, {format_size(plan.target.size_bytes)}): {what}"
        f"{count} {'workload' if count == 1 else 'workloads'}, "
        f"{plan.repetitions} {'repetition' if plan.repetitions == 1 else 'repetitions'}"
    )
    outcomes = [cell.outcome for cell in run.cells if cell.cell.purpose == "measure"]
    ceilings = sum(cell.cell.purpose == "ceiling" for cell in run.cells)
    searches = sum(cell.cell.purpose == "search" for cell in run.cells)
    counts = ", ".join(
        f"{outcomes.count(outcome)} {outcome}"
        for outcome in ("valid", "doubtful", "invalid", "failed")
    )
    if searches:
        counts += f", and {searches} that searched for the usable rate"
    if ceilings:
        counts += f", and {ceilings} of the host's ceiling"
    complete = "the run is complete"
    if run.end is not None and run.end.reason:
        complete += f": {sentence(run.end.reason)}"
    parts = [f"{cells_words(len(outcomes))}: {counts}", end_words(run) or complete]
    if not plan.direct:
        parts.append("buffered, so page-cache-bound")
    if plan.engine != "io_uring":
        parts.append(f"engine {plan.engine}")
    return f"{tested}. {'; '.join(parts)}."


def _facts(run: MeasuredRun) -> tuple[FactGroup, ...]:
    record, plan = run.record, run.record.plan
    identity = record.identity
    target = [
        FactView(name="path", value=short(plan.target.path, TARGET_NAME_CHARS_MAX), known=True),
        FactView(
            name="kind", value="file" if identity.kind == "file" else "block device", known=True
        ),
        FactView(name="size under test", value=format_size(plan.target.size_bytes), known=True),
        FactView(
            name="logical block", value=format_size(plan.target.logical_block_bytes), known=True
        ),
        FactView(
            name="written before",
            value=record.written.state,
            known=record.written.state != "unproven",
            reason=sentence(record.written.reason),
        ),
        *_condition(record.condition),
        FactView(name="I/O", value="O_DIRECT" if plan.direct else "page cache", known=True),
        FactView(name="engine", value=plan.engine, known=True),
    ]
    if identity.real_path != identity.path:
        real = short(identity.real_path, TARGET_NAME_CHARS_MAX)
        target.insert(1, FactView(name="leads to", value=real, known=True))
    for name, value in (("serial", identity.serial), ("wwid", identity.wwid)):
        if value is not None:
            target.append(FactView(name=name, value=short(value), known=True))
    host = [
        FactView(name="kvbench", value=sentence(record.kvbench_version), known=True),
        FactView(name="fio", value=sentence(record.fio_version), known=True),
    ]
    for fact in (f for f in record.facts if f.name not in SAID_ALREADY):
        (target if _of_target(fact) else host).append(_fact(fact))
    return (
        FactGroup(title="Target", facts=tuple(target)),
        FactGroup(title="Host", facts=tuple(host)),
    )


def _condition(condition: Condition | None) -> Iterator[FactView]:
    """Yield whether a block device still is as it was prepared."""
    if condition is not None:
        yield FactView(
            name="preparation",
            value={"holds": "holds", "broken": "no longer holds", "unknown": "unknown"}.get(
                condition.state, "no record"
            ),
            known=condition.state in ("holds", "broken"),
            reason=sentence(condition.text),
        )


def _of_target(fact: Fact) -> bool:
    return fact.name.startswith(TARGET_FACTS)


def _fact(fact: Fact) -> FactView:
    name = short(fact.name.replace("_", " "))
    if fact.value is None:
        reason = sentence(fact.reason) or "no reason is given"
        return FactView(name=name, value="unknown", known=False, reason=reason)
    value = micro(short(fact.value, FACT_CHARS_MAX))
    if fact.name.endswith("_bytes"):
        name = name.removesuffix(" bytes") + " size"
        if value.isdecimal() and value.isascii():
            value = format_size(int(value[:24]))
    return FactView(name=name, value=value, known=True, reason=sentence(fact.reason))


def _roles(index: Index, marks: Marks, mark: str) -> Iterator[RoleView]:
    workloads = index.run.record.plan.workloads
    for role in ROLES:
        tables = result_tables(index, role, workloads, marks)
        if tables:
            yield RoleView(
                role=role,
                words=ROLE_WORDS[role],
                tables=tables,
                figures=tuple(with_mark(figure, mark) for figure in _figures(index, role)),
            )


def _figures(index: Index, role: Role) -> Iterator[Figure]:
    usable = usable_figure(index, role)
    if usable is not None:
        yield usable
    for number, workload in enumerate(index.run.record.plan.workloads, start=1):
        if workload.role != role:
            continue
        yield from load_figures(index, workload, f"load-{number}")
        yield from sweep_figures(index, workload, f"sweep-{number}")
        matrix = matrix_figure(index, workload, f"matrix-{number}")
        if matrix is not None:
            yield matrix
        yield from tenant_figures(index, workload, f"tenants-{number}")
        curves = curve_figure(index, workload, f"latency-{number}")
        if curves is not None:
            yield curves


def _repeat(run: MeasuredRun) -> tuple[FactView, ...]:
    record, plan = run.record, run.record.plan
    facts = [
        ("run", short(record.run_id)),
        ("label", short(record.label)),
        ("started", sentence(record.created_at)),
        ("ended", sentence(run.end.ended_at) if run.end else "not recorded"),
        ("fingerprint", short(record.fingerprint)),
        ("seed of the plan", str(plan.seed)),
        ("repetitions", str(plan.repetitions)),
        ("planned time", format_clock(plan.expected_s)),
        ("kvbench", sentence(record.kvbench_version)),
        ("fio", sentence(record.fio_version)),
        *((short(w.name), f"digest {short(w.digest)}") for w in plan.workloads),
    ]
    return tuple(FactView(name=name, value=value, known=True) for name, value in facts if value)
