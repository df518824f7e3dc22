"""What a reader sees, as data: every text is final, every plot is numbers.  No drawing here.

Texts are shown as they are (the renderers escape them); names from an archive have passed
``words.visible`` or ``words.short``.
"""

from typing import Literal

from msgspec import Struct

from kvbench.report.role_model import CardView, Chip, ControllerView
from kvbench.report.timeline_model import TimelinePanel

Level = Literal["bad", "doubt", "note"]


class Value(Struct, frozen=True, kw_only=True):
    """One number with its unit, its spread and its doubts; or the words that stand for it."""

    text: str  # "3.12 GB/s", "too few I/Os", "not run"
    detail: str  # "2.90-3.30, range of n=3", or why there is no number
    known: bool
    primary: bool
    n: int = 0  # repetitions behind it
    raw: float | None = None  # the number in the metric's own unit, to sort by
    versus: str = ""  # "2.4 x alone": a mixed tenant against itself alone
    versus_detail: str = ""
    versus_primary: bool = False
    marks: tuple[str, ...] = ()


class Row(Struct, frozen=True, kw_only=True):
    """One stream and direction of one point.  ``values`` has one entry per column."""

    parameters: str
    stream: str
    setting: str  # "", "mixed", "alone", "beside ..." or where on a load curve
    values: tuple[Value | None, ...]  # None: this metric does not concern this stream
    device: str = ""  # what the block device saw of each large I/O


class RowGroup(Struct, frozen=True, kw_only=True):
    """The rows of one workload."""

    workload: str
    full_name: str
    evidence: str
    evidence_words: str
    summary: str
    cannot_express: str
    rows: tuple[Row, ...]
    derivation: str = ""  # how a size came out of a model's geometry


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
    mark: str = ""  # whether the device was steady, inside the drawing


class LineSeries(Struct, frozen=True, kw_only=True):
    """A metric against something numeric.  ``dots`` has (x, value) of every repetition.

    Lines that share the first words of their label (a block size) share a ``colour``; the
    ``variant`` tells them apart by dashes.  ``high`` makes a band upwards from ``low``, or from
    the median without one.
    ``hollow`` are places of points that are shown and are not to be relied on.
    """

    label: str
    colour: int
    variant: int
    x: tuple[float, ...]
    median: tuple[float, ...]
    dots: tuple[tuple[float, float], ...] = ()
    hollow: tuple[int, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


class Rule(Struct, frozen=True, kw_only=True):
    """A line across a panel that marks one value; ``low`` to ``high`` is its interval.

    Without a ``colour`` it is in ink; ``variant`` tells rules of one colour apart by dashes.
    """

    axis: Literal["x", "y"]
    value: float
    label: str  # in full, for the description
    short_label: str  # on the drawing
    colour: int | None = None
    variant: int = 1
    low: float | None = None
    high: float | None = None


class LinePanel(Struct, frozen=True, kw_only=True):
    """One metric against something numeric; rates start at zero, times are logarithmic.

    ``x_scale`` is "log2" for what is swept in doublings and "linear" from zero.
    """

    title: str
    description: str
    x_label: str
    y_label: str
    unit: str
    from_zero: bool
    series: tuple[LineSeries, ...]
    x_unit: str = "1"
    x_scale: Literal["log2", "linear"] = "log2"
    rules: tuple[Rule, ...] = ()
    mark: str = ""  # whether the device was steady, inside the drawing


class HeatCell(Struct, frozen=True, kw_only=True):
    """One cell of a matrix; ``level`` rises from 0, None when there is no number."""

    text: str
    detail: str
    level: int | None


class HeatPanel(Struct, frozen=True, kw_only=True):
    """A matrix of numbers as a table whose cells are shaded by their level."""

    title: str
    description: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[HeatCell, ...]], ...]  # name, a soft line below it, cells
    key: tuple[tuple[int, str], ...]  # level, what it stands for
    mark: str = ""  # whether the device was steady, inside the drawing


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
    mark: str = ""  # whether the device was steady, inside the drawing


class DotRow(Struct, frozen=True, kw_only=True):
    """One value beside the one that it should stay below; from ``limit`` to ``end`` it is doubted.

    ``text`` stands beside the row, ``says`` where a pointer rests on the value.
    """

    label: str
    value: float
    limit: float
    end: float
    text: str
    says: str


