"""What makes a result doubtful, worst first, and the marks beside the numbers concerned.  Pure."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from string import ascii_lowercase

from msgspec import Struct

from kvbench.measure.model import Finding, MeasuredRun, Severity
from kvbench.report.model import Doubt, Level, Note
from kvbench.report.words import sentence, short
from kvbench.units import format_size

_REPEATED = re.compile(r" \(\d+ of \d+ repetitions\)$")  # what a summary adds to a finding
INTERVAL_N_MIN = 6  # repetitions below which no 95 % interval of a median exists
PAGE_CACHE = (
    "page-cache-bound: this run is buffered (no O_DIRECT), so the page cache served the I/O and "
    "no number here describes the device"
)

READ_BACK = "read-back"  # the check that compares what was read with what was written
WRONG_MAX = 5  # cells that are told one by one

_WATCHED = {
    "smart": "SMART",
    "temperature_c": "temperature",
    "state": "controller state",
    "link_speed": "PCIe link",
    "kernel_log": "the kernel log",
}
SPAN_PERCENT_MIN = 90.0  # of the device; below it the report says how much was touched
SUSTAINED_S_MIN = 60.0  # a shorter cell may live from a write cache or a cool controller


class Marks(Struct, frozen=True):
    """Doubts that concern some cells, by their sentence and by their mark."""

    by_text: dict[str, str]
    doubts: tuple[Doubt, ...]

    def of(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return the marks of ``texts``, each once."""
        bases = (_REPEATED.sub("", text) for text in texts)
        return tuple(dict.fromkeys(self.by_text[t] for t in bases if t in self.by_text))

    def notes(self, marks: Iterable[str]) -> tuple[Note, ...]:
        """Return what ``marks`` stand for, in the order of the list of doubts."""
        wanted = set(marks)
        return tuple(Note(mark=d.mark, text=d.text) for d in self.doubts if d.mark in wanted)


def collect_marks(run: MeasuredRun) -> Marks:
    """Give one mark to each check that doubted a cell, most cells first."""
    groups = _by_check(run, "doubt")
    known = {finding.text for group in groups.values() for _, finding in group}
    for summary in run.summaries:
        for doubt in summary.doubts:
            text = _REPEATED.sub("", doubt)
            if text not in known:
                loose = Finding(check=text, severity="doubt", text=text)
                groups[text].append((summary.point_id, loose))
    ordered = sorted(groups.items(), key=lambda item: -len({cell for cell, _ in item[1]}))
    by_text: dict[str, str] = {}
    doubts = []
    for number, (check, group) in enumerate(ordered):
        mark = mark_name(number)
        by_text.update((finding.text, mark) for _, finding in group)
        doubts.append(Doubt(level="doubt", text=_group_words(check, group), mark=mark))
    return Marks(by_text, tuple(doubts))


def list_doubts(run: MeasuredRun, marks: Marks) -> tuple[Doubt, ...]:
    """Return everything that a reader should hold against the result, worst first."""
    texts: dict[str, Doubt] = {}
    for doubt in _all_doubts(run, marks):
        texts.setdefault(doubt.text, doubt)
    order: tuple[Level, ...] = ("bad", "doubt", "note")
    return tuple(sorted(texts.values(), key=lambda doubt: order.index(doubt.level)))


