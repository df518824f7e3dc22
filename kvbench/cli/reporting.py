"""From a stored run to what a person reads: measure, view, files.  Used by ``run``, ``report``."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kvbench.cli.breakeven_subject import Asked, subject_of_report
from kvbench.cli.judging import judged
from kvbench.errors import ExitCode
from kvbench.measure.model import MeasuredRun
from kvbench.measure.reading_model import Reading
from kvbench.measure.readings import read_probes, windows_of_probes
from kvbench.measure.roles import Judgement
from kvbench.measure.run import measure_run
from kvbench.measure.wear import write_amplification
from kvbench.report import html, text, view
from kvbench.report.model import ReportView
from kvbench.store import layout
from kvbench.store.read import RunArchive, read_run
from kvbench.store.write import write_derived


class Reported(Struct, frozen=True, kw_only=True, eq=False):
    """A run with what was made from it."""

    archive: RunArchive
    run: MeasuredRun
    judgement: Judgement
    readings: tuple[Reading, ...]
    view: ReportView

    @property
    def exit_code(self) -> ExitCode:
        """What the archive says of the run: interrupted, a cell failed, or nothing wrong."""
        if self.run.end is not None and self.run.end.end == "interrupted":
            return ExitCode.INTERRUPTED
        # A ceiling that a busy host spoiled is told and left out; nothing of the device is wrong.
        bad = any(
            cell.outcome == "failed"
            or (cell.outcome == "invalid" and cell.cell.purpose != "ceiling")
            for cell in self.run.cells
        )
        ended = self.run.end is not None and self.run.end.end == "complete"
        return ExitCode.OK if ended and not bad else ExitCode.CELL_FAILED


def read_and_measure(folder: Path, asked: Asked | None = None) -> Reported:
    """Return the run under ``folder``, measured and ready to be shown.

    ``asked`` names the model and the GPU of "reload or recompute"; by default the run's own.

    Raises:
        UsageError: it names one that is not known.
    """
    archive = read_run(folder)
    subject = subject_of_report(asked or Asked(), archive.record.command)
    run = measure_run(archive)
    jobs = {cell.record.cell.cell_id: cell.job_text() for cell in archive.cells}
    judgement = judged(run)
    readings = read_probes(run, windows_of_probes(archive))
    shown = view.build(run, jobs, judgement, subject, archive.preparation, readings)
    return Reported(archive=archive, run=run, judgement=judgement, readings=readings, view=shown)


def summary_text(reported: Reported, *, ascii_only: bool) -> str:
    """Return the terminal summary."""
    return text.render(reported.view, ascii_only=ascii_only)


def write_files(reported: Reported) -> list[Path]:
    """Write the HTML page and the table into the run's folder; return where."""
    from kvbench.measure.table import to_csv

    page = reported.archive.folder / layout.REPORT_FILE
    table = reported.archive.folder / layout.TABLE_FILE
    write_derived(page, html.render(with_all_figures(reported)))
    write_derived(table, to_csv(reported.run))
    return [page, table]


def with_all_figures(reported: Reported) -> ReportView:
    """Return the view with the figure of the run over time, which is made from logs of its own."""
    from kvbench.measure.timeline import gather_timeline
    from kvbench.report.health import with_timeline

    shown = reported.view
    if shown.health is None:
        return shown
    timeline = gather_timeline(reported.archive)
    health = with_timeline(shown.health, reported.run, timeline, shown.mark)
    return replace(shown, health=health)


def as_json(reported: Reported, files: Sequence[Path]) -> dict[str, object]:
    """Return the answer of ``--json``."""
    outcomes = Counter(c.outcome for c in reported.run.cells if c.cell.purpose == "measure")
    return {
        "run_id": reported.run.record.run_id,
        "folder": str(reported.archive.folder),
        "fingerprint": reported.run.record.fingerprint,
        "end": reported.run.end,
        "exit_code": int(reported.exit_code),
        "outcomes": outcomes,
        "roles": reported.judgement.roles,
        "controller": reported.judgement.controller,
        "readings": reported.readings,
        "unsupported": [
            {
                "workload": one.cell.workload,
                "parameters": one.cell.parameters,
                "reason": one.reason,
            }
            for one in reported.run.record.plan.unsupported
        ],
        "summaries": reported.run.summaries,
        "cells": [
            {
                "cell_id": cell.cell.cell_id,
                "point_id": cell.cell.point_id,
                "repetition": cell.cell.repetition,
                "outcome": cell.outcome,
                "findings": cell.findings,
            }
            for cell in reported.run.cells
        ],
        "health": {
            "write_amplification": write_amplification(reported.run.health),
            "not_watched": reported.run.unwatched,
            "sessions": reported.run.health.sessions if reported.run.health else (),
            "words": reported.view.health.words if reported.view.health else (),
        },
        "damage": reported.run.damage,
        "files": [str(path) for path in files],
    }
