"""A plan that comes out of run.json is held against the target before anything is done with it."""

from collections.abc import Callable

import msgspec
import pytest

from kvbench.errors import ExitCode, Refused
from kvbench.host.model import Identity
from kvbench.plan import Cell, Plan, check_stored
from kvbench.units import MIB
from tests.records import a_plan, a_run_record, a_stream, a_workload

change = msgspec.structs.replace
IDENTITY = a_run_record().identity


def with_cell(**changes: object) -> Plan:
    plan = a_plan()
    return change(plan, cells=(*plan.cells[:-1], change(plan.cells[-1], **changes)))


def with_placed(**changes: int) -> Plan:
    placed = a_plan().cells[-1].placed[0]
    return with_cell(placed=(change(placed, **changes),))


def with_target(**changes: object) -> Plan:
    plan = a_plan()
    return change(plan, target=change(plan.target, **changes))


def test_a_plan_fits_the_target_that_it_was_made_for() -> None:
    check_stored(a_plan(), IDENTITY)
    writes = a_workload(name="w", streams=(a_stream(direction="write"),), sweep=())
    check_stored(a_plan(a_workload(), writes), IDENTITY)
    stored = msgspec.json.decode(msgspec.json.encode(a_plan()), type=Plan)
    check_stored(stored, IDENTITY)


def test_the_target_may_be_named_by_either_name_and_be_larger_than_planned() -> None:
    check_stored(a_plan(), change(IDENTITY, path="/dev/disk/by-id/x"))
    check_stored(a_plan(), change(IDENTITY, real_path="/mnt/disk/file"))
    check_stored(a_plan(), change(IDENTITY, size_bytes=IDENTITY.size_bytes * 2))


FORGED: dict[str, Callable[[], Plan]] = {
    "another path": lambda: with_target(path="/dev/sda"),
    "another kind": lambda: with_target(kind="block"),
    "more bytes": lambda: with_target(size_bytes=64 * MIB + 512),
    "no bytes": lambda: with_target(size_bytes=0),
    "no cells": lambda: change(a_plan(), cells=()),
    "a cell without streams": lambda: with_cell(placed=()),
    "a cell twice": lambda: with_cell(cell_id="0001"),
    "a cell in another folder": lambda: with_cell(cell_id="../../0009"),
    "a cell of another script": lambda: with_cell(cell_id="\u0661" * 4),
    "a cell that ends beyond the target": lambda: with_placed(offset_bytes=MIB),
    "a cell before the target": lambda: with_placed(offset_bytes=-MIB),
    "a cell of no bytes": lambda: with_placed(size_bytes=0),
    "a ceiling on the target": lambda: with_cell(purpose="ceiling"),
    "a measurement of nothing": lambda: with_cell(engine="null"),
    "another engine": lambda: with_cell(engine="libaio"),
    "another mode": lambda: with_cell(direct=False),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_plan_that_contradicts_its_target_or_itself_is_refused(what: str) -> None:
    with pytest.raises(Refused, match="stored plan cannot be used") as caught:
        check_stored(FORGED[what](), IDENTITY)
    assert caught.value.exit_code == ExitCode.REFUSED
    assert str(caught.value).isprintable()


def test_an_identity_of_another_target_is_refused() -> None:
    other: Identity = change(IDENTITY, path="/data/other", real_path="/data/other")
    with pytest.raises(Refused, match="it is for the file"):
        check_stored(a_plan(), other)


def test_a_forged_ceiling_does_not_hide_that_its_plan_writes() -> None:
    writes = a_workload(streams=(a_stream(direction="write"),), sweep=())
    plan = a_plan(writes)
    forged: tuple[Cell, ...] = tuple(
        change(cell, purpose="ceiling") for cell in plan.cells if cell.engine != "null"
    )
    assert change(plan, cells=forged).writing_cells == plan.writing_cells > 0
