"""A run that is resumed has its plan already: too few huge pages end it before it starts."""

import pytest

from kvbench.cli import taking
from kvbench.errors import EnvironmentMissing, ExitCode
from kvbench.host import probe
from tests.records import a_plan, a_stream, a_workload


def test_a_resumed_run_that_lacks_huge_pages_says_how_to_reserve_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = a_plan(a_workload(streams=(a_stream(buffers="huge", jobs=2),)))
    monkeypatch.setattr(probe, "huge_pages_free", lambda: 3)
    with pytest.raises(EnvironmentMissing) as caught:
        taking.check_memory(plan)
    assert caught.value.exit_code == ExitCode.ENVIRONMENT
    assert "needs 4 huge pages of 2 MiB and 3 are free" in str(caught.value)
    assert "sysctl vm.nr_hugepages=4" in caught.value.hint
    monkeypatch.setattr(probe, "huge_pages_free", lambda: 4)
    taking.check_memory(plan)


def test_a_run_without_huge_buffers_needs_no_huge_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "huge_pages_free", lambda: 0)
    taking.check_memory(a_plan())
