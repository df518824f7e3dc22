"""The README's console blocks are executed, its code table and its links are true."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from kvbench.cli.main import VERBS
from kvbench.errors import ExitCode
from kvbench.units import MIB
from tests.cli.program import kvbench

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
CONSOLE = [
    line.removeprefix("$ ")
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("$ ")
]
# What a test machine lacks, and what would take minutes there.
SHORTER = ("--repetitions", "1", "--runtime", "0.5")
PRECISE = ("--repetitions", "6", "--runtime", "0.2")
QUICK_ROUNDS = ("--passes", "1", "--round", "0.2", "--rounds", "5")
DECIDING = {"gate", "ab", "prepare"}  # with one repetition they cannot, and say so


def arguments_of(line: str, device: Path) -> list[str]:
    """Return the arguments in a README line: /dev/nvme0n1 becomes a file, measuring is short."""
    words = shlex.split(line)
    assert words[0] == "kvbench", line
    arguments = [str(device) if word == "/dev/nvme0n1" else word for word in words[1:]]
    arguments = [
        str(ROOT / word) if word.startswith(("results/", "./workloads/")) else word
        for word in arguments
    ]
    if arguments[0] in ("run", "ab"):
        arguments = [*arguments, *(PRECISE if "--until-precise" in arguments else SHORTER)]
        if str(device) in arguments:
            arguments += ["--workload", "vllm-block"]
    if arguments[0] == "prepare":
        arguments += QUICK_ROUNDS
    return arguments


def test_there_are_commands_to_execute() -> None:
    assert len(CONSOLE) >= 8
    used = {shlex.split(line)[1] for line in CONSOLE}
    assert used >= set(VERBS) - {"size"}


@pytest.mark.fio
@pytest.mark.slow
def test_every_console_command_works(tmp_path: Path) -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    device = tmp_path / "device.dat"
    with device.open("wb") as file:
        for _ in range(256):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())
    for line in CONSOLE:
        words = arguments_of(line, device)
        done = kvbench(*words, cwd=tmp_path, timeout_s=180)
        good = {ExitCode.OK, ExitCode.INCONCLUSIVE} if words[0] in DECIDING else {ExitCode.OK}
        assert done.returncode in good, f"{line}\n{done.stderr}"
        assert done.stdout, line


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    for name in ("run", "test"):
        assert f"make {name}" in README
        done = subprocess.run(
            ["make", "--dry-run", name], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.fio
def test_make_run_measures_and_names_its_report(tmp_path: Path) -> None:
    if not (ROOT / ".venv" / ".run").exists():
        pytest.skip("set up by make only: .venv is not there, and a test should not install it")
    options = f"--workload vllm-block --span 256MiB --results {tmp_path} {' '.join(SHORTER)}"
    done = subprocess.run(
        ["make", "run", f"ARGS={options}"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = re.search(r"^report +(\S+)$", done.stdout, re.MULTILINE)
    assert report, done.stdout
    assert Path(report[1]).is_file()


def test_the_exit_code_table_is_the_code() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert listed == {int(code) for code in ExitCode}


def test_every_link_and_picture_is_there() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", README):
        if not link.startswith("http"):
            assert (ROOT / link).exists(), link
