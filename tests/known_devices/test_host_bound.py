"""The null engine as the target: only the host is measured, and the mark must say so."""

from pathlib import Path

import pytest

from tests.known_devices.cells import figure, plan_of, reads, run

pytestmark = pytest.mark.fio


def test_a_target_that_does_nothing_is_host_bound(fio: str, tmp_path: Path) -> None:
    planned = plan_of(reads(queue_depth=1), runtime_s=0.5)
    assert [cell.purpose for cell in planned.cells] == ["ceiling", "measure"]
    found = run(planned, fio, tmp_path, {"ioengine": "null"}, ceilings=True)
    measured = found.cells[-1]
    assert measured.outcome == "doubtful", measured.findings
    share = figure(measured, "host_ceiling_share").value
    assert share is not None
    assert share >= 70
    said = [f.text for f in measured.findings if f.check == "host-bound"]
    assert any("that this host generates without any device" in text for text in said), said
    marked = [s for s in found.summaries if s.metric == "iops" and s.purpose == "measure"]
    assert marked
    assert all(any("host-bound" in doubt for doubt in s.doubts) for s in marked)
