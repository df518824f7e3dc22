"""Markdown, workbooks and pictures as people ask for them, and every wrong use in one sentence."""

import io
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from kvbench.cli import exports, measuring
from kvbench.cli.main import main
from kvbench.errors import ExitCode, StoreError
from kvbench.report import workbook
from kvbench.report.columns import width
from kvbench.store import layout
from tests.cli.test_history import SERIAL, stored
from tests.stored import fact

PNG = b"\x89PNG\r\n"
WRONG = [
    (("--markdown", "-", "--json"), "both want standard output"),
    (("--markdown", "RUN/a.md"), "would become a part of the archive"),
    (("--markdown", f"RUN/{layout.RUN_FILE}"), "would become a part of the archive"),
    (("--xlsx", "RUN/a.xlsx"), "would become a part of the archive"),
    (("--markdown", "/dev/null"), "is not a regular file"),
    (("--markdown", "x", "--xlsx", "./x"), "name the same file"),
    (("--figures", "RUN"), "would become a part of the archive"),
    (("--figures", "RUN/cells/new"), "would become a part of the archive"),
    (("--figures", f"RUN/{layout.RUN_FILE}"), "is no folder"),
    (("--figures", "/dev/null"), "is no folder"),
    (("--text", "--markdown", "x"), "--text writes no file"),
    (("--text", "--figures", "x"), "--text writes no file"),
]
LACKS = {"gate": {"--figures", "--text"}, "history": {"--text"}}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    stored(folder, "one", 1)
    stored(folder, "two", 2)
    return folder


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "CELLS_WORTH_IT", 10_000)


def call(store: Path, verb: str, *arguments: str) -> int:
    names = {"report": ["one"], "history": ["--device", SERIAL]}.get(verb, ["one", "two"])
    return main([verb, "--results", str(store), *names, *arguments])


