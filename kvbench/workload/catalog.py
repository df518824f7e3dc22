"""Find the workload and suite files that come with kvbench, and load them by name."""

from pathlib import Path

from kvbench.document import found, suggestion
from kvbench.errors import UsageError
from kvbench.workload.folder import SUITES_FOLDER, data_folder
from kvbench.workload.kv import KvChoice
from kvbench.workload.load import load_suite, load_workload
from kvbench.workload.schema import Suite, Workload

__all__ = [
    "OTHER_DATA",
    "data_folder",
    "find_suite",
    "find_workload",
    "list_suites",
    "list_workloads",
    "suite_workloads",
    "workload_names",
]

OTHER_DATA = ("models", "gpus", "controller")  # tables that lie in the same folder


def workload_names() -> list[str]:
    """Return the names of the catalog's workloads, without templates; reads none of the files."""
    return list(_files(data_folder()))


def list_workloads() -> list[Workload]:
    """Return the workloads of the catalog by name, without templates."""
    return [find_workload(name) for name in workload_names()]


def find_workload(name: str, kv_choice: KvChoice | None = None) -> Workload:
    """Return a workload: a name of the catalog, or a path that ends in ``.toml``.

    Args:
        name: which one.
        kv_choice: another model for its ``[kv]`` table, where it has one.

    Raises:
        UsageError: there is none, or its file is wrong.
    """
    if name.endswith(".toml"):
        return load_workload(Path(name), kv_choice)
    return load_workload(_named(_files(data_folder()), name, "workload"), kv_choice)


def list_suites() -> list[Suite]:
    """Return the suites of the catalog by name."""
    return [load_suite(path) for path in _files(data_folder() / SUITES_FOLDER).values()]


def find_suite(name: str) -> Suite:
    """Return a suite: a name of the catalog, or a path that ends in ``.toml``.

    Raises:
        UsageError: there is none, or its file is wrong.
    """
    if name.endswith(".toml"):
        return load_suite(Path(name))
    return load_suite(_named(_files(data_folder() / SUITES_FOLDER), name, "suite"))


def suite_workloads(suite: Suite, kv_choice: KvChoice | None = None) -> list[Workload]:
    """Return the workloads of a suite in its order; ``kv_choice`` as for ``find_workload``.

    Raises:
        UsageError: it names a workload that is not in the catalog.
    """
    files = _files(data_folder())
    paths = [
        _named(files, name, "workload", where=f"suite {suite.name}") for name in suite.workloads
    ]
    return [load_workload(path, kv_choice) for path in paths]


def _files(folder: Path) -> dict[str, Path]:
    """Return the files of a catalog folder by name; those that start with "_" are templates."""
    return {
        path.stem: path
        for path in sorted(folder.glob("*.toml"), key=lambda path: path.stem)
        if not path.stem.startswith("_") and path.stem not in OTHER_DATA
    }


def _named(files: dict[str, Path], name: str, what: str, where: str = "") -> Path:
    if name not in files:
        raise UsageError(f"unknown {what} {found(name)}", where=where, hint=suggestion(name, files))
    return files[name]
