"""Several runs measured on several CPUs."""

import multiprocessing
import os
from pathlib import Path

import pytest

from kvbench.cli import measuring
from kvbench.errors import StoreError
from kvbench.measure.run import measure_run
from kvbench.store import layout
from kvbench.store.read import read_run

ROOT = Path(__file__).parents[2]
EXAMPLE = next(iter(sorted((ROOT / "results/examples").glob(f"*/{layout.RUN_FILE}")))).parent


@pytest.fixture
def two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(measuring, "CELLS_WORTH_IT", 0)


@pytest.mark.usefixtures("two_cpus")
def test_runs_measured_beside_each_other_are_the_same_as_measured_alone() -> None:
    alone = measure_run(read_run(EXAMPLE))
    for run in measuring.measure_all([EXAMPLE, EXAMPLE, EXAMPLE]):
        assert run.record == alone.record
        assert run.summaries == alone.summaries
        assert [(c.cell, c.outcome, c.findings, c.measurements) for c in run.cells] == [
            (c.cell, c.outcome, c.findings, c.measurements) for c in alone.cells
        ]
        assert [h.counts.tolist() for c in run.cells for h in c.histograms] == [
            h.counts.tolist() for c in alone.cells for h in c.histograms
        ]
    assert multiprocessing.active_children() == []


@pytest.mark.usefixtures("two_cpus")
def test_the_error_of_a_run_that_is_missing_is_raised_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is missing, so this is not a complete run"):
        measuring.measure_all([EXAMPLE, tmp_path / "none"])
    assert multiprocessing.active_children() == []


@pytest.mark.usefixtures("two_cpus")
def test_an_interrupt_ends_the_processes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> None:
        assert len(multiprocessing.active_children()) == 2
        raise KeyboardInterrupt

    monkeypatch.setattr(measuring, "_received", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measuring.measure_all([EXAMPLE, EXAMPLE])
    assert multiprocessing.active_children() == []


@pytest.mark.usefixtures("two_cpus")
def test_what_a_process_that_died_did_not_measure_is_measured_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measuring, "_work", lambda *_: os._exit(9))
    found = measuring.measure_all([EXAMPLE, EXAMPLE])
    assert [run.record.run_id for run in found] == [read_run(EXAMPLE).record.run_id] * 2


def test_runs_are_dealt_out_so_that_no_process_has_most_of_the_work() -> None:
    shares = measuring._shares([10, 500, 20, 480], 2)
    assert sorted(sorted(share) for share in shares) == [[0, 1], [2, 3]]
