"""The shape of the code: who may import whom, and where effects may happen."""

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

import kvbench

PACKAGE = Path(kvbench.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOMS = re.findall(r"^    (\w+) {2,}\S", kvbench.__doc__ or "", re.MULTILINE)
OUTSIDE = {"__init__", "__main__"}  # not rooms: they only name the package and start the CLI
OUTSIDE_FILES = {f"{name}.py" for name in OUTSIDE}
ONLY_SUBPROCESS = {"fio/launch.py", "host/probe.py"}
FORBIDDEN = {
    "report": {"session", "fio", "host.probe"},
    "session": {"compare", "gate", "report"},
}
HEAVY = {"numpy", "pandas", "matplotlib", "scipy", "jinja2", "rich"}
STARTERS = re.compile(r"os\.(system|popen|exec\w+|spawn\w+|posix_spawn\w*|fork)")
CLOCKS = {"time.time", "datetime.now", "datetime.utcnow", "datetime.today", "date.today"}
MAY_READ_CLOCK = {"cli", "session"}  # where a run begins, and the default that tests replace


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterable[str]:
    """Every module that is imported anywhere in the file, in full."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports_at_start(tree: ast.Module) -> Iterable[str]:
    """The modules that are imported when the file is imported, outside functions."""
    pending: list[ast.stmt] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imports(node)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            pending += [child for child in ast.walk(node) if isinstance(child, ast.stmt)][1:]


def calls(tree: ast.AST) -> Iterable[str]:
    return (ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call))


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_every_module_stands_in_a_room_and_every_room_is_there() -> None:
    assert ROOMS[0] == "errors"
    assert ROOMS[-1] == "cli"
    assert {room_of(path) for path in MODULES} - OUTSIDE == set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_room_imports_only_from_rooms_above_it(path: Path) -> None:
    room = room_of(path)
    if room in OUTSIDE:
        return
    for module in imports(parse(path)):
        parts = module.split(".")
        if parts[0] != "kvbench" or len(parts) < 2 or parts[1] not in ROOMS:
            continue
        assert ROOMS.index(parts[1]) <= ROOMS.index(room), f"{name_of(path)} imports {module}"


def test_statistics_know_nothing_of_kvbench() -> None:
    for path in (PACKAGE / "stats").glob("*.py"):
        outside = [m for m in imports(parse(path)) if m.startswith("kvbench.")]
        assert all(m.startswith("kvbench.stats") for m in outside), path


@pytest.mark.parametrize("room", sorted(FORBIDDEN))
def test_reports_measure_nothing_and_sessions_judge_nothing(room: str) -> None:
    for path in MODULES:
        if room_of(path) == room:
            for module in imports(parse(path)):
                for other in FORBIDDEN[room]:
                    inside = f"{module}.".startswith(f"kvbench.{other}.")
                    assert not inside, f"{name_of(path)} imports {module}"


def test_only_two_modules_start_processes() -> None:
    starting = {name_of(p) for p in MODULES if "subprocess" in {*imports(parse(p))}}
    starting |= {
        name_of(p)
        for p in MODULES
        if any(
            re.fullmatch(r"os\.(system|popen|exec\w+|spawn\w+|fork)", c) for c in calls(parse(p))
        )
    }
    assert starting <= ONLY_SUBPROCESS


def test_only_the_cli_prints() -> None:
    printing = {
        name_of(path)
        for path in MODULES
        if {"print", "sys.stdout.write", "sys.stderr.write", "sys.exit"} & set(calls(parse(path)))
    }
    assert {name for name in printing if not name.startswith("cli/")} <= OUTSIDE_FILES


def test_the_clock_is_passed_in() -> None:
    for path in MODULES:
        if room_of(path) in MAY_READ_CLOCK | OUTSIDE:
            continue
        read = {c for c in calls(parse(path)) for clock in CLOCKS if c.endswith(clock)}
        assert not read, f"{name_of(path)} reads the clock: {read}"


def test_chance_is_passed_in() -> None:
    """A generator made from a given seed is fine; the module's own hidden one is not."""
    for path in MODULES:
        if room_of(path) in MAY_READ_CLOCK | OUTSIDE:
            continue
        drawn = {
            call
            for call in calls(parse(path))
            if re.fullmatch(r"(random|np\.random|numpy\.random)\.(?!Random$|default_rng$)\w+", call)
        }
        assert not drawn, f"{name_of(path)} draws {drawn}"


def test_the_cli_starts_without_heavy_libraries() -> None:
    """What ``kvbench --help`` imports, followed through kvbench's own modules."""
    pending, seen = ["kvbench.cli.main"], set()
    while pending:
        module = pending.pop()
        path = PACKAGE.joinpath(*module.split(".")[1:])
        file = (
            path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"
        )
        if module in seen or not file.is_file():
            continue
        seen.add(module)
        for name in imports_at_start(parse(file)):
            assert name.split(".")[0] not in HEAVY, f"{module} imports {name} at its start"
            if name.startswith("kvbench."):
                pending += [name, name.rpartition(".")[0]]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(parse(path)), name_of(path)
