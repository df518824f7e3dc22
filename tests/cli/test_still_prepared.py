"""A run of a prepared device goes on only while its preparation is what it was."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from kvbench.cli import taking
from kvbench.errors import ExitCode, UsageError
from kvbench.host.model import Written
from kvbench.store.preparation import NOT_PREPARED, Condition
from kvbench.store.records import RunRecord
from tests.records import a_plan, a_run_record, a_stream, a_target, a_workload

HOLDS = Condition(state="holds", text="it was prepared", covered=True, steady="steady", run_id="p")
BROKEN = replace(HOLDS, state="broken", text="1 GiB were written since")
BARE = replace(BROKEN, covered=False, text="1 GiB were deallocated since")
UNKNOWN = replace(HOLDS, state="unknown", covered=False, text="nobody knows")
ANEW = replace(HOLDS, run_id="q")
PREPARED = Written(state="prepared", reason="it was prepared")


def record(direction: str = "read", then: Condition | None = HOLDS) -> RunRecord:
    workload = a_workload(streams=(a_stream(direction=direction),), sweep=())
    plan = a_plan(workload, target=a_target("/dev/x"))
    written = PREPARED if then is not None and then.covered else replace(PREPARED, state="unproven")
    return replace(a_run_record(plan), condition=then, written=written)


def go_on(
    monkeypatch: pytest.MonkeyPatch, stored: RunRecord, now: Condition | None
) -> UsageError | None:
    monkeypatch.setattr(taking, "condition_of", lambda *_: now)
    try:
        taking.still_prepared(stored, Path("results"), stored.identity)
    except UsageError as error:
        return error
    return None


@pytest.mark.parametrize("now", [BROKEN, BARE, UNKNOWN, ANEW, NOT_PREPARED])
def test_a_reading_run_does_not_go_on_in_a_worse_state(
    monkeypatch: pytest.MonkeyPatch, now: Condition
) -> None:
    error = go_on(monkeypatch, record(), now)
    assert error is not None
    assert error.exit_code == ExitCode.USAGE
    assert now.text in str(error)


def test_a_run_goes_on_in_the_same_state_or_where_there_was_none_to_lose(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert go_on(monkeypatch, record(), HOLDS) is None
    assert go_on(monkeypatch, record(then=NOT_PREPARED), UNKNOWN) is None
    assert go_on(monkeypatch, record(then=BARE), UNKNOWN) is None
    assert go_on(monkeypatch, record(then=None), None) is None


def test_a_run_that_writes_goes_on_after_its_own_writes_and_not_on_empty_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert go_on(monkeypatch, record("write"), BROKEN) is None
    assert go_on(monkeypatch, record("write"), BARE) is not None
    assert go_on(monkeypatch, record("write"), UNKNOWN) is not None
