"""``kvbench list runs``: how each run ended, which still goes on, and how many cells are what."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kvbench.cli.list_runs import COLUMNS, Asked, list_runs, render
from kvbench.cli.main import main
from kvbench.host import guard, lease
from kvbench.report.columns import width
from kvbench.store import layout
from tests.host.test_lease import held_by_another
from tests.stored import copy_of_example, fact, replace_text

EVERY = Asked(device=None, firmware=None, label=None, role=None)
HOSTILE = "Ω\u202e\x1b[31m 漢字 " + "x" * 300


def ended(folder: Path, end: str, reason: str = "") -> None:
    record = json.loads((folder / layout.END_FILE).read_text())
    replace_text(folder / layout.END_FILE, json.dumps(record | {"end": end, "reason": reason}))


def shown(results: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:  # noqa: ANN401
    assert main(["list", "runs", "--results", str(results), "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)["runs"]


def test_each_run_says_how_it_ended_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, end, reason in (
        ("a", "complete", ""),
        ("b", "interrupted", "SIGTERM"),
        ("c", "failed", "the device has gone"),
    ):
        ended(copy_of_example(tmp_path / name), end, reason)
    rows = shown(tmp_path, capsys)
    assert [(row["end"], row["reason"]) for row in rows] == [
        ("complete", ""),
        ("interrupted", "SIGTERM"),
        ("failed", "the device has gone"),
    ]
    assert main(["list", "runs", "--results", str(tmp_path)]) == 0
    assert "; the device has gone" in capsys.readouterr().out


def unended_on(results: Path, name: str, target: Path, day: int = 1) -> Path:
    """A run without an end on a file that is there."""
    identity = guard.check_readable(str(target))

    def change(record: dict[str, Any]) -> None:
        record["created_at"] = f"2026-12-{day:02d}T08:00:00+00:00"
        record["identity"] |= {
            "real_path": str(target),
            "device_number": identity.device_number,
            "inode": identity.inode,
        }

    folder = copy_of_example(results / name, change)
    (folder / layout.END_FILE).unlink()
    return folder


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "target"
    path.write_bytes(b"x" * 4096)
    return path


@contextmanager
def seen_by(path: Path, name: str) -> Iterator[int]:
    """Another process holds ``path``, where /proc/locks tells of it; its pid."""
    with held_by_another(path, name) as other:
        if lease.holder_of(guard.check_readable(str(path))) == "":
            pytest.skip("this file system has other numbers in /proc/locks")
        yield other.pid


def test_a_run_without_an_end_is_running_while_a_kvbench_holds_its_target_and_killed_after(
    tmp_path: Path, target: Path
) -> None:
    results = tmp_path / "results"
    unended_on(results, "before", target, day=1)
    unended_on(results, "now", target, day=2)
    with seen_by(target, "kvbench") as pid:
        before, now = list_runs(results, EVERY)
        assert (now.end, now.reason) == ("running", f"another kvbench (pid {pid}) holds its target")
        assert before.end == "killed"
    assert [one.end for one in list_runs(results, EVERY)] == ["killed", "killed"]


def test_looking_takes_no_lock(tmp_path: Path, target: Path) -> None:
    unended_on(tmp_path / "results", "now", target)
    identity = guard.check_readable(str(target))
    with lease.hold(identity, exclusive=False):
        (one,) = list_runs(tmp_path / "results", EVERY)
        assert one.end != "complete"
    assert lease.holder_of(identity) in ("", None)


def test_of_a_target_that_is_not_here_nobody_can_say(tmp_path: Path) -> None:
    (copy_of_example(tmp_path / "a") / layout.END_FILE).unlink()
    (one,) = list_runs(tmp_path, EVERY)
    assert (one.end, one.reason) == ("no end", "killed, or still running")


def test_cells_are_counted_by_outcome_where_the_run_was_reported(tmp_path: Path) -> None:
    folder = copy_of_example(tmp_path / "a")
    assert list_runs(tmp_path, EVERY)[0].outcomes is None
    assert main(["report", str(folder), "--csv", str(tmp_path / "table.csv")]) == 0
    shutil.copy(tmp_path / "table.csv", folder / layout.TABLE_FILE)
    (one,) = list_runs(tmp_path, EVERY)
    assert one.outcomes is not None
    assert sum(one.outcomes.values()) == 119 - 14, "the host's ceilings stand apart"
    assert f"{one.outcomes['valid']} valid" in render([one])


@pytest.mark.parametrize("text", ["", "cell_id\n1\n", "cell_id,outcome\n1,green\n", "\x00\n"])
def test_a_table_that_is_none_counts_nothing(tmp_path: Path, text: str) -> None:
    (copy_of_example(tmp_path / "a") / layout.TABLE_FILE).write_text(text)
    assert list_runs(tmp_path, EVERY)[0].outcomes is None


def test_a_pipe_in_the_place_of_the_table_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(copy_of_example(tmp_path / "a") / layout.TABLE_FILE)
    assert list_runs(tmp_path, EVERY)[0].outcomes is None


@pytest.mark.parametrize("ascii_only", [False, True])
def test_the_list_keeps_to_100_columns_whatever_the_names(tmp_path: Path, ascii_only: bool) -> None:
    def hostile(record: dict[str, Any]) -> None:
        for name in ("device_model", "device_serial", "device_firmware"):
            fact(record, name, HOSTILE)
        record["plan"]["suite"] = HOSTILE
        record["plan"]["target"]["path"] = f"/{HOSTILE}"

    folder = copy_of_example(tmp_path / ("n" * 200), hostile)
    ended(folder, "failed", HOSTILE)
    copy_of_example(tmp_path / "20261130T145022.123Z-short")
    text = render(list_runs(tmp_path, EVERY), ascii_only=ascii_only)
    for line in text.splitlines():
        assert line.isprintable()
        assert width(line) <= COLUMNS
    assert text.isascii() or not ascii_only
    assert "20261130T145022.123Z-short" in text
