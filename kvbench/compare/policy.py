"""A policy file -> Policy: what counts as a difference, and what must not differ.

``workloads/policies/`` holds those that come with kvbench; a user's own is given by path.
"""

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from msgspec import Struct

from kvbench.document import found, suggestion
from kvbench.errors import UsageError
from kvbench.metrics import METRICS
from kvbench.plan import Plan
from kvbench.workload.folder import data_folder
from kvbench.workload.schema import ROLES, Role, Workload
from kvbench.workload.table import Table, plain_text, read_document

POLICIES_FOLDER = "policies"
PRIMARY = "primary"
ASPECT_NAMES = (
    *("label", "model", "serial", "namespace", "firmware", "capacity", "lba_format", "pcie_link"),
    *(
        "target_kind",
        "file",
        "file_system",
        "scheduler",
        "preparation",
        "plan",
        "engine",
        "io_mode",
    ),
    *("fio", "kernel", "kvbench", "cpu", "cpus", "memory", "governor", "repetitions"),
)
KEYS = (
    *("format", "summary", "confidence", "metrics", "missing", "failed", "unclear"),
    *("may_differ", "must_not_differ", "margins", "require"),
)
PATTERNS_MAX = 64
PATTERN_CHARS_MAX = 200
REQUIRED_MAX = 64
CONFIDENCE_MIN, CONFIDENCE_MAX = 50.0, 99.999
MARGIN_MAX = 10.0  # ten times the baseline

Missing = Literal["fail", "unclear", "ignore"]
Failed = Literal["unclear", "fail", "ignore"]
Unclear = Literal["unclear", "fail", "pass"]


class RequiredLevel(Struct, frozen=True, kw_only=True):
    """A level of a role card that the candidate must meet."""

    role: Role
    level: str


class Policy(Struct, frozen=True, kw_only=True):
    """What a comparison or a gate goes by.  ``confidence`` and ``margins`` are shares (0.05)."""

    name: str
    summary: str
    confidence: float
    metrics: tuple[str, ...]
    missing: Missing
    failed: Failed  # what repetitions of the candidate mean that failed or are invalid
    unclear: Unclear
    may_differ: tuple[str, ...]
    must_not_differ: tuple[str, ...]
    margins: dict[str, float]
    require: tuple[RequiredLevel, ...] = ()

    @property
    def chance(self) -> float:
        """The error that is allowed: one less the confidence."""
        return 1 - self.confidence

    def margin(self, metric: str) -> float:
        """Return by what share ``metric`` may differ; the longest pattern that fits decides."""
        if metric in self.margins:
            return self.margins[metric]
        fitting = [pattern for pattern in self.margins if fnmatchcase(metric, pattern)]
        return self.margins[max(fitting, key=len)] if fitting else 0.0

    def wants(self, workload: Workload, stream: str, metric: str) -> bool:
        """Whether the policy is about this number."""
        name = f"{workload.name}/{stream}.{metric}"
        return any(
            f"{stream}.{metric}" in workload.primary
            if pattern == PRIMARY
            else fnmatchcase(name, pattern)
            for pattern in self.metrics
        )

    def count(self, plan: Plan) -> int:
        """Return how many numbers of a plan the policy is about, at most."""
        workloads = {workload.name: workload for workload in plan.workloads}
        points = {
            cell.point_id: cell
            for cell in plan.cells
            if cell.purpose == "measure" and cell.alone is None
        }
        return sum(
            self.wants(workloads[cell.workload], placed.stream.name, metric)
            for cell in points.values()
            for placed in cell.placed
            for metric in METRICS
        )

    @property
    def names_metrics(self) -> bool:
        """Whether the policy asks for metrics by name, so that each must have a value."""
        return self.metrics != (PRIMARY,)


def find_policy(path: Path | None, default: str) -> Policy:
    """Return the policy in ``path``, or the one called ``default`` that comes with kvbench.

    Raises:
        UsageError: the file cannot be read, or a key or value of it is not allowed.
    """
    return load_policy(path or data_folder() / POLICIES_FOLDER / f"{default}.toml")


