"""``gate --rerun``: only what was unclear is measured again, in the baseline's order."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kvbench.errors import ExitCode
from kvbench.plan import again
from kvbench.store.read import list_runs, read_run
from kvbench.units import MIB
from tests.cli.program import SMALL, kvbench, needs_fio
from tests.records import a_plan, a_target, a_workload

QUICK = ("--workload", SMALL, "--repetitions", "2", "--runtime", "0.2", "--quiet")


def test_a_part_of_a_plan_keeps_its_order_and_gets_fresh_offsets() -> None:
    plan = a_plan(a_workload(name="one"), a_workload(name="two", digest="2"), repetitions=3)
    wanted = {plan.cells[-1].point_id, plan.cells[-2].point_id}
    target = a_target("/data/other")
    found = again(plan, points=wanted, workloads=(), target=target, repetitions=5, seed=9)
    kept = [c.point_id for c in plan.cells if c.point_id in wanted]
    measured = [c for c in found.cells if c.purpose == "measure"]
    assert [c.point_id for c in measured] == kept + kept[: 2 * len(wanted)]
    assert [c.repetition for c in measured] == [n for n in range(1, 6) for _ in wanted]
    assert len({c.cell_id for c in found.cells}) == len(found.cells)
    assert not {c.seed for c in found.cells} & {c.seed for c in plan.cells}
    assert (found.target, found.repetitions) == (target, 5)


def test_a_workload_that_is_needed_whole_is_whole() -> None:
    plan = a_plan(a_workload(name="one"), a_workload(name="two", digest="2"), repetitions=2)
    found = again(plan, points=(), workloads=("two",), target=plan.target, repetitions=1, seed=9)
    assert {c.workload for c in found.cells if c.purpose == "measure"} == {"two"}
    assert [w.name for w in found.workloads] == ["two"]


@pytest.mark.fio
@needs_fio
def test_what_is_unclear_is_measured_again_and_decided_with_all_repetitions(
    tmp_path: Path,
) -> None:
    target = tmp_path / "drive"
    target.write_bytes(os.urandom(16 * MIB))
    for label in ("old", "new"):
        done = kvbench("run", target, *QUICK, "--label", label, cwd=tmp_path)
        assert done.returncode == ExitCode.OK, done.stderr
    done = kvbench(
        "gate", "old", "new", "--rerun", target, "--repetitions", "3", "--json", cwd=tmp_path
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["exit_code"] == done.returncode
    gate = answer["gate"]
    assert gate["looks"] == 2
    rates = [row for row in gate["rows"] if row["key"]["metric"] == "iops"]
    assert {(row["baseline"]["n"], row["candidate"]["n"]) for row in rates} == {(2, 5)}
    *_, again_run = list_runs(tmp_path / "results")
    record = read_run(again_run).record
    assert record.pairing is not None
    assert (record.pairing.kind, record.label) == ("rerun", "new again")
    # the same decision from the stored runs, without measuring
    told = kvbench("gate", "old", "new", again_run, "--json", cwd=tmp_path)
    assert json.loads(told.stdout)["gate"]["rows"] == gate["rows"]


@pytest.mark.fio
@needs_fio
def test_another_file_is_no_place_to_measure_the_candidate_again(tmp_path: Path) -> None:
    target, other = tmp_path / "drive", tmp_path / "other"
    for path in (target, other):
        path.write_bytes(os.urandom(16 * MIB))
    for label in ("old", "new"):
        kvbench("run", target, *QUICK, "--label", label, cwd=tmp_path)
    done = kvbench("gate", "old", "new", "--rerun", other, cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert "is not what the candidate was measured on" in done.stderr
    assert len(list_runs(tmp_path / "results")) == 2
