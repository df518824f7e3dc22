"""A candidate and its reruns as one sample."""

import pytest
from msgspec.structs import replace

from kvbench.compare.join import incomplete
from kvbench.errors import UsageError
from kvbench.gate.pool import pooled
from kvbench.measure.model import MeasuredCell, MeasuredRun, Measurement
from kvbench.plan import Cell
from kvbench.store.records import Pairing
from tests.compare.runs import THREE, a_run
from tests.records import an_end_record

AGAIN = Pairing(kind="rerun", pair_id="new", of="new")


def measured(run: MeasuredRun, values: list[float]) -> MeasuredRun:
    """The run with one IOPS value per repetition in its cells."""

    def cell_of(cell: Cell) -> MeasuredCell:
        found: tuple[Measurement, ...] = ()
        if cell.purpose == "measure":
            value = values[cell.repetition - 1]
            found = (
                Measurement(
                    stream="reads", direction="read", metric="iops", value=value, io_count=10
                ),
            )
        return MeasuredCell(
            cell=cell, outcome="valid", findings=(), measurements=found, histograms=()
        )

    cells = tuple(cell_of(cell.cell) for cell in run.cells)
    return replace(run, cells=cells)


def test_the_repetitions_of_a_rerun_are_added() -> None:
    first = measured(a_run("new", {"iops": [1.0, 2, 3]}), [1, 2, 3])
    more = measured(a_run("more", {"iops": [4.0, 5]}, pairing=AGAIN), [4, 5])
    found = pooled(first, [more])
    (summary,) = (s for s in found.summaries if s.metric == "iops" and s.purpose == "measure")
    assert summary.values == (1, 2, 3, 4, 5)
    assert found.record.run_id == "new"


def test_no_rerun_changes_nothing() -> None:
    run = a_run("new", {"iops": [1.0]})
    assert pooled(run, []) is run


def test_a_run_given_twice_is_refused() -> None:
    run = a_run("new", {"iops": [1.0]})
    with pytest.raises(UsageError, match="given twice"):
        pooled(run, [run])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"facts": {"device_firmware": "FW9"}}, "firmware is FW9 and not FW1"),
        ({"facts": {"device_serial": "S2"}}, "serial is S2 and not S1"),
        ({"fio_version": "fio-3.42"}, "fio is fio-3.42"),
    ],
    ids=["firmware", "serial", "fio"],
)
def test_another_drive_or_state_is_refused(changes: dict[str, object], told: str) -> None:
    other = a_run("more", {"iops": [1.0]}, pairing=AGAIN, **changes)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=told):
        pooled(a_run("new", {"iops": [1.0]}), [other])


def test_other_io_under_one_name_is_refused() -> None:
    other = a_run("more", {"iops": [1.0]}, workload=replace(THREE, digest="other"), pairing=AGAIN)
    with pytest.raises(UsageError, match="did not run small-reads in this way"):
        pooled(a_run("new", {"iops": [1.0]}), [other])


def test_other_places_or_times_are_refused() -> None:
    longer = replace(THREE, timing=replace(THREE.timing, runtime_s=9.0))
    other = a_run("more", {"iops": [1.0]}, workload=longer, pairing=AGAIN)
    with pytest.raises(UsageError, match="did not run small-reads in this way"):
        pooled(a_run("new", {"iops": [1.0]}), [other])


@pytest.mark.parametrize(
    "pairing", [None, replace(AGAIN, of="base"), Pairing(kind="ab", pair_id="new", of="new")]
)
def test_a_run_that_is_no_rerun_of_this_one_is_refused(pairing: Pairing | None) -> None:
    with pytest.raises(UsageError, match="is no rerun of new"):
        pooled(a_run("new", {"iops": [1.0]}), [a_run("more", {"iops": [1.0]}, pairing=pairing)])


def test_what_is_missing_of_either_stays_missing_however_much_the_other_has() -> None:
    whole = {"iops": [1.0, 2, 3]}
    lacking = a_run("new", whole, missing_cells=1)
    cut = a_run("more", whole, pairing=AGAIN)
    cut = replace(cut, end=an_end_record(end="interrupted"))
    found = pooled(lacking, [cut])
    assert "1 of 4 cells are missing" in incomplete(found)
    assert "more: it is interrupted" in incomplete(found)