def load_policy(path: Path) -> Policy:
    """Return the policy in ``path``.

    Raises:
        UsageError: as for ``find_policy``.
    """
    table = read_document(path)
    table.allow_only(KEYS)
    may = _aspects(table, "may_differ")
    must_not = _aspects(table, "must_not_differ")
    both = sorted(set(may) & set(must_not))
    if both:
        raise table.error("may_differ", f"{both[0]} is in must_not_differ as well")
    missing: tuple[Missing, ...] = ("fail", "unclear", "ignore")
    failed: tuple[Failed, ...] = ("unclear", "fail", "ignore")
    unclear: tuple[Unclear, ...] = ("unclear", "fail", "pass")
    return Policy(
        name=path.stem,
        summary=table.text("summary", limit=400, default="a policy of the user's own"),
        confidence=_confidence(table),
        metrics=_metrics(table),
        missing=table.choice("missing", missing, "fail"),
        failed=table.choice("failed", failed, "unclear"),
        unclear=table.choice("unclear", unclear, "unclear"),
        may_differ=may,
        must_not_differ=must_not,
        margins=_margins(table),
        require=_required(table),
    )


def _confidence(table: Table) -> float:
    return table.number("confidence", low=CONFIDENCE_MIN, high=CONFIDENCE_MAX) / 100


def _metrics(table: Table) -> tuple[str, ...]:
    patterns = []
    for n, value in enumerate(table.array("metrics", at_most=PATTERNS_MAX), start=1):
        key = f"metrics[{n}]"
        text = plain_text(value, table, key, limit=PATTERN_CHARS_MAX)
        if text != PRIMARY:
            _refuse_unknown(text, table, key)
        patterns.append(text)
    return tuple(dict.fromkeys(patterns))


def _refuse_unknown(pattern: str, table: Table, key: str) -> None:
    """Refuse a pattern that no metric can fit: it would gate nothing, and pass."""
    workload, slash, rest = pattern.partition("/")
    _, dot, metric = rest.partition(".")
    if not (slash and dot and workload and metric):
        raise table.error(
            key,
            f"{found(pattern)} is no pattern of workload/stream.metric",
            f'write e.g. "vllm-block/*.request_p50", or "{PRIMARY}"',
        )
    if not any(fnmatchcase(name, metric) for name in METRICS):
        raise table.error(key, f"no metric fits {found(metric)}", suggestion(metric, METRICS))


def _margins(table: Table) -> dict[str, float]:
    margins = {}
    inner = table.table("margins")
    if not inner.values:
        raise table.error("margins", 'needs an entry, e.g. "*" = "10 %"')
    for pattern in inner.values:
        if not any(fnmatchcase(name, pattern) for name in METRICS):
            raise inner.error(
                pattern, f"no metric fits {found(pattern)}", suggestion(pattern, METRICS)
            )
        margins[pattern] = _share(inner, pattern)
    if not all(any(fnmatchcase(name, p) for p in margins) for name in METRICS):
        raise table.error("margins", "some metrics have none", 'add "*" = "10 %"')
    return margins


def _share(table: Table, key: str) -> float:
    text = plain_text(table.require(key), table, key, limit=40)
    number, percent, rest = text.partition("%")
    try:
        value = float(number)
    except ValueError:
        value = float("nan")
    if not percent or rest.strip() or not 0 <= value <= MARGIN_MAX * 100:
        raise table.error(
            key, f"must be a share from 0 % to {MARGIN_MAX * 100:.0f} %, not {found(text)}"
        )
    return value / 100


def _aspects(table: Table, key: str) -> tuple[str, ...]:
    raw = table.require(key)
    if raw == []:
        return ()
    names = []
    for n, value in enumerate(table.array(key, at_most=len(ASPECT_NAMES)), start=1):
        name = plain_text(value, table, f"{key}[{n}]", limit=PATTERN_CHARS_MAX)
        if name not in ASPECT_NAMES:
            raise table.error(
                f"{key}[{n}]",
                f"there is no aspect {found(name)}",
                suggestion(name, ASPECT_NAMES),
            )
        names.append(name)
    return tuple(dict.fromkeys(names))


def _required(table: Table) -> tuple[RequiredLevel, ...]:
    if "require" not in table:
        return ()
    required = []
    for entry in table.tables("require", at_most=REQUIRED_MAX):
        entry.allow_only(("role", "level"))
        required.append(
            RequiredLevel(
                role=entry.choice("role", ROLES, None), level=entry.text("level", limit=80)
            )
        )
    return tuple(required)


def refuse_unknown_level(required: RequiredLevel, levels: tuple[str, ...], where: str) -> None:
    """Refuse a level that the card does not have.

    Raises:
        UsageError: there is none of that name.
    """
    if required.level not in levels:
        raise UsageError(
            f"the card {required.role} has no level {found(required.level)}",
            where=where,
            hint=suggestion(required.level, levels),
        )
