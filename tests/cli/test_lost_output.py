"""A terminal that closed, a pipe without a reader, a full disk: the files are written anyway."""

import argparse
import errno
import io
import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest

from kvbench.cli import run as run_verb
from kvbench.errors import ExitCode
from kvbench.store import layout
from kvbench.store.read import list_runs, read_run
from kvbench.store.write import RunWriter
from tests import direct_io
from tests.cli.program import ENVIRONMENT, LONG, command, needs_fio
from tests.cli.test_history import stored
from tests.records import an_end_record


class Lost(io.StringIO):
    """A standard output that nothing can be written to."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def write(self, _text: str) -> int:
        """Fail."""
        raise OSError(self.number, os.strerror(self.number))


@pytest.mark.parametrize(
    ("number", "end", "code"),
    [
        (errno.EIO, "interrupted", ExitCode.INTERRUPTED),
        (errno.EIO, "complete", ExitCode.OK),
        (errno.EPIPE, "complete", ExitCode.OK),
        (errno.ENOSPC, "interrupted", ExitCode.INTERRUPTED),
        (errno.ENOSPC, "complete", ExitCode.ENVIRONMENT),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_the_files_are_written_where_nothing_can_be_printed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: int,
    end: str,
    code: ExitCode,
    as_json: bool,
) -> None:
    folder = stored(tmp_path, "one", 1)
    RunWriter(folder).finish(an_end_record(end=end, reason="stopped by the user"))
    monkeypatch.setattr("sys.stdout", Lost(number))
    assert run_verb._report(argparse.Namespace(json=as_json), folder) == code
    assert (folder / layout.REPORT_FILE).read_text().endswith("</html>")
    assert (folder / layout.TABLE_FILE).exists()
    told = capsys.readouterr().err
    assert f"{os.strerror(number)}; the report is {folder / layout.REPORT_FILE}" in told


@pytest.mark.fio
@needs_fio
def test_a_run_whose_terminal_closes_ends_as_interrupted_with_its_report(tmp_path: Path) -> None:
    direct_io.skip_without(tmp_path)
    terminal, its_end = pty.openpty()
    with subprocess.Popen(
        command("run", "--workload", LONG, "--span", "16MiB"),
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
        start_new_session=True,
    ) as process:
        os.close(its_end)
        try:
            deadline = time.monotonic() + 90
            # the first cell, of the host alone, is done: there is something to report
            while not list(tmp_path.glob("results/2*/cells/.partial-0002/job.fio")):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            os.close(terminal)
            process.send_signal(signal.SIGHUP)
            assert process.wait(timeout=60) == ExitCode.INTERRUPTED
        finally:
            process.kill()
    (run,) = list_runs(tmp_path / "results")
    end = read_run(run).end
    assert end is not None
    assert end.end == "interrupted"
    assert (run / layout.REPORT_FILE).read_text().endswith("</html>")
