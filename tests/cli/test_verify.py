"""Integrity runs and ``kvbench verify`` on a loop device, with faults planted behind it."""

import json
import os
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kvbench.errors import ExitCode
from kvbench.store import journal, layout
from kvbench.store.read import list_runs
from kvbench.units import KIB, MIB
from tests.cli.program import ENVIRONMENT, SMALL, command, kvbench, needs_fio
from tests.host.loops import loop_over, needs_loops
from tests.integrity.blocks import sum_of

pytestmark = [
    pytest.mark.fio,
    pytest.mark.blockdev,
    pytest.mark.slow,
    needs_fio,
    needs_loops,
]

VERIFIED = Path(__file__).with_name("verified.toml")
BLOCK = 4 * KIB
SIZE_BYTES = 16 * MIB
SPAN_BYTES = SIZE_BYTES * 3 // 4


class Bench:
    """A loop device, the file behind it, and a results folder."""

    def __init__(self, device: str, backing: Path, folder: Path) -> None:
        self.device = device
        self.backing = backing
        self.folder = folder

    def arguments(self, *more: str | Path) -> list[str | Path]:
        """What runs the workload on the device."""
        given = ["run", self.device, "--destroy", self.device, "--yes", "--quiet"]
        return [*given, "--workload", VERIFIED, "--repetitions", "1", *more]

    def run(self) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return kvbench(*self.arguments(), cwd=self.folder)

    def verify(self, *more: str) -> tuple[int, dict[str, Any]]:
        """Read all back."""
        done = kvbench("verify", "latest", "--json", *more, cwd=self.folder)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    def change(self, offset: int, data: bytes) -> None:
        """Change bytes behind the device's back."""
        descriptor = os.open(self.backing, os.O_WRONLY)
        try:
            os.pwrite(descriptor, data, offset)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def bytes_at(self, offset: int, size: int = BLOCK) -> bytes:
        """What lies behind the device."""
        with self.backing.open("rb") as file:
            file.seek(offset)
            return file.read(size)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    backing = tmp_path / "backing"
    backing.write_bytes(os.urandom(MIB) * (SIZE_BYTES // MIB))
    with loop_over(backing) as device:
        yield Bench(device, backing, tmp_path)


def only_span(answer: dict[str, Any]) -> dict[str, Any]:
    """The one bad place that was found."""
    spans = [span for region in answer["regions"] for span in region["spans"]]
    assert len(spans) == 1, spans
    return dict(spans[0])


def test_what_was_written_is_found_whole_and_each_planted_fault_where_it_is(bench: Bench) -> None:
    done = bench.run()
    assert done.returncode == ExitCode.OK, done.stdout + done.stderr
    code, answer = bench.verify()
    (region,) = answer["regions"]
    assert (code, answer["bad_blocks"]) == (ExitCode.OK, 0)
    assert region["counts"] == {"good": SPAN_BYTES // BLOCK}
    assert answer["checked_bytes"] == SPAN_BYTES

    place = 700 * BLOCK
    kept = bench.bytes_at(place)
    byte = kept[1234] ^ 0x10
    bench.change(place + 1234, bytes([byte]))
    code, answer = bench.verify()
    assert code == ExitCode.CELL_FAILED
    assert only_span(answer) == {
        "kind": "torn",
        "start_bytes": place,
        "end_bytes": place + BLOCK,
        "holds_offset_bytes": None,
    }

    bench.change(place, bench.bytes_at(30 * BLOCK))
    code, answer = bench.verify()
    span = only_span(answer)
    assert code == ExitCode.CELL_FAILED
    assert (span["kind"], span["start_bytes"]) == ("misplaced", place)
    assert span["holds_offset_bytes"] == 30 * BLOCK

    bench.change(place, bytes(BLOCK))
    code, answer = bench.verify()
    assert (code, only_span(answer)["kind"]) == (ExitCode.CELL_FAILED, "lost")

    bench.change(place, kept)
    code, answer = bench.verify()
    assert code == ExitCode.OK
    assert (answer["judged_bytes"], answer["not_judged_bytes"]) == (
        SPAN_BYTES,
        SIZE_BYTES - SPAN_BYTES,
    )
    (part,) = answer["not_judged"]
    assert (part["why"], part["places"]) == ("outside", [[SPAN_BYTES, SIZE_BYTES]])
    assert region["not_ordered"] == ""
    text = kvbench("verify", "latest", cwd=bench.folder)
    assert f"INTACT: {SPAN_BYTES // BLOCK:,} of {SPAN_BYTES // BLOCK:,} blocks" in text.stdout
    assert "judged      12 MiB of 16 MiB" in text.stdout
    assert f"outside of what this run writes with headers (bytes {SPAN_BYTES} to" in text.stdout

    other = bytearray(bench.bytes_at(place))  # a block of another boot, at the same uptime
    numbered = struct.unpack_from("<H", other, 34)[0]
    struct.pack_into("<H", other, 34, (numbered + SPAN_BYTES // BLOCK // 2) % (SPAN_BYTES // BLOCK))
    struct.pack_into("<I", other, 36, sum_of(bytes(other[:36])))
    bench.change(place, bytes(other))
    code, answer = bench.verify()
    span = only_span(answer)
    assert (code, span["kind"], span["start_bytes"]) == (ExitCode.CELL_FAILED, "stale", place)


def test_a_block_of_the_run_before_is_stale(bench: Bench) -> None:
    assert bench.run().returncode == ExitCode.OK
    place = 41 * BLOCK
    old = bench.bytes_at(place)
    assert bench.run().returncode == ExitCode.OK
    bench.change(place, old)
    code, answer = bench.verify()
    span = only_span(answer)
    assert (code, span["kind"], span["start_bytes"]) == (ExitCode.CELL_FAILED, "stale", place)

    first, second = list_runs(bench.folder / "results")
    done = kvbench("verify", first.name, cwd=bench.folder)
    assert done.returncode == ExitCode.USAGE
    assert "a later run wrote to this target" in done.stderr
    assert second.name in done.stderr


def test_a_part_that_the_device_does_not_give_is_unreadable_and_located(bench: Bench) -> None:
    assert bench.run().returncode == ExitCode.OK
    os.truncate(bench.backing, SPAN_BYTES - 5 * BLOCK)
    code, answer = bench.verify()
    span = only_span(answer)
    assert code == ExitCode.CELL_FAILED
    assert (span["kind"], span["end_bytes"]) == ("unreadable", SPAN_BYTES)
    assert span["start_bytes"] <= SPAN_BYTES - 5 * BLOCK
    assert answer["regions"][0]["counts"]["good"] >= (SPAN_BYTES - MIB) // BLOCK


def test_a_run_on_kvbenchs_own_file_is_verified_and_a_redacted_one_too(tmp_path: Path) -> None:
    done = kvbench(
        *("run", "--workload", VERIFIED, "--repetitions", "1", "--span", "32MiB", "--quiet"),
        "--redact",
        cwd=tmp_path,
    )
    assert done.returncode == ExitCode.OK, done.stderr
    done = kvbench("verify", "latest", cwd=tmp_path)
    assert done.returncode == ExitCode.OK, done.stderr
    assert "INTACT: 6,144 of 6,144 blocks" in done.stdout
    (run,) = list_runs(tmp_path / "results")
    record = run / layout.RUN_FILE
    honest = record.read_text()
    for changed in (
        honest.replace('"size_bytes": 4096', '"size_bytes": 0'),
        honest.replace('"size_bytes": 25165824', '"size_bytes": 2516582400'),
    ):
        assert changed != honest
        record.write_text(changed)
        done = kvbench("verify", "latest", cwd=tmp_path)
        assert done.returncode == ExitCode.REFUSED, done.stderr
        assert len(done.stderr.splitlines()) == 1
    record.write_text(honest)
    (tmp_path / "results" / "target.dat").unlink()
    done = kvbench("verify", "latest", cwd=tmp_path)
    assert done.returncode == ExitCode.REFUSED
    assert len(done.stderr.splitlines()) == 1


def edited(plan: str, cell: str, change: Callable[[dict[str, Any]], None]) -> tuple[str, str]:
    """A run.json with its first writing cell changed, and that cell's record likewise."""
    run, record = json.loads(plan), json.loads(cell)
    for one in run["plan"]["cells"]:
        if one["cell_id"] == record["cell"]["cell_id"]:
            change(one)
    change(record["cell"])
    return json.dumps(run), json.dumps(record)


def test_a_run_that_contradicts_what_is_stored_beside_it_accuses_no_drive(bench: Bench) -> None:
    assert bench.run().returncode == ExitCode.OK
    (run,) = list_runs(bench.folder / "results")
    begun = run / journal.FILE
    cell = layout.cell_folder(run, journal.read(run)[-1].cell_id) / layout.CELL_FILE
    record = run / layout.RUN_FILE
    honest = {path: path.read_text() for path in (record, cell, begun)}

    def refused(*words: str) -> None:
        done = kvbench("verify", "latest", cwd=bench.folder)
        assert done.returncode == ExitCode.USAGE, done.stdout + done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
        for word in (*words, "what must be on the target is not known"):
            assert word in done.stderr
        for path, text in honest.items():
            path.write_text(text)

    def block(one: dict[str, Any]) -> None:
        one["placed"][0]["stream"]["block_mix"][0]["size_bytes"] = 8192

    def place(one: dict[str, Any]) -> None:
        one["placed"][0]["offset_bytes"] += 512

    def length(one: dict[str, Any]) -> None:
        one["placed"][0]["size_bytes"] -= 4096

    def seed(one: dict[str, Any]) -> None:
        one["seed"] += 1

    for change, word in ((block, "bs"), (place, "offset"), (length, "size"), (seed, "randseed")):
        plan, stored = edited(honest[record], honest[cell], change)
        record.write_text(plan)
        refused("contradict each other")
        record.write_text(plan)
        cell.write_text(stored)
        refused("job.fio", word)
    begun.write_text(honest[begun].replace('"0002"', '"0009"'))
    refused("'0009'", "no such cell")
    begun.write_text(honest[begun].splitlines()[0] + "\n")
    refused("stored as one that wrote")
    assert bench.verify()[0] == ExitCode.OK


def test_fio_agrees_about_what_is_whole_and_what_is_not(bench: Bench, fio: str) -> None:
    """The same cells' own job, told to check only: it also knows each block's seed."""
    assert bench.run().returncode == ExitCode.OK
    (run,) = list_runs(bench.folder / "results")
    ids = [entry.cell_id for entry in journal.read(run)]
    job = layout.cell_folder(run, ids[-1]) / layout.JOB_FILE

    def fio_says() -> str:
        argv = ["timeout", "60", fio, "--verify_only", str(job)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=False)
        return done.stdout + done.stderr

    assert "verify" not in fio_says().replace("verify_only", "")
    assert bench.verify()[0] == ExitCode.OK
    place = 99 * BLOCK
    bench.change(place + 4000, b"\0" * 8)
    assert f"verify failed at file {bench.device} offset {place}, length 4096" in fio_says()
    assert only_span(bench.verify()[1])["start_bytes"] == place


def test_a_fault_between_writing_and_reading_back_fails_the_cell_and_tells_the_place(
    bench: Bench,
) -> None:
    place = 100 * BLOCK
    over = threading.Event()

    def spoil() -> None:
        while not over.wait(0.001):
            bench.change(place + 2000, os.urandom(16))

    thread = threading.Thread(target=spoil)
    thread.start()
    try:
        done = bench.run()
    finally:
        over.set()
        thread.join()
    assert done.returncode == ExitCode.CELL_FAILED, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert f"of {SPAN_BYTES // BLOCK:,} blocks did not read back as written" in said
    assert f"offset {place} (4 KiB): its checksum is wrong" in said
    assert "WRONG DATA: cell 000" in said
    assert "failed; the run is complete" in said


def killed_in_the_overwrite(bench: Bench) -> Path:
    """Kill kvbench (and with it fio) in the middle of the second phase; return the run."""
    started = subprocess.Popen(
        command(*bench.arguments()),
        cwd=bench.folder,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        places = [n * BLOCK for n in range(0, SPAN_BYTES // BLOCK, 8)]
        until = time.monotonic() + 60
        while time.monotonic() < until:
            assert started.poll() is None, "it ended before it could be killed"
            runs = list_runs(bench.folder / "results")
            begun = journal.read(runs[0]) if runs else ()
            if len(begun) == 2:
                first = [bench.bytes_at(place, 44) for place in places]
                while (
                    sum(bench.bytes_at(p, 44) != f for p, f in zip(places, first, strict=True)) < 9
                ):
                    assert time.monotonic() < until
                break
            time.sleep(0.005)
        started.send_signal(signal.SIGKILL)
    finally:
        started.kill()
        started.wait(30)
    (run,) = list_runs(bench.folder / "results")
    return run


def test_after_a_kill_in_the_middle_every_block_is_old_or_new_and_whole(bench: Bench) -> None:
    run = killed_in_the_overwrite(bench)
    assert not (run / layout.END_FILE).exists()
    time.sleep(0.5)  # fio dies with its parent; the device ends what it has begun
    code, answer = bench.verify()
    (region,) = answer["regions"]
    counts = region["counts"]
    assert code == ExitCode.OK, answer
    assert set(counts) == {"good", "older"}, counts
    assert counts["good"] + counts["older"] == SPAN_BYTES // BLOCK
    assert region["lost_durable"] == 0
    assert [layer["end_s"] is None for layer in region["region"]["layers"]] == [True, False]

    lost = next(p for p in range(0, SPAN_BYTES, BLOCK) if bench.bytes_at(p) != bytes(BLOCK))
    bench.change(lost, bytes(BLOCK))
    code, answer = bench.verify()
    assert (code, only_span(answer)["kind"]) == (ExitCode.CELL_FAILED, "lost")

    resumed = kvbench(
        *("run", "--resume", run.name, "--destroy", bench.device, "--yes", "--quiet"),
        cwd=bench.folder,
    )
    assert resumed.returncode == ExitCode.OK, resumed.stderr
    code, answer = bench.verify()
    assert (code, answer["regions"][0]["counts"]) == (0, {"good": SPAN_BYTES // BLOCK})


def test_a_run_without_anything_to_verify_is_told_so(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(os.urandom(MIB) * 16)
    done = kvbench(
        *("run", target, "--workload", SMALL, "--repetitions", "1", "--quiet"), cwd=tmp_path
    )
    assert done.returncode == ExitCode.OK, done.stderr
    done = kvbench("verify", "latest", cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert "no cell that writes blocks to be verified" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_another_device_or_none_is_refused_in_one_sentence(bench: Bench, tmp_path: Path) -> None:
    assert bench.run().returncode == ExitCode.OK
    other = tmp_path / "other"
    other.write_bytes(bench.backing.read_bytes())
    with loop_over(other) as device:
        done = kvbench("verify", "latest", device, cwd=bench.folder)
    assert done.returncode == ExitCode.REFUSED
    assert "is not known to be what the run wrote" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    done = kvbench("verify", "latest", "/dev/no-such-device", cwd=bench.folder)
    assert done.returncode == ExitCode.REFUSED
    assert len(done.stderr.splitlines()) == 1
    assert kvbench("verify", "nothing", cwd=bench.folder).returncode == ExitCode.STORE


def test_the_same_file_under_another_loop_device_is_known(bench: Bench) -> None:
    assert bench.run().returncode == ExitCode.OK
    with loop_over(bench.backing) as device:
        assert device != bench.device
        done = kvbench("verify", "latest", device, "--json", cwd=bench.folder)
    assert done.returncode == ExitCode.OK, done.stderr
