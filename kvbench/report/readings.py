"""What the probes say -> a view of it for the page, and lines for a terminal.  Pure."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from kvbench.measure.reading_model import Answer, Reading
from kvbench.report.model import ReadingView
from kvbench.report.words import micro, sentence, short, visible

ANSWERS: dict[Answer, str] = {
    "seen": "seen",
    "not-seen": "not seen",
    "cannot-say": "cannot say",
}
CHARS_MAX = 2000  # of one sentence: a workload's own words may be long


def reading_views(readings: Sequence[Reading]) -> tuple[ReadingView, ...]:
    """Return the readings with every text of an archive made visible."""
    return tuple(
        ReadingView(
            workload=short(reading.workload),
            question=sentence(reading.question),
            answer=ANSWERS[reading.answer],
            sentences=tuple(micro(short(text, CHARS_MAX)) for text in reading.sentences),
            caveats=tuple(_ended(micro(visible(text[:CHARS_MAX]))) for text in reading.caveats),
        )
        for reading in readings
    )


def reading_lines(readings: Sequence[ReadingView], columns: int) -> Iterator[str]:
    """Yield the section of a terminal's summary, nothing when there is no reading."""
    if not readings:
        return
    yield ""
    yield "WHAT THE PROBES SAY"
    for reading in readings:
        yield from wrap(f"{reading.question} [{reading.workload}]", columns)
        for text in reading.sentences:
            yield from wrap(text, columns, initial_indent="  ", subsequent_indent="    ")
        if reading.caveats:
            yield from wrap(
                f"what can mislead: {' '.join(reading.caveats)}",
                columns,
                initial_indent="  ",
                subsequent_indent="    ",
            )


def _ended(text: str) -> str:
    """Return a caveat as a sentence."""
    text = text.strip().rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."
