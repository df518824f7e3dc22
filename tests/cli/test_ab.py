"""``kvbench ab``: pairs that are pairs, the operator's command between them, and refusals."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from kvbench import session
from kvbench.cli.ab import SAME_OF_ONE, _refuse_one_drive_twice, refuse_unlike
from kvbench.cli.main import verb_parser
from kvbench.errors import (
    EnvironmentMissing,
    ExitCode,
    NotComparable,
    Refused,
    StoreError,
    UsageError,
)
from kvbench.host.model import Identity, Written
from kvbench.plan import Cell, Plan
from kvbench.store.read import list_runs, read_run
from kvbench.store.records import CellRecord, EndRecord, RunRecord
from kvbench.units import MIB
from tests.cli.program import SMALL, kvbench, needs_fio, started
from tests.compare.runs import a_record
from tests.host.loops import loop_over, make_backing, needs_loops
from tests.records import a_plan, a_target

QUICK = ("--workload", SMALL, "--repetitions", "2", "--runtime", "0.2", "--quiet")


def written_file(path: Path, size: int = 16 * MIB) -> Path:
    path.write_bytes(os.urandom(size))
    return path


def records(folder: Path) -> dict[str, RunRecord]:
    found = [read_run(run).record for run in list_runs(folder / "results")]
    return {r.pairing.side: r for r in found if r.pairing is not None}


@pytest.mark.fio
@needs_fio
def test_one_drive_is_measured_before_and_after_the_command(tmp_path: Path) -> None:
    target = written_file(tmp_path / "drive")
    done = kvbench(
        "ab", target, *QUICK, "--label", "fw", "--junit", "j.xml", "--between",
        'echo "$KVBENCH_FROM $KVBENCH_TO $KVBENCH_TARGET" >> hook.txt; echo flashed',
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == ExitCode.INCONCLUSIVE, done.stderr  # two repetitions decide nothing
    assert done.stdout.startswith("UNCLEAR")
    assert "flashed" in done.stderr
    assert (tmp_path / "hook.txt").read_text() == f"A B {target}\n"
    assert (tmp_path / "j.xml").exists()
    a, b = records(tmp_path)["A"], records(tmp_path)["B"]
    assert (a.label, b.label) == ("fw A", "fw B")
    assert a.pairing is not None
    assert b.pairing is not None
    assert a.pairing.pair_id == b.pairing.pair_id
    assert (a.pairing.order, b.pairing.order) == ("first", "second")
    assert b.pairing.of == a.run_id
    assert "flashed" in b.pairing.between
    assert done.stdout.index(a.run_id) < done.stdout.index(b.run_id)  # A is the baseline


@pytest.mark.fio
@needs_fio
def test_reversed_b_comes_first_and_a_stays_the_baseline(tmp_path: Path) -> None:
    target = written_file(tmp_path / "drive")
    done = kvbench("ab", target, *QUICK, "--reverse", "--between", "true", "--json", cwd=tmp_path)
    answer: dict[str, Any] = json.loads(done.stdout)
    a, b = records(tmp_path)["A"], records(tmp_path)["B"]
    assert b.created_at <= a.created_at
    assert b.pairing is not None
    assert b.pairing.order == "first"
    assert [side["run_id"] for side in answer["gate"]["sides"]] == [a.run_id, b.run_id]


@pytest.mark.fio
@needs_fio
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_waits_for_the_command_and_tells_how_to_go_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    target = written_file(tmp_path / "drive")
    change = "touch begun; sleep 2; touch ended"
    with started("ab", target, *QUICK, "--between", change, cwd=tmp_path) as process:
        end = time.monotonic() + 90
        while not (tmp_path / "begun").exists() and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED, said
    assert (tmp_path / "ended").exists(), "what may write firmware is not left behind"
    assert f"{number.name}: ending once the command between the sides has" in said
    (first,) = list_runs(tmp_path / "results")
    assert f"side A is kept; make the change, then give --after {first.name}" in said


@pytest.mark.fio
@needs_fio
def test_a_command_that_fails_keeps_the_first_side_and_after_goes_on(tmp_path: Path) -> None:
    target = written_file(tmp_path / "drive")
    done = kvbench("ab", target, *QUICK, "--between", "exit 3", cwd=tmp_path)
    assert done.returncode == ExitCode.ENVIRONMENT
    assert "ended with 3, so side B is not measured" in done.stderr
    (first,) = list_runs(tmp_path / "results")
    assert f"--after {first.name}" in done.stderr
    done = kvbench("ab", target, "--after", first.name, "--quiet", cwd=tmp_path)
    assert done.returncode == ExitCode.INCONCLUSIVE, done.stderr
    assert set(records(tmp_path)) == {"A", "B"}


@pytest.mark.fio
@needs_fio
def test_another_file_or_plan_is_no_second_side(tmp_path: Path) -> None:
    target = written_file(tmp_path / "drive")
    other = written_file(tmp_path / "other")
    kvbench("run", target, *QUICK, cwd=tmp_path)
    done = kvbench("ab", other, "--after", "latest", cwd=tmp_path)
    assert done.returncode == ExitCode.INCONCLUSIVE
    assert "no pair" in done.stderr
    assert "file was inode" in done.stderr
    done = kvbench("ab", target, "--span", "8MiB", "--after", "latest", cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert "does not take span" in done.stderr
    assert len(list_runs(tmp_path / "results")) == 1


@pytest.mark.fio
@needs_fio
def test_two_drives_are_measured_in_turns(tmp_path: Path) -> None:
    one, two = written_file(tmp_path / "one"), written_file(tmp_path / "two", 32 * MIB)
    done = kvbench("ab", one, two, *QUICK, cwd=tmp_path)
    assert done.returncode == ExitCode.INCONCLUSIVE, done.stderr
    folders = list_runs(tmp_path / "results")
    order = sorted(
        (cell.record.started_at, side)
        for side, folder in zip("AB", folders, strict=True)
        for cell in read_run(folder).cells
        if cell.record.cell.purpose == "measure"
    )
    assert "".join(side for _, side in order) == "AABBBBAA"  # two cells a repetition, ABBA
    assert {r.pairing.order for r in records(tmp_path).values() if r.pairing} == {"turns"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "what happens between the sides is not said"),
        (("--between", "true", "--after", "latest"), "not both"),
        (("--between", "true", "--yes"), "--yes only goes with --destroy"),
    ],
)
def test_senseless_arguments_are_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    done = kvbench("ab", written_file(tmp_path / "drive"), *arguments, cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert told in done.stderr
    assert not (tmp_path / "results").exists()


def test_one_drive_by_two_names_is_refused(tmp_path: Path) -> None:
    one = written_file(tmp_path / "one")
    (tmp_path / "link").symlink_to(one)
    done = kvbench("ab", one, tmp_path / "link", *QUICK, cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert "the same drive" in done.stderr


PLAN = a_plan(target=a_target("/dev/x"))
BEFORE = a_record(PLAN, "a", {})


def after(
    plan: Plan = PLAN, facts: dict[str, str | None] | None = None, **changes: object
) -> RunRecord:
    return a_record(plan, "b", facts or {}, **changes)


UNLIKE = {
    "serial": (after(facts={"device_serial": "S2"}), "serial was S1 and is S2"),
    "capacity": (after(facts={"device_bytes": "7"}), "capacity"),
    "lba format": (after(facts={"logical_block_bytes": "4096"}), "logical block"),
    "link": (after(facts={"pcie_link": "8 GT/s x2"}), "PCIe link was 16 GT/s x4 and is 8 GT/s x2"),
    "link lost": (after(facts={"pcie_link": None}), "PCIe link was 16 GT/s x4 and is unknown"),
    "preparation": (
        after(written=Written(state="unproven", reason="")),
        "written before was proven and is unproven",
    ),
    "plan": (after(a_plan(target=a_target(size_bytes=32 * MIB))), "plan was"),
}


@pytest.mark.parametrize(("second", "told"), UNLIKE.values(), ids=UNLIKE)
def test_sides_in_another_state_are_refused(second: RunRecord, told: str) -> None:
    with pytest.raises(NotComparable, match=told):
        refuse_unlike(BEFORE, second, SAME_OF_ONE)


def test_another_firmware_is_what_is_tested() -> None:
    refuse_unlike(BEFORE, after(facts={"device_firmware": "FW2"}), SAME_OF_ONE)


class Killed(BaseException):
    """Nothing in the product may take it for an error of its own."""


def in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail: Callable[[str], None]) -> None:
    """Measure two files in turns; ``fail`` is told the side before each of its cells."""
    one, two = written_file(tmp_path / "one"), written_file(tmp_path / "two")
    monkeypatch.chdir(tmp_path)
    run_cell = session._run_cell

    def watched(cell: Cell, **options: Any) -> CellRecord:  # noqa: ANN401 - what it takes
        if cell.purpose == "measure":
            fail(Path(options["identity"].path).name)
        return run_cell(cell, **options)

    monkeypatch.setattr(session, "_run_cell", watched)
    parser, verb = verb_parser("ab")
    given = parser.parse_args([str(one), str(two), *map(str, QUICK)])
    given.command = ("kvbench", "ab")
    raise SystemExit(verb.execute(given))


def ends(folder: Path) -> dict[str, EndRecord]:
    found = [read_run(run) for run in list_runs(folder / "results")]
    assert all(len(run.cells) < len(run.record.plan.cells) for run in found)
    return {
        run.record.pairing.side: run.end
        for run in found
        if run.record.pairing is not None and run.end is not None
    }


@pytest.mark.fio
@needs_fio
@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (StoreError("no room"), StoreError),
        (Refused("another device"), EnvironmentMissing),
        (Killed("bug"), Killed),
    ],
)
def test_in_turns_no_side_that_lacks_cells_is_called_complete(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    raised: type[BaseException],
) -> None:
    def fail(side: str) -> None:
        if side == "two":
            raise error

    with pytest.raises(raised):
        in_turns(tmp_path, monkeypatch, fail)
    found = ends(tmp_path)
    assert {side: end.end for side, end in found.items()} == {"A": "failed", "B": "failed"}
    assert found["A"].reason == f"the other side ended: {error}"


@pytest.mark.fio
@needs_fio
def test_in_turns_a_stop_ends_both_sides_as_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(side: str) -> None:
        if side == "two":
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(SystemExit) as left:
        in_turns(tmp_path, monkeypatch, stop)
    assert left.value.code == ExitCode.INTERRUPTED
    assert {end.end for end in ends(tmp_path).values()} == {"interrupted"}
    told = capsys.readouterr().err
    assert all(run.name in told for run in list_runs(tmp_path / "results"))


def block(wwid: str | None, number: str, serial: str | None = None) -> Identity:
    return Identity(
        path=f"/dev/x{number}",
        real_path=f"/dev/x{number}",
        kind="block",
        device_number=number,
        inode=1,
        size_bytes=16 * MIB,
        serial=serial,
        wwid=wwid,
    )


FILE = "(254:0 inode 9)"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (block(f"backing file /a {FILE}", "7:0"), block(f"backing file /a {FILE}", "7:1")),
        (block(f"backing file /a {FILE}", "7:0"), block(f"backing file /b {FILE}", "7:1")),
        (block("eui.01, nsid 1", "259:0"), block("eui.01, nsid 1", "259:4")),
        (block("eui.01, nsid 1", "259:0", "S1"), block("eui.01, nsid 1", "259:4")),
        (block("nsid 1", "259:0", "S1"), block("nsid 1", "259:4", "S1")),
        (block(None, "8:0", "S1"), block(None, "8:16", "S1")),
        (block(None, "8:0"), block(None, "8:0")),
        (
            structs.replace(block(None, "254:0"), kind="file", inode=9),
            block(f"backing file /a {FILE}", "7:1"),
        ),
    ],
)
def test_one_drive_under_two_names_is_refused(a: Identity, b: Identity) -> None:
    for one, two in ((a, b), (b, a)):
        with pytest.raises(UsageError, match="both names lead to the same drive"):
            _refuse_one_drive_twice(one, two)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (block("nsid 1", "259:0", "S1"), block("nsid 1", "259:4", "S2")),
        (block("nsid 1", "259:0"), block("nsid 1", "259:4")),
        (block("eui.01, nsid 1", "259:0", "S1"), block("eui.01, nsid 2", "259:1", "S1")),
        (block("partition 1", "254:1"), block("partition 1", "254:17")),
        (block(None, "8:0"), block(None, "8:16")),
        (block(f"backing file /a {FILE}", "7:0"), block("backing file /a (254:0 inode 8)", "7:1")),
    ],
)
def test_two_drives_that_cannot_be_told_to_be_one_are_measured(a: Identity, b: Identity) -> None:
    _refuse_one_drive_twice(a, b)


@pytest.mark.blockdev
@needs_loops
def test_two_loop_devices_over_one_file_are_one_drive(tmp_path: Path) -> None:
    with loop_over(make_backing(tmp_path / "back")) as one, loop_over(tmp_path / "back") as two:
        done = kvbench("ab", one, two, *QUICK, cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert "both names lead to the same drive" in done.stderr
    assert list_runs(tmp_path / "results") == []
