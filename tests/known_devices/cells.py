"""A cell of kvbench's own making, run by kvbench on another device than a plan can name.

All is kvbench's: plan, job text, launch, store, parser and numbers.  Only the lines of the job
text that name the device are replaced, and the engine in the record that was read back.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from kvbench.fio.jobfile import render
from kvbench.fio.launch import launch
from kvbench.measure.model import MeasuredCell, MeasuredRun, Measurement
from kvbench.measure.run import measure_run
from kvbench.plan import Plan, TargetSpec, make_plan
from kvbench.session import keep_logs
from kvbench.store import layout
from kvbench.store.read import read_run
from kvbench.store.records import FORMAT, CellRecord
from kvbench.store.write import RunWriter
from kvbench.workload.schema import Stream
from tests.known_devices.servers import DEVICE_BYTES, Server, first_in_line
from tests.measure.builders import PROVEN
from tests.real_runs import fixed, workload
from tests.records import a_run_record, a_stream, an_end_record

TARGET = "/data/known"
SPARE_S = 20.0


def reads(name: str = "reads", **changes: object) -> Stream:
    """Random reads of 512 B: the bytes cost nothing beside the latency."""
    fields: dict[str, object] = {"name": name, "block_mix": fixed(512)}
    return a_stream(**(fields | changes))


def plan_of(*streams: Stream, runtime_s: float, ramp_s: float = 0.0) -> Plan:
    """The plan of one workload; without a ramp the server's log has the same I/Os as fio's."""
    asked = workload(*streams, runtime_s=runtime_s, ramp_s=ramp_s)
    target = TargetSpec(path=TARGET, kind="file", size_bytes=DEVICE_BYTES, own_file=True)
    return make_plan([asked], target, repetitions=1, seed=7, may_write=False)


def on_server(plan: Plan, fio: str, folder: Path, server: Server) -> MeasuredCell:
    """Run the only cell of a plan that measures on a server."""
    (measured,) = [
        cell
        for cell in run(plan, fio, folder, {"ioengine": "nbd", "filename": server.uri}).cells
        if cell.cell.purpose == "measure"
    ]
    return measured


def run(
    plan: Plan, fio: str, folder: Path, device: Mapping[str, str], *, ceilings: bool = False
) -> MeasuredRun:
    """Run the cells of a plan on a device, and measure what was stored.

    device: the engine of the cells that measure, and what it is given in the place of the file.
    ceilings: run the cells that measure the host as well.
    """
    record = replace(a_run_record(plan), written=PROVEN)
    writer = RunWriter.create(folder, record)
    for cell in plan.cells:
        if cell.purpose == "ceiling" and not ceilings:
            continue
        text = render(cell, TARGET)
        if cell.purpose == "measure":
            text = _on(text, device)
        place = writer.begin_cell(cell.cell_id, text)
        argv = (*first_in_line(), fio, "--output-format=json+", layout.JOB_FILE)
        started = datetime.now(UTC)
        result = launch(
            argv,
            cwd=place,
            timeout_s=cell.timing.ramp_s + cell.timing.runtime_s + SPARE_S,
            stdout=place / layout.OUTPUT_FILE,
            stderr=place / layout.STDERR_FILE,
        )
        keep_logs(place)
        writer.commit_cell(
            CellRecord(
                format=FORMAT,
                cell=cell,
                argv=argv,
                started_at=started.isoformat(timespec="milliseconds"),
                wall_s=result.wall_s,
                end=result.end,
                exit_code=result.exit_code,
                survivors=result.survivors,
                device=None,
                before=None,
                after=None,
            )
        )
    writer.finish(an_end_record())
    archive = read_run(writer.folder)
    assert not archive.damage
    named = tuple(
        replace(one, record=replace(one.record, cell=replace(one.record.cell, engine=engine)))
        if one.record.cell.purpose == "measure"
        else one
        for one in archive.cells
        for engine in [device["ioengine"]]
    )
    return measure_run(replace(archive, cells=named))


def figure(measured: MeasuredCell, metric: str, stream: str = "reads") -> Measurement:
    """Return one number of a cell."""
    return next(m for m in measured.measurements if (m.metric, m.stream) == (metric, stream))


def _on(text: str, device: Mapping[str, str]) -> str:
    """Return a job text for another engine, with its address in the place of the file name."""
    text = re.sub(r"^ioengine=.*$", f"ioengine={device['ioengine']}", text, flags=re.MULTILINE)
    place = f"uri={device['filename']}\n" if "filename" in device else ""
    return re.sub(r"^filename=.*\n", place, text, flags=re.MULTILINE)
