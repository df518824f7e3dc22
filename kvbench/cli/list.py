"""``kvbench list``: what there is."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import wrap

from kvbench.cli import output
from kvbench.cli.stored import add_results_argument
from kvbench.errors import ExitCode, UsageError
from kvbench.kv.geometry import HeadKv, bytes_per_token
from kvbench.kv.gpus import load_gpus
from kvbench.kv.models import Model, load_models
from kvbench.workload import cards, catalog
from kvbench.workload.roles import Requirement
from kvbench.workload.schema import ROLE_MEANINGS, ROLES

COLUMNS = 100
LAST_WIDTH_MIN = 20
_GAP = 2
FILTERS = ("device", "firmware", "label", "role")
KINDS = ("workloads", "suites", "roles", "models", "gpus", "runs")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    add_results_argument(parser)
    only = parser.add_argument_group("only some runs (upper and lower case are the same)")
    only.add_argument(
        "--device",
        metavar="TEXT",
        help="a drive's serial or world-wide name, or a part of its model",
    )
    only.add_argument("--firmware", metavar="TEXT", help="a part of the firmware revision")
    only.add_argument("--label", metavar="TEXT", help="a part of the label")
    only.add_argument("--role", choices=ROLES, help="with a workload of this role")
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the list."""
    given = [name for name in FILTERS if getattr(arguments, name) is not None]
    if given and arguments.kind != "runs":
        raise UsageError(f"--{given[0]} only goes with runs")
    if arguments.kind == "runs":
        return _runs(arguments, only_some=bool(given))
    rows = _ROWS[arguments.kind]()
    if arguments.json:
        output.print_json({arguments.kind: rows})
    elif not rows:
        output.advise(f"no {arguments.kind} there")
    else:
        names = list(rows[0])
        table = [
            [name.replace("_", " ") for name in names],
            *([_shown(row[name]) for name in names] for row in rows),
        ]
        print("\n".join(_aligned(table)))
    return int(ExitCode.OK)


def _runs(arguments: argparse.Namespace, *, only_some: bool) -> int:
    from kvbench.cli.list_runs import Asked, list_runs, render

    asked = Asked(
        device=arguments.device,
        firmware=arguments.firmware,
        label=arguments.label,
        role=arguments.role,
    )
    lines = list_runs(arguments.results, asked)
    if arguments.json:
        output.print_json({"runs": lines})
    elif not lines:
        output.advise(f"no runs there{' that fit' if only_some else ''}")
    else:
        print(render(lines, ascii_only=not output.speaks_unicode(sys.stdout)))
    return int(ExitCode.OK)


def _shown(value: object) -> str:
    """A list is shown by its length; ``--json`` has it whole."""
    return output.printable(str(len(value) if isinstance(value, list) else value))


def _aligned(table: list[list[str]]) -> Iterator[str]:
    """Yield the table's lines; the last column is wrapped to what is left of 100 columns."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    indent = sum(widths[:-1]) + _GAP * (len(widths) - 1)
    for row in table:
        *first, last = row
        cells = [f"{text:<{width + _GAP}}" for text, width in zip(first, widths, strict=False)]
        lines = wrap(last, max(LAST_WIDTH_MIN, COLUMNS - indent), break_on_hyphens=False) or [""]
        yield f"{''.join(cells)}{lines[0]}".rstrip()
        yield from (f"{' ' * indent}{more}" for more in lines[1:])


def _workloads() -> list[dict[str, str]]:
    rows = []
    for name in catalog.workload_names():
        try:
            workload = catalog.find_workload(name)
        except UsageError as error:  # one broken file must not hide the others
            output.advise(str(error))
            continue
        rows.append(
            {
                "name": workload.name,
                "role": workload.role,
                "evidence": workload.evidence,
                "summary": workload.summary,
            }
        )
    return rows


def _suites() -> list[dict[str, str | list[str]]]:
    return [
        {"name": s.name, "workloads": list(s.workloads), "summary": s.summary}
        for s in catalog.list_suites()
    ]


def _roles() -> list[dict[str, str | list[dict[str, str]]]]:
    """Return the levels of each role's card; a role without a card keeps its meaning."""
    rows: list[dict[str, str | list[dict[str, str]]]] = []
    find = cards.finder()
    for role, meaning in ROLE_MEANINGS.items():
        try:
            card = cards.find_role_card(role, find)
        except UsageError as error:  # one broken file must not hide the others
            output.advise(str(error))
            rows.append({"name": role, "level": "-", "asks": [], "title": meaning})
            continue
        rows += [
            {
                "name": role,
                "level": level.name,
                "asks": [_asked(requirement) for requirement in level.requirements],
                "title": level.title,
            }
            for level in card.levels
        ]
    return rows


def _asked(requirement: Requirement) -> dict[str, str]:
    subject = requirement.subject
    at = ", ".join(f"{key} = {value}" for key, value in subject.at.items())
    return {
        "metric": subject.metric,
        "workload": subject.workload,
        "stream": subject.stream,
        "at": at,
        "of": requirement.of,
        requirement.bound: requirement.limit_text,
        "evidence": requirement.evidence,
        "why": requirement.why,
        "source": requirement.source,
    }


def _models() -> list[dict[str, str | int]]:
    models = load_models(catalog.data_folder() / "models.toml")
    return [
        {
            "name": model.name,
            "kv": _kv(model),
            "bytes_per_token": bytes_per_token(model.geometry, model.dtype),
            "dtype": model.dtype,
            "source": model.source,
        }
        for model in models.values()
    ]


def _kv(model: Model) -> str:
    shape = model.geometry
    if isinstance(shape.kv, HeadKv):
        kv = f"{shape.layers} layers, {shape.kv.kv_heads} x {shape.kv.head_dim}"
    else:
        kv = f"{shape.layers} layers, MLA {shape.kv.kv_lora_rank}+{shape.kv.rope_head_dim}"
    if shape.sliding_layers:
        kv += f", {shape.sliding_layers} sliding over {shape.window_tokens}"
    return kv


def _gpus() -> list[dict[str, str]]:
    gpus = load_gpus(catalog.data_folder() / "gpus.toml").gpus
    return [
        {
            "name": gpu.name,
            "title": gpu.title,
            "prefill": f"{sum(bool(row.ttft_ms) for row in gpu.prefill)} estimated rows",
        }
        for gpu in gpus.values()
    ]


Row = Mapping[str, str | int | list[str] | list[dict[str, str]]]
_ROWS: dict[str, Callable[[], Sequence[Row]]] = {
    "workloads": _workloads,
    "suites": _suites,
    "roles": _roles,
    "models": _models,
    "gpus": _gpus,
}
