"""Find the workload and suite files that come with kvbench, and load them by name.

The files lie in ``workloads/`` of a checkout.  A wheel carries the same folder inside the package
(``pyproject.toml`` maps it to ``kvbench/workloads_data``), because files beside a package are not
found again after ``pip install --target``.
"""

from pathlib import Path

import kvbench
from kvbench.document import found, suggestion
from kvbench.errors import UsageError
from kvbench.workload.load import load_suite, load_workload
from kvbench.workload.schema import Suite, Workload

INSTALLED_FOLDER = "workloads_data"
CHECKOUT_FOLDER = "workloads"
SUITES_FOLDER = "suites"
OTHER_DATA = ("models", "gpus")  # tables of LLMs and GPUs, which lie in the same folder


def data_folder() -> Path:
    """Return the folder of the workload files.

    Raises:
        UsageError: the installation is incomplete.
    """
    package = Path(kvbench.__file__).resolve().parent
    for folder in (package / INSTALLED_FOLDER, package.parent / CHECKOUT_FOLDER):
        if (folder / SUITES_FOLDER).is_dir():
            return folder
    raise UsageError(
        "the workload files are missing from this installation",
        where=str(package),
        hint="install kvbench again",
    )


def list_workloads() -> list[Workload]:
    """Return the workloads of the catalog by name, without templates."""
    return [load_workload(path) for path in _files(data_folder()).values()]


def find_workload(name: str) -> Workload:
    """Return a workload: a name of the catalog, or a path that ends in ``.toml``.

    Raises:
        UsageError: there is none, or its file is wrong.
    """
    if name.endswith(".toml"):
        return load_workload(Path(name))
    return load_workload(_named(_files(data_folder()), name, "workload"))


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


def suite_workloads(suite: Suite) -> list[Workload]:
    """Return the workloads of a suite in its order.

    Raises:
        UsageError: it names a workload that is not in the catalog.
    """
    files = _files(data_folder())
    paths = [
        _named(files, name, "workload", where=f"suite {suite.name}") for name in suite.workloads
    ]
    return [load_workload(path) for path in paths]


def _files(folder: Path) -> dict[str, Path]:
    """Return the files of a catalog folder by name; those that start with "_" are templates."""
    return {
        path.stem: path
        for path in sorted(folder.glob("*.toml"))
        if not path.stem.startswith("_") and path.stem not in OTHER_DATA
    }


def _named(files: dict[str, Path], name: str, what: str, where: str = "") -> Path:
    if name not in files:
        raise UsageError(f"unknown {what} {found(name)}", where=where, hint=suggestion(name, files))
    return files[name]
