"""``make calibrate``: is a request of vllm-block as long as that of a program that reads blocks?

The program opens a file of 2 MiB per block with O_DIRECT and reads 16 of them in turn, into one
buffer of 32 MiB with a place for each, or again and again into one of 2 MiB as fio does; 1 and 4
such requests at once.  All sides take turns, and their order alternates, so that a drifting disk
favours none.
"""

import mmap
import os
import random
import statistics
import threading
import time
from pathlib import Path

import msgspec

from kvbench import target
from kvbench.fio.probe import FioTool
from kvbench.host.identity import identify
from kvbench.measure.run import measure_run
from kvbench.plan import Plan, TargetSpec, make_plan
from kvbench.store.read import read_run
from kvbench.units import GIB, MIB
from kvbench.workload.catalog import find_workload
from tests.bench.silent import run_silently

BLOCK_BYTES = 2 * MIB
BLOCKS = 16  # of one request
SPAN_BYTES = 1 * GIB
ROUNDS = 7
SECONDS = 2.0
SIDES = ("vllm-block", "vllm-block-contiguous")
PROGRAMS = {"a place for each block": BLOCKS, "one block, reused": 1}  # blocks in its buffer


def own_p50_s(folder: Path, at_once: int, seed: int, places: int) -> float:
    """Return the median time of the requests of the program."""
    files = sorted(folder.iterdir())
    times: list[float] = []
    draws = [random.Random(seed + n) for n in range(at_once)]  # noqa: S311 - places, not secrets
    threads = [
        threading.Thread(target=_requests, args=(files, draw, times, places)) for draw in draws
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statistics.median(times)


def _requests(files: list[Path], draw: random.Random, times: list[float], places: int) -> None:
    buffer = mmap.mmap(-1, places * BLOCK_BYTES)
    buffer.write(bytes(len(buffer)))  # its pages are there before time is taken
    view = memoryview(buffer)
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        begin = time.perf_counter()
        for number in range(BLOCKS):
            descriptor = os.open(draw.choice(files), os.O_RDONLY | os.O_DIRECT)
            place = number % places * BLOCK_BYTES
            part = view[place : place + BLOCK_BYTES]
            got = os.preadv(descriptor, [part], 0)
            os.close(descriptor)
            assert got == BLOCK_BYTES
        times.append(time.perf_counter() - begin)


def kvbench_p50_s(plan: Plan, tool: FioTool, folder: Path) -> float:
    """Return the median request time of the plan's only cell."""
    (cell,) = measure_run(read_run(run_silently(plan, tool, folder))).cells
    found = next((m for m in cell.measurements if m.metric == "request_p50"), None)
    if found is None or found.value is None:
        raise SystemExit(f"the cell failed: {cell.findings} {found}")
    return found.value


def plan_of(workload: str, path: Path, at_once: int, seed: int) -> Plan:
    """Return a plan of the one cell with so many requests at once."""
    spec = TargetSpec(path=str(path), kind="file", size_bytes=path.stat().st_size, own_file=True)
    plan = make_plan(
        [find_workload(workload)],
        spec,
        repetitions=1,
        seed=seed,
        may_write=False,
        runtime_s=SECONDS,
    )
    cells = tuple(
        cell
        for cell in plan.cells
        if cell.purpose == "measure" and cell.parameters["jobs"] == at_once
    )
    return msgspec.structs.replace(plan, cells=cells)


def calibrate(tool: FioTool, folder: Path) -> None:
    """Print the ratio of both request times for each kind of buffers."""
    path = target.default_path(folder)
    target.make(path, SPAN_BYTES)
    target.fill(identify(str(path)), SPAN_BYTES, tool=tool, direct=True, engine="io_uring")
    blocks = folder / "blocks"
    blocks.mkdir()
    for number in range(SPAN_BYTES // BLOCK_BYTES):
        (blocks / f"{number:04d}.bin").write_bytes(os.urandom(BLOCK_BYTES))
    os.sync()
    for at_once in (1, 4):
        found: dict[str, list[float]] = {side: [] for side in (*PROGRAMS, *SIDES)}
        for number in range(ROUNDS):
            seed = 1 + number * 100
            for side in list(found)[:: -1 if number % 2 else 1]:
                if side in PROGRAMS:
                    p50_s = own_p50_s(blocks, at_once, seed, PROGRAMS[side])
                else:
                    p50_s = kvbench_p50_s(plan_of(side, path, at_once, seed), tool, folder)
                found[side].append(p50_s)
        print(f"requests of {BLOCKS} x 2 MiB, {at_once} at once, {ROUNDS} rounds", flush=True)
        for program in PROGRAMS:
            own = found[program]
            print(f"  the program with {program}: p50 {statistics.median(own) * 1e3:.1f} ms")
            for side in SIDES:
                ratios = [mine / its for mine, its in zip(found[side], own, strict=True)]
                print(
                    f"    {side:<24} / program {statistics.median(ratios):6.3f}   "
                    f"({min(ratios):.3f} to {max(ratios):.3f}; wanted of vllm-block: within 15 %)",
                    flush=True,
                )
