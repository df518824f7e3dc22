"""Run kvbench many times in a guest, and write down each answer as it comes.

Python and numpy take ten seconds to start in an emulated machine, so they start once: every
kvbench is a fork of this process, which has all modules loaded.  It has its own session, its own
descriptors and its own exit code, as a kvbench that was started from a shell has.

Most of them write no page: drawing takes most of the time of a short run there, and depends on
nothing but what was stored, of which the tests draw every page on the host.
"""

import contextlib
import hashlib
import mmap
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec
from msgspec import Struct

from tests.nvme_vm.inside.loads import write_load

if TYPE_CHECKING:  # imported after the environment of numpy is set
    from kvbench.report.model import ReportView

ANSWERS_FILE = "answers.jsonl"
RESULTS = "results"
READS, WRITES = 0, 4  # completed requests, in /sys/block/*/stat
BUSY_IOS = 300  # more than kvbench does before its first cell
_CHUNK_BYTES = 1 << 20
_POLL_S = 0.05


class Answer(Struct, frozen=True, kw_only=True):
    """What one kvbench (or one step of a scenario) left behind."""

    name: str
    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    took_s: float = 0.0
    facts: dict[str, str] = {}


class Driver:
    """The scenarios' hands: start kvbench, change the machine, look at drives.

    Args:
        share: the folder that outlives the guest.
    """

    def __init__(self, share: Path) -> None:
        self.share = share
        self.results = Path("/run/results")
        self.results.mkdir()
        self._port: int | None = None

    def write_down(self, answer: Answer) -> None:
        """Append one answer; it is on the host before this returns."""
        with (self.share / ANSWERS_FILE).open("ab") as out:
            out.write(msgspec.json.encode(answer) + b"\n")
            out.flush()
            os.fsync(out.fileno())

    def kvbench(
        self,
        name: str,
        *argv: str,
        meanwhile: Callable[[], None] | None = None,
        watched: str = "",
        limit_s: float = 400,
        draws: bool = False,
    ) -> Answer:
        """Run ``kvbench ARGV``, write its answer down under ``name``, and return it.

        Args:
            name: of the answer.
            argv: what follows the program's name.
            meanwhile: called in this process while kvbench runs.
            watched: a disk whose bytes and count of writes are taken before and after.
            limit_s: after so long it hangs: it is killed, and the exit code is -9.
            draws: its page is made in the guest, and not by the tests alone.
        """
        facts = {f"{key} before": text for key, text in state_of(watched).items()}
        started = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            pid = self.start(argv, out.fileno(), err.fileno(), draws=draws)
            try:
                if meanwhile is not None:
                    meanwhile()
            finally:
                exit_code = wait_for(pid, limit_s)
            texts = []
            for stream in (out, err):
                stream.seek(0)
                texts.append(stream.read().decode(errors="replace"))
        took_s = time.monotonic() - started
        facts |= {f"{key} after": text for key, text in state_of(watched).items()}
        answer = Answer(
            name=name,
            exit_code=exit_code,
            stdout=texts[0],
            stderr=texts[1],
            took_s=took_s,
            facts=facts,
        )
        self.write_down(answer)
        return answer

    def start(self, argv: Sequence[str], out: int, err: int, *, draws: bool = False) -> int:
        """Fork a kvbench that writes to two descriptors, and return its pid."""
        from kvbench.report import html

        sys.stdout.flush()
        sys.stderr.flush()

        def alone() -> None:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            if not draws:
                html.render = no_page

        pid = os.fork()
        if not pid:
            become_kvbench(argv, out, err, first=alone)
        return pid

    def qmp(self, execute: str, **arguments: object) -> None:
        """Tell QEMU, from inside, to do something to this machine; wait for no answer.

        The port stays open: a power cut must come at the moment that it is meant for.
        """
        if self._port is None:
            self._port = os.open(os.environ["VM_QMP"], os.O_RDWR)
            os.write(self._port, b'{"execute": "qmp_capabilities"}\n')
        command = {"execute": execute, "arguments": arguments}
        os.write(self._port, msgspec.json.encode(command) + b"\n")

    def workload(self, direction: str, **keys: str) -> str:
        """Return the name of a small workload's file, which is named after what it does."""
        name = "-".join((direction, *keys.values())).lower()
        return write_load(self.results / f"{name}.toml", direction=direction, **keys)

    def keep_results(self) -> None:
        """Copy the runs to the share."""
        run("cp", "-r", f"{self.results}/.", str(self.share / RESULTS), limit_s=120)


def no_page(view: "ReportView") -> str:  # noqa: ARG001 - called as the one that draws
    """Stand for the page of a run."""
    return "<!DOCTYPE html><title>not drawn in the guest</title>"


