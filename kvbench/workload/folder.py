"""Where the data files lie that come with kvbench: workloads, suites, models and GPUs.

They are in ``workloads/`` of a checkout.  A wheel carries the same folder inside the package
(``pyproject.toml`` maps it to ``kvbench/workloads_data``), because files beside a package are not
found again after ``pip install --target``.
"""

from pathlib import Path

import kvbench
from kvbench.errors import UsageError

INSTALLED_FOLDER = "workloads_data"
CHECKOUT_FOLDER = "workloads"
SUITES_FOLDER = "suites"
MODELS_FILE = "models.toml"


def data_folder() -> Path:
    """Return the folder of the data files.

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