def _all_doubts(run: MeasuredRun, marks: Marks) -> Iterable[Doubt]:
    plan = run.record.plan
    for wrong in _wrong_data(run):
        yield _bad(wrong)
    for damage in run.damage:
        yield _bad(f"part of the archive could not be read: {sentence(damage)}")
    if end := end_words(run):
        yield _bad(end)
    outcomes = [cell.outcome for cell in run.cells if cell.cell.purpose != "ceiling"]
    yield from _ceilings(run)
    if count := outcomes.count("failed"):
        yield _bad(f"failed: {cells_words(count)} in which fio did not do what was asked")
    if count := outcomes.count("invalid"):
        yield _bad(
            f"invalid: {cells_words(count)} in which something else was measured than was asked; "
            "shown below, never summarised"
        )
    if not plan.direct or run.record.written.state == "buffered":
        yield _bad(PAGE_CACHE)
    strangers = {c.workload for c in plan.cells} - {w.name for w in plan.workloads}
    if strangers:
        names = ", ".join(short(name) for name in sorted(strangers))
        yield _bad(f"cells of workloads that the plan does not describe are left out: {names}")
    if run.record.written.state == "unproven":
        yield Doubt(level="doubt", text=_unproven(run))
    if plan.engine != "io_uring":
        yield Doubt(level="doubt", text=engine_words(plan.engine))
    yield from marks.doubts
    for caveat in run.record.caveats:
        yield Doubt(level="doubt", text=sentence(caveat))
    for skipped in plan.skipped:
        text = f"workload {short(skipped.workload)} was not run: {sentence(skipped.reason)}"
        yield Doubt(level="note", text=text)
    for name, count in Counter(one.cell.workload for one in plan.unsupported).items():
        reason = next(one.reason for one in plan.unsupported if one.cell.workload == name)
        points = "1 point" if count == 1 else f"{count} points"
        text = f"not supported here: {points} of {short(name)}, e.g. {sentence(reason)}"
        yield Doubt(level="note", text=text)
    for scaled in plan.scaled:
        text = (
            f"workload {short(scaled.workload)} was fitted to the target: {sentence(scaled.text)}"
        )
        yield Doubt(level="note", text=text)
    yield from _what_it_does_not_say(run)
    if plan.repetitions < INTERVAL_N_MIN:
        yield Doubt(level="note", text=_few_repetitions(plan.repetitions))
    projected = [short(w.name) for w in plan.workloads if w.evidence == "projected"]
    if projected:
        names = ", ".join(projected)
        yield Doubt(level="note", text=f"projected, not shipping software: {names}")
    for check, group in _by_check(run, "note").items():
        yield Doubt(level="note", text=_group_words(check, group))


def _ceilings(run: MeasuredRun) -> Iterable[Doubt]:
    """Yield which of the host's ceilings are not known; they are no numbers of the device."""
    ceilings = [cell for cell in run.cells if cell.cell.purpose == "ceiling"]
    bad = [cell for cell in ceilings if cell.outcome in ("invalid", "failed")]
    if bad:
        reasons = [f.text for cell in bad for f in cell.findings if f.severity == "invalid"]
        why = f", e.g. cell {short(bad[0].cell.cell_id)}: {sentence(reasons[0])}" if reasons else ""
        yield Doubt(
            level="note",
            text=f"{len(bad)} of the host's {len(ceilings)} ceilings are not known, so whether the "
            f"host was the limit there is not checked{why}",
        )


def _what_it_does_not_say(run: MeasuredRun) -> Iterable[Doubt]:
    """Yield what the size, the time and the place of the measurement leave open."""
    facts = {fact.name: fact.value for fact in run.record.facts}
    measured = [cell for cell in run.record.plan.cells if cell.purpose == "measure"]
    if facts.get("virtual_machine") == "yes":
        text = (
            "a virtual machine: its host's cache and other guests are measured too, so compare "
            "only what one run measured"
        )
        yield Doubt(level="note", text=text)
    device = facts.get("device_bytes") or ""
    spans = [p.offset_bytes + p.size_bytes for cell in measured for p in cell.placed]
    if device.isdecimal() and device.isascii() and spans and int(device[:24]) > 0:
        share = 100 * max(spans) / int(device[:24])
        if share < SPAN_PERCENT_MIN:
            text = (
                f"{format_size(max(spans))} of the {format_size(int(device[:24]))} device were "
                "touched: nothing is said of its whole span, or of a cache that holds so much"
            )
            yield Doubt(level="note", text=text)
    unseen = [name for key, name in _WATCHED.items() if key in run.unwatched]
    if unseen:
        reason = sentence(next(run.unwatched[key] for key in _WATCHED if key in run.unwatched))
        text = (
            f"not watched during cells: {', '.join(unseen)}, so throttling, a reset or an error of "
            f"the device may have gone unseen: {reason}"
        )
        yield Doubt(level="note", text=text)
    longest_s = max((cell.timing.runtime_s for cell in measured), default=0.0)
    if 0 < longest_s < SUSTAINED_S_MIN:
        text = f"no cell ran longer than {longest_s:g} s: nothing is said of sustained load"
        yield Doubt(level="note", text=text)