def become_kvbench(
    argv: Sequence[str], out: int, err: int, *, first: Callable[[], None]
) -> NoReturn:
    """Be ``kvbench ARGV`` in this process, a fork, and end with its exit code.

    Args:
        argv: what follows the program's name.
        out: the descriptor that becomes its standard output.
        err: the descriptor that becomes its standard error.
        first: called before, for what else the fork is to have of its own.
    """
    from kvbench.cli import main

    code = 1  # as the interpreter has it after a traceback
    try:
        first()
        for descriptor, place in ((out, 1), (err, 2)):
            os.dup2(descriptor, place)
            os.close(descriptor)
        sys.argv = ["kvbench", *argv]
        main.entry()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - a fork must not go on as its parent, whatever happened
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def wait_for(pid: int, limit_s: float) -> int:
    """Wait for a child and return its exit code; negative: the signal that it died of."""
    end = time.monotonic() + limit_s
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(pid, 9)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        time.sleep(_POLL_S)


def run(*argv: str, text: str = "", limit_s: float = 60) -> str:
    """Run a tool that must succeed, and return its standard output.

    Raises:
        RuntimeError: it did not; with what it said.
    """
    done = subprocess.run(
        argv, input=text, capture_output=True, text=True, timeout=limit_s, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def state_of(disk: str) -> dict[str, str]:
    """Return what a write to a whole disk would change; nothing for no disk."""
    if not disk:
        return {}
    os.sync()
    return {"bytes": digest(disk), "writes": str(written_sectors(disk))}


def digest(device: str) -> str:
    """Return a digest of all bytes of a device, read past the page cache.

    Of a chunk of zeros, as most are, only the place is hashed: comparing is ten times as fast in
    an emulated machine.
    """
    seen = hashlib.blake2b(digest_size=8)
    zeros = bytes(_CHUNK_BYTES)
    source = os.open(device, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, _CHUNK_BYTES) as chunk:  # aligned, as O_DIRECT wants it
            place = 0
            while length := os.preadv(source, [chunk], place):
                seen.update(f"{place}+{length}".encode())
                data = chunk[:length]
                if data != zeros[:length]:
                    seen.update(data)
                place += length
    finally:
        os.close(source)
    return seen.hexdigest()


def written_sectors(device: str) -> int:
    """Return how many sectors the kernel wrote to a whole disk, its partitions included."""
    return int(Path(f"/sys/class/block/{Path(device).name}/stat").read_text().split()[6])


def wait_until(what: Callable[[], bool], limit_s: float = 60) -> bool:
    """Wait until something is so; return whether it became so."""
    end = time.monotonic() + limit_s
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S)
    return True


def busy(device: str, *, field: int = READS) -> None:
    """Wait until a cell is under way on a drive, and has been for a moment.

    Args:
        device: the drive.
        field: of /sys/block/*/stat, READS or WRITES.
    """

    def done() -> int:
        try:
            return int(
                Path(f"/sys/class/block/{Path(device).name}/stat").read_text().split()[field]
            )
        except (OSError, IndexError):
            return 0  # it has gone

    before = done()
    wait_until(lambda: done() - before > BUSY_IOS)
    time.sleep(0.5)


@contextlib.contextmanager
def undone(*argv: str) -> Iterator[None]:
    """Run a tool when the context ends, however it ends."""
    try:
        yield
    finally:
        run(*argv)


def load_everything() -> None:
    """Import what any kvbench may need, once for all forks."""
    import importlib

    from kvbench.cli import main

    for verb in main.VERBS:
        importlib.import_module(f"kvbench.cli.{verb}")
    for module in ("pandas", "kvbench.cli.reporting", "kvbench.cli.live"):
        importlib.import_module(module)
    for module in ("kvbench.cli.measuring", "kvbench.cli.judging", "kvbench.measure.table"):
        importlib.import_module(module)


def main() -> int:
    """Run scenarios; the arguments are modules with commas between, the share, and names."""
    import importlib

    modules, share, wanted = sys.argv[1].split(","), Path(sys.argv[2]), sys.argv[3:]
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a process with threads cannot be forked safely
    os.environ["MPLBACKEND"] = "agg"
    load_everything()
    driver = Driver(share)
    for module in modules:
        scenarios: Sequence[Callable[[Driver], None]]
        scenarios = importlib.import_module(f"tests.nvme_vm.inside.{module}").SCENARIOS
        for scenario in scenarios:
            if wanted and scenario.__name__ not in wanted:
                continue
            try:
                scenario(driver)
            except Exception:  # noqa: BLE001 - the others go on; the test on the host shows it
                broken = f"broken {scenario.__name__}"
                driver.write_down(Answer(name=broken, exit_code=99, stderr=traceback.format_exc()))
    driver.keep_results()
    return 0


if __name__ == "__main__":
    sys.exit(main())
