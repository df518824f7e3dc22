"""The options that ``run`` and ``plan`` share, and the plan that they lead to."""

import argparse
from collections.abc import Sequence
from math import nan
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kvbench import target
from kvbench.cli.stored import add_results_argument
from kvbench.document import found, nearest
from kvbench.errors import UsageError
from kvbench.host import guard, probe
from kvbench.host.model import Identity
from kvbench.kv.geometry import check_tp, parse_dtype, row_bytes
from kvbench.kv.models import find_model, load_models
from kvbench.plan import INTERVAL_REPETITIONS_MIN, Plan, TargetSpec, make_plan
from kvbench.units import parse_duration, parse_size
from kvbench.workload import catalog
from kvbench.workload.folder import MODELS_FILE
from kvbench.workload.kv import KvChoice
from kvbench.workload.schema import ENGINES, ROLES, Workload
from kvbench.workload.table import SIZE_TEXT_MAX

DEFAULT_SUITE = "quick"
DEFAULT_SEED = 20260701  # any fixed number: the same command draws the same offsets
REPETITIONS_MAX = 1000
UNTIL_PRECISE_REPETITIONS = 30  # the cap where none is given
WORKLOAD_REPETITIONS = 8  # of workloads that are named one by one: enough for an interval
PERCENT_MIN, PERCENT_MAX = 0.1, 100.0


class Choice(Struct, frozen=True, kw_only=True):
    """A plan and what it was made from.  ``identity`` is None for a default target not yet made."""

    plan: Plan
    identity: Identity | None
    default_target: bool


def add_plan_arguments(parser: argparse.ArgumentParser, default_suite: str = DEFAULT_SUITE) -> None:
    """Declare what decides a plan."""
    parser.set_defaults(default_suite=default_suite)
    parser.add_argument(
        "target",
        nargs="?",
        metavar="TARGET",
        help="file or block device to measure; without it kvbench makes and fills its own file "
        "in the results folder",
    )
    what = parser.add_argument_group("what to run")
    what.add_argument("--suite", metavar="S", help=f"a suite (default: {default_suite})")
    what.add_argument(
        "--workload",
        action="append",
        default=[],
        metavar="W",
        help="a workload by name, or a .toml file; may be given again",
    )
    what.add_argument(
        "--role",
        action="append",
        default=[],
        choices=ROLES,
        help="only workloads of this role; may be given again",
    )
    add_kv_arguments(what)
    what.add_argument(
        "--repetitions",
        type=int,
        metavar="N",
        help="passes over all cells (default: the suite's; of single workloads "
        f"{WORKLOAD_REPETITIONS})",
    )
    what.add_argument(
        "--until-precise",
        metavar="PCT",
        help="add repetitions until the 95 %% interval of every primary number is narrower, from "
        f"end to end, than PCT percent of its median; from {INTERVAL_REPETITIONS_MIN} up to "
        f"--repetitions (default: {UNTIL_PRECISE_REPETITIONS}).  Where that is not reached the run "
        "says so, and its exit code stays as it is",
    )
    what.add_argument(
        "--runtime", metavar="S", help="measured seconds per cell (default: the workload's)"
    )
    what.add_argument(
        "--seed", type=int, default=DEFAULT_SEED, help="decides the order and the offsets"
    )
    where = parser.add_argument_group("where")
    where.add_argument(
        "--span",
        metavar="SIZE",
        help="use only the first SIZE bytes of TARGET, or of kvbench's own file, which is made "
        "that large (default: all of TARGET; 2GiB of kvbench's own)",
    )
    add_results_argument(where)
    where.add_argument(
        "--engine",
        choices=ENGINES,
        default="io_uring",
        help="fio's I/O engine; never changed unless asked here, and shown in every report",
    )
    where.add_argument(
        "--buffered",
        action="store_true",
        help="go through the page cache instead of O_DIRECT; the report says so",
    )
    where.add_argument(
        "--destroy",
        metavar="TARGET",
        help="the same TARGET again: allows writing to it, which destroys what it holds",
    )
    where.add_argument(
        "--read-only",
        action="store_true",
        help="write nothing to any target, not even to kvbench's own file, which must be there "
        "and filled; workloads that write are left out",
    )


def add_kv_arguments(group: argparse._ArgumentGroup) -> None:
    """Declare for which model sizes are derived."""
    group.add_argument(
        "--model",
        metavar="M",
        help="derive the sizes of workloads that have a [kv] table for this model (kvbench list "
        "models); the others do not depend on a model and stay as they are",
    )
    group.add_argument(
        "--dtype", metavar="D", help="with --model: KV dtype (default: the model's own)"
    )
    group.add_argument(
        "--tp", type=int, metavar="T", help="with --model: tensor-parallel ranks (default: 1)"
    )


def kv_choice(arguments: argparse.Namespace) -> KvChoice | None:
    """Return what the user chose in the place of what ``[kv]`` tables say.

    Raises:
        UsageError: no such model or dtype, or ranks that do not divide its heads.
    """
    if arguments.model is None:
        for name in ("dtype", "tp"):
            if getattr(arguments, name) is not None:
                raise UsageError(f"--{name} only goes with --model")
        return None
    models = load_models(catalog.data_folder() / MODELS_FILE)
    try:
        model = find_model(models, arguments.model)
    except UsageError as error:  # its hint is of verbs that take a config.json
        near = nearest(arguments.model.rsplit("/", 1)[-1].lower(), models)
        hint = near or "see kvbench list models"
        raise UsageError(error.message, where="--model", hint=hint) from None
    if arguments.dtype is not None:
        row_bytes(model.geometry, parse_dtype(arguments.dtype, where="--dtype"), 1)
    if arguments.tp is not None:
        check_tp(model.geometry, arguments.tp, where="--tp")
    return KvChoice(model=model.name, dtype=arguments.dtype, tp=arguments.tp)


