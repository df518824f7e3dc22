"""A tail that grew by a fifth on a device whose latency is set: found, and nothing else is."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from kvbench.compare.policy import find_policy
from kvbench.gate.decide import decide
from kvbench.measure.model import MeasuredRun
from kvbench.measure.roles import Judgement
from kvbench.plan import TargetSpec, make_plan
from tests.known_devices import servers
from tests.known_devices.cells import TARGET, reads, run
from tests.real_runs import workload

pytestmark = [pytest.mark.fio, pytest.mark.slow, servers.needs_servers]

REPETITIONS = 8  # what single workloads run by default
FAST_MS, SLOW_MS, SLOWER_MS = 50, 400, 480
SLOW_PERMILLE = 3  # more than one in a thousand: it is the p99.9
RATE_IOPS, JOBS, DEPTH, RUNTIME_S, THREADS = 1664.0, 64, 64, 6.6, 40  # see known_devices


def measured(fio: str, folder: Path, name: str, slow_ms: int) -> MeasuredRun:
    stream = reads(queue_depth=DEPTH, jobs=JOBS, rate_iops=RATE_IOPS)
    asked = replace(
        workload(stream, runtime_s=RUNTIME_S, ramp_s=0.0),
        primary=("reads.latency_p50", "reads.latency_p99.9"),
    )
    target = TargetSpec(path=TARGET, kind="file", size_bytes=servers.DEVICE_BYTES, own_file=True)
    plan = make_plan([asked], target, repetitions=REPETITIONS, seed=7, may_write=False)
    with servers.slow_places(FAST_MS, slow_ms, permille=SLOW_PERMILLE, threads=THREADS) as server:
        found = run(plan, fio, folder, {"ioengine": "nbd", "filename": server.uri})
    return replace(found, record=replace(found.record, run_id=name))


def test_a_tail_that_grew_by_a_fifth_is_found_and_named(fio: str, tmp_path: Path) -> None:
    baseline = measured(fio, tmp_path / "a", "baseline", SLOW_MS)
    candidate = measured(fio, tmp_path / "b", "candidate", SLOWER_MS)
    gate = decide(baseline, candidate, find_policy(None, "gate"), Judgement())
    assert gate.outcome == "FAIL", [(r.baseline, r.candidate, r.change) for r in gate.rows]
    verdicts = {row.key.metric: row.verdict for row in gate.rows}
    assert verdicts["latency_p99.9"] == "WORSE"
    assert verdicts["latency_p50"] != "WORSE"
    (tail,) = (row for row in gate.rows if row.key.metric == "latency_p99.9")
    assert tail.change.estimate == pytest.approx(SLOWER_MS / SLOW_MS, rel=0.04)
