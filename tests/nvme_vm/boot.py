"""Boot a guest in virtual time, make known devices in it, and run ``kvbench run`` on each.

In virtual time the guest's clock goes with the instructions that it executes, and idle time costs
nothing, so a latency that is configured is seen as it is, whatever else this machine does.  The
guest sees the root file system of this machine read-only, hence the same kvbench and fio.

A wait for a file of this machine is idle time as well: the guest's clock leaps until the file is
there.  So fio, its libraries and what it writes are in the guest's own memory while it measures.
"""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kvbench.store.read import RunArchive, list_runs, read_run
from tests.nvme_vm.known import PIECE_MIB, Case

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SECTORS_PER_PIECE = PIECE_MIB * 2048
SET_UP_FAILED = 125  # what vm.sh ends with when it cannot boot at all
TOOLS = ("qemu-system-x86_64", "fio", "dmsetup", "busybox", "cpio", "modprobe", "depmod", "xz")

MEMORY_MIB = 2048
RESULTS = "/run/results"  # in the guest's memory

# Changing an attribute of a file copies it into the guest's memory, where the second start of fio
# finds all of it.  The guest has one CPU: fio goes before kvbench there, as it does on a host with
# CPUs for both.  The folder of a null_blk device in configfs must have the name of the device.
PREPARE = r"""
set -euo pipefail
fio=$(readlink -f "$(command -v fio)")
programs=$(readlink -f "$fio" /bin/sh "$(command -v chrt)")
ldd $programs | grep -o '/[^ ]*' | tr -d : | xargs readlink -f | sort -u |
    xargs touch --no-create $programs /etc/ld.so.cache
mkdir /run/first
printf '#!/bin/sh\nexec chrt --rr 1 %s "$@"\n' "$fio" >/run/first/fio
chmod 755 /run/first/fio
export PATH=/run/first:$PATH
fio --version >/dev/null
modprobe null_blk nr_devices=0
modprobe dm_mod
null_blk() {   # number, latency in ns, size in MiB
    local folder=/sys/kernel/config/nullb/nullb$1
    mkdir "$folder"
    echo 2 >"$folder/irqmode"   # completions come from a timer
    echo "$2" >"$folder/completion_nsec"
    echo "$3" >"$folder/size"
    echo 1 >"$folder/power"
}
measure() {
    local status
    for _ in 1 2 3; do
        status=0
        "$@" || status=$?
        case $status in
            0 | 4) return 0 ;;   # what failed cells are worth is judged from what is stored
            3) ;;                # nothing was measured: the clock leapt over a time limit
            *) return $status ;;
        esac
    done
    return $status
}
"""


class GuestFailed(Exception):
    """The guest did not come up, or kvbench in it did not end well."""


class CannotBoot(GuestFailed):
    """This machine lacks what a guest needs."""


def missing() -> str:
    """Return which tools a guest needs and this machine lacks, "" when it has all."""
    lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
    if not lacking:
        return ""
    return f"not installed: {', '.join(lacking)} (tests/nvme_vm/vm.sh deps installs all of them)"


def build() -> None:
    """Fill the cache with the guest's kernel; fetches it once.

    Raises:
        CannotBoot: there is no kernel package, or no network.
    """
    done = subprocess.run(
        ["bash", str(HERE / "vm.sh"), "build"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        raise CannotBoot(f"the guest's kernel cannot be had: {done.stderr.strip()}")


def measure_in_guest(
    cases: Sequence[Case], share: Path, *, timeout_s: int
) -> dict[str, RunArchive]:
    """Boot once, measure every device under its loads, and return a run for each device's name.

    Args:
        cases: what to make, and how to read it.
        share: an empty folder, which the guest writes the runs to.
        timeout_s: after so many seconds the guest is stopped.

    Raises:
        GuestFailed: with the end of what was said.
    """
    script = share / "guest.sh"
    script.write_text(guest_script(cases, share))
    done = subprocess.run(
        [
            *("bash", str(HERE / "vm.sh"), "run", "--icount", "0", "--no-nvme"),
            *("--mem", str(MEMORY_MIB), "--append", "preempt=full"),
            *("--timeout", str(timeout_s), "--share", str(share), "--cwd", str(ROOT)),
            *("--", "bash", str(script)),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s + 120,
        check=False,
    )
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        kind = CannotBoot if done.returncode == SET_UP_FAILED else GuestFailed
        raise kind(f"the guest ended with {done.returncode}:\n{said}")
    return {device.name: _only_run(share / device.name) for device, _ in cases}


def guest_script(cases: Sequence[Case], share: Path) -> str:
    """Return what the guest executes; writes the tables and workload files that it names."""
    lines = [PREPARE]
    number = 0
    for device, loads in cases:
        folder = share / device.name
        folder.mkdir()
        parts = []
        for level in device.levels:
            number += 1
            lines.append(f"null_blk {number} {round(level.latency_s * 1e9)} {_mib(level.pieces)}")
            parts.append((f"/dev/nullb{number}", level.pieces))
        path = parts[0][0]
        if len(parts) > 1:
            path = f"/dev/mapper/{device.name}"
            table = folder / "table"
            table.write_text(linear_table(parts))
            # The guest has no udev that would make the node.
            lines.append(f"dmsetup create --noudevsync {device.name} {shlex.quote(str(table))}")
            lines.append(f"dmsetup mknodes {device.name}")
        files = []
        for load in loads:
            files.append(folder / f"{load.name}.toml")
            files[-1].write_text(load.workload(device))
        argv = [
            *(sys.executable, "-m", "kvbench", "run", path, "--quiet", "--repetitions", "1"),
            *("--results", f"{RESULTS}/{device.name}"),
            *(word for file in files for word in ("--workload", str(file))),
        ]
        lines.append(f"measure {shlex.join(argv)}")
        lines.append(f"cp -r {RESULTS}/{device.name}/* {shlex.quote(str(folder))}")
    return "\n".join(lines) + "\n"


def linear_table(parts: Sequence[tuple[str, int]]) -> str:
    """Return the table of a device that has the pieces of several, one after the other."""
    rows, begin = [], 0
    for path, pieces in parts:
        sectors = pieces * SECTORS_PER_PIECE
        rows.append(f"{begin} {sectors} linear {path} 0")
        begin += sectors
    return "\n".join(rows) + "\n"


def _mib(pieces: int) -> int:
    return pieces * PIECE_MIB


def _only_run(folder: Path) -> RunArchive:
    runs = list_runs(folder)
    if len(runs) != 1:
        raise GuestFailed(f"expected one run in {folder}, found {len(runs)}")
    return read_run(runs[0])
