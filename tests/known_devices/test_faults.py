"""A device that stands still, and one that fails."""

import re
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from kvbench.units import MIB
from tests.known_devices import servers
from tests.known_devices.cells import figure, on_server, plan_of, reads, run

pytestmark = [pytest.mark.fio, pytest.mark.slow, servers.needs_servers]

STALL_S = 2.0


def stand_still_later(server: servers.Server) -> threading.Thread:
    """Let the server stand still a second after its first read."""

    def act() -> None:
        while "Read" not in server.log.read_text():
            time.sleep(0.02)
        time.sleep(1.0)
        servers.stand_still(server, STALL_S)

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


def test_a_stall_is_doubted_in_a_closed_loop_and_overloads_an_open_one(
    fio: str, tmp_path: Path
) -> None:
    streams = (
        reads("loop", queue_depth=4),
        reads("paced", queue_depth=512, rate_iops=200.0),
    )
    with servers.pausable(50, threads=64) as server:
        thread = stand_still_later(server)
        measured = on_server(plan_of(*streams, runtime_s=5.0), fio, tmp_path, server)
        thread.join()
        log = server.reads()
    assert measured.outcome == "doubtful", measured.findings
    stalled = {f.stream: f for f in measured.findings if f.check == "stalled"}
    assert re.match(r"one I/O took 2\.\d+ s of the 5\.00 s measured", stalled["loop"].text)
    assert figure(measured, "latency_p50", "loop").value == pytest.approx(0.05, rel=0.1)
    # All that was offered was done in the end, so only the windows tell.
    (said,) = [f for f in measured.findings if f.check == "overloaded"]
    assert said.stream == "paced"
    span = re.search(r"from ([\d.]+) s to ([\d.]+) s not one I/O of job 2 completed", said.text)
    assert span is not None, said.text
    begin_s, end_s = float(span[1]), float(span[2])
    ends_s = np.sort(log.end_s) - log.begin_s.min()
    place = int(np.argmax(np.diff(ends_s)))
    assert ends_s[place] - 0.05 <= begin_s <= ends_s[place] + 0.15
    assert end_s == pytest.approx(ends_s[place + 1], abs=0.1)
    refused = figure(measured, "latency_p50", "paced")
    assert refused.value is None
    assert "were due" in refused.reason


def test_a_cell_with_failed_reads_is_failed_and_never_summarised(fio: str, tmp_path: Path) -> None:
    plan = plan_of(reads(queue_depth=4, jobs=2), runtime_s=1.0)
    with servers.bad_places(48 * MIB, 4 * MIB) as server:
        device = {"ioengine": "nbd", "filename": server.uri}
        found = run(plan, fio, tmp_path, device)
    (measured,) = found.cells
    assert measured.outcome == "failed"
    texts = [f"{f.check}: {f.text}" for f in measured.findings if f.severity == "invalid"]
    assert any("Input/output error" in text or "errno 5" in text for text in texts), texts
    for summary in found.summaries:
        assert (summary.n, summary.values, summary.excluded) == (0, (), 1)
        assert summary.median is None
        assert summary.reason
    assert found.summaries


def test_reads_beside_a_bad_place_are_not_failed(fio: str, tmp_path: Path) -> None:
    before = reads(queue_depth=4, span_percent=50.0)
    with servers.bad_places(48 * MIB, 4 * MIB) as server:
        measured = on_server(plan_of(before, runtime_s=0.5), fio, tmp_path, server)
    assert measured.outcome in ("valid", "doubtful"), measured.findings