def choose(arguments: argparse.Namespace, *, only_shown: bool = False) -> Choice:
    """Return the plan that the arguments ask for.  Reads the target's facts; does no I/O on it.

    With ``only_shown`` nothing will run, so no workload is left out for want of memory.
    """
    workloads, suite, repetitions = _workloads(arguments)
    span = None if arguments.span is None else parse_size(arguments.span, where="--span")
    if span == 0:
        raise UsageError("a span of no bytes holds no I/O", where="--span")
    runtime = None
    if arguments.runtime is not None:
        runtime = parse_duration(arguments.runtime, where="--runtime")
        if not 0.1 <= runtime <= 24 * 3600:
            raise UsageError(
                f"runtime {runtime:g} s is not within 0.1 s to 24 h", where="--runtime"
            )
    if arguments.destroy is not None and arguments.target is None:
        raise UsageError("--destroy needs TARGET, named twice", where=arguments.destroy)
    if arguments.read_only and arguments.destroy is not None:
        raise UsageError("--read-only and --destroy contradict each other")
    spec, identity, default = _target(arguments, span)
    plan = make_plan(
        workloads,
        spec,
        suite=suite,
        repetitions=repetitions,
        seed=arguments.seed,
        engine=arguments.engine,
        direct=not arguments.buffered,
        may_write=may_write(arguments, own_file=spec.own_file),
        huge_pages_free=None if only_shown else probe.huge_pages_free(),
        why_not_contiguous="" if only_shown else probe.why_not_contiguous(),
        runtime_s=runtime,
        span_bytes=(span or target.DEFAULT_SIZE_BYTES) if default else span,
    )
    plan = replace(plan, until_precise=_until_precise(arguments))
    return Choice(plan=plan, identity=identity, default_target=default)


def may_write(arguments: argparse.Namespace, *, own_file: bool) -> bool:
    """Return whether the target may be written: kvbench's own file, or what was named twice."""
    return (own_file or arguments.destroy is not None) and not arguments.read_only


def _until_precise(arguments: argparse.Namespace) -> float | None:
    """Return the wanted width of an interval as a share, None where nobody asks."""
    text = arguments.until_precise
    if text is None:
        return None
    try:
        percent = float(text.removesuffix("%").strip()) if len(text) < SIZE_TEXT_MAX else nan
    except ValueError:
        percent = nan
    if not PERCENT_MIN <= percent <= PERCENT_MAX:
        raise UsageError(
            f"must be a percentage from {PERCENT_MIN:g} to {PERCENT_MAX:g}, not {found(text)}",
            where="--until-precise",
        )
    return percent / 100


def _workloads(arguments: argparse.Namespace) -> tuple[Sequence[Workload], str, int]:
    """Return the workloads, the suite's name ("" for none) and the repetitions."""
    kv = kv_choice(arguments)
    if arguments.workload:
        if arguments.suite:
            raise UsageError("give --suite or --workload, not both")
        names = dict.fromkeys(arguments.workload)
        chosen: list[Workload] = [catalog.find_workload(name, kv) for name in names]
        suite_name = ""
        repetitions = WORKLOAD_REPETITIONS
    else:
        suite = catalog.find_suite(arguments.suite or arguments.default_suite)
        chosen = list(catalog.suite_workloads(suite, kv))
        suite_name, repetitions = suite.name, suite.repetitions
    if arguments.role:
        chosen = [workload for workload in chosen if workload.role in arguments.role]
        if not chosen:
            raise UsageError(f"no workload here has the role {' or '.join(arguments.role)}")
    if arguments.until_precise is not None:
        repetitions = UNTIL_PRECISE_REPETITIONS
    if arguments.repetitions is not None:
        repetitions = arguments.repetitions
    if arguments.until_precise is not None and repetitions < INTERVAL_REPETITIONS_MIN:
        raise UsageError(
            f"an interval needs {INTERVAL_REPETITIONS_MIN} repetitions, and --repetitions allows "
            f"{repetitions}",
            where="--until-precise",
        )
    if not 1 <= repetitions <= REPETITIONS_MAX:
        raise UsageError(
            f"{repetitions} is not within 1 to {REPETITIONS_MAX}", where="--repetitions"
        )
    return chosen, suite_name, repetitions


def _target(
    arguments: argparse.Namespace, span: int | None
) -> tuple[TargetSpec, Identity | None, bool]:
    if arguments.target is None:
        path = target.default_path(arguments.results)
        # A larger file of an earlier run serves as it is, so that this run can be resumed.
        size = max(span or target.DEFAULT_SIZE_BYTES, target.size_there(path))
        spec = TargetSpec(path=str(path), kind="file", size_bytes=size, own_file=True)
        return spec, None, True
    identity = guard.check_readable(arguments.target)
    return spec_of(identity), identity, False


def spec_of(identity: Identity) -> TargetSpec:
    """Return an identified target as a plan sees it."""
    return TargetSpec(
        path=identity.real_path,
        kind=identity.kind,
        size_bytes=identity.size_bytes,
        own_file=identity.kind == "file" and target.is_own(Path(identity.real_path)),
        logical_block_bytes=probe.logical_block_bytes(identity),
    )