@pytest.mark.parametrize("verb", ["report", "compare", "history"])
def test_all_answers_are_written_where_asked(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    pytest.importorskip("openpyxl")
    files = [tmp_path / name for name in ("a.html", "a.csv", "a.md", "a.xlsx")]
    options = [
        w for f in files for w in (f"--{'markdown' if f.suffix == '.md' else f.suffix[1:]}", str(f))
    ]
    assert call(store, verb, *options, "--figures", str(tmp_path / "figures")) == 0
    out = capsys.readouterr().out
    pictures = sorted((tmp_path / "figures").iterdir())
    assert pictures
    assert all(picture.read_bytes().startswith(PNG) for picture in pictures)
    many = "1 figure" if len(pictures) == 1 else f"{len(pictures)} figures"
    assert out.endswith(
        "".join(f"wrote {file}\n" for file in files) + f"wrote {many} into {tmp_path / 'figures'}\n"
    )
    assert files[2].read_text().startswith("**")
    assert files[3].read_bytes().startswith(b"PK")


def test_pictures_keep_their_names_and_replace_older_ones(store: Path, tmp_path: Path) -> None:
    assert call(store, "compare", "--figures", str(tmp_path)) == 0
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    next(tmp_path.iterdir()).write_bytes(b"old")
    assert call(store, "compare", "--figures", str(tmp_path)) == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first


def test_markdown_can_be_printed_and_is_alone_on_standard_output(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for verb in ("compare", "gate", "history"):
        for name in ("-", "/dev/stdout"):
            written = tmp_path / f"{verb}.md"
            code = call(store, verb, "--markdown", name)
            told = capsys.readouterr()
            assert call(store, verb, "--markdown", str(written)) == code
            capsys.readouterr()
            assert told.out == written.read_text()
            assert told.out.startswith("**")
            assert told.err == ""
    page = tmp_path / "page.html"
    assert (
        call(store, "report", "--markdown", "-", "--html", str(page), "--csv", f"{page}.csv") == 0
    )
    told = capsys.readouterr()
    assert "| workload | point | number |" in told.out
    assert "wrote" not in told.out
    assert f"wrote {page}" in told.err


def test_json_stays_one_document_and_names_the_files(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "a.md"
    options = ["--html", str(tmp_path / "x.html"), "--csv", str(tmp_path / "x.csv")]
    assert call(store, "report", "--json", "--markdown", str(table), *options) == 0
    told = capsys.readouterr()
    assert str(table) in json.loads(told.out)["files"]
    assert told.err == ""


def test_a_gate_without_a_verdict_leaves_no_older_green_one(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = tmp_path / "gate.md"
    answer.write_text("**PASS**: all\n")
    wrong = tmp_path / "policy.toml"
    wrong.write_text("nonsense = 1\n")
    assert call(store, "gate", "--policy", str(wrong), "--markdown", str(answer)) == 2
    assert answer.read_text().startswith("**No verdict**: ")
    assert "PASS" not in answer.read_text()
    assert capsys.readouterr().err.count("\n") == 1


def test_without_openpyxl_nothing_is_measured_and_the_exit_code_is_3(
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(workbook, "find_spec", lambda _: None)
    for verb in ("report", "compare", "gate", "history"):
        assert call(store, verb, "--xlsx", str(tmp_path / "a.xlsx")) == 3
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.count("\n") == 1
        assert "pip install 'kvbench[xlsx]'" in told.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("verb", "arguments", "words"),
    [
        (verb, arguments, words)
        for verb in ("report", "compare", "gate", "history")
        for arguments, words in WRONG
        if not LACKS.get(verb, frozenset()) & set(arguments)
    ],
)
def test_wrong_use_is_one_sentence_and_writes_nothing(
    store: Path,
    capsys: pytest.CaptureFixture[str],
    verb: str,
    arguments: tuple[str, ...],
    words: str,
) -> None:
    pytest.importorskip("openpyxl")
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*")}
    given = [word.replace("RUN", str(store / "two")) for word in arguments]
    assert call(store, verb, *given) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert words in told.err
    assert told.err.count("\n") == 1
    assert {path: path.stat().st_mtime_ns for path in store.rglob("*")} == before


@pytest.mark.parametrize("verb", ["report", "compare", "gate", "history"])
def test_what_was_measured_is_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    target, default = tmp_path / "target.bin", tmp_path / "results" / "target.dat"

    def measured(record: dict[str, Any]) -> None:
        record["plan"]["target"]["path"] = "/nowhere"
        record["identity"]["real_path"] = str(target)

    for name in ("one", "two"):
        stored(default.parent, name, 1, measured)
    for path in (target, default):
        path.write_text("data")
        assert call(default.parent, verb, "--markdown", str(path)) == 2
        assert "is read or measured, so it is not replaced" in capsys.readouterr().err
        assert path.read_text() == "data"


@pytest.mark.parametrize("option", ["--html", "--csv", "--markdown"])
@pytest.mark.parametrize("record", ["target.json", "stamps/device-171aa4db9244.json"])
def test_a_record_that_later_runs_need_is_not_replaced(
    store: Path, capsys: pytest.CaptureFixture[str], option: str, record: str
) -> None:
    kept = store / record
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("{}")
    assert call(store, "report", option, str(kept)) == 2
    assert "is a record that kvbench needs, so it is not replaced" in capsys.readouterr().err
    assert kept.read_text() == "{}"
    kept.unlink()


def test_a_policy_is_not_replaced(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("x")
    for option in ("--markdown", "--xlsx"):
        assert call(store, "gate", "--policy", str(policy), option, str(policy)) == 2
        assert "is read or measured" in capsys.readouterr().err
    assert policy.read_text() == "x"


def entries(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")]}


NAMED = {
    "--html": "a.html",
    "--csv": "a.csv",
    "--markdown": "a.md",
    "--xlsx": "a.xlsx",
    "--figures": "figures",
}


@pytest.mark.parametrize("option", NAMED)
def test_a_report_with_an_output_writes_that_one_alone(
    store: Path, tmp_path: Path, option: str
) -> None:
    pytest.importorskip("openpyxl")
    before = entries(store / "one")
    assert call(store, "report", option, str(tmp_path / NAMED[option])) == 0
    assert [path.name for path in tmp_path.iterdir()] == [NAMED[option]]
    assert entries(store / "one") == before


def test_markdown_on_standard_output_writes_no_file(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = entries(store / "one")
    assert call(store, "report", "--markdown", "-") == 0
    assert "wrote" not in capsys.readouterr().err
    assert entries(store / "one") == before


def test_a_report_without_an_output_puts_page_and_table_beside_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stored(tmp_path, "one", 1)
    page, table = folder / layout.REPORT_FILE, folder / layout.TABLE_FILE
    assert call(tmp_path, "report") == 0
    assert capsys.readouterr().out.endswith(f"wrote {page}\nwrote {table}\n")
    assert page.read_text().startswith("<!DOCTYPE html>")
    page.unlink()
    assert call(tmp_path, "report", "--json") == 0
    assert json.loads(capsys.readouterr().out)["files"] == [str(page), str(table)]
    assert page.exists()


def test_a_run_in_a_folder_that_takes_no_file_is_reported_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, page = tmp_path / "results", tmp_path / "page.html"
    results.mkdir()
    stored(results, "one", 1)
    with read_only(results):
        assert call(results, "report", "--html", str(page)) == 0
        assert page.read_text().startswith("<!DOCTYPE html>")
        capsys.readouterr()
        assert call(results, "report") == ExitCode.STORE
        told = capsys.readouterr()
    assert len(told.out.splitlines()) > 3  # what is known comes before what fails
    assert told.err.count("\n") == 1


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make ``folder`` a read-only mount of itself: root may write whatever the mode says."""
    mounts = (["--bind", str(folder), str(folder)], ["-o", "remount,bind,ro", str(folder)])
    if subprocess.run(["mount", *mounts[0]], check=False, capture_output=True).returncode != 0:
        pytest.skip("cannot mount here")
    try:
        subprocess.run(["mount", *mounts[1]], check=True, capture_output=True)
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_the_text_comes_even_where_a_file_cannot_be_written(
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(path: Path, _: object) -> None:
        raise StoreError("No space left on device", where=str(path))

    monkeypatch.setattr(exports, "write_derived", full)
    for verb in ("report", "compare", "gate", "history"):
        assert call(store, verb, "--html", str(tmp_path / "a.html")) == ExitCode.STORE
        told = capsys.readouterr()
        assert len(told.out.splitlines()) > 3
        assert "No space left" in told.err


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("verb", ["report", "compare", "gate", "history"])
def test_every_text_fits_100_columns_and_a_terminal_of_ascii(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, encoding: str
) -> None:
    def named(record: dict[str, Any]) -> None:
        for name in ("device_model", "device_firmware", "kernel", "cpu"):
            fact(record, name, "Ω 漢字 \x1b[31m\u202e" + "x" * 300)
        record["label"] = "漢" * 150

    for day, name in enumerate(("one", "two"), start=1):
        stored(tmp_path, name, day, named)
    written = io.BytesIO()
    with io.TextIOWrapper(written, encoding) as screen:
        monkeypatch.setattr("sys.stdout", screen)
        assert call(tmp_path, verb, *(("--text",) if verb == "report" else ())) in (0, 6)
        screen.flush()
        text = written.getvalue().decode(encoding)
    assert len(text.splitlines()) > 5
    for line in text.splitlines():
        assert line.isprintable()
        assert width(line) <= 100, line


def test_a_verdict_is_in_its_files_even_where_its_text_cannot_be_printed(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = tmp_path / "gate.md"
    answer.write_text("**PASS**: all\n")
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stdout", full)
        assert call(store, "gate", "--markdown", str(answer)) == ExitCode.ENVIRONMENT
        monkeypatch.undo()
        with suppress(OSError):
            full.close()
    assert answer.read_text().startswith("**UNCLEAR**")
