"""A signal while kvbench waits for the target's name: it ends at once, and nothing is written."""

import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from kvbench.errors import ExitCode
from kvbench.units import MIB
from tests.cli.program import ENVIRONMENT, WRITES, command, needs_fio

pytestmark = [pytest.mark.fio, needs_fio]

VERBS: dict[str, tuple[str, ...]] = {"run": ("run",), "ab": ("ab", "--between", "true")}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, -signal.SIGTERM)],
)
def test_a_signal_at_the_question_ends_kvbench(
    tmp_path: Path, verb: str, number: signal.Signals, code: int
) -> None:
    target = tmp_path / "drive"
    target.write_bytes(os.urandom(MIB))
    before = target.read_bytes()
    terminal, its_end = pty.openpty()
    with subprocess.Popen(
        command(*VERBS[verb], target, "--destroy", target, "--workload", WRITES),
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdin=its_end,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            assert process.stderr is not None
            said = b""
            while not said.endswith(b"to go on: "):
                one = process.stderr.read(1)
                assert one, said
                said += one
            process.send_signal(number)
            assert process.wait(timeout=30) == code
        finally:
            process.kill()
            os.close(terminal)
            os.close(its_end)
    assert target.read_bytes() == before
    assert not list(tmp_path.glob("results/2*"))
