"""The points of a sweep in words and in order; a plan shuffles them."""

from kvbench.plan import Cell
from kvbench.units import format_size, format_time


def describe_point(cell: Cell) -> str:
    """Return what distinguishes a cell from the others of its workload: ``4 KiB, depth 32``."""
    parts = []
    for name, value in cell.parameters.items():
        field = name.rsplit(".", 1)[-1]
        match field:
            case "victim":
                parts.append(f"{value} beside {cell.parameters.get('aggressor')}")
            case "aggressor":
                continue
            case "load":
                parts.append(str(value) if "%" not in str(value) else f"{value} of the peak")
            case "span_size":
                parts.append(f"span {format_size(float(value))}")
            case "pause":
                parts.append(f"pauses of {format_time(float(value))}")
            case "block_size":
                parts.append(format_size(float(value)))
            case "queue_depth":
                parts.append(f"depth {value}")
            case "jobs":
                parts.append(f"{value} {'job' if value == 1 else 'jobs'}")
            case _:
                parts.append(f"{field.replace('_', ' ')} {value}")
    if cell.alone:
        parts.append(f"{cell.alone} alone")
    elif len(cell.placed) > 1 and "victim" not in cell.parameters:
        parts.append(f"{len(cell.placed)} streams together")
    return ", ".join(parts) or "one point"


def sweep_order(cell: Cell) -> tuple[str, list[tuple[int, float, str]]]:
    """Return a key that puts together before alone, and each parameter in ascending order.

    Phases stay as they are: in the order in which they follow each other.
    """
    ranked = [_rank(value) for name, value in cell.parameters.items() if name != "phase"]
    return cell.alone or "", ranked


def _rank(value: float | str) -> tuple[int, float, str]:
    return (1, 0.0, value) if isinstance(value, str) else (0, float(value), "")
