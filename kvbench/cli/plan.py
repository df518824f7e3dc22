"""``kvbench plan``: what ``run`` would do."""

import argparse

from kvbench.cli import output
from kvbench.cli.options import add_plan_arguments, choose
from kvbench.cli.points import describe_point, sweep_order
from kvbench.errors import ExitCode
from kvbench.plan import Plan
from kvbench.units import format_clock, format_size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_plan_arguments(parser)
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the plan and touch nothing."""
    plan = choose(arguments).plan
    if arguments.json:
        output.print_json({"plan": plan, **totals(plan)})
    else:
        print("\n".join(describe(plan)))
    return int(ExitCode.OK)


def totals(plan: Plan) -> dict[str, object]:
    """Return the plan's sums, for ``--json``."""
    return {
        "cells": len(plan.cells),
        "expected_s": round(plan.expected_s, 1),
        "writing_cells": plan.writing_cells,
        "fill_bytes": plan.target.size_bytes if plan.target.own_file else 0,
        "paced_write_bytes_max": paced_write_bytes(plan),
        "unpaced_writing_streams": unpaced_writers(plan),
        "decides": decides_words(plan),
    }


def paced_write_bytes(plan: Plan) -> int:
    """Return the bytes that paced writers, and those of every block once, write in all."""
    once = sum(
        placed.size_bytes
        for cell in plan.cells
        if cell.purpose == "measure"
        for placed in cell.placed
        if placed.stream.once and placed.stream.writes
    )
    return once + round(
        sum(
            placed.stream.rate_iops
            * placed.stream.mean_block_bytes
            * (cell.timing.runtime_s + cell.timing.ramp_s)
            for cell in plan.cells
            if cell.purpose == "measure"
            for placed in cell.placed
            # what is trimmed is written again
            if placed.stream.direction in ("write", "trim") and placed.stream.rate_iops is not None
        )
    )


def unpaced_writers(plan: Plan) -> list[str]:
    """Return the writers whose bytes depend on how fast the device is, as workload/stream."""
    return sorted(
        {
            f"{cell.workload}/{placed.stream.name}"
            for cell in plan.cells
            if cell.purpose == "measure"
            for placed in cell.placed
            if placed.stream.writes and placed.stream.rate_iops is None and not placed.stream.once
        }
    )


def decides_words(plan: Plan) -> str:
    """Return from how many repetitions on a gate over this plan can come to a verdict."""
    from kvbench.compare.policy import find_policy
    from kvbench.stats.rank_sum import smallest_n

    policy = find_policy(None, "gate")
    count = policy.count(plan)
    least = smallest_n(policy.chance / count) if count else None
    if least is None:
        return "it has no primary number that a gate could decide about"
    enough = "" if plan.repetitions >= least else f", this plan has {plan.repetitions}"
    return (
        f"a gate over its {count} primary numbers needs at least {least} repetitions a side{enough}"
    )


def describe(plan: Plan) -> list[str]:
    """Return the plan as lines of text."""
    target = plan.target
    kind = "kvbench's own file" if target.own_file else target.kind
    mode = "O_DIRECT" if plan.direct else "buffered (page cache)"
    up_to = "up to " if plan.until_precise is not None else ""
    lines = [
        f"target      {target.path} ({kind}, {format_size(target.size_bytes)})",
        f"engine      {plan.engine}, {mode}",
        f"cells       {len(plan.cells)} in {up_to}{plan.repetitions} repetitions, "
        f"{up_to or 'about '}{format_clock(plan.expected_s)}",
        f"decides     {decides_words(plan)}",
    ]
    if plan.until_precise is not None:
        lines.append(
            f"until       every primary number has a 95 % interval narrower than "
            f"{100 * plan.until_precise:g} % of its median"
        )
    if target.own_file:
        lines.append(f"fill        {format_size(target.size_bytes)} once, when not yet written")
    if plan.writing_cells:
        paced = format_size(paced_write_bytes(plan))
        count = plan.writing_cells
        cells = "1 cell" if count == 1 else f"{count} cells"
        writes = f"in {cells}: {paced} by paced writers and by what writes each block once"
        free = unpaced_writers(plan)
        if free:
            writes += f"; as fast as the device takes it: {', '.join(free)}"
        lines.append(f"writes      {writes}")
    else:
        lines.append("writes      none")
    lines.append("")
    for workload in plan.workloads:
        lines.append(f"{workload.name} ({workload.role}, {workload.evidence})")
        points = [c for c in plan.cells if c.repetition == 1 and c.workload == workload.name]
        for cell in sorted(points, key=sweep_order):
            time_s = cell.timing.ramp_s + cell.measured_s
            lines.append(f"  {describe_point(cell):<58}{plan.repetitions} x {time_s:.2g} s")
    ceilings = sum(cell.purpose == "ceiling" for cell in plan.cells)
    if ceilings:
        lines.append(f"host ceiling: {ceilings} cells, once, on fio's null engine")
    lines += [
        f"unsupported {one.cell.workload}: {describe_point(one.cell)}: {one.reason}"
        for one in plan.unsupported
    ]
    lines += [f"fitted      {scaled.workload}: {scaled.text}" for scaled in plan.scaled]
    lines += [f"skipped     {skipped.workload}: {skipped.reason}" for skipped in plan.skipped]
    return lines
