"""Several stored runs -> measured runs, on as many CPUs as there are."""

import multiprocessing
import os
import signal
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path

from kvbench.measure.model import MeasuredRun
from kvbench.measure.run import measure_run
from kvbench.store import layout
from kvbench.store.read import read_run

CELLS_WORTH_IT = 100  # fewer are measured sooner than a process has started


def measure_all(folders: Sequence[Path]) -> list[MeasuredRun]:
    """Return the runs under ``folders``, measured, in their order.

    What comes out does not depend on the number of processes: a run that a process could not
    measure is measured here, and so its error is raised here.

    Raises:
        StoreError: there is no run, or its ``run.json`` cannot be used.
    """
    counts = [_cells(folder) for folder in folders]
    workers = min(len(folders), len(os.sched_getaffinity(0)))
    if workers < 2 or sum(counts) <= CELLS_WORTH_IT:
        return [measure_run(read_run(folder)) for folder in folders]
    with _started(folders, _shares(counts, workers)) as readers:
        found = _received(readers)
    return [
        found[place] if place in found else measure_run(read_run(folder))
        for place, folder in enumerate(folders)
    ]


def _cells(folder: Path) -> int:
    try:
        return sum(1 for _ in (folder / layout.CELLS_FOLDER).iterdir())
    except (OSError, ValueError):
        return 0


def _shares(counts: Sequence[int], workers: int) -> list[list[int]]:
    """Return the places that each worker measures, the largest runs dealt out first."""
    shares: list[list[int]] = [[] for _ in range(workers)]
    for place in sorted(range(len(counts)), key=lambda place: -counts[place]):
        min(shares, key=lambda share: sum(counts[one] for one in share)).append(place)
    return shares


@contextmanager
def _started(
    folders: Sequence[Path], shares: Sequence[Sequence[int]]
) -> Iterator[list[Connection]]:
    """Start a process per share; they have ended when the block is left, however it is left.

    They never see Ctrl-C, which a terminal sends to all: this process ends them.
    """
    context = multiprocessing.get_context("fork")  # nothing is imported again
    readers: list[Connection] = []
    processes: list[ForkProcess] = []
    try:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for share in shares:
                reader, writer = context.Pipe(duplex=False)
                readers.append(reader)
                process = context.Process(
                    target=_work, args=(folders, share, writer, tuple(readers)), daemon=True
                )
                with warnings.catch_warnings():
                    # The threads of the numeric libraries, which know of forks, do not matter.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    process.start()
                processes.append(process)
                writer.close()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield readers
    finally:
        for reader in readers:
            reader.close()
        for process in processes:
            process.kill()
            process.join()


def _work(
    folders: Sequence[Path],
    share: Sequence[int],
    writer: Connection,
    readers: Sequence[Connection],
) -> None:
    """Measure a share; without a reader, because the parent has died, sending fails and it ends."""
    for reader in readers:
        reader.close()
    for place in share:
        try:
            run = measure_run(read_run(folders[place]))
        except Exception:  # noqa: BLE001, S112 - the parent meets it again and tells it
            continue
        try:
            writer.send((place, run))
        except OSError:
            return


def _received(readers: Sequence[Connection]) -> dict[int, MeasuredRun]:
    """Return what the processes measured, until each has closed its end."""
    found: dict[int, MeasuredRun] = {}
    open_ends: list[Connection] = list(readers)
    while open_ends:
        for reader in wait(open_ends):
            assert isinstance(reader, Connection)  # noqa: S101 - nothing else was waited for
            try:
                place, run = reader.recv()
            except (EOFError, OSError):
                open_ends.remove(reader)
                continue
            found[place] = run
    return found
