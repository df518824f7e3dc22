"""Prepare a drive, and see what later runs make of the record; two programs on one drive."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.nvme_vm.inside.driver import WRITES, Answer, Driver, busy

BESIDE, PREPARED = "/dev/nvme6n1", "/dev/nvme6n2"  # two namespaces of one drive
OTHER = "/dev/nvme7n1"
QUICK = ("--passes", "1", "--round", "1", "--rounds", "5", "--quiet")
FOREIGN_MIB = 4


def prepared(driver: Driver) -> None:
    """One namespace is formatted, another drive discarded; both are filled, and run in rounds."""
    write_noise(BESIDE)
    for drive, purge in ((PREPARED, "format"), (OTHER, "discard")):
        driver.kvbench(
            f"prepare by {purge}",
            *("prepare", drive, "--destroy", drive, "--yes", "--purge", purge, *QUICK),
            *("--results", str(driver.results)),
            watched=BESIDE,
        )


def write_noise(drive: str) -> None:
    """Write a little to the start of a drive, as another program would."""
    noise = os.urandom(1 << 20)
    with Path(drive).open("r+b", buffering=0) as node:
        for _ in range(FOREIGN_MIB):
            node.write(noise)
        os.fsync(node.fileno())


def stamps(driver: Driver) -> None:
    """The record holds, until somebody else writes; the record of another drive never does."""
    once(driver, "run of a prepared drive", PREPARED)
    write_noise(PREPARED)
    once(driver, "run after foreign writes", PREPARED)
    stamps = driver.results / "stamps"
    (one,), (other,) = stamps.glob("PREP*"), stamps.glob("OTHR*")
    shutil.copy(one, other)
    once(driver, "run with the stamp of another drive", OTHER)


def once(driver: Driver, name: str, drive: str) -> None:
    """One short cell of reads."""
    load = driver.workload("read")
    argv = ("run", drive, "--workload", load, "--repetitions", "1", "--quiet", "--label", name)
    driver.kvbench(name, *argv, "--results", str(driver.results))


def held(driver: Driver) -> None:
    """While kvbench writes, nobody can claim, mount or lock the drive, a second kvbench neither."""
    load = driver.workload("write", runtime="20s")
    rest = ("--workload", load, "--repetitions", "1", "--results", str(driver.results))
    writing = ("run", OTHER, "--destroy", OTHER, "--yes", "--quiet", *rest)
    # a fork would not be known as a kvbench, which goes by the command line
    program = subprocess.Popen(
        [sys.executable, "-m", "kvbench", *writing],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        busy(OTHER, field=WRITES)
        try:
            os.close(os.open(OTHER, os.O_RDONLY | os.O_EXCL))
            claim = "granted"
        except OSError as error:
            claim = errno.errorcode[error.errno or 0]
        driver.write_down(Answer(name="claim while kvbench writes", stdout=claim))
        driver.kvbench("second kvbench on the drive", *writing)
        once(driver, "second kvbench that only reads", OTHER)
    finally:
        program.terminate()
        code = program.wait(300)  # it still imports all that a report needs
    driver.write_down(Answer(name="first kvbench", exit_code=code))


SCENARIOS = (prepared, stamps, held)
