"""Role cards and the controller file -> RoleCard, ControllerRequirement.

Whatever is wrong is refused with file, key and hint.  A card names workloads of the catalogue: a
workload, stream, metric or parameter that is not there is refused, so that no requirement can go
unmeasured because of a misspelt name.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import get_args

from kvbench.document import found, suggestion
from kvbench.errors import UsageError
from kvbench.metrics import METRICS, Metric
from kvbench.workload.limits import read_limit
from kvbench.workload.load import EVIDENCE, SUMMARY_MAX, TEXT_MAX
from kvbench.workload.roles import (
    CONTROLLER_KEYS,
    Bound,
    ControllerRequirement,
    Level,
    Of,
    Probe,
    Requirement,
    RoleCard,
    Subject,
)
from kvbench.workload.schema import ROLES, Stream, SweepValue, Workload
from kvbench.workload.streams import allowed_name, number
from kvbench.workload.subject import parameter_values, why_not_given
from kvbench.workload.sweep import SWEEP_FIELDS
from kvbench.workload.table import SIZE_TEXT_MAX, Table, plain_text, read_document

CARD_KEYS = ("format", "role", "summary", "level")
LEVEL_KEYS = ("name", "title", "summary", "source", "requirement")
SUBJECT_KEYS = ("workload", "stream", "metric", "at")
REQUIREMENT_KEYS = (
    *SUBJECT_KEYS,
    "of",
    "at_least",
    "at_most",
    "why",
    "source",
    "evidence",
    "controller",
)
CONTROLLER_FILE_KEYS = ("format", "requirement")
CONTROLLER_ENTRY_KEYS = (
    "key",
    "title",
    "asks",
    "confounders",
    "cannot_prove",
    "source",
    "probe",
)
PROBE_KEYS = (*SUBJECT_KEYS, "tells")

LEVELS_MAX = 32
REQUIREMENTS_MAX = 64
PROBES_MAX = 32
TITLE_MAX = 80

FindWorkload = Callable[[str], Workload]  # raises UsageError when there is none


def load_role_card(path: Path, find: FindWorkload) -> RoleCard:
    """Return the card in ``path``.

    Args:
        path: the file; its name is the role.
        find: returns a workload of the catalogue by name.

    Raises:
        UsageError: the file cannot be read, a key or value is not allowed, or what it names is
            not there.
    """
    table = read_document(path)
    table.allow_only(CARD_KEYS)
    role = table.choice("role", ROLES, None)
    if path.stem != role:
        raise table.error("role", f"is {role} in a file named {found(path.stem)}")
    levels = tuple(_level(entry, find) for entry in table.tables("level", at_most=LEVELS_MAX))
    _refuse_twice(table, "level", [level.name for level in levels])
    return RoleCard(role=role, summary=table.text("summary", limit=SUMMARY_MAX), levels=levels)


def load_controller(path: Path, find: FindWorkload) -> tuple[ControllerRequirement, ...]:
    """Return the controller requirements in ``path``; each of the five keys once.

    Raises:
        UsageError: as for ``load_role_card``, or a requirement is missing.
    """
    table = read_document(path)
    table.allow_only(CONTROLLER_FILE_KEYS)
    entries = table.tables("requirement", at_most=len(CONTROLLER_KEYS))
    requirements = tuple(_controller(entry, find) for entry in entries)
    keys = [requirement.key for requirement in requirements]
    _refuse_twice(table, "requirement", keys)
    missing = [key for key in CONTROLLER_KEYS if key not in keys]
    if missing:
        raise table.error("requirement", f"lacks {', '.join(missing)}")
    return requirements


def _level(table: Table, find: FindWorkload) -> Level:
    table.allow_only(LEVEL_KEYS)
    requirements = table.tables("requirement", at_most=REQUIREMENTS_MAX)
    return Level(
        name=allowed_name(table.require("name"), table, "name"),
        title=table.text("title", limit=TITLE_MAX),
        summary=table.text("summary", limit=TEXT_MAX),
        source=table.text("source", limit=TEXT_MAX),
        requirements=tuple(_requirement(entry, find) for entry in requirements),
    )


def _requirement(table: Table, find: FindWorkload) -> Requirement:
    table.allow_only(REQUIREMENT_KEYS)
    workload = _workload(table, find)
    subject = _subject(table, workload)
    bound = _bound(table, METRICS[subject.metric])
    evidence = table.choice("evidence", EVIDENCE, None)
    if workload.evidence == "projected" and evidence != "projected":
        raise table.error(
            "evidence", f"must be projected, as the workload {workload.name} is", "never mix them"
        )
    limit, limit_text = read_limit(table, bound, METRICS[subject.metric])
    controller = None
    if "controller" in table:
        controller = table.choice("controller", CONTROLLER_KEYS, None)
    of: tuple[Of, ...] = get_args(Of)
    return Requirement(
        subject=subject,
        of=table.choice("of", of, "worst"),
        bound=bound,
        limit=limit,
        limit_text=limit_text,
        why=table.text("why", limit=TEXT_MAX),
        source=table.text("source", limit=TEXT_MAX),
        evidence=evidence,
        controller=controller,
    )


def _controller(table: Table, find: FindWorkload) -> ControllerRequirement:
    table.allow_only(CONTROLLER_ENTRY_KEYS)
    probes = []
    for entry in table.tables("probe", at_most=PROBES_MAX):
        entry.allow_only(PROBE_KEYS)
        subject = _subject(entry, _workload(entry, find))
        probes.append(Probe(subject=subject, tells=entry.text("tells", limit=TEXT_MAX)))
    return ControllerRequirement(
        key=table.choice("key", CONTROLLER_KEYS, None),
        title=table.text("title", limit=TITLE_MAX),
        asks=table.text("asks", limit=TEXT_MAX),
        confounders=table.text("confounders", limit=TEXT_MAX),
        cannot_prove=table.text("cannot_prove", limit=TEXT_MAX),
        source=table.text("source", limit=TEXT_MAX),
        probes=tuple(probes),
    )


def _workload(table: Table, find: FindWorkload) -> Workload:
    name = allowed_name(table.require("workload"), table, "workload")
    try:
        return find(name)
    except UsageError as error:
        if error.where:  # there is one, and its file is what is wrong
            raise
        raise table.error("workload", error.message, error.hint) from None


def _subject(table: Table, workload: Workload) -> Subject:
    names = [stream.name for stream in workload.streams]
    name = table.require("stream")
    stream = next((s for s in workload.streams if s.name == name), None)
    if stream is None:
        text = f"{found(name)} is no stream of the workload {workload.name}"
        raise table.error("stream", text, suggestion(str(name), names))
    metric = _metric(table, workload, stream)
    return Subject(
        workload=workload.name,
        stream=stream.name,
        metric=metric,
        at=_at(table.table("at"), workload),
        streams=workload.streams,
        swept=tuple(f"{axis.stream}.{axis.field}" for axis in workload.sweep),
    )


def _metric(table: Table, workload: Workload, stream: Stream) -> str:
    name = table.text("metric", limit=100)
    if name not in METRICS:
        raise table.error("metric", f"{found(name)} names no metric", suggestion(name, METRICS))
    why = why_not_given(name, workload, stream)
    if why:
        raise table.error("metric", f"{name} is not measured by {workload.name}: {why}")
    return name


def _at(table: Table, workload: Workload) -> dict[str, SweepValue]:
    """Return the parameters that must match; each is a parameter of the workload's points."""
    known = parameter_values(workload)
    at: dict[str, SweepValue] = {}
    for key, raw in _flat(table):
        if key not in known:
            hint = suggestion(key, known) if known else "it has one point only"
            raise table.error(key, f"is no parameter of the workload {workload.name}", hint)
        value = _at_value(table, key, raw)
        if value not in known[key]:
            raise table.error(
                key,
                f"{found(raw)} is not among the values of the workload {workload.name}",
                f"known: {', '.join(str(v) for v in known[key])}",
            )
        at[key] = value
    return at


def _at_value(table: Table, key: str, raw: object) -> SweepValue:
    field = key.rpartition(".")[2]
    if field in SWEEP_FIELDS:
        return number(field, raw, table, key)
    return plain_text(raw, table, key, limit=SIZE_TEXT_MAX)


def _flat(table: Table) -> Iterator[tuple[str, object]]:
    """Yield the keys; TOML makes a table of an unquoted ``stream.field``."""
    for key, value in table.values.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{field}", inner) for field, inner in value.items())
        else:
            yield key, value


def _bound(table: Table, metric: Metric) -> Bound:
    given = [bound for bound in get_args(Bound) if bound in table]
    if len(given) != 1:
        raise table.error("", "needs one of at_least and at_most, and not both")
    bound: Bound = "at_least" if given[0] == "at_least" else "at_most"
    fitting = {"higher": "at_least", "lower": "at_most"}.get(metric.better, bound)
    if bound != fitting:
        raise table.error(
            bound, f"does not fit {metric.name}, of which {metric.better} is better", f"{fitting} ="
        )
    return bound


def _refuse_twice(table: Table, key: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise table.error(key, f"has {found(name)} twice")
