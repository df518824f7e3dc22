"""Role cards and controller requirements -> lines for a terminal."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from kvbench.report.role_model import CardView, ControllerView, LevelView, ProbeView
from kvbench.report.words import IN_DOUBT

NAME_WIDTH = 12
VERDICT_WIDTH = 11
_EXIT = "A missed requirement is no failure of the run: the exit code stays as it is."


def role_lines(
    cards: Sequence[CardView], controller: Sequence[ControllerView], columns: int
) -> Iterator[str]:
    """Yield the lines of all cards, then those of the controller requirements."""
    if cards:
        yield ""
        yield "GOOD ENOUGH FOR WHICH ROLE?"
        for card in cards:
            yield from _card(card, columns)
        yield from wrap(_EXIT, columns)
    if controller:
        yield ""
        yield "THE CONTROLLER, SEEN FROM THE HOST (what this cannot prove: see the report)"
        for requirement in controller:
            yield from _controller(requirement, columns)


def _card(card: CardView, columns: int) -> Iterator[str]:
    name = f"{card.role:<{NAME_WIDTH}}"
    if card.unmeasured:
        yield from _hanging(f"{name}not measured: {card.unmeasured}", columns, NAME_WIDTH)
        return
    yield from _hanging(f"{name}{card.headline} ({card.counts})", columns, NAME_WIDTH)
    for level in card.levels:
        if not level.unmeasured:
            yield from _level(level, columns)
    silent = [level for level in card.levels if level.unmeasured]
    if silent:
        names = ", ".join(level.name for level in silent)
        why = "; ".join(dict.fromkeys(reason for level in silent for reason in level.reasons))
        words = f"  {'no answer':<{VERDICT_WIDTH}}{names} ({why})"
        yield from _hanging(words, columns, 2 + VERDICT_WIDTH)


def _level(level: LevelView, columns: int) -> Iterator[str]:
    title = f"{level.title} [projected]" if level.only_projected else level.title
    yield from _hanging(f"  {level.chip.text:<{VERDICT_WIDTH}}{title}", columns, 2 + VERDICT_WIDTH)
    indent = " " * (2 + VERDICT_WIDTH)
    yield from _hanging(f"{indent}{level.decided}", columns, len(indent) + 2)


def _controller(requirement: ControllerView, columns: int) -> Iterator[str]:
    if not requirement.measured:
        missing = list(dict.fromkeys(probe.missing for probe in requirement.probes))
        yield from _hanging(f"{requirement.title}: {missing[0]}", columns, 2)
        return
    yield from _hanging(requirement.title, columns, 2)
    for probe in requirement.probes:
        yield from _hanging(f"  {_probe(probe)}", columns, 4)


def _probe(probe: ProbeView) -> str:
    if probe.missing:
        return f"{probe.what}: {probe.missing}"
    numbers = []
    for reading in probe.readings:
        doubtful = f" {IN_DOUBT}" if reading.doubts else ""
        point = f" ({reading.point})" if reading.point else ""
        numbers.append(f"{reading.value}{doubtful}{point}")
    more = f"; {probe.more}" if probe.more else ""
    return f"{probe.what}: {'; '.join(numbers)}{more}"


def _hanging(text: str, columns: int, indent: int) -> list[str]:
    """Wrap ``text``, which may begin with spaces; further lines begin at ``indent``."""
    lead = len(text) - len(text.lstrip())
    return wrap(
        text.lstrip(),
        columns,
        initial_indent=" " * lead,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
    )
