"""What happens to a target while the user is being asked counts: the guard looks again."""

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from kvbench.cli import taking
from kvbench.cli.options import spec_of
from kvbench.errors import ExitCode, Refused
from kvbench.host import guard
from kvbench.plan import Plan, make_plan
from kvbench.workload import catalog
from tests.host.loops import call, fingerprint, loop_over, make_backing, needs_loops, partition_on


class Terminal:
    """A standard input with somebody at it, who does something before he answers."""

    def __init__(self, answer: str, meanwhile: Callable[[], object]) -> None:
        self._answer = answer
        self._meanwhile = meanwhile

    def isatty(self) -> bool:
        """Yes."""
        return True

    def readline(self) -> str:
        """Answer, afterwards."""
        self._meanwhile()
        return self._answer


def plan_of(target: str) -> Plan:
    return make_plan(
        [catalog.find_workload("sustained-write", None)],
        spec_of(guard.check_readable(target)),
        repetitions=1,
        seed=1,
        may_write=True,
        runtime_s=1.0,
    )


def enter(monkeypatch: pytest.MonkeyPatch, target: str, meanwhile: Callable[[], object]) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(f"{target}\n", meanwhile))
    arguments = argparse.Namespace(destroy=target, yes=False, redact=False)
    with ExitStack() as held:
        taking.enter(plan_of(target), guard.check_readable(target), arguments, held)


def refusal(monkeypatch: pytest.MonkeyPatch, target: str, meanwhile: Callable[[], object]) -> str:
    made = []

    def first() -> None:
        meanwhile()
        made.append(fingerprint(target))

    with pytest.raises(Refused) as caught:
        enter(monkeypatch, target, first)
    assert caught.value.exit_code == ExitCode.REFUSED
    assert made == [fingerprint(target)]
    return caught.value.message


@pytest.mark.blockdev
@needs_loops
def test_a_file_system_that_is_made_while_the_user_is_asked_is_not_destroyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with loop_over(make_backing(tmp_path / "backing")) as loop:
        enter(monkeypatch, loop, lambda: None)
        message = refusal(
            monkeypatch, loop, lambda: call("mkfs.ext4", "-q", "-F", "-E", "nodiscard", loop)
        )
    assert "holds an ext2/3/4 file system" in message


@pytest.mark.blockdev
@needs_loops
def test_a_partition_that_is_made_while_the_user_is_asked_is_not_destroyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with loop_over(make_backing(tmp_path / "backing")) as loop, ExitStack() as made:
        message = refusal(monkeypatch, loop, lambda: made.enter_context(partition_on(loop)))
    assert "has partitions" in message


def test_a_file_that_gets_a_second_name_while_the_user_is_asked_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "target"
    path.write_bytes(b"x" * 4 * 1024 * 1024)
    enter(monkeypatch, str(path), lambda: None)
    message = refusal(monkeypatch, str(path), lambda: (tmp_path / "second").hardlink_to(path))
    assert "has 2 names" in message


def test_a_file_that_is_opened_while_the_user_is_asked_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "target"
    path.write_bytes(b"x" * 4 * 1024 * 1024)
    with ExitStack() as opened:
        message = refusal(monkeypatch, str(path), lambda: opened.enter_context(path.open("rb")))
    assert "is in use by" in message
