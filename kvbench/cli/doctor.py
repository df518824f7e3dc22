"""``kvbench doctor``: what on this machine would spoil a measurement, worst first."""

import argparse
import shlex
import tempfile
from pathlib import Path

from kvbench.cli import output
from kvbench.cli.stored import add_results_argument
from kvbench.cli.taking import condition_of
from kvbench.errors import EnvironmentMissing, ExitCode
from kvbench.fio.probe import check_engine, engines_fact, find_fio
from kvbench.host import guard, probe
from kvbench.host.advice import Advice, advise
from kvbench.host.model import Fact, Identity
from kvbench.store.preparation import NOT_PREPARED
from kvbench.units import MIB, format_size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("target", nargs="?", metavar="TARGET", help="also look at this target")
    add_results_argument(parser, "the results store: it has the stamps that kvbench prepare leaves")
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the advice; exit 3 when a measurement is not possible, or would be spoiled."""
    facts = list(probe.host_facts())
    advice: list[Advice] = []
    path = None
    direct = True
    on_stamp: list[Advice] = []
    if arguments.target:
        identity = guard.check_readable(arguments.target)
        path = identity.real_path
        stamp, on_stamp = _preparation(arguments, identity)
        facts = [*probe.target_facts(identity), *stamp, *facts]
        direct, reason = probe.supports_direct(identity.real_path)
        if not direct:
            advice.append(
                Advice(
                    severity="blocks",
                    text=f"O_DIRECT does not work on {identity.path}: {reason}",
                    command="kvbench run --buffered (measures the page cache and says so)",
                )
            )
    blocked = _fio(facts, path, direct=direct)
    advice = [*blocked, *advice, *advise(facts), *on_stamp]
    if arguments.json:
        output.print_json({"advice": advice, "facts": facts})
    else:
        for item in advice:
            print(f"[{item.severity}] {item.text}")
            if item.command:
                print(f"    {item.command}")
        if not advice:
            print("nothing found that would spoil a measurement")
        print()
        for fact in facts:
            print(f"{_name(fact):<28}{_value(fact)}")
    spoiled = any(item.severity != "note" for item in advice)
    return int(ExitCode.ENVIRONMENT if spoiled else ExitCode.OK)


def _preparation(
    arguments: argparse.Namespace, identity: Identity
) -> tuple[list[Fact], list[Advice]]:
    """Return what the stamp of a drive says, as a run would take it, and what to do about it."""
    if identity.kind == "file":
        return [], []  # it carries no stamp
    name = "preparation"
    try:
        condition = condition_of(arguments.results, identity) or NOT_PREPARED
    except EnvironmentMissing as error:
        return [Fact(name=name, value=None, reason=error.message)], []
    words = {
        "holds": "holds",
        "broken": "does not hold any more",
        "unknown": "may not hold any more",
        "none": "none",
    }
    fact = [Fact(name=name, value=f"{words[condition.state]}: {condition.text}")]
    if not condition.doubt:
        return fact, []
    again = "" if condition.state == "none" else " again"
    advice = Advice(
        severity="note",
        text=f"{identity.path} is not known to be steady: {condition.doubt}; its figures will "
        f"carry that doubt until it is prepared{again}",
        command=f"kvbench prepare {shlex.quote(identity.path)} --dry-run  (tells bytes and time; "
        "it destroys all data)",
    )
    return fact, [advice]


def _name(fact: Fact) -> str:
    return fact.name.removesuffix("_bytes").replace("_", " ")


def _value(fact: Fact) -> str:
    if fact.value is None:
        return f"unknown ({fact.reason})"
    if fact.name.endswith("_bytes") and fact.value.isdecimal():
        return format_size(int(fact.value))
    return fact.value


def _fio(facts: list[Fact], target: str | None, *, direct: bool) -> list[Advice]:
    """Check fio and io_uring with real reads: on the target, or on a small file of our own."""
    try:
        tool = find_fio()
        facts.insert(0, Fact(name="fio", value=f"{tool.version_text} ({tool.path})"))
        facts.insert(1, engines_fact(tool))
        with tempfile.TemporaryDirectory(prefix="kvbench-") as folder:
            path = target
            if path is None:
                path = str(Path(folder) / "probe.dat")
                Path(path).write_bytes(b"\1" * MIB)
                direct = probe.supports_direct(path)[0]
            check_engine(
                tool,
                "io_uring",
                target_path=path,
                direct=direct,
                workdir=Path(folder),
                registered=True,
            )
            facts.insert(2, Fact(name="io_uring", value="works"))
    except EnvironmentMissing as error:
        return [Advice(severity="blocks", text=error.message, command=error.hint)]
    return []
