"""A signal that comes when all is measured and the report is being written."""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kvbench.cli import reporting
from kvbench.cli import run as run_verb
from kvbench.cli.taking import stop_on_signals
from kvbench.errors import ExitCode
from kvbench.report import html
from kvbench.report.model import ReportView
from kvbench.store import layout
from kvbench.store.read import read_run
from tests import direct_io
from tests.cli.program import ENVIRONMENT, SMALL, needs_fio, started
from tests.cli.test_history import stored

NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("as_json", [False, True])
def test_the_report_of_a_whole_run_is_written_to_its_end(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
    as_json: bool,
) -> None:
    folder = stored(tmp_path, "one", 1)
    draw = html.render

    def signalled(view: ReportView) -> str:
        os.kill(os.getpid(), number)
        return draw(view)

    monkeypatch.setattr(html, "render", signalled)
    with stop_on_signals() as stop:
        code = run_verb._report(argparse.Namespace(json=as_json), folder)
        assert stop.is_set()
    assert code == ExitCode.OK
    assert (folder / layout.REPORT_FILE).read_text().endswith("</html>")
    assert (folder / layout.TABLE_FILE).read_text().startswith("run_id,")
    told = capsys.readouterr()
    assert str(folder / layout.REPORT_FILE) in told.out
    assert told.err.count("\n") == 1
    assert read_run(folder).end is not None


def wait_for_the_end(folder: Path, process: subprocess.Popen[str]) -> Path:
    """Return the run when its end is stored, which is before its report is begun."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        found = list((folder / "results").glob(f"*/{layout.END_FILE}"))
        if found:
            return found[0].parent
        time.sleep(0.002)
    raise AssertionError("the run has not ended")


@pytest.mark.fio
@needs_fio
def test_a_run_that_is_stopped_while_its_report_is_written_is_whole(tmp_path: Path) -> None:
    direct_io.skip_without(tmp_path)
    arguments = ("run", "--workload", SMALL, "--span", "16MiB", "--repetitions", "1")
    with started(*arguments, cwd=tmp_path) as process:
        run = wait_for_the_end(tmp_path, process)
        assert not (run / layout.REPORT_FILE).exists()
        process.send_signal(signal.SIGTERM)
        said, errors = process.communicate(timeout=90)
    archive = read_run(run)
    assert archive.end is not None
    assert archive.end.end == "complete"
    assert archive.damage == ()
    # The code is that of the run, whose cells a busy host may spoil: the signal changes nothing.
    known = reporting.read_and_measure(run).exit_code
    assert (process.returncode, known) in [(code, code) for code in ExitCode]
    assert "SIGTERM" in errors
    assert "Traceback" not in errors
    assert "\a" not in said + errors
    assert "\x1b" not in said + errors  # no terminal, no colours and no cursor
    assert f"report  {Path('results') / run.name / layout.REPORT_FILE}" in said
    assert (run / layout.REPORT_FILE).read_text().endswith("</html>")
    assert not list(run.glob(".*"))


WRITING = """
import sys
from kvbench.cli.output import Unbreakable
from kvbench.cli.taking import stop_on_signals
sys.stderr = Unbreakable(sys.stderr)
with stop_on_signals() as stop:
    while not stop.is_set():
        print("progress " * 1000, file=sys.stderr)
print("stopped in order")
"""


def test_a_signal_in_the_midst_of_a_write_to_stderr_stops_in_order() -> None:
    environment = {name: text for name, text in ENVIRONMENT.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [sys.executable, "-c", WRITING],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            process.stderr.read(1)  # it writes, and soon waits for the pipe to be read
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            said, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, said) == (0, "stopped in order\n"), errors[-500:]
    assert "SIGTERM: ending what runs now" in errors
    assert "Traceback" not in errors
