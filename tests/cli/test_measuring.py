"""Several runs measured on several CPUs."""

import multiprocessing
import os
from pathlib import Path

import pytest

from kvbench.cli import measuring
from kvbench.errors import StoreError
from kvbench.measure.run import measure_run
from kvbench.store.read import read_run
from tests.stored import copy_of_example


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "some"
    return copy_of_example(folder, workloads=("lmcache-chunk", "three-tenants"))


@pytest.fixture
def two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(measuring, "CELLS_WORTH_IT", 0)


@pytest.mark.usefixtures("two_cpus")
def test_runs_measured_beside_each_other_are_the_same_as_measured_alone(example: Path) -> None:
    alone = measure_run(read_run(example))
    for run in measuring.measure_all([example, example, example]):
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
def test_the_error_of_a_run_that_is_missing_is_raised_as_it_is(
    example: Path, tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match="is missing, so this is not a complete run"):
        measuring.measure_all([example, tmp_path / "none"])
    assert multiprocessing.active_children() == []


@pytest.mark.usefixtures("two_cpus")
def test_an_interrupt_ends_the_processes_at_once(
    example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> None:
        assert len(multiprocessing.active_children()) == 2
        raise KeyboardInterrupt

    monkeypatch.setattr(measuring, "_received", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measuring.measure_all([example, example])
    assert multiprocessing.active_children() == []


@pytest.mark.usefixtures("two_cpus")
def test_what_a_process_that_died_did_not_measure_is_measured_here(
    example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "_work", lambda *_: os._exit(9))
    found = measuring.measure_all([example, example])
    assert [run.record.run_id for run in found] == [read_run(example).record.run_id] * 2


def test_runs_are_dealt_out_so_that_no_process_has_most_of_the_work() -> None:
    shares = measuring._shares([10, 500, 20, 480], 2)
    assert sorted(sorted(share) for share in shares) == [[0, 1], [2, 3]]