class DotPanel(Struct, frozen=True, kw_only=True):
    """Values in rows on a logarithmic axis; a zero stands at its edge by its name."""

    title: str
    description: str
    x_label: str
    unit: str
    limit_label: str
    rows: tuple[DotRow, ...]
    mark: str = ""  # whether the device was steady, inside the drawing


Panel = CurvePanel | LinePanel | BarPanel | HeatPanel | TimelinePanel | DotPanel


class Figure(Struct, frozen=True, kw_only=True):
    """One figure: the question that it answers, its panels, and the numbers behind it."""

    figure_id: str
    title: str
    question: str
    how_to_read: str
    panels: tuple[Panel, ...]
    table: PlainTable

    @property
    def single(self) -> bool:
        """Whether it has one panel, so that two such figures may share a row."""
        return len(self.panels) == 1


class ReloadView(Struct, frozen=True, kw_only=True):
    """Reload or recompute: the figure and its table; without a reload only ``words`` say why."""

    words: tuple[str, ...]  # sentences, in the order of reading
    figure: Figure | None
    tables: tuple[PlainTable, ...]
    lines: tuple[str, ...]  # the answer in a sentence per drawn line, for a terminal
    fact: str = ""  # of the first drawn line, "" without a reload


class RoleVerdict(Struct, frozen=True, kw_only=True):
    """What the card of one role comes to, in a chip and a few words."""

    role: str
    chip: Chip
    words: str
    href: str  # its card


class FirstFact(Struct, frozen=True, kw_only=True):
    """One of the facts that matter most, in words, with its interval and its doubts."""

    text: str
    href: str  # where the rest of it stands
    value: str = ""  # apart from the text, which may end in a name that is read from the right
    detail: str = ""
    marks: tuple[str, ...] = ()


class PreparationView(Struct, frozen=True, kw_only=True):
    """What ``kvbench prepare`` did; without two rounds there is no figure."""

    words: str  # the state in one line
    facts: tuple[tuple[str, str], ...]  # (what, how it went), in order
    figure: Figure | None


class HealthView(Struct, frozen=True, kw_only=True):
    """What the drive told of itself; ``figure`` is made for the page alone."""

    words: tuple[str, ...]  # sentences, in the order of reading
    lines: tuple[str, ...]  # those of them that a terminal shows
    tables: tuple[PlainTable, ...]
    figure: Figure | None = None


class ReadingView(Struct, frozen=True, kw_only=True):
    """What one probe says, ready to be shown."""

    workload: str
    question: str
    answer: str
    sentences: tuple[str, ...]
    caveats: tuple[str, ...]


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
    anchors: tuple[str, ...] = ()  # of the rows of these cells, in the same order


class CellRow(Struct, frozen=True, kw_only=True):
    """One cell of the plan with its primary numbers."""

    cell_id: str
    repetition: str
    workload: str
    point: str
    outcome: str
    values: tuple[str, ...]
    anchor: str = ""  # what a link to this cell leads to, "" for a second one of the same id


class JobView(Struct, frozen=True, kw_only=True):
    """The exact job text of one cell; None when it is not in the archive."""

    cell_id: str
    label: str
    text: str | None
    anchor: str = ""  # of the row of this cell


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
    reload: ReloadView | None
    problems: tuple[Problem, ...]
    method: tuple[tuple[str, str], ...]  # (term, explanation)
    cells: tuple[CellRow, ...]
    jobs: tuple[JobGroup, ...]
    command: str
    repeat: tuple[FactView, ...]
    cards: tuple[CardView, ...] = ()  # role cards, held against the run
    controller: tuple[ControllerView, ...] = ()
    health: HealthView | None = None
    readings: tuple[ReadingView, ...] = ()  # what the probes say
    preparation: PreparationView | None = None
    mark: str = ""  # whether the device was steady, inside every drawing
    ceilings: Figure | None = None  # measured rates beside the host's ceilings
    role_verdicts: tuple[RoleVerdict, ...] = ()
    first_facts: tuple[FirstFact, ...] = ()
