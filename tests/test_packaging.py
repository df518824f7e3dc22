"""What is installed is what is needed: every room, and the workload files with them."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DATA_PACKAGE = "kvbench.workloads_data"


def settings() -> dict[str, object]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        read: dict[str, object] = tomllib.load(file)["tool"]["setuptools"]
    return read


def test_every_room_with_code_is_installed() -> None:
    folders = {path.parent for path in (ROOT / "kvbench").rglob("*.py")}
    packages = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert settings()["packages"] == sorted(packages | {DATA_PACKAGE})


def test_the_data_package_is_the_workloads_folder() -> None:
    assert settings()["package-dir"] == {DATA_PACKAGE: "workloads"}


@pytest.mark.slow
def test_a_build_carries_every_workload_file(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", reason="building needs setuptools")
    source = tmp_path / "source"
    unwanted = shutil.ignore_patterns("__pycache__")
    for name in ("kvbench", "workloads"):
        shutil.copytree(ROOT / name, source / name, ignore=unwanted)
    shutil.copy(ROOT / "pyproject.toml", source)
    (source / "README.md").write_text("read me\n", encoding="utf-8")
    setup = "import setuptools; setuptools.setup()"
    build = ["-q", "build_py", "--build-lib", str(tmp_path / "built")]
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", setup, *build],
        cwd=source,
        check=True,
        capture_output=True,
        timeout=120,
    )
    built = tmp_path / "built" / "kvbench"
    carried = built / "workloads_data"
    for path in (ROOT / "workloads").rglob("*.toml"):
        assert (carried / path.relative_to(ROOT / "workloads")).is_file()
    for path in (ROOT / "kvbench").rglob("*.j2"):
        assert (built / path.relative_to(ROOT / "kvbench")).is_file()
    for path in (ROOT / "kvbench").rglob("*.css"):
        assert (built / path.relative_to(ROOT / "kvbench")).is_file()
    program = (
        "from kvbench.workload import cards, catalog; print(len(catalog.list_workloads())); "
        "cards.list_role_cards(); cards.list_controller_requirements()"
    )
    listed = subprocess.run(
        [sys.executable, "-c", program],
        cwd="/",
        env={"PYTHONPATH": str(tmp_path / "built")},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert int(listed.stdout) >= 6
