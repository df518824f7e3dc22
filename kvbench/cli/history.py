"""``kvbench history``: one drive over all its stored runs and firmware revisions."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kvbench.cli import output
from kvbench.cli.exports import Answer, add_export_arguments, exports_of, give
from kvbench.cli.stored import (
    NO_SERIAL,
    Stored,
    add_results_argument,
    measured_by,
    read_records,
    read_stored,
    targets_of,
)
from kvbench.document import found, printable
from kvbench.errors import ExitCode, StoreError, UsageError
from kvbench.gate.history_subject import Subject, is_named, subject_of
from kvbench.store.read import find_run
from kvbench.store.redact import with_hidden_names

if TYPE_CHECKING:
    from kvbench.gate.history import History, LeftOut
    from kvbench.measure.model import MeasuredRun
    from kvbench.report.workbook import Sheet

DRIVES_NAMED_MAX = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--device",
        metavar="SERIAL",
        help="the drive's serial, or its world-wide name; kvbench list runs --json has both",
    )
    which.add_argument(
        "--of",
        metavar="RUN",
        help="the drive, namespace or file of this run, whatever it is known by: a run's id, "
        "folder or label, or 'latest'",
    )
    add_results_argument(parser)
    add_export_arguments(
        parser,
        html="write a page with a figure a number",
        csv="write a row per number and run",
        figures=True,
    )
    parser.add_argument(
        "--all", action="store_true", help="show each number of every run, not only the ends"
    )
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Find the runs of the drive, measure them, print and write what was asked for."""
    known = read_records(arguments.results)
    if arguments.of is not None:
        own, name = _like(arguments.results, arguments.of, known)
    else:
        name = arguments.device
        own = [one for one in known if is_named(one.record, name.strip())]
    measured = [path for one in own for path in measured_by(one.record)]
    exports = exports_of(arguments, kept=[*targets_of(arguments.results), *measured])
    if not own:
        raise _unknown(arguments.results, arguments.device, known)
    _refuse_several(own, name)
    history, runs = _history(own, name)
    give(_answer(history, runs, every_run=arguments.all), exports, as_json=arguments.json)
    return int(ExitCode.OK)


def _like(results: Path, name: str, known: Sequence[Stored]) -> tuple[list[Stored], str]:
    """Return the runs of what the run ``name`` measured, and what that is called.

    Raises:
        UsageError: nothing but a path is known of it.
    """
    named = read_stored(find_run(results, name))
    subject = subject_of(named.record)
    if subject is None:
        raise UsageError(
            "its drive tells neither a serial nor a world-wide name, so nobody can say which other "
            "runs are of it: a path is no name",
            where=f"--of {name}",
        )
    own = [one for one in known if _same(subject_of(one.record), subject)]
    if all(one.folder.resolve() != named.folder.resolve() for one in own):
        own.append(named)  # it lies beside the store
    return own, subject.words


def _same(one: Subject | None, other: Subject) -> bool:
    return one is not None and (one.key, one.part) == (other.key, other.part)


def _refuse_several(own: Sequence[Stored], name: str) -> None:
    """Refuse to mix what is told apart: the namespaces of a drive, and its partitions.

    Raises:
        UsageError: the runs are of more than one.
    """
    newest: dict[tuple[str, str], str] = {}
    for one in own:
        subject = subject_of(one.record)
        if subject is not None:
            place = subject.part or "of no namespace that is told"
            newest[(subject.key, place)] = one.record.run_id
    if len(newest) > 1:
        named = "; ".join(
            f"{place}: newest run {printable(run_id)}" for (_, place), run_id in newest.items()
        )
        raise UsageError(
            f"the runs of {found(name)} are of {len(newest)} targets ({named})",
            hint="name one of its runs: kvbench history --of RUN",
        )


