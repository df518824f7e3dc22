"""``kvbench compare`` as people call it: files, exit codes, and every wrong use in one sentence."""

import csv
import json
import shutil
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from kvbench.cli import measuring
from kvbench.cli.main import main
from kvbench.store import layout
from kvbench.store.records import RunRecord

ROOT = Path(__file__).parents[2]
EXAMPLE = next(iter(sorted((ROOT / "results/examples").glob(f"*/{layout.RUN_FILE}")))).parent


def part(where: Path, name: str, workloads: tuple[str, ...]) -> Path:
    """The example under another id, with the cells of some of its workloads only."""
    record = msgspec.json.decode((EXAMPLE / layout.RUN_FILE).read_bytes(), type=RunRecord)
    cells = tuple(c for c in record.plan.cells if c.workload in workloads)
    plan = replace(
        record.plan,
        cells=cells,
        workloads=tuple(w for w in record.plan.workloads if w.name in workloads),
    )
    folder = where / name
    (folder / layout.CELLS_FOLDER).mkdir(parents=True)
    made = replace(record, run_id=name, label=name, plan=plan)
    (folder / layout.RUN_FILE).write_bytes(msgspec.json.encode(made))
    shutil.copy(EXAMPLE / layout.END_FILE, folder)
    for cell in cells:
        source = layout.cell_folder(EXAMPLE, cell.cell_id)
        shutil.copytree(source, layout.cell_folder(folder, cell.cell_id))
    return folder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    part(folder, "one", ("vllm-block",))
    part(folder, "two", ("vllm-block",))
    part(folder, "other", ("lmcache-chunk",))
    return folder


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "CELLS_WORTH_IT", 10_000)


def compare(store: Path, *arguments: str) -> int:
    return main(["compare", "--results", str(store), *arguments])


def test_a_run_against_a_copy_of_itself_is_never_better_nor_worse(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(store, "one", "two", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    verdicts = Counter(row["changes"][1]["verdict"] for row in document["rows"])
    assert verdicts["UNCLEAR"] > 0
    assert set(verdicts) <= {"SAME", "UNCLEAR", "MISSING"}
    assert [winner["winner"] for winner in document["winners"]] == [None]


def test_text_is_printed_and_no_file_is_written(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(store.rglob("*"))
    assert compare(store, "one", "two") == 0
    out = capsys.readouterr().out
    assert out.startswith("performance: no winner")
    assert "wrote" not in out
    assert sorted(store.rglob("*")) == before


def test_the_page_and_the_table_are_written_where_asked(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, table = tmp_path / "page.html", tmp_path / "table.csv"
    assert compare(store, "one", "two", "--html", str(page), "--csv", str(table)) == 0
    out = capsys.readouterr().out
    assert f"wrote {page}\nwrote {table}\n" in out
    assert page.read_text().startswith("<!DOCTYPE html>")
    with table.open(newline="") as file:
        assert {row["side"] for row in csv.DictReader(file)} == {"A", "B"}


def test_runs_that_share_no_number_are_inconclusive(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(store, "one", "other") == 6
    assert capsys.readouterr().out.startswith("INCONCLUSIVE: the runs share no number")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("one",), "one run alone cannot be compared"),
        (("one", "one"), "'one' is named twice"),
        (("one", "two", "one"), "'one' is named twice"),
        (("one", "two", "--may-differ", "kernal"), "did you mean 'kernel'?"),
        (("one", "two", "--policy", "nowhere.toml"), "there is no such file"),
        (("one", "two", "--text", "--csv", "x.csv"), "--text writes no file"),
        (("one", "two", "--html", "/dev/null"), "is not a regular file"),
        (("one", "two", "--html", "x", "--csv", "./x"), "name the same file"),
    ],
)
def test_wrong_use_is_one_sentence(
    store: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert compare(store, *arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert words in told.err
    assert told.err.count("\n") == 1


def test_a_run_under_two_names_is_the_same_run(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(store, "one", str(store / "one")) == 2
    assert "are the same run" in capsys.readouterr().err
    moved = tmp_path / "moved"
    shutil.copytree(store / "one", moved)
    assert compare(store, "one", str(moved)) == 2
    assert "are the same run" in capsys.readouterr().err


def test_nothing_is_written_into_a_run(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("page.html", layout.RUN_FILE, f"{layout.CELLS_FOLDER}/x.html"):
        assert compare(store, "one", "two", "--html", str(store / "two" / name)) == 2
        assert "would become a part of the archive" in capsys.readouterr().err


def test_damaged_and_newer_archives_are_one_sentence(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged, newer = tmp_path / "damaged", tmp_path / "newer"
    for folder in (damaged, newer):
        shutil.copytree(store / "two", folder)
    (damaged / layout.RUN_FILE).write_text('{"format": 1, ')
    record = json.loads((newer / layout.RUN_FILE).read_text())
    (newer / layout.RUN_FILE).write_text(json.dumps(record | {"format": 99}))
    for folder, words in ((damaged, "damaged"), (newer, "format 99"), (tmp_path / "no", "no run")):
        assert compare(store, "one", str(folder)) == 5
        told = capsys.readouterr()
        assert words in told.err
        assert told.err.count("\n") == 1


def test_what_is_under_test_may_differ(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "newer-kernel"
    shutil.copytree(store / "two", folder)
    record = msgspec.json.decode((folder / layout.RUN_FILE).read_bytes(), type=RunRecord)
    facts = tuple(replace(f, value="99") if f.name == "kernel" else f for f in record.facts)
    (folder / layout.RUN_FILE).write_bytes(
        msgspec.json.encode(replace(record, run_id="kernel-99", facts=facts))
    )
    assert compare(store, "one", str(folder)) == 0
    assert capsys.readouterr().out.startswith("INCOMPARABLE: kernel must not differ and does")
    assert compare(store, "one", str(folder), "--may-differ", "kernel") == 0
    out = capsys.readouterr().out
    assert "INCOMPARABLE" not in out
    assert "kernel: " in out


def test_json_is_one_document_and_nothing_else(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    assert compare(store, "one", "two", "--json", "--csv", str(table)) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["sides"][0]["run_id"] == "one"
    assert told.err == ""
    assert table.exists()
