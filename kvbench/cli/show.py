"""``kvbench show``: the fio job of one point of a workload, which plain fio runs as it is."""

import argparse
from pathlib import Path

from kvbench.cli import output
from kvbench.cli.options import add_plan_arguments, choose
from kvbench.cli.points import sweep_order
from kvbench.errors import ExitCode, UsageError
from kvbench.fio.cell_limits import with_least_rate
from kvbench.fio.jobfile import render
from kvbench.plan import Cell

UNDECIDED = (
    "# A run decides the rate of this point from the peak that it measures before;\n"
    "# here each job has the rate of one I/O a second in its place."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("name", metavar="WORKLOAD", help="a workload by name, or a .toml file")
    parser.add_argument(
        "--point", type=int, default=1, metavar="N", help="which point of the sweep (default: 1)"
    )
    add_plan_arguments(parser)
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the job text of one point; ``--json`` prints all points."""
    if arguments.workload or arguments.suite:
        raise UsageError("show takes one WORKLOAD, without --workload or --suite")
    arguments.workload = [arguments.name]
    arguments.destroy = arguments.destroy or arguments.target  # printing a job writes nothing
    plan = choose(arguments, only_shown=True).plan
    points = _points(plan.cells)
    if arguments.json:
        output.print_json(
            {
                "workload": plan.workloads[0],
                "points": [
                    {
                        "point_id": cell.point_id,
                        "parameters": cell.parameters,
                        "alone": cell.alone,
                        "rate_is_decided_in_the_run": cell.undecided,
                        "job": render(with_least_rate(cell), plan.target.path),
                    }
                    for cell in points
                ],
            }
        )
        return int(ExitCode.OK)
    if not 1 <= arguments.point <= len(points):
        raise UsageError(f"{arguments.name} has points 1 to {len(points)}", where="--point")
    cell = points[arguments.point - 1]
    derivation = plan.workloads[0].derivation
    if derivation:
        print(f"# {derivation}")
    if cell.undecided:
        print(UNDECIDED)
    print(render(with_least_rate(cell), plan.target.path), end="")
    output.advise(f"point {arguments.point} of {len(points)}; --point N shows another")
    if not Path(plan.target.path).exists():
        output.advise(f"{plan.target.path} does not exist yet; kvbench run makes and fills it")
    return int(ExitCode.OK)


def _points(cells: tuple[Cell, ...]) -> list[Cell]:
    """Return one cell per point, in the order of the sweep: the plan itself is shuffled.

    Those whose rate follows from what others reach come last.
    """
    first: dict[str, Cell] = {}
    for cell in cells:
        if cell.purpose == "measure":
            first.setdefault(cell.point_id, cell)
    return sorted(first.values(), key=lambda cell: (cell.undecided, sweep_order(cell)))
