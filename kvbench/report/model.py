"""What a reader sees, as data: every text is final, every plot is numbers.  No drawing here.

Texts are shown as they are (the renderers escape them); names from an archive have passed
``words.visible`` or ``words.short``.
"""

from typing import Literal

from msgspec import Struct

Level = Literal["bad", "doubt", "note"]


class Value(Struct, frozen=True, kw_only=True):
    """One number with its unit, its spread and its doubts; or the words that stand for it."""

    text: str  # "3.12 GB/s", "too few I/Os", "not run"
    detail: str  # "2.90-3.30, range of n=3", or why there is no number
    known: bool
    primary: bool
    n: int = 0  # repetitions behind it
    versus: str = ""  # "2.4 x alone": a mixed tenant against itself alone
    versus_detail: str = ""
    versus_primary: bool = False
    marks: tuple[str, ...] = ()


class Row(Struct, frozen=True, kw_only=True):
    """One stream and direction of one point.  ``values`` has one entry per column."""

    parameters: str
    stream: str
    setting: str  # "", "mixed" or "alone"
    values: tuple[Value | None, ...]  # None: this metric does not concern this stream


class RowGroup(Struct, frozen=True, kw_only=True):
    """The rows of one workload."""

    workload: str
    full_name: str
    evidence: str
    evidence_words: str
    summary: str
    cannot_express: str
    rows: tuple[Row, ...]


class Column(Struct, frozen=True, kw_only=True):
    """One metric as a column."""

    metric: str
    label: str
    meaning: str
    narrow: bool  # a ratio beside the results: its spread may wrap


class Note(Struct, frozen=True, kw_only=True):
    """What a mark beside a number stands for."""

    mark: str
    text: str


class ResultTable(Struct, frozen=True, kw_only=True):
    """Results of one role.  Projected workloads have a table of their own."""

    caption: str
    projected: bool
    columns: tuple[Column, ...]
    groups: tuple[RowGroup, ...]
    notes: tuple[Note, ...]


class PlainTable(Struct, frozen=True, kw_only=True):
    """A table of texts; the first column names its row."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Curve(Struct, frozen=True, kw_only=True):
    """One latency curve.  ``percent`` ascends, from 50; ``latency_s`` has the same length.

    ``repetitions`` holds (percent, latency_s) of each repetition by itself.
    """

    label: str
    colour: int
    dashed: bool
    percent: tuple[float, ...]
    latency_s: tuple[float, ...]
    repetitions: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]


class CurvePanel(Struct, frozen=True, kw_only=True):
    """Latency percentile curves on a nines axis."""

    title: str
    description: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]


class DepthSeries(Struct, frozen=True, kw_only=True):
    """A metric against queue depth.  ``dots`` has (depth, value) of every repetition.

    Lines that share the first words of their label (a block size) share a ``colour``; the
    ``variant`` tells them apart by dashes.
    """

    label: str
    colour: int
    variant: int
    depth: tuple[float, ...]
    median: tuple[float, ...]
    dots: tuple[tuple[float, float], ...]


class DepthPanel(Struct, frozen=True, kw_only=True):
    """One metric against queue depth; rates start at zero, latencies are logarithmic."""

    title: str
    description: str
    x_label: str
    y_label: str
    unit: str
    from_zero: bool
    series: tuple[DepthSeries, ...]


class Bar(Struct, frozen=True, kw_only=True):
    """One bar: the median, and a dot for every repetition."""

    label: str
    colour: int
    median: float | None
    dots: tuple[float, ...]


class BarGroup(Struct, frozen=True, kw_only=True):
    """The bars of one tenant, on an axis of their own."""

    label: str
    metric: str
    unit: str
    bars: tuple[Bar, ...]


class BarPanel(Struct, frozen=True, kw_only=True):
    """One metric of every tenant, alone and mixed; every axis starts at zero."""

    title: str
    description: str
    what: str  # "latency" or "rate"
    groups: tuple[BarGroup, ...]


class Figure(Struct, frozen=True, kw_only=True):
    """One figure: the question that it answers, its panels, and the numbers behind it."""

    figure_id: str
    title: str
    question: str
    how_to_read: str
    panels: tuple[CurvePanel | DepthPanel | BarPanel, ...]
    table: PlainTable


class RoleView(Struct, frozen=True, kw_only=True):
    """One role with its tables and figures."""

    role: str
    words: str
    tables: tuple[ResultTable, ...]
    figures: tuple[Figure, ...]


class Doubt(Struct, frozen=True, kw_only=True):
    """One thing that makes the result doubtful; ``mark`` stands beside the numbers concerned."""

    level: Level
    text: str
    mark: str = ""


class FactView(Struct, frozen=True, kw_only=True):
    """One fact; ``value`` is "unknown" when ``known`` is not set, and ``reason`` says why."""

    name: str
    value: str
    known: bool
    reason: str = ""


class FactGroup(Struct, frozen=True, kw_only=True):
    """Facts under one heading."""

    title: str
    facts: tuple[FactView, ...]


class Problem(Struct, frozen=True, kw_only=True):
    """Cells that share an outcome and its reasons."""

    outcome: str
    cells: tuple[str, ...]
    workload: str
    point: str
    reasons: tuple[str, ...]


class CellRow(Struct, frozen=True, kw_only=True):
    """One cell of the plan with its primary numbers."""

    cell_id: str
    repetition: str
    workload: str
    point: str
    outcome: str
    values: tuple[str, ...]


class JobView(Struct, frozen=True, kw_only=True):
    """The exact job text of one cell; None when it is not in the archive."""

    cell_id: str
    label: str
    text: str | None


class JobGroup(Struct, frozen=True, kw_only=True):
    """The job texts of one workload."""

    workload: str
    jobs: tuple[JobView, ...]


class ReportView(Struct, frozen=True, kw_only=True):
    """The whole report."""

    title: str
    verdict: str
    state: Level  # how the verdict is to be taken: bad, doubt, or note when all is well
    alerts: tuple[str, ...]
    doubts: tuple[Doubt, ...]
    facts: tuple[FactGroup, ...]
    roles: tuple[RoleView, ...]
    problems: tuple[Problem, ...]
    method: tuple[tuple[str, str], ...]  # (term, explanation)
    cells: tuple[CellRow, ...]
    jobs: tuple[JobGroup, ...]
    command: str
    repeat: tuple[FactView, ...]
