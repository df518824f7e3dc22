"""One word for what must not differ between two runs."""

import pytest
from msgspec.structs import replace

from kvbench.compare.aspects import FINGERPRINTED, fingerprint
from kvbench.compare.policy import find_policy
from kvbench.store.preparation import NOT_PREPARED
from tests.compare.runs import THREE, a_record
from tests.records import a_plan

PLAN = a_plan(THREE)
RECORD = a_record(PLAN, "one", {})


def test_it_is_over_what_the_gate_says_must_not_differ() -> None:
    assert set(FINGERPRINTED) == set(find_policy(None, "gate").must_not_differ)


def test_another_run_of_the_same_has_the_same() -> None:
    later = replace(RECORD, run_id="two", label="again", created_at="2031-01-01T00:00:00+00:00")
    assert fingerprint(later) == fingerprint(RECORD)
    assert len(fingerprint(RECORD)) == 12


@pytest.mark.parametrize("fact", ["device_serial", "pcie_link", "kernel", "logical_block_bytes"])
def test_a_fact_that_must_not_differ_changes_it(fact: str) -> None:
    assert fingerprint(a_record(PLAN, "one", {fact: "9"})) != fingerprint(RECORD)


def test_firmware_is_what_a_gate_is_about_and_changes_nothing() -> None:
    assert fingerprint(a_record(PLAN, "one", {"device_firmware": "FW2"})) == fingerprint(RECORD)


def test_a_preparation_that_no_longer_holds_changes_it() -> None:
    prepared = replace(NOT_PREPARED, state="holds", steady="steady", covered=True)
    holds = fingerprint(replace(RECORD, condition=prepared))
    broken = fingerprint(replace(RECORD, condition=replace(prepared, state="broken")))
    assert len({holds, broken, fingerprint(RECORD)}) == 3
