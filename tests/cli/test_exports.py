"""Markdown, workbooks and pictures as people ask for them, and every wrong use in one sentence."""

import json
from pathlib import Path
from typing import Any

import pytest

from kvbench.cli import measuring
from kvbench.cli.main import main
from kvbench.report import workbook
from kvbench.store import layout
from tests.cli.test_history import SERIAL, stored

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
    names = {"report": ["one"], "compare": ["one", "two"], "gate": ["one", "two"]}[verb]
    return main([verb, "--results", str(store), *names, *arguments])


@pytest.mark.parametrize("verb", ["report", "compare"])
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
    for verb in ("compare", "gate"):
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
    for verb in ("report", "compare", "gate"):
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
        for verb in ("report", "compare", "gate")
        for arguments, words in WRONG
        if verb != "gate" or not {"--figures", "--text"} & set(arguments)
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
        option = {"history": "--html"}.get(verb, "--markdown")
        if verb == "history":
            code = main(
                [verb, "--results", str(default.parent), "--device", SERIAL, option, str(path)]
            )
        else:
            code = call(default.parent, verb, option, str(path))
        assert code == 2
        assert "is read or measured, so it is not replaced" in capsys.readouterr().err
        assert path.read_text() == "data"


def test_a_policy_is_not_replaced(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("x")
    for option in ("--markdown", "--xlsx"):
        assert call(store, "gate", "--policy", str(policy), option, str(policy)) == 2
        assert "is read or measured" in capsys.readouterr().err
    assert policy.read_text() == "x"
