"""``kvbench history`` as people call it: which runs are of the drive, and every wrong use."""

import json
from pathlib import Path
from typing import Any

import pytest

from kvbench.cli import measuring
from kvbench.cli.main import main
from kvbench.store import layout
from kvbench.store.redact import hidden
from tests.stored import Change, copy_of_example, fact, replace_text

SERIAL = "overlayblk"  # of the example


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "CELLS_WORTH_IT", 10_000)


def stored(results: Path, name: str, day: int, *changes: Change) -> Path:
    """A copy of the example of one workload, of another day."""

    def change(record: dict[str, Any]) -> None:
        record["created_at"] = f"2026-12-{day:02d}T08:00:00+00:00"
        plan = record["plan"]
        plan["workloads"] = [w for w in plan["workloads"] if w["name"] == "lmcache-chunk"]
        plan["cells"] = [c for c in plan["cells"] if c["workload"] == "lmcache-chunk"]
        for one in changes:
            one(record)

    folder = copy_of_example(results / name, change)
    kept = {
        c["cell_id"] for c in json.loads((folder / layout.RUN_FILE).read_text())["plan"]["cells"]
    }
    for cell in (folder / layout.CELLS_FOLDER).iterdir():
        if cell.name not in kept:
            for path in cell.iterdir():
                path.unlink()
            cell.rmdir()
    return folder


def firmware(revision: str) -> Change:
    return lambda record: fact(record, "device_firmware", revision)


def history(results: Path, *arguments: str, device: str = SERIAL) -> int:
    return main(["history", "--results", str(results), "--device", device, *arguments])


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    told = json.loads(capsys.readouterr().out)
    assert isinstance(told, dict)
    return told


def test_runs_of_the_drive_stand_in_the_order_of_time_with_their_firmware(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(tmp_path, "late", 3, firmware("FW2"))
    stored(tmp_path, "early", 1, firmware("FW1"))
    stored(tmp_path, "other", 2, lambda record: fact(record, "device_serial", "S2"))
    assert history(tmp_path, "--json") == 0
    told = document(capsys)
    assert [run["side"]["run_id"] for run in told["runs"]] == ["early", "late"]
    assert [run["firmware"] for run in told["runs"]] == ["FW1", "FW2"]
    assert told["runs"][1]["against"] == 0
    assert {point["called"] for series in told["series"] for point in series["points"]} == {""}


def test_page_and_table_are_written_where_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    stored(results, "a", 1)
    stored(results, "b", 2)
    page, table = tmp_path / "page.html", tmp_path / "table.csv"
    assert history(results, "--html", str(page), "--csv", str(table)) == 0
    out = capsys.readouterr().out
    assert out.startswith("2 runs on firmware unknown, ")
    assert out.endswith(f"wrote {page}\nwrote {table}\n")
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert table.read_text().startswith("workload,role,")


def test_an_unknown_serial_names_those_that_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(tmp_path, "a", 1)
    stored(tmp_path, "b", 2, lambda record: fact(record, "device_serial", None))
    assert history(tmp_path, device="S9") == 5
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert "with the serial 'S9'" in told.err
    assert f"{SERIAL}: 1 run, a drive that tells no serial: 1 run" in told.err
    assert "--of RUN" in told.err


def test_an_empty_store_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert history(tmp_path / "nowhere") == 5
    assert "the drives there: none" in capsys.readouterr().err


def test_redacted_runs_are_of_the_same_drive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(tmp_path, "open", 1)
    stored(tmp_path, "closed", 2, lambda record: fact(record, "device_serial", hidden(SERIAL)))
    for device in (SERIAL, hidden(SERIAL)):
        assert history(tmp_path, "--json", device=device) == 0
        runs = document(capsys)["runs"]
        assert [run["side"]["run_id"] for run in runs] == ["open", "closed"]
        assert runs[1]["against"] == 0
        assert runs[1]["apart"] == ""


def test_a_run_that_differs_in_what_must_not_is_told_and_not_joined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(tmp_path, "a", 1)
    stored(tmp_path, "b", 2, lambda record: fact(record, "kernel", "99"))
    assert history(tmp_path) == 0
    out = capsys.readouterr().out
    assert "! run 2 is not held against run 1, as kernel must not differ and does" in out
    assert "so no change can be called" in out


def test_copies_reruns_and_preparations_are_left_out_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def again(record: dict[str, Any]) -> None:
        record["pairing"] = {"kind": "rerun", "pair_id": "p", "of": "a"}

    stored(tmp_path, "a", 1)
    stored(tmp_path, "b", 2, again)
    stored(tmp_path, "copy", 1, lambda record: record.update(run_id="a"))
    (stored(tmp_path, "prepared", 3) / layout.PREPARATION_FILE).write_text("{}")
    assert history(tmp_path, "--json") == 0
    told = document(capsys)
    assert [run["side"]["run_id"] for run in told["runs"]] == ["a"]
    reasons = {one["run_id"]: one["reason"] for one in told["left_out"]}
    assert "is a copy" in reasons["a"]
    assert "measures a part of a again" in reasons["b"]
    assert "prepared the drive" in reasons["prepared"]


def test_a_damaged_run_hides_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored(tmp_path, "a", 1)
    broken = stored(tmp_path, "b", 2)
    replace_text(broken / layout.RUN_FILE, "{")
    assert history(tmp_path, "--json") == 0
    told = capsys.readouterr()
    assert [run["side"]["run_id"] for run in json.loads(told.out)["runs"]] == ["a"]
    assert "damaged" in told.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--html", "/dev/null"), "is not a regular file"),
        (("--html", "x", "--csv", "./x"), "name the same file"),
        (("--html", "RUN/page.html"), "would become a part of the archive"),
    ],
)
def test_wrong_use_is_one_sentence(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    words: str,
) -> None:
    run = stored(tmp_path, "a", 1)
    assert history(tmp_path, *(word.replace("RUN", str(run)) for word in arguments)) == 2
    told = capsys.readouterr()
    assert words in told.err
    assert told.err.count("\n") == 1


