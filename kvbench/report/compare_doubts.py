"""The doubts of several runs as one list: what they share has one mark on the page.  Pure."""

from collections.abc import Sequence

from msgspec import Struct

from kvbench.measure.model import MeasuredRun
from kvbench.report.compare_words import letter, letters
from kvbench.report.doubts import Marks, list_doubts, mark_name
from kvbench.report.model import Doubt, Level
from kvbench.report.words import sentence


class SharedMarks(Struct, frozen=True):
    """The marks of all runs; ``of_run`` has each run's own marks with what stands for them."""

    marks: tuple[Marks, ...]
    of_run: tuple[dict[str, str], ...]
    doubts: tuple[Doubt, ...]

    def of(self, place: int, texts: Sequence[str]) -> tuple[str, ...]:
        """Return the marks of what doubts a number of the run at ``place``, each once."""
        own = self.of_run[place]
        found = (own[mark] for mark in self.marks[place].of(texts) if mark in own)
        return tuple(dict.fromkeys(found))


def share_marks(runs: Sequence[MeasuredRun], marks: Sequence[Marks]) -> SharedMarks:
    """Give one mark to what the same check says of several runs."""
    groups: dict[str, list[tuple[int, Doubt]]] = {}
    for place, (run, own) in enumerate(zip(runs, marks, strict=True)):
        for doubt in list_doubts(run, own):
            if doubt.mark:
                groups.setdefault(_subject(doubt.text), []).append((place, doubt))
    of_run: list[dict[str, str]] = [{} for _ in runs]
    doubts = []
    for number, group in enumerate(groups.values()):
        mark = mark_name(number)
        by_text: dict[str, list[int]] = {}
        for place, doubt in group:
            of_run[place][doubt.mark] = mark
            by_text.setdefault(doubt.text, []).append(place)
        text = "; ".join(f"{_who(places, len(runs))}: {one}" for one, places in by_text.items())
        level: Level = "bad" if any(doubt.level == "bad" for _, doubt in group) else "doubt"
        doubts.append(Doubt(level=level, text=sentence(text), mark=mark))
    return SharedMarks(tuple(marks), tuple(of_run), tuple(doubts))


def _subject(text: str) -> str:
    """Return what a doubt is about: the words before its count and its example."""
    return text.partition(":")[0].partition(" (")[0]


def _who(places: Sequence[int], count: int) -> str:
    if len(places) == count:
        return "every run"
    return f"run {letter(places[0])}" if len(places) == 1 else f"runs {letters(places)}"
