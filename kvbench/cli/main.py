"""kvbench's entry: find the verb, run it, turn any failure into one sentence and an exit code.

A verb's module is imported only when it is called, so that ``kvbench --help`` stays quick.
"""

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import Protocol, cast

from kvbench import __version__
from kvbench.cli.output import Unbreakable, advise, forget_stdout
from kvbench.errors import ExitCode, KvbenchError

VERBS: dict[str, str] = {
    "run": "measure a target with a suite or with single workloads",
    "prepare": "purge, fill and settle a device to its steady state, and keep a record of it",
    "plan": "show what run would do: cells, time, bytes written; does no I/O",
    "list": "list workloads, suites, roles, models, gpus or runs",
    "show": "print the fio job of a workload, which plain fio runs as it is",
    "report": "rebuild the report of a stored run from its archive",
    "verify": "read back what the integrity cells of a run wrote, also after a crash or power cut",
    "gate": "say whether a candidate run is as good as a baseline; for pipelines",
    "compare": "hold runs against the first: what differs, which drive is better for which role",
    "history": "show each primary number of a drive over its stored runs and firmware revisions",
    "ab": "measure one drive before and after a change, or two in turns, and say which is worse",
    "size": "print the KV bytes of a model: token, block, page, chunk, layer, sequence",
    "breakeven": "say from which context on the measured drive reloads faster than a GPU computes",
    "doctor": "say what on this machine would spoil a measurement, and what mends it",
}

EXIT_CODES = """exit codes:
  0 pass   1 regression or requirement missed   2 usage or file   3 environment
  4 a cell failed or is invalid   5 results store   6 inconclusive   7 refused for safety
  70 bug in kvbench   130 interrupted (what was measured is kept)
run and report show the role cards; a requirement that is missed there changes no exit code"""


class Verb(Protocol):
    """What a verb's module provides."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the verb's arguments."""

    def execute(self, arguments: argparse.Namespace) -> int:
        """Do it and return the exit code."""


def main(argv: list[str]) -> int:
    """Run kvbench with ``argv`` (without the program's name) and return the exit code."""
    try:
        return _dispatch(argv)
    except KvbenchError as error:
        advise(f"error: {error}")
        return int(error.exit_code)
    except KeyboardInterrupt:
        advise("interrupted")
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away (`kvbench list | head`): nothing is wrong.
        forget_stdout()
        return int(ExitCode.OK)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        advise(f"error: {where}{error.strerror or error}")
        forget_stdout()
        return int(ExitCode.ENVIRONMENT)
    except Exception as error:
        if os.environ.get("KVBENCH_TRACEBACK"):
            raise
        advise(
            f"bug in kvbench: {type(error).__name__}: {error} "
            "(set KVBENCH_TRACEBACK=1 to see where, and report it)"
        )
        return int(ExitCode.BUG)


def _dispatch(argv: list[str]) -> int:
    code = _run_verb(argv[0], argv[1:]) if argv and argv[0] in VERBS else _without_verb(argv)
    try:
        sys.stdout.flush()  # here, where a full disk behind stdout is still told as an error
    except BrokenPipeError:
        forget_stdout()  # the verdict stays what it is when nobody reads its words
    return code


def entry() -> None:
    """Console-script entry."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the caller
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - for good
            setattr(sys, name, stream)
    sys.stderr = Unbreakable(sys.stderr)
    sys.exit(main(sys.argv[1:]))


def verb_parser(name: str) -> tuple[argparse.ArgumentParser, Verb]:
    """Return the parser of one verb and the verb."""
    verb = cast("Verb", importlib.import_module(f"kvbench.cli.{name}"))
    parser = argparse.ArgumentParser(
        prog=f"kvbench {name}",
        description=f"{VERBS[name][0].upper()}{VERBS[name][1:]}.",
        allow_abbrev=False,
    )
    verb.add_arguments(parser)
    return parser, verb


def _run_verb(name: str, argv: list[str]) -> int:
    parser, verb = verb_parser(name)
    command = argparse.Namespace(command=("kvbench", name, *argv))
    return verb.execute(parser.parse_intermixed_args(argv, command))


def _without_verb(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="kvbench",
        description="Measure an SSD as a tier of the KV cache of LLM serving.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"kvbench {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    for name, summary in VERBS.items():
        verbs.add_parser(name, help=summary, add_help=False)
    parser.parse_args(argv)
    parser.print_help(sys.stderr)
    return int(ExitCode.USAGE)


if __name__ == "__main__":
    entry()