def block(serial: str | None, wwid: str | None) -> Change:
    """A run of a block device by another path each time."""

    def change(record: dict[str, Any]) -> None:
        fact(record, "device_serial", serial)
        path = f"/dev/disk{len(record['run_id'])}"
        record["identity"] |= {
            "path": path,
            "real_path": path,
            "kind": "block",
            "serial": serial,
            "wwid": wwid,
            "diskseq": record["run_id"],
        }

    return change


def runs_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [run["side"]["run_id"] for run in document(capsys)["runs"]]


def like(results: Path, run: str, *arguments: str) -> int:
    return main(["history", "--results", str(results), "--of", run, *arguments])


def test_two_namespaces_of_one_drive_are_not_mixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, day, namespace in (("a", 1, 1), ("bb", 2, 2), ("c", 3, 1), ("dd", 4, 2)):
        stored(tmp_path, name, day, block("S1", f"eui.00{namespace}, nsid {namespace}"))
    assert history(tmp_path, "--json", device="S1") == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert "nsid 1: newest run c; nsid 2: newest run dd" in told.err
    assert "--of RUN" in told.err
    for run, own in (("a", ["a", "c"]), ("c", ["a", "c"]), ("bb", ["bb", "dd"])):
        assert like(tmp_path, run, "--json") == 0
        assert runs_of(capsys) == own


def test_a_partition_is_not_its_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored(tmp_path, "disk", 1, block("S1", None))
    stored(tmp_path, "part", 2, block("S1", "partition 2"))
    assert history(tmp_path, device="S1") == 2
    capsys.readouterr()
    assert like(tmp_path, "part", "--json") == 0
    assert runs_of(capsys) == ["part"]


def test_a_drive_without_a_serial_is_known_by_its_world_wide_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(tmp_path, "a", 1, block(None, "naa.5000"))
    stored(tmp_path, "b", 2, block(None, "naa.6000"))
    stored(tmp_path, "c", 3, block(None, hidden("naa.5000")))
    for device in ("naa.5000", hidden("naa.5000")):
        assert history(tmp_path, "--json", device=device) == 0
        assert runs_of(capsys) == ["a", "c"]
    assert like(tmp_path, "c", "--json") == 0
    assert runs_of(capsys) == ["a", "c"]
    assert like(tmp_path, "b", "--json") == 0
    assert runs_of(capsys) == ["b"]


def without_serial(inode: int, **identity: str) -> Change:
    def change(record: dict[str, Any]) -> None:
        fact(record, "device_serial", None)
        record["identity"] |= {"inode": inode, **identity}

    return change


def test_a_file_is_known_by_its_inode_and_never_by_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(tmp_path, "a", 1, without_serial(7, real_path="/x"))
    stored(tmp_path, "other", 2, without_serial(8, real_path="/x"))
    stored(tmp_path, "b", 3, without_serial(7, real_path="/y"))
    stored(tmp_path, "elsewhere", 4, without_serial(7, device_number="9:9"))
    stored(tmp_path, "far", 5, without_serial(7), lambda record: fact(record, "cpu", "another"))
    backing = "backing file /z (254:0 inode 7)"
    stored(tmp_path, "loop", 6, block(None, backing))
    stored(tmp_path, "part", 7, block(None, f"{backing}, partition 1"))
    assert like(tmp_path, "b", "--json") == 0
    told = document(capsys)
    assert [run["side"]["run_id"] for run in told["runs"]] == ["a", "b", "loop"]
    assert told["serial"] == "file with inode 7 on 254:0"


def test_what_only_a_path_names_has_no_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(tmp_path, "a", 1, block(None, None))
    assert like(tmp_path, "a") == 2
    told = capsys.readouterr()
    assert "a path is no name" in told.err
    assert told.err.count("\n") == 1


def test_a_run_beside_the_store_may_be_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    stored(results, "a", 1)
    beside = stored(tmp_path, "b", 2)
    assert like(results, str(beside), "--json") == 0
    assert runs_of(capsys) == ["a", "b"]


@pytest.mark.parametrize("arguments", [(), ("--device", SERIAL, "--of", "a")])
def test_the_drive_is_named_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    stored(tmp_path, "a", 1)
    with pytest.raises(SystemExit, match="2"):
        main(["history", "--results", str(tmp_path), *arguments])
    assert "--of" in capsys.readouterr().err
