"""From the command line to the report, on real fio: what a user does, and what he does wrong."""

import glob
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kvbench.errors import ExitCode
from kvbench.host import probe
from kvbench.store import layout
from kvbench.store.read import list_runs, read_run
from kvbench.store.redact import NAMING_FACTS, SECRET_CHARS_MIN
from kvbench.units import MIB
from kvbench.workload.roles import CONTROLLER_KEYS
from tests import direct_io
from tests.cli.program import (
    ENVIRONMENT,
    LONG,
    SMALL,
    WRITES,
    command,
    kvbench,
    needs_fio,
    started,
)
from tests.host.loops import fingerprint

RUN_SMALL = ("run", "--workload", SMALL, "--span", "64MiB")

pytestmark = [
    pytest.mark.fio,
    needs_fio,
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder on a file system with O_DIRECT."""
    direct_io.skip_without(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def done_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the small workload on the embedded default target."""
    folder = tmp_path_factory.mktemp("done")
    done = kvbench(*RUN_SMALL, "--repetitions", "2", "--label", "first", cwd=folder)
    assert done.returncode == ExitCode.OK, done.stderr
    assert "report.html" in done.stdout
    return folder


def only_run(folder: Path) -> Path:
    runs = list_runs(folder / "results")
    assert len(runs) == 1
    return runs[0]


def test_a_run_leaves_its_archive_its_report_and_its_table(done_run: Path) -> None:
    run = only_run(done_run)
    assert run.name.endswith("-first")
    archive = read_run(run)
    assert archive.end is not None
    assert archive.end.end == "complete"
    assert len(archive.cells) == len(archive.record.plan.cells)
    assert archive.record.written.state == "proven"
    page = (run / layout.REPORT_FILE).read_text()
    assert "small" in page
    table = (run / layout.TABLE_FILE).read_text().splitlines()
    assert table[0].startswith("run_id,")
    assert sum(",iops," in line for line in table) >= 4


def test_the_stored_job_runs_under_plain_fio_as_it_is(done_run: Path) -> None:
    cell = next(
        cell for cell in read_run(only_run(done_run)).cells if cell.record.cell.purpose == "measure"
    )
    done = subprocess.run(
        ["fio", "--output-format=json", str(cell.folder / layout.JOB_FILE)],
        cwd=done_run,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    document = json.loads(done.stdout[done.stdout.index("{\n") :])
    assert document["jobs"][0]["read"]["total_ios"] > 0


def test_the_report_is_rebuilt_from_the_archive_alone(done_run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(only_run(done_run), copy)
    (copy / layout.REPORT_FILE).unlink()
    (copy / layout.TABLE_FILE).unlink()
    page, table = tmp_path / "a.html", tmp_path / "a.csv"
    done = kvbench("report", copy, "--html", page, "--csv", table, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert table.read_text() == (only_run(done_run) / layout.TABLE_FILE).read_text()
    assert page.read_text() == (only_run(done_run) / layout.REPORT_FILE).read_text()


def test_json_is_one_document_on_stdout(done_run: Path) -> None:
    done = kvbench("report", "latest", "--json", cwd=done_run)
    answer = json.loads(done.stdout)
    assert answer["end"]["end"] == "complete"
    assert answer["outcomes"].get("failed", 0) == 0
    iops = [s for s in answer["summaries"] if s["metric"] == "iops" and s["purpose"] == "measure"]
    assert [s["n"] for s in iops] == [2, 2]
    assert all(s["median"] > 0 for s in iops)
    runs = json.loads(kvbench("list", "runs", "--json", cwd=done_run).stdout)["runs"]
    assert [run["end"] for run in runs] == ["complete"]


def test_a_run_is_held_against_the_role_cards_and_its_exit_code_does_not_ask_them(
    done_run: Path,
) -> None:
    done = kvbench("report", "latest", "--json", cwd=done_run)
    answer = json.loads(done.stdout)
    assert [role["role"] for role in answer["roles"]] == ["memory", "performance", "capacity"]
    assert {entry["key"] for entry in answer["controller"]} == set(CONTROLLER_KEYS)
    rows = [row for role in answer["roles"] for level in role["levels"] for row in level["rows"]]
    assert all(row["verdict"] == "not measurable" and row["reason"] for row in rows)
    assert done.returncode == 0
    assert done.stderr == "", "every card that comes with kvbench can be read"


def test_a_second_run_uses_the_same_target_without_filling_it_again(done_run: Path) -> None:
    before = (done_run / "results" / "target.dat").stat()
    done = kvbench(
        *RUN_SMALL,
        "--repetitions",
        "1",
        "--results",
        done_run / "results",
        "--runtime",
        "0.3",
        "--json",
        cwd=done_run,
    )
    assert done.returncode == ExitCode.OK, done.stderr
    assert "filling" not in done.stderr
    after = (done_run / "results" / "target.dat").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    shutil.rmtree(Path(json.loads(done.stdout)["folder"]))


def test_plan_and_dry_run_touch_nothing(folder: Path) -> None:
    for arguments in (["plan"], ["run", "--dry-run"], ["plan", "--json"]):
        done = kvbench(*arguments, cwd=folder)
        assert done.returncode == ExitCode.OK, done.stderr
    assert [path.name for path in folder.iterdir()] == ["probe"]


def test_show_prints_a_job_that_fio_accepts(folder: Path) -> None:
    done = kvbench("show", "iops-ladder", cwd=folder)
    assert done.returncode == ExitCode.OK, done.stderr
    job = folder / "shown.fio"
    job.write_text(done.stdout)
    subprocess.run(["fio", "--parse-only", str(job)], check=True, capture_output=True, timeout=20)


def wait_for(pattern: Path, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not glob.glob(str(pattern)):  # noqa: PTH207 - Path.glob wants a folder without wildcards
        assert time.monotonic() < deadline, f"{pattern} did not appear"
        time.sleep(0.05)


@pytest.fixture
def running(folder: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A kvbench in the middle of a cell of 60 s."""
    run = ("run", "--workload", LONG, "--span", "64MiB", "--repetitions", "2")
    with started(*run, cwd=folder) as process:
        # Cell 1 is the host ceiling; cell 2 is the long one.
        wait_for(folder / "results" / "*" / "cells" / ".partial-0002" / layout.OUTPUT_FILE)
        time.sleep(0.7)
        yield folder, process


def fios_on(path: Path) -> list[int]:
    """Pids of fio processes whose working folder lies under ``path``."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "comm").read_text() == "fio\n" and (entry / "cwd").resolve().is_relative_to(
                path
            ):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_ends_fio_and_keeps_what_was_measured(
    running: tuple[Path, subprocess.Popen[str]], number: signal.Signals
) -> None:
    folder, process = running
    process.send_signal(number)
    said, errors = process.communicate(timeout=30)
    assert process.returncode == ExitCode.INTERRUPTED, errors
    assert fios_on(folder) == []
    archive = read_run(only_run(folder))
    assert archive.end is not None
    assert archive.end.end == "interrupted"
    assert [cell.record.end for cell in archive.cells] == ["exited", "interrupted"]
    assert "Traceback" not in errors
    assert "--resume" in errors
    assert "report.html" in said


@pytest.mark.slow
def test_a_resumed_run_measures_the_interrupted_cell_anew(folder: Path) -> None:
    run_small = (*RUN_SMALL, "--runtime", "2")
    with started(*run_small, "--repetitions", "1", cwd=folder) as process:
        wait_for(folder / "results" / "*" / "cells" / ".partial-0003" / layout.OUTPUT_FILE)
        time.sleep(0.7)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    run = only_run(folder)
    assert read_run(run).cells[-1].record.end == "interrupted"
    done = kvbench("run", "--resume", run.name, cwd=folder)
    assert done.returncode == ExitCode.OK, done.stderr
    archive = read_run(run)
    assert [cell.record.end for cell in archive.cells] == ["exited"] * len(
        archive.record.plan.cells
    )
    assert (run / layout.CELLS_FOLDER / ".interrupted-0003.1" / layout.CELL_FILE).exists()


def test_a_killed_kvbench_takes_fio_with_it_and_loses_one_cell(
    running: tuple[Path, subprocess.Popen[str]],
) -> None:
    folder, process = running
    process.kill()
    process.communicate(timeout=30)
    deadline = time.monotonic() + 5
    while fios_on(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert fios_on(folder) == []
    run = only_run(folder)
    archive = read_run(run)
    assert archive.end is None
    assert len(archive.cells) == 1
    done = kvbench("report", run, "--text", cwd=folder)
    assert done.returncode == 0, done.stderr


def test_two_runs_at_once_on_one_target_name_the_other_pid(
    running: tuple[Path, subprocess.Popen[str]],
) -> None:
    folder, process = running
    done = kvbench(*RUN_SMALL, cwd=folder)
    assert done.returncode == ExitCode.USAGE
    assert str(process.pid) in done.stderr


@pytest.mark.slow
def test_a_stopped_run_is_resumed_to_its_end(folder: Path) -> None:
    run_small = (*RUN_SMALL, "--repetitions", "2")
    with started(*run_small, cwd=folder) as process:
        wait_for(folder / "results" / "*" / "cells" / "0003")
        process.kill()
        process.communicate(timeout=30)
    run = only_run(folder)
    kept = {cell.folder: cell.output_text() for cell in read_run(run).cells}
    target = folder / "results" / "target.dat"
    subprocess.run(["fallocate", "-p", "-o", "8MiB", "-l", "1MiB", target], check=True, timeout=10)
    refused = kvbench("run", "--resume", run.name, cwd=folder)
    assert refused.returncode == ExitCode.USAGE
    assert "1 MiB are holes" in refused.stderr
    with target.open("r+b") as file:
        file.seek(8 * MIB)
        file.write(os.urandom(MIB))
        os.fsync(file.fileno())
    done = kvbench("run", "--resume", run.name, cwd=folder)
    assert done.returncode == ExitCode.OK, done.stderr
    archive = read_run(run)
    assert len(archive.cells) == len(archive.record.plan.cells)
    assert all(
        cell.output_text() == kept.get(cell.folder, cell.output_text()) for cell in archive.cells
    )
    again = kvbench("run", "--resume", run.name, cwd=folder)
    assert again.returncode == ExitCode.USAGE
    assert "complete" in again.stderr


@pytest.mark.slow
def test_a_run_that_is_resumed_takes_no_other_options(done_run: Path) -> None:
    done = kvbench("run", "--resume", "latest", "--repetitions", "9", "--seed", "3", cwd=done_run)
    assert done.returncode == ExitCode.USAGE
    assert "repetitions, seed" in done.stderr


def test_a_smaller_span_leaves_the_default_target_as_it_is(done_run: Path) -> None:
    target = done_run / "results" / "target.dat"
    before = target.stat()
    done = kvbench(
        "run", "--workload", SMALL, "--span", "32MiB", "--repetitions", "1", "--json", cwd=done_run
    )
    assert done.returncode == ExitCode.OK, done.stderr
    after = target.stat()
    assert (before.st_ino, before.st_size) == (after.st_ino, after.st_size)
    folder = Path(json.loads(done.stdout)["folder"])
    run = read_run(done_run / folder)
    assert max(p.size_bytes for c in run.record.plan.cells for p in c.placed) == 32 * MIB
    shutil.rmtree(done_run / folder)


def test_doctor_looks_at_a_target_named_by_a_relative_path(done_run: Path) -> None:
    done = kvbench("doctor", "results/target.dat", cwd=done_run)
    spoiled = "[spoils]" in done.stdout or "[blocks]" in done.stdout  # others may use this disk
    assert done.returncode == (ExitCode.ENVIRONMENT if spoiled else ExitCode.OK), done.stderr
    assert "io uring" in done.stdout
    assert "io_uring" in done.stdout.partition("fio engines")[2]


def test_a_redacted_run_names_neither_drive_nor_host(folder: Path) -> None:
    done = kvbench(*RUN_SMALL, "--repetitions", "1", "--redact", cwd=folder)
    assert done.returncode == ExitCode.OK, done.stderr
    run = only_run(folder)
    identity = probe.identify(str(folder / "results" / "target.dat"))
    named = {fact.value for fact in probe.target_facts(identity) if fact.name in NAMING_FACTS}
    secrets = [one for one in {*named, platform.node()} if one and len(one) >= SECRET_CHARS_MIN]
    for path in (path for path in run.rglob("*") if path.is_file()):
        for secret in secrets:
            assert secret.encode() not in path.read_bytes(), path
    stored = {fact.name: fact.value for fact in read_run(run).record.facts}
    for fact in NAMING_FACTS:
        assert (stored[fact] or "redacted-").startswith("redacted-")


def test_a_run_of_which_the_drive_is_hidden_is_not_resumed(folder: Path) -> None:
    assert kvbench(*RUN_SMALL, "--repetitions", "1", cwd=folder).returncode == ExitCode.OK
    run = only_run(folder)
    record = read_run(run).record
    identity = msgspec.structs.replace(record.identity, serial="redacted-0123456789ab")
    (run / layout.RUN_FILE).write_bytes(
        msgspec.json.encode(msgspec.structs.replace(record, identity=identity))
    )
    (run / layout.END_FILE).unlink()
    shutil.rmtree(layout.cell_folder(run, record.plan.cells[-1].cell_id))
    done = kvbench("run", "--resume", "latest", cwd=folder)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert "stored with --redact" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_of_the_user_is_only_read(folder: Path) -> None:
    path = folder / "mine: a b.dat"
    path.write_bytes(os.urandom(64 * MIB))
    os.sync()
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    done = kvbench(
        "run", path, "--workload", SMALL, "--workload", WRITES, "--repetitions", "1", cwd=folder
    )
    assert done.returncode == ExitCode.OK, done.stderr
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert "writes" in done.stdout  # the report says what was skipped
    assert sorted(found.name for found in folder.iterdir()) == ["mine: a b.dat", "probe", "results"]


def test_a_file_of_the_user_is_written_only_when_named_twice_and_confirmed(folder: Path) -> None:
    path = folder / "mine.dat"
    path.write_bytes(os.urandom(64 * MIB))
    os.sync()
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    plain: list[str | Path] = ["run", path, "--workload", WRITES, "--repetitions", "1"]
    refused = kvbench(*plain, "--destroy", folder / "probe", "--yes", cwd=folder)
    assert refused.returncode == ExitCode.REFUSED
    unasked = kvbench(*plain, "--destroy", path, cwd=folder)
    assert unasked.returncode == ExitCode.REFUSED
    assert "--yes" in unasked.stderr
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    done = kvbench(*plain, "--destroy", path, "--yes", cwd=folder)
    assert done.returncode == ExitCode.OK, done.stderr
    assert hashlib.sha256(path.read_bytes()).hexdigest() != before
    assert path.stat().st_size == 64 * MIB


def test_a_sparse_file_is_refused_with_the_way_out(folder: Path) -> None:
    path = folder / "sparse.dat"
    with path.open("wb") as file:
        file.truncate(64 * MIB)
    done = kvbench("run", path, "--workload", SMALL, cwd=folder)
    assert done.returncode == ExitCode.USAGE
    assert "never written" in done.stderr
    assert "--destroy" in done.stderr


def test_memory_backed_targets_need_buffered_and_say_so(folder: Path) -> None:
    path = Path("/dev/shm") / f"kvbench-test-{os.getpid()}.dat"  # noqa: S108 - tmpfs is the point
    if not path.parent.is_dir():
        pytest.skip("no /dev/shm")
    try:
        path.write_bytes(os.urandom(64 * MIB))
        plain: list[str | Path] = ["run", path, "--workload", SMALL, "--repetitions", "1"]
        refused = kvbench(*plain, cwd=folder)
        assert refused.returncode == ExitCode.ENVIRONMENT
        assert "--buffered" in refused.stderr
        done = kvbench(*plain, "--buffered", cwd=folder)
        assert done.returncode == ExitCode.OK, done.stderr
        assert "page-cache-bound" in done.stdout
        assert "page-cache-bound" in (only_run(folder) / layout.REPORT_FILE).read_text()
    finally:
        path.unlink(missing_ok=True)


def test_another_engine_is_used_only_when_asked_and_is_shown(folder: Path) -> None:
    done = kvbench(
        *RUN_SMALL,
        "--repetitions",
        "1",
        "--engine",
        "libaio",
        cwd=folder,
    )
    assert done.returncode == ExitCode.OK, done.stderr
    assert "libaio" in done.stdout
    assert "libaio" in (only_run(folder) / layout.REPORT_FILE).read_text()


BAD_INPUT = [
    (["run", "--workload", "iops-lader"], ExitCode.USAGE, "iops-ladder"),
    (["run", "--suite", "quik"], ExitCode.USAGE, "quick"),
    (["run", "missing-file"], ExitCode.REFUSED, "missing-file"),
    (["run", "/"], ExitCode.REFUSED, "directory"),
    (["run", "/dev/null"], ExitCode.REFUSED, "/dev/null"),
    (["run", "probe"], ExitCode.USAGE, "too small"),
    (["run", "--span", "64M"], ExitCode.USAGE, "2MiB"),
    (["run", "--span", "1MiB"], ExitCode.USAGE, "too small"),
    (["run", "--span", "900TiB"], ExitCode.STORE, "free"),
    (["run", "--runtime", "nan"], ExitCode.USAGE, "duration"),
    (["run", "--runtime", "-1"], ExitCode.USAGE, "--runtime"),
    (["run", "--repetitions", "0"], ExitCode.USAGE, "--repetitions"),
    (["run", "--yes"], ExitCode.USAGE, "--destroy"),
    (["run", "--destroy", "x"], ExitCode.USAGE, "TARGET"),
    (["run", "--results", "probe"], ExitCode.STORE, "probe"),
    (["run", "--engine", "psync", "--workload", "sparse-row-step"], ExitCode.USAGE, "psync"),
    (["report", "nothing"], ExitCode.STORE, "nothing"),
    (["show", "nothing"], ExitCode.USAGE, "nothing"),
    (["doctor", "missing-file"], ExitCode.REFUSED, "missing-file"),
]


@pytest.mark.parametrize(
    ("arguments", "code", "word"), BAD_INPUT, ids=[" ".join(row[0]) for row in BAD_INPUT]
)
def test_bad_input_is_one_sentence_and_the_right_exit_code(
    folder: Path, arguments: list[str], code: ExitCode, word: str
) -> None:
    done = kvbench(*arguments, cwd=folder)
    assert done.returncode == code, done.stderr
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not (folder / "missing-file").exists()


def test_no_fio_is_exit_3_with_the_command_that_installs_it(folder: Path) -> None:
    done = subprocess.run(
        command(*RUN_SMALL),
        cwd=folder,
        env=ENVIRONMENT | {"PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ExitCode.ENVIRONMENT
    assert "apt-get install fio" in done.stderr


def test_a_read_only_results_folder_is_exit_5(folder: Path) -> None:
    results = folder / "read-only"
    results.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro", "none", str(results)], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("cannot mount a read-only tmpfs here")
    try:
        done = kvbench(*RUN_SMALL, "--results", results, cwd=folder)
    finally:
        subprocess.run(["umount", str(results)], check=True)
    assert done.returncode == ExitCode.STORE
    assert "--results" in done.stderr


def test_a_full_disk_keeps_what_was_stored_and_is_exit_5(folder: Path) -> None:
    results = folder / "small-disk"
    results.mkdir()
    target = folder / "target.dat"
    target.write_bytes(os.urandom(64 * MIB))
    os.sync()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=192k", "none", str(results)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode != 0:
        pytest.skip("cannot mount a small tmpfs here")
    try:
        done = kvbench(
            "run",
            target,
            "--workload",
            SMALL,
            "--repetitions",
            "9",
            "--runtime",
            "0.1",
            "--results",
            results,
            cwd=folder,
        )
        runs = list_runs(results)
        stored = read_run(runs[0]).cells if runs else ()
    finally:
        subprocess.run(["umount", str(results)], check=True)
    assert done.returncode == ExitCode.STORE, done.stderr
    assert "No space left" in done.stderr
    assert stored, "the cells stored before the disk was full must be kept"
    assert "Traceback" not in done.stderr


HOSTILE = [
    (["report", "latest", "--html", "same", "--csv", "same"], ExitCode.USAGE, "same file"),
    (["report", "latest", "--html", "/dev/null"], ExitCode.USAGE, "regular file"),
    (["report", "latest", "--html", ""], ExitCode.USAGE, "empty"),
    (["report", "latest", "--text", "--csv", "x"], ExitCode.USAGE, "--text"),
    (["run", "--label", "a\nb"], ExitCode.USAGE, "--label"),
    (["run", "--span", "9" * 6000], ExitCode.USAGE, "not a size"),
    (["run", "--span", ""], ExitCode.USAGE, "not a size"),
    (["run", "--results", ""], ExitCode.USAGE, "empty"),
    (["run", "--results", "loop"], ExitCode.USAGE, "loop"),
]


@pytest.mark.parametrize(("arguments", "code", "word"), HOSTILE, ids=[str(i) for i in range(9)])
def test_hostile_arguments_are_told_and_change_nothing(
    done_run: Path, arguments: list[str], code: ExitCode, word: str
) -> None:
    loop = done_run / "loop"
    loop.symlink_to(loop)
    try:
        done = kvbench(*arguments, cwd=done_run)
    finally:
        loop.unlink()
    assert done.returncode == code, done.stderr
    assert word in done.stderr
    assert Path("/dev/null").is_char_device()


def test_a_report_never_replaces_a_part_of_the_archive(done_run: Path) -> None:
    run = only_run(done_run)
    before = (run / layout.RUN_FILE).read_bytes()
    done = kvbench("report", run, "--html", run / layout.RUN_FILE, cwd=done_run)
    assert done.returncode == ExitCode.USAGE
    assert (run / layout.RUN_FILE).read_bytes() == before


@pytest.mark.parametrize("shell", ["2>/dev/full", "2>&-"])
def test_losing_stderr_does_not_end_a_run(done_run: Path, shell: str) -> None:
    line = " ".join(
        command("run", "--workload", SMALL, "--span", "64MiB", "--repetitions", "1", "--json")
    )
    done = subprocess.run(
        ["bash", "-c", f"{line} {shell}"],
        cwd=done_run,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == ExitCode.OK
    shutil.rmtree(done_run / json.loads(done.stdout)["folder"])


@pytest.mark.parametrize(
    ("shell", "code"), [(">/dev/full", ExitCode.ENVIRONMENT), (">&-", ExitCode.OK)]
)
def test_a_stdout_that_takes_nothing_is_no_bug(done_run: Path, shell: str, code: ExitCode) -> None:
    line = " ".join(command("list", "workloads"))
    done = subprocess.run(
        ["bash", "-c", f"{line} {shell}"],
        cwd=done_run,
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "bug" not in done.stderr


def test_a_signal_at_the_prompt_ends_at_once_and_writes_nothing(folder: Path) -> None:
    path = folder / "mine.dat"
    with path.open("wb") as file:
        file.truncate(64 * MIB)
    leader, follower = os.openpty()
    with subprocess.Popen(
        command("run", path, "--destroy", path, "--workload", WRITES),
        cwd=folder,
        env=ENVIRONMENT,
        stdin=follower,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert "writing destroys" in process.stderr.readline()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == ExitCode.INTERRUPTED
    os.close(leader)
    os.close(follower)
    assert path.stat().st_blocks == 0


def test_a_signal_while_filling_ends_it_soon(folder: Path) -> None:
    with started("run", "--workload", SMALL, "--span", "8GiB", cwd=folder) as process:
        wait_for(folder / "results" / ".kvbench-fill-*" / "out.json")
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=15)
    assert process.returncode == ExitCode.INTERRUPTED, errors
    assert fios_on(folder) == []
    (folder / "results" / "target.dat").unlink()


def test_read_only_makes_no_file_and_contradicts_destroy(tmp_path: Path) -> None:
    none = kvbench("run", "--read-only", "--workload", SMALL, cwd=tmp_path)
    assert none.returncode == ExitCode.USAGE
    assert "--read-only forbids making it" in none.stderr
    both = kvbench("run", "x", "--destroy", "x", "--read-only", cwd=tmp_path)
    assert both.returncode == ExitCode.USAGE
    assert not list(tmp_path.iterdir())


def test_read_only_leaves_out_what_writes_and_changes_no_byte(folder: Path) -> None:
    first = kvbench("run", "--workload", SMALL, "--span", "64MiB", "--repetitions", "1", cwd=folder)
    assert first.returncode == ExitCode.OK, first.stderr
    target = folder / "results" / "target.dat"
    before = fingerprint(target)
    arguments = ("--workload", SMALL, "--workload", WRITES, "--span", "64MiB", "--repetitions", "1")
    done = kvbench("run", *arguments, "--read-only", "--json", cwd=folder)
    assert done.returncode == ExitCode.OK, done.stderr
    assert fingerprint(target) == before
    plan = json.loads(kvbench("plan", *arguments, "--read-only", "--json", cwd=folder).stdout)
    assert [one["workload"] for one in plan["plan"]["skipped"]] == ["writes"]
