"""Boot a guest with emulated NVMe drives, run scenarios in it, and return what they wrote down.

The guest runs in real time: its drives behave as drives do, and nothing about their latency is
known.  ``boot`` has the guests in virtual time.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tests.nvme_vm.boot import HERE, ROOT, SET_UP_FAILED, TOOLS, CannotBoot, GuestFailed
from tests.nvme_vm.inside.driver import ANSWERS_FILE, RESULTS, Answer

MEMORY_MIB = 2048
GONE = 126  # what vm.sh ends with when the guest lost its power


class Seen(Mapping[str, Answer]):
    """The answers of one boot by name, and where the runs are that they stored."""

    def __init__(self, share: Path, took_s: float) -> None:
        self.results = share / RESULTS
        self.share = share
        self.took_s = took_s
        path = share / ANSWERS_FILE
        lines = path.read_bytes().splitlines() if path.exists() else []
        decoded = [msgspec.json.decode(line, type=Answer) for line in lines]
        self._answers = {answer.name: answer for answer in decoded}

    def __getitem__(self, name: str) -> Answer:
        if name not in self._answers:
            broken = [a.stderr for a in self._answers.values() if a.name.startswith("broken")]
            raise AssertionError(f"no answer {name!r}; {' '.join(broken) or 'nothing broke'}")
        return self._answers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)


def lacking(*more: str) -> str:
    """Return which tools a guest needs and this machine lacks, "" when it has all."""
    import shutil

    gone = [tool for tool in (*TOOLS, *more) if shutil.which(tool) is None]
    if not gone:
        return ""
    return f"not installed: {', '.join(gone)} (tests/nvme_vm/vm.sh deps installs all of them)"


def run_inside(
    module: str,
    share: Path,
    drives: Sequence[str],
    *,
    only: Sequence[str] = (),
    options: Sequence[str] = (),
    power_cut: bool = False,
    timeout_s: int = 280,
) -> Seen:
    """Boot once, run the scenarios of ``tests.nvme_vm.inside.MODULE``, and return the answers.

    Args:
        module: whose scenarios; several with a comma between.
        share: a folder that the guest writes to, empty for a first boot.
        drives: what ``vm.sh run --nvme`` takes, in the order of the drives' names.
        only: names of scenarios; all of them without any.
        options: more options of ``vm.sh run``.
        power_cut: the guest is to lose its power, and does not end otherwise.
        timeout_s: after so many seconds the guest is stopped.

    Raises:
        GuestFailed: it did not end as it was to; with the end of what was said.
    """
    started = time.monotonic()
    done = subprocess.run(
        [
            *("bash", str(HERE / "vm.sh"), "run", "--mem", str(MEMORY_MIB)),
            *("--timeout", str(timeout_s), "--share", str(share), "--cwd", str(ROOT)),
            *(word for drive in drives for word in ("--nvme", drive)),
            *options,
            *("--", sys.executable, "-m", "tests.nvme_vm.inside.driver", module, str(share)),
            *only,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s + 120,
        check=False,
    )
    if done.returncode != (GONE if power_cut else 0):
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        kind = CannotBoot if done.returncode == SET_UP_FAILED else GuestFailed
        raise kind(f"the guest ended with {done.returncode}:\n{said}")
    return Seen(share, time.monotonic() - started)
