"""MeasuredRun -> ReportView: everything that a reader sees, before any drawing.  Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from shlex import join

from kvbench.host.model import Fact
from kvbench.measure.model import MeasuredCell, MeasuredRun, Outcome
from kvbench.plan import Cell
from kvbench.report.curves import curve_figure
from kvbench.report.depth import depth_figures
from kvbench.report.doubts import Marks, alerts, cells_words, collect_marks, end_words, list_doubts
from kvbench.report.method import method_words
from kvbench.report.model import (
    CellRow,
    FactGroup,
    FactView,
    Figure,
    JobGroup,
    JobView,
    Level,
    Problem,
    ReportView,
    RoleView,
)
from kvbench.report.points import Index
from kvbench.report.tables import result_tables
from kvbench.report.tenants import tenant_figures
from kvbench.report.words import (
    DASH,
    ROLE_WORDS,
    measurement_text,
    parameter_words,
    short,
    visible,
    visible_lines,
)
from kvbench.units import format_clock, format_size
from kvbench.workload.schema import ROLES, Role

TARGET_NAME_CHARS_MAX = 2000
FACT_CHARS_MAX = 2000
TARGET_FACTS = ("target", "device", "file_system", "mount", "pcie")  # the others are of the host


def build(run: MeasuredRun, jobs: Mapping[str, str]) -> ReportView:
    """Return the report of ``run``.

    Args:
        run: the measured run.
        jobs: cell id -> the exact job text that fio was given.
    """
    index = Index(run)
    marks = collect_marks(run)
    plan = run.record.plan
    doubts = list_doubts(run, marks)
    state: Level = doubts[0].level if doubts else "note"
    return ReportView(
        title=f"kvbench: {short(plan.target.path)}",
        verdict=_verdict(run),
        state=state,
        alerts=alerts(run),
        doubts=doubts,
        facts=_facts(run),
        roles=tuple(_roles(index, marks)),
        problems=tuple(_problems(run)),
        method=method_words(run),
        cells=tuple(_cell_rows(index)),
        jobs=_jobs(run, jobs),
        command=visible(join(run.record.command)),
        repeat=_repeat(run),
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
    outcomes = [cell.outcome for cell in run.cells]
    counts = ", ".join(
        f"{outcomes.count(outcome)} {outcome}"
        for outcome in ("valid", "doubtful", "invalid", "failed")
    )
    parts = [f"{cells_words(len(outcomes))}: {counts}", end_words(run) or "the run is complete"]
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
            reason=visible(record.written.reason),
        ),
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
        FactView(name="kvbench", value=visible(record.kvbench_version), known=True),
        FactView(name="fio", value=visible(record.fio_version), known=True),
    ]
    for fact in record.facts:
        (target if _of_target(fact) else host).append(_fact(fact))
    return (
        FactGroup(title="Target", facts=tuple(target)),
        FactGroup(title="Host", facts=tuple(host)),
    )


def _of_target(fact: Fact) -> bool:
    return fact.name.startswith(TARGET_FACTS)


def _fact(fact: Fact) -> FactView:
    name = short(fact.name.replace("_", " "))
    if fact.value is None:
        reason = visible(fact.reason) or "no reason is given"
        return FactView(name=name, value="unknown", known=False, reason=reason)
    value = short(fact.value, FACT_CHARS_MAX)
    if fact.name.endswith("_bytes") and value.isdecimal() and value.isascii():
        name = name.removesuffix(" bytes") + " size"
        value = format_size(int(value[:24]))
    return FactView(name=name, value=value, known=True, reason=visible(fact.reason))


def _roles(index: Index, marks: Marks) -> Iterator[RoleView]:
    workloads = index.run.record.plan.workloads
    for role in ROLES:
        tables = result_tables(index, role, workloads, marks)
        if tables:
            yield RoleView(
                role=role,
                words=ROLE_WORDS[role],
                tables=tables,
                figures=tuple(_figures(index, role)),
            )


def _figures(index: Index, role: Role) -> Iterator[Figure]:
    for number, workload in enumerate(index.run.record.plan.workloads, start=1):
        if workload.role != role:
            continue
        yield from depth_figures(index, workload, f"depth-{number}")
        yield from tenant_figures(index, workload, f"tenants-{number}")
        curves = curve_figure(index, workload, f"latency-{number}")
        if curves is not None:
            yield curves


def _problems(run: MeasuredRun) -> Iterator[Problem]:
    """Yield cells that are not simply valid, worst first, those with the same reasons together."""
    groups: defaultdict[tuple[Outcome, str, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for cell in run.cells:
        if cell.outcome != "valid":
            key = (cell.outcome, cell.cell.workload, _point_words(cell.cell), _reasons(cell))
            groups[key].append(cell.cell.cell_id)
    order: tuple[Outcome, ...] = ("failed", "invalid", "doubtful", "valid")
    for found in sorted(groups, key=lambda found: order.index(found[0])):
        outcome, workload, point, reasons = found
        yield Problem(
            outcome=outcome,
            cells=tuple(short(cell_id) for cell_id in groups[found]),
            workload=short(workload),
            point=point,
            reasons=reasons,
        )
    stored = {cell.cell.cell_id for cell in run.cells}
    missing = [cell.cell_id for cell in run.record.plan.cells if cell.cell_id not in stored]
    if missing:
        yield Problem(
            outcome="not stored",
            cells=tuple(short(cell_id) for cell_id in missing),
            workload="",
            point="",
            reasons=("the plan has these cells and the archive does not",),
        )


def _reasons(cell: MeasuredCell) -> tuple[str, ...]:
    serious = [finding for finding in cell.findings if finding.severity != "note"]
    texts = (f"{short(f.stream)}: {f.text}" if f.stream else f.text for f in serious)
    return tuple(visible(text) for text in texts) or ("no reason is given",)


def _point_words(cell: Cell) -> str:
    if cell.purpose == "ceiling":
        shape = parameter_words(cell.parameters)
        return f"host ceiling{f', {shape}' if shape else ''}"
    parts = [parameter_words(cell.parameters)]
    if cell.alone is not None:
        parts.append(f"{short(cell.alone)} alone")
    return ", ".join(part for part in parts if part)


def _cell_rows(index: Index) -> Iterator[CellRow]:
    plan = index.run.record.plan
    primary = {(w.name, name) for w in plan.workloads for name in w.primary}
    for cell in plan.cells:
        measured = index.measured.get(cell.cell_id)
        many = len(cell.placed) > 1
        yield CellRow(
            cell_id=short(cell.cell_id),
            repetition=str(cell.repetition) if cell.purpose == "measure" else DASH,
            workload=short(cell.workload),
            point=_point_words(cell),
            outcome=measured.outcome if measured else "not stored",
            values=tuple(_cell_values(measured, primary, many)) if measured else (),
        )


def _cell_values(
    measured: MeasuredCell, primary: set[tuple[str, str]], many: bool
) -> Iterator[str]:
    ceiling = measured.cell.purpose == "ceiling"
    directions = {(m.stream, m.direction) for m in measured.measurements}
    for m in measured.measurements:
        wanted = (measured.cell.workload, f"{m.stream}.{m.metric}") in primary
        if wanted or (ceiling and m.metric == "iops"):
            both = len([d for s, d in directions if s == m.stream]) > 1
            owner = [short(m.stream, 24)] if many else []
            owner += [f"{m.direction}s"] if both else []
            yield " ".join([*owner, measurement_text(m)])


def _jobs(run: MeasuredRun, jobs: Mapping[str, str]) -> tuple[JobGroup, ...]:
    groups: defaultdict[str, list[JobView]] = defaultdict(list)
    for cell in run.record.plan.cells:
        text = jobs.get(cell.cell_id)
        turn = f"repetition {cell.repetition}" if cell.purpose == "measure" else ""
        parts = (_point_words(cell), turn)
        groups[cell.workload].append(
            JobView(
                cell_id=short(cell.cell_id),
                label=", ".join(part for part in parts if part),
                text=visible_lines(text) if text else None,
            )
        )
    return tuple(
        JobGroup(workload=short(name), jobs=tuple(group)) for name, group in groups.items()
    )


def _repeat(run: MeasuredRun) -> tuple[FactView, ...]:
    record, plan = run.record, run.record.plan
    facts = [
        ("run", short(record.run_id)),
        ("label", short(record.label)),
        ("started", visible(record.created_at)),
        ("ended", visible(run.end.ended_at) if run.end else "not recorded"),
        ("seed of the plan", str(plan.seed)),
        ("repetitions", str(plan.repetitions)),
        ("planned time", format_clock(plan.expected_s)),
        ("kvbench", visible(record.kvbench_version)),
        ("fio", visible(record.fio_version)),
        *((short(w.name), f"digest {short(w.digest)}") for w in plan.workloads),
    ]
    return tuple(FactView(name=name, value=value, known=True) for name, value in facts if value)