def _history(own: Sequence[Stored], serial: str) -> "tuple[History, list[MeasuredRun]]":
    from kvbench.compare.policy import find_policy
    from kvbench.gate.history import history_of

    runs, left_out = _measured(own)
    if not runs:
        reasons = "; ".join(dict.fromkeys(one.reason for one in left_out))
        raise StoreError(
            f"no run of this drive can be used: {printable(reasons)}", where=printable(serial)
        )
    if any(one.is_redacted for one in own) and not all(one.is_redacted for one in own):
        runs = [replace(run, record=with_hidden_names(run.record)) for run in runs]
    policy = find_policy(None, "gate")
    return history_of(runs, policy, serial=serial, left_out=left_out), runs


def _measured(own: Sequence[Stored]) -> "tuple[list[MeasuredRun], list[LeftOut]]":
    """Return the runs that make the history, the oldest first, and what is left out and why."""
    from kvbench.cli.measuring import measure_all
    from kvbench.gate.history import LeftOut

    kept: dict[str, Stored] = {}
    left_out = []
    for one in sorted(own, key=lambda one: (one.record.created_at, one.record.run_id)):
        run_id, pairing = one.record.run_id, one.record.pairing
        reason = ""
        if run_id in kept:
            reason = f"{printable(str(one.folder))} is a copy of a run that is counted"
        elif pairing is not None and pairing.kind == "rerun":
            reason = f"it measures a part of {pairing.of} again, for a gate"
        elif one.prepares:
            reason = "it prepared the drive, which is no measurement of it"
        if reason:
            left_out.append(LeftOut(run_id=run_id, reason=reason))
        else:
            kept[run_id] = one
    folders = [one.folder for one in kept.values()]
    try:
        return measure_all(folders), left_out
    except StoreError:  # one of them; the others make a history all the same
        runs = []
        for run_id, one in kept.items():
            try:
                runs += measure_all([one.folder])
            except StoreError as error:
                left_out.append(LeftOut(run_id=run_id, reason=str(error)))
        return runs, left_out


def _unknown(results: Path, serial: str, known: Sequence[Stored]) -> StoreError:
    """Return the error that names the drives that there are."""
    counts: dict[str, int] = {}
    for one in known:
        name = f"{one.serial} ({one.model})" if one.serial and one.model else one.serial
        name = name or one.wwid or NO_SERIAL
        counts[name] = counts.get(name, 0) + 1
    named = [
        f"{printable(name)[:80]}: {count} {'run' if count == 1 else 'runs'}"
        for name, count in counts.items()
    ]
    more = f" and {len(named) - DRIVES_NAMED_MAX} more" if len(named) > DRIVES_NAMED_MAX else ""
    drives = ", ".join(named[:DRIVES_NAMED_MAX]) + more
    return StoreError(
        f"no run in {printable(str(results))} is of a drive with the serial {found(serial)}",
        hint=f"the drives there: {drives or 'none'}; what tells no serial is named by one of its "
        "runs: --of RUN",
    )


def _answer(history: "History", runs: Sequence["MeasuredRun"], *, every_run: bool) -> Answer:
    from kvbench.report import history_view
    from kvbench.report.history_csv import to_csv

    plain = cache(lambda: history_view.build(history, runs, figures=False))
    drawn = cache(lambda: history_view.build(history, runs))

    def text() -> str:
        from kvbench.report import history_text

        unicode = output.speaks_unicode(sys.stdout)
        return history_text.render(plain(), every_run=every_run, ascii_only=not unicode)

    def page() -> str:  # which imports what draws
        from kvbench.report import history_html

        return history_html.render(drawn())

    def markdown() -> str:
        from kvbench.report import history_markdown

        return history_markdown.of_history(plain())

    def sheets() -> "list[Sheet]":
        from kvbench.report import history_sheets

        return history_sheets.of_history(history, plain().verdict)

    def figures() -> Iterator[tuple[str, bytes]]:
        from kvbench.report.trend_figure import trend_pngs

        return trend_pngs(drawn())

    return Answer(
        text=text,
        json=lambda _: history,
        html=page,
        csv=lambda: to_csv(history),
        markdown=markdown,
        sheets=sheets,
        figures=figures,
    )