def end_words(run: MeasuredRun) -> str:
    """Return how the run ended when it did not end well, "" when it is complete."""
    planned, stored = len(run.record.plan.cells), len(run.cells)
    counts = f"{stored} of {cells_words(planned)} were stored"
    if run.end is None:
        return f"the run has no end: it was killed, or it still goes on; {counts}"
    reason = f" ({sentence(run.end.reason)})" if run.end.reason else ""
    if run.end.end == "interrupted":
        return f"the run was interrupted{reason}; {counts}"
    if run.end.end == "failed":
        return f"the run failed{reason}; {counts}"
    if stored < planned:
        return f"the run says that it is complete, but only {counts}"
    return ""


def engine_words(engine: str) -> str:
    """Say that another engine than io_uring did the I/O."""
    return (
        f"engine {short(engine)} was used instead of io_uring: do not compare with io_uring results"
    )


def cells_words(count: int) -> str:
    """Return ``1 cell`` or ``12 cells``."""
    return "1 cell" if count == 1 else f"{count:,} cells"


def alerts(run: MeasuredRun) -> tuple[str, ...]:
    """Return what must be read before any number."""
    plan = run.record.plan
    told = _wrong_data(run)
    if not plan.direct or run.record.written.state == "buffered":
        told.append(PAGE_CACHE)
    if plan.engine != "io_uring":
        told.append(engine_words(plan.engine))
    if run.record.written.state == "unproven":
        told.append(_unproven(run))
    condition = run.record.condition
    if condition is not None and condition.state != "none" and condition.doubt:
        told.append(f"not known to be in its steady state: {sentence(condition.doubt)}")
    if end := end_words(run):
        told.append(end)
    if run.damage:
        parts = "1 part" if len(run.damage) == 1 else f"{len(run.damage)} parts"
        told.append(f"the archive is damaged: {parts} could not be read")
    return tuple(told)


def _wrong_data(run: MeasuredRun) -> list[str]:
    """Return a sentence for each cell that read other data than was written."""
    found = [
        f"WRONG DATA: cell {short(cell.cell.cell_id)}, {short(cell.cell.workload)}/"
        f"{short(finding.stream or '')}: {sentence(finding.text)}"
        for cell in run.cells
        for finding in cell.findings
        if finding.check == READ_BACK
    ]
    more = [f"WRONG DATA in {len(found) - WRONG_MAX} more cells"] if len(found) > WRONG_MAX else []
    return found[:WRONG_MAX] + more


def _unproven(run: MeasuredRun) -> str:
    reason = sentence(run.record.written.reason)
    size = format_size(run.record.plan.target.size_bytes)
    return (
        f"nothing proves that the {size} under test were ever written ({reason}): reads of blocks "
        "never written can be answered without touching the medium"
    )


def _few_repetitions(count: int) -> str:
    got = "1 repetition gives no spread" if count == 1 else f"{count} repetitions give a range"
    return f"{got}; {INTERVAL_N_MIN} or more are needed for a 95 % interval"


def _by_check(run: MeasuredRun, severity: Severity) -> defaultdict[str, list[tuple[str, Finding]]]:
    groups: defaultdict[str, list[tuple[str, Finding]]] = defaultdict(list)
    for cell in run.cells:
        for finding in cell.findings:
            if finding.severity == severity:
                groups[finding.check].append((cell.cell.cell_id, finding))
    return groups


def _group_words(check: str, group: list[tuple[str, Finding]]) -> str:
    """Return one sentence for all cells that a check spoke about."""
    count = cells_words(len({cell for cell, _ in group}))
    cell_id, first = group[0]
    if check == first.text:
        return sentence(first.text)
    title = short(check.replace("-", " ").replace("_", " "))
    if len({finding.text for _, finding in group}) == 1:
        return f"{title} ({count}): {sentence(first.text)}"
    return f"{title} ({count}): e.g. cell {short(cell_id)}: {sentence(first.text)}"


def mark_name(number: int) -> str:
    """Return a, b, ... z, aa, ab, ..."""
    letters = ""
    number += 1
    while number:
        number, place = divmod(number - 1, len(ascii_lowercase))
        letters = ascii_lowercase[place] + letters
    return letters


def _bad(text: str) -> Doubt:
    return Doubt(level="bad", text=text)
