"""Judgement -> what a reader sees of role cards and controller requirements.  Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kvbench.measure.roles import (
    ControllerReading,
    JudgedLevel,
    JudgedRole,
    Judgement,
    ProbeReading,
)
from kvbench.measure.subjects import NOT_IN_RUN, Figure
from kvbench.measure.verdicts import RequirementRow
from kvbench.report.role_model import (
    CardView,
    Chip,
    ControllerView,
    LevelView,
    ProbeView,
    ReadingView,
    RequirementView,
)
from kvbench.report.words import (
    DASH,
    EVIDENCE_WORDS,
    IN_DOUBT,
    metric_label,
    parameter_words,
    quantity,
    sentence,
    short,
    spread,
)

READINGS_MAX = 8
MUCH = 2.0  # from here on a margin is told as a factor, not in per cent
_KINDS = {"met": "good", "missed": "bad"}
_BOUNDS = {"at_least": "at least", "at_most": "at most"}


def card_views(judgement: Judgement) -> tuple[CardView, ...]:
    """Return one view per card."""
    titles: dict[str, str] = {reading.key: reading.title for reading in judgement.controller}
    return tuple(_card(role, titles) for role in judgement.roles)


def controller_views(judgement: Judgement) -> tuple[ControllerView, ...]:
    """Return one view per controller requirement."""
    return tuple(_controller(reading) for reading in judgement.controller)


def margin_words(margin: float | None) -> str:
    """Return ``+12 %``, ``-30 %``, ``3.2x better`` or ``46x short``."""
    if margin is None:
        return DASH
    ratio = margin + 1
    if ratio >= MUCH:
        return f"{_factor(ratio)} better"
    if ratio <= 1 / MUCH:
        return f"{_factor(1 / ratio)} short" if ratio > 0 else "nothing"
    return f"{100 * margin:+.0f} %"


def _factor(ratio: float) -> str:
    return f"{ratio:.1f}x" if ratio < 10 else f"{ratio:,.0f}x"


def _card(role: JudgedRole, titles: Mapping[str, str]) -> CardView:
    scored = [level for level in role.levels if level.score is not None]
    highest = next((level for level in role.levels if level.name == role.highest), None)
    if not role.measured:
        chip, headline = Chip(text="not measured", kind="open"), ""
    elif highest is not None:
        chip, headline = (
            Chip(text="met", kind="good"),
            f"highest level met: {short(highest.title, 100)}",
        )
    else:
        verdicts = {level.score.verdict for level in scored if level.score}
        text = "missed" if verdicts == {"missed"} else "cannot say"
        chip, headline = Chip(text=text, kind=_KINDS.get(text, "open")), "no level is met"
    return CardView(
        role=role.role,
        summary=sentence(role.summary),
        chip=chip,
        headline=headline,
        counts=_level_counts(scored) if role.measured else "",
        levels=tuple(_level(level, titles) for level in role.levels) if role.measured else (),
        unmeasured=sentence(role.reason),
    )


def _level_counts(levels: Sequence[JudgedLevel]) -> str:
    """Return ``of 5 levels 1 met, 3 missed, 1 cannot say``; projected levels do not count."""
    verdicts = [level.score.verdict for level in levels if level.score]
    parts = [f"{verdicts.count(v)} {v}" for v in ("met", "missed", "cannot say") if v in verdicts]
    levels_words = "1 level" if len(verdicts) == 1 else f"{len(verdicts)} levels"
    return f"of {levels_words}: {', '.join(parts)}"


def _level(level: JudgedLevel, titles: Mapping[str, str]) -> LevelView:
    score = level.score or level.projected
    verdict = score.verdict if score else "cannot say"
    decided = level.rows[score.decided_by] if score else None
    measured = any(row.verdict != "not measurable" for row in level.rows)
    return LevelView(
        name=short(level.name),
        title=short(level.title, 100),
        summary=sentence(level.summary),
        source=sentence(level.source),
        chip=Chip(text=verdict, kind=_KINDS.get(verdict, "open")),
        score=_score_words(level, projected=False),
        projected_score=_score_words(level, projected=True),
        decided=_decided_words(decided) if decided else "",
        only_projected=level.score is None,
        rows=tuple(_row(row, titles) for row in level.rows) if measured else (),
        unmeasured="" if measured else _unmeasured(level.rows),
        reasons=tuple(dict.fromkeys(short(_kind(row)) for row in level.rows if row.reason)),
    )


def verdict_words(row: RequirementRow) -> str:
    """Return the verdict of a row: what was not run is told apart from what cannot be measured."""
    if row.verdict != "not measurable":
        return row.verdict
    return NOT_IN_RUN if _kind(row) == NOT_IN_RUN else "not measurable here"


def _score_words(level: JudgedLevel, *, projected: bool) -> str:
    """Return the rows of a level by their verdicts: ``1 met, 3 not in this run``."""
    found = Counter(
        verdict_words(row) for row in level.rows if (row.evidence == "projected") is projected
    )
    order = ("met", "missed", "unclear", NOT_IN_RUN, "not measurable here")
    return ", ".join(f"{found[name]} {name}" for name in order if found[name])


def _decided_words(row: RequirementRow) -> str:
    what = _what(row.workload, row.stream, row.metric)
    if row.verdict in ("met", "missed"):
        doubtful = f" {IN_DOUBT}" if row.doubts else ""
        measured = f"{_measured(row)}{doubtful}"
        return f"{what}: {measured}, {_limit(row)}, {margin_words(row.margin)}"
    verdict, reason = verdict_words(row), sentence(row.reason)
    return f"{what}: {reason}" if verdict == NOT_IN_RUN else f"{what}: {verdict}, {reason}"


def _unmeasured(rows: Iterable[RequirementRow]) -> str:
    """Return one line for a level of which nothing was measured."""
    reasons: dict[str, dict[str, None]] = {}
    for row in rows:
        reasons.setdefault(_kind(row), {})[row.workload] = None
    return "; ".join(f"{short(', '.join(names), 90)}: {head}" for head, names in reasons.items())


def _kind(row: RequirementRow) -> str:
    """Return what kind of reason a row has: what stands before its colon."""
    return row.reason.partition(":")[0]


def _row(row: RequirementRow, titles: Mapping[str, str]) -> RequirementView:
    known = row.value is not None
    return RequirementView(
        what=_what(row.workload, row.stream, row.metric),
        point=_point(row),
        limit=_limit(row),
        measured=_measured(row) if known else DASH,
        detail=_detail(row),
        known=known,
        margin=margin_words(row.margin),
        chip=Chip(text=verdict_words(row), kind=_KINDS.get(row.verdict, "open")),
        evidence=row.evidence,
        evidence_words=EVIDENCE_WORDS[row.evidence],
        projected=row.evidence == "projected",
        why=sentence(row.why),
        source=sentence(row.source),
        controller=titles.get(row.controller or "", ""),
        doubts=tuple(sentence(doubt) for doubt in row.doubts),
    )


def _what(workload: str, stream: str, metric: str) -> str:
    return f"{metric_label(metric)} of {short(workload)}, {short(stream, 24)}"


def _limit(row: RequirementRow) -> str:
    return f"{_BOUNDS[row.bound]} {quantity(row.metric, row.unit, row.limit)}"


def _measured(row: RequirementRow) -> str:
    if row.value is None:
        return "not measured"
    return quantity(row.metric, row.unit, row.value, censored=row.censored)


def _detail(row: RequirementRow) -> str:
    reason = sentence(row.reason)
    if row.value is None:
        return reason
    words = _spread(row.metric, row.unit, row)
    return f"{words}; {reason}" if reason else words


def _spread(metric: str, unit: str, found: RequirementRow | Figure) -> str:
    """Return ``2.8-3.0M, 95 % interval, n=6`` as the tables have it."""
    if found.value is None or found.low is None or found.high is None:
        return f"n={found.n}, no interval"
    words = spread(metric, unit, found.low, found.value, found.high)
    kind = "95 % interval, " if found.interval == "95 %" else "range of "
    return f"{words}, {kind}n={found.n}"


def _point(row: RequirementRow) -> str:
    """Return the point that decided, and whether it was the worst or the best of several."""
    words = parameter_words(row.parameters or row.at)
    if row.points > 1 and row.value is not None:
        return f"{words} ({row.of} of {row.points} points)"
    return words


def _controller(reading: ControllerReading) -> ControllerView:
    probes = tuple(_probe(probe) for probe in reading.probes)
    return ControllerView(
        key=reading.key,
        title=short(reading.title, 100),
        asks=sentence(reading.asks),
        probes=probes,
        confounders=sentence(reading.confounders),
        cannot_prove=sentence(reading.cannot_prove),
        source=sentence(reading.source),
        measured=any(not probe.missing for probe in probes),
    )


def _probe(probe: ProbeReading) -> ProbeView:
    known = [figure for figure in probe.figures if figure.value is not None]
    missing = ""
    if not known:
        reason = probe.reason or next((f.reason for f in probe.figures), "") or "no reason is given"
        missing = f"not measured: {sentence(reason).removeprefix('not in this run: ')}"
    hidden = len(probe.figures) - READINGS_MAX
    return ProbeView(
        what=_what(probe.workload, probe.stream, probe.metric),
        tells=sentence(probe.tells),
        readings=()
        if missing
        else tuple(_reading(probe, figure) for figure in probe.figures[:READINGS_MAX]),
        more=f"and {hidden} more points, in the tables" if hidden > 0 and not missing else "",
        missing=missing,
    )


def _reading(probe: ProbeReading, figure: Figure) -> ReadingView:
    point = parameter_words(figure.parameters)
    if figure.value is None:
        return ReadingView(point=point, value=DASH, detail=sentence(figure.reason), known=False)
    return ReadingView(
        point=point,
        value=quantity(probe.metric, probe.unit, figure.value, censored=figure.censored),
        detail=_spread(probe.metric, probe.unit, figure),
        known=True,
        doubts=tuple(sentence(doubt) for doubt in figure.doubts),
    )
