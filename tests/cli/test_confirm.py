"""The question before data is destroyed: what it says, and which answers are a yes."""

import argparse
import io
from contextlib import ExitStack

import pytest

from kvbench.cli import taking
from kvbench.cli.plan import paced_write_bytes
from kvbench.errors import Refused
from kvbench.host import guard, lease
from kvbench.host.model import Identity
from kvbench.plan import Plan, TargetSpec, make_plan
from kvbench.store.redact import hidden
from kvbench.units import GIB, format_size
from kvbench.workload import catalog

SERIAL = "S4EVNX0R123"
NAME = "/dev/nvme7n1"
DRIVE = Identity(
    path=NAME,
    real_path=NAME,
    kind="block",
    device_number="259:70",
    inode=3,
    size_bytes=GIB,
    serial=SERIAL,
)


class Terminal(io.StringIO):
    """A standard input with somebody at it."""

    def isatty(self) -> bool:
        """Yes."""
        return True


@pytest.fixture(autouse=True)
def _passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard has nothing against the drive, and nobody else holds it."""
    monkeypatch.setattr(guard, "check_writable", lambda *_a, **_k: None)
    monkeypatch.setattr(guard, "check_still_writable", lambda *_a, **_k: None)
    monkeypatch.setattr(lease, "hold", lambda *_a, **_k: ExitStack())


def a_plan(*names: str) -> Plan:
    return make_plan(
        [catalog.find_workload(name, None) for name in names],
        TargetSpec(path=NAME, kind="block", size_bytes=GIB, own_file=False),
        repetitions=1,
        seed=1,
        may_write=True,
    )


def ask(
    monkeypatch: pytest.MonkeyPatch,
    answer: io.StringIO,
    plan: Plan,
    before: str = "",
    **given: bool,
) -> None:
    monkeypatch.setattr("sys.stdin", answer)
    asked = {"yes": False, "redact": False} | given
    arguments = argparse.Namespace(destroy=NAME, **asked)
    with ExitStack() as held:
        taking.enter(plan, DRIVE, arguments, held, before=before)


def test_what_is_destroyed_and_by_how_much_is_said_before_it_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = a_plan("sustained-write", "bucket-churn")
    ask(monkeypatch, Terminal(f"{NAME}\n"), plan, "; 2 GiB are written first")
    said = " ".join(capsys.readouterr().err.split())
    assert f"writing destroys the data on {NAME} (block, 1 GiB, serial {SERIAL}): " in said
    assert f"{plan.writing_cells} cells write" in said
    assert "as fast as the device takes it: bucket-churn/flush, sustained-write/write" in said
    assert f"cells write, paced {format_size(paced_write_bytes(plan))}, as fast" in said
    assert "; 2 GiB are written first" in said
    assert said.endswith("type the target's name again to go on:")


@pytest.mark.parametrize("answer", ["", "\n", "yes\n", "y\n", "/dev/nvme7n2\n", f"{NAME}x\n"])
def test_only_the_name_itself_is_a_yes(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    with pytest.raises(Refused, match="not confirmed, nothing was written"):
        ask(monkeypatch, Terminal(answer), a_plan("sustained-write"))


def test_without_a_terminal_nobody_is_asked_and_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Refused, match="no terminal to ask on") as raised:
        ask(monkeypatch, io.StringIO(f"{NAME}\n"), a_plan("sustained-write"))
    assert raised.value.hint == "add --yes when you are sure"
    ask(monkeypatch, io.StringIO(""), a_plan("sustained-write"), yes=True)


def test_a_plan_that_only_reads_asks_only_where_destroy_was_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with ExitStack() as held:
        taking.enter(a_plan("map-span"), DRIVE, argparse.Namespace(destroy=None, yes=False), held)
    assert capsys.readouterr().err == ""


def test_a_log_of_a_redacted_run_has_no_serial_and_who_is_asked_sees_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = a_plan("sustained-write")
    ask(monkeypatch, io.StringIO(""), plan, yes=True, redact=True)
    said = capsys.readouterr().err
    assert SERIAL not in said
    assert f"serial {hidden(SERIAL)}" in said
    ask(monkeypatch, Terminal(f"{NAME}\n"), plan, redact=True)
    assert SERIAL in capsys.readouterr().err
