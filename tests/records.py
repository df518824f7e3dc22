"""Small, valid plans and records for tests of the rooms below the loader."""

from kvbench.host.model import Identity, Written
from kvbench.plan import Cell, Plan, TargetSpec, make_plan
from kvbench.store.records import FORMAT, CellRecord, EndRecord, RunRecord
from kvbench.units import MIB
from kvbench.workload.schema import BlockShare, Stream, SweepAxis, Timing, Workload


def a_stream(**changes: object) -> Stream:
    """A 4 KiB random read at depth 4."""
    fields: dict[str, object] = {
        "name": "reads",
        "direction": "read",
        "pattern": "random",
        "block_mix": (BlockShare(size_bytes=4096, percent=100),),
        "queue_depth": 4,
    }
    return Stream(**(fields | changes))  # type: ignore[arg-type]


def a_workload(**changes: object) -> Workload:
    """One stream, two depths, half a second."""
    fields: dict[str, object] = {
        "name": "small-reads",
        "summary": "4 KiB reads at two depths",
        "role": "memory",
        "source": "a test",
        "evidence": "probe",
        "cannot_express": "nothing of interest",
        "streams": (a_stream(),),
        "sweep": (SweepAxis(stream="reads", field="queue_depth", values=(1, 4)),),
        "timing": Timing(runtime_s=0.5, ramp_s=0.0),
        "isolate": False,
        "primary": ("reads.iops",),
        "digest": "0123456789abcdef",
    }
    return Workload(**(fields | changes))  # type: ignore[arg-type]


def a_target(path: str = "/data/file", size_bytes: int = 64 * MIB) -> TargetSpec:
    """kvbench's own file of 64 MiB."""
    return TargetSpec(path=path, kind="file", size_bytes=size_bytes, own_file=True)


def a_plan(*workloads: Workload, target: TargetSpec | None = None, repetitions: int = 2) -> Plan:
    """The plan of ``workloads`` (one small one when none is given)."""
    return make_plan(
        workloads or (a_workload(),),
        target or a_target(),
        repetitions=repetitions,
        seed=1,
        may_write=True,
    )


def a_run_record(plan: Plan | None = None, run_id: str = "20260701T120000Z") -> RunRecord:
    """A record of ``plan`` on a file that was proven written."""
    plan = plan or a_plan()
    return RunRecord(
        format=FORMAT,
        run_id=run_id,
        kvbench_version="0.1.0",
        created_at="2026-07-01T12:00:00+00:00",
        label="",
        command=("kvbench", "run"),
        plan=plan,
        identity=Identity(
            path=plan.target.path,
            real_path=plan.target.path,
            kind="file",
            device_number="254:0",
            inode=12,
            size_bytes=plan.target.size_bytes,
        ),
        written=Written(state="proven", reason="no hole and no unwritten extent"),
        facts=(),
        fio_version="fio-3.33",
    )


def a_cell_record(cell: Cell, **changes: object) -> CellRecord:
    """A launch of ``cell`` that went well."""
    fields: dict[str, object] = {
        "format": FORMAT,
        "cell": cell,
        "argv": ("fio", "--output-format=json+", "job.fio"),
        "started_at": "2026-07-01T12:00:01.000+00:00",
        "wall_s": 0.6,
        "end": "exited",
        "exit_code": 0,
        "survivors": (),
        "device": None,
        "before": None,
        "after": None,
    }
    return CellRecord(**(fields | changes))  # type: ignore[arg-type]


def an_end_record(**changes: object) -> EndRecord:
    """A run that was completed."""
    fields: dict[str, object] = {
        "format": FORMAT,
        "end": "complete",
        "ended_at": "2026-07-01T12:00:09+00:00",
        "cells_done": 4,
    }
    return EndRecord(**(fields | changes))  # type: ignore[arg-type]
