"""``kvbench history``: one drive over all its stored runs and firmware revisions."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kvbench.cli import output
from kvbench.cli.outputs import check_outputs
from kvbench.cli.stored import (
    NO_SERIAL,
    Stored,
    measured_by,
    of_serial,
    read_records,
    targets_of,
)
from kvbench.document import found, printable
from kvbench.errors import ExitCode, StoreError
from kvbench.store.redact import with_hidden_names

if TYPE_CHECKING:
    from kvbench.gate.history import History, LeftOut
    from kvbench.measure.model import MeasuredRun

DRIVES_NAMED_MAX = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "--device",
        required=True,
        metavar="SERIAL",
        help="the drive's serial; kvbench list runs has them",
    )
    parser.add_argument(
        "--results",
        type=output.named_path,
        default=Path("results"),
        metavar="DIR",
        help="the results store",
    )
    parser.add_argument(
        "--html", type=output.named_path, metavar="FILE", help="write a page with a figure a number"
    )
    parser.add_argument(
        "--csv", type=output.named_path, metavar="FILE", help="write a row per number and run"
    )
    parser.add_argument(
        "--all", action="store_true", help="show each number of every run, not only the ends"
    )
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Find the runs of the drive, measure them, print and write what was asked for."""
    known = read_records(arguments.results)
    own = of_serial(known, arguments.device)
    kept = [path for one in own for path in measured_by(one.record)]
    check_outputs(
        {"--html": arguments.html, "--csv": arguments.csv},
        kept=[*targets_of(arguments.results), *kept],
    )
    if not own:
        raise _unknown(arguments.results, arguments.device, known)
    history, runs = _history(own, arguments.device)

    from kvbench.report import history_text, history_view

    if arguments.json:
        output.print_json(history)
    else:
        view = history_view.build(history, runs, figures=False)
        unicode = output.speaks_unicode(sys.stdout)
        print(history_text.render(view, every_run=arguments.all, ascii_only=not unicode), end="")
        sys.stdout.flush()
    for path in _write(history, runs, arguments.html, arguments.csv):
        if not arguments.json:
            print(f"wrote {path}")
    return int(ExitCode.OK)


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
        counts[name or NO_SERIAL] = counts.get(name or NO_SERIAL, 0) + 1
    named = [
        f"{printable(name)[:80]}: {count} {'run' if count == 1 else 'runs'}"
        for name, count in counts.items()
    ]
    more = f" and {len(named) - DRIVES_NAMED_MAX} more" if len(named) > DRIVES_NAMED_MAX else ""
    drives = ", ".join(named[:DRIVES_NAMED_MAX]) + more
    return StoreError(
        f"no run in {printable(str(results))} is of a drive with the serial {found(serial)}",
        hint=f"the drives there: {drives or 'none'}",
    )


def _write(
    history: "History", runs: Sequence["MeasuredRun"], html: Path | None, csv: Path | None
) -> list[Path]:
    """Write the files that were asked for; return where they are."""
    from kvbench.store.write import write_derived

    files = []
    if html is not None:
        from kvbench.report import history_html, history_view

        write_derived(html, history_html.render(history_view.build(history, runs)))
        files.append(html)
    if csv is not None:
        from kvbench.report.history_csv import to_csv

        write_derived(csv, to_csv(history))
        files.append(csv)
    return files
