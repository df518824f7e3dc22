"""``kvbench gate`` on stored archives: exit codes, files, and every kind of bad input."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from kvbench.cli.main import main
from kvbench.errors import ExitCode
from kvbench.store import layout
from tests.report.page import Page
from tests.stored import Change, fact, replace_text
from tests.stored import copy_of_example as copied

SOME = ("lmcache-chunk", "three-tenants")  # of two roles


def copy_of_example(folder: Path, change: Change = lambda _: None) -> Path:
    return copied(folder, change, workloads=SOME)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    copy_of_example(folder / "base")
    copy_of_example(folder / "new", lambda record: fact(record, "device_firmware", "FW2"))
    return folder


def gate(store: Path, *arguments: str | Path) -> int:
    return main(["gate", "--results", str(store), *map(str, arguments)])


def test_three_repetitions_decide_nothing_and_the_verdict_comes_first(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(store, "base", "new") == ExitCode.INCONCLUSIVE
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("UNCLEAR: ")
    assert any("3 and 3 repetitions cannot show WORSE among" in line for line in rest)


def test_json_is_one_document_with_the_exit_code(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(store, "base", "new", "--json") == ExitCode.INCONCLUSIVE
    answer = json.loads(capsys.readouterr().out)
    assert answer["exit_code"] == 6
    assert answer["gate"]["outcome"] == "UNCLEAR"
    assert {row["verdict"] for row in answer["gate"]["rows"]} <= {"PASS", "UNCLEAR"}


def test_junit_is_written_and_agrees(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    gate(store, "base", "new", "--junit", file)
    suite = ElementTree.parse(file).getroot().find("testsuite")  # noqa: S314 - our own file
    assert suite is not None
    assert int(suite.attrib["errors"]) == len(suite.findall("testcase/error")) > 0
    assert suite.findall("testcase/failure") == []


def test_a_run_against_itself_is_one_sentence(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(store, "base", "base") == ExitCode.USAGE
    told = capsys.readouterr()
    assert told.out == ""
    assert "same run" in told.err
    assert len(told.err.splitlines()) == 1


def test_a_copy_of_a_run_is_that_run(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy_of_example(tmp_path / "copy", lambda record: record.update(run_id="base"))
    assert gate(store, "base", tmp_path / "copy") == ExitCode.USAGE
    assert "same run" in capsys.readouterr().err


def other_format(record: dict[str, Any]) -> None:
    record["format"] = 99


BROKEN = {
    "a newer format": (other_format, "has format 99"),
    "no plan": (lambda record: record.pop("plan"), "is damaged"),
    "values of NaN": (
        lambda record: record["plan"].update(seed=float("nan")),
        "is damaged",
    ),
}


@pytest.mark.parametrize(("change", "told"), BROKEN.values(), ids=BROKEN)
def test_an_archive_that_cannot_be_read_is_an_error_and_no_verdict(
    store: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Any,  # noqa: ANN401
    told: str,
) -> None:
    copy_of_example(tmp_path / "broken", change)
    for order in (("base", tmp_path / "broken"), (tmp_path / "broken", "base")):
        assert gate(store, *order) == ExitCode.STORE
        shown = capsys.readouterr()
        assert told in shown.err
        assert shown.out == ""


def test_damaged_cells_are_never_green(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = copy_of_example(tmp_path / "broken")
    cells = sorted((broken / layout.CELLS_FOLDER).iterdir())
    for cell in cells[::2]:
        replace_text(cell / layout.OUTPUT_FILE, '{"jobs": [{"read": {"iops": NaN}}]}')
    assert gate(store, "base", broken) in (ExitCode.REGRESSION, ExitCode.INCONCLUSIVE)
    assert not capsys.readouterr().out.startswith("PASS")


def test_an_archive_without_cells_is_a_failure(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = copy_of_example(tmp_path / "empty")
    for cell in (empty / layout.CELLS_FOLDER).iterdir():
        replace_text(cell / layout.CELL_FILE, "")
    assert gate(store, "base", empty) == ExitCode.REGRESSION
    first = capsys.readouterr().out.splitlines()[0]
    assert "missing" in first
    assert "not whole" in first
    assert gate(store, empty, "base") == ExitCode.INCONCLUSIVE
    assert "the baseline is not whole" in capsys.readouterr().out


def test_another_fio_is_incomparable(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy_of_example(tmp_path / "other", lambda record: record.update(fio_version="fio-3.42"))
    assert gate(store, "base", tmp_path / "other") == ExitCode.INCONCLUSIVE
    assert capsys.readouterr().out.startswith("INCOMPARABLE: fio must not differ")


def test_a_policy_of_unknown_metrics_is_refused(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "mine.toml"
    policy.write_text(
        'format = 1\nconfidence = 95\nmetrics = ["*/*.iopz"]\nmay_differ = []\n'
        'must_not_differ = []\n[margins]\n"*" = "5 %"\n'
    )
    assert gate(store, "base", "new", "--policy", policy) == ExitCode.USAGE
    assert "no metric fits 'iopz'" in capsys.readouterr().err


def test_a_required_level_that_no_card_has_is_refused(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "mine.toml"
    policy.write_text(
        'format = 1\nconfidence = 95\nmetrics = ["primary"]\nmay_differ = []\n'
        'must_not_differ = []\n[margins]\n"*" = "5 %"\n'
        '[[require]]\nrole = "memory"\nlevel = "todayy"\n'
    )
    assert gate(store, "base", "new", "--policy", policy) == ExitCode.USAGE
    assert "has no level 'todayy'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("base", "none"), "no run 'none'"),
        (("base", "new", "--repetitions", "3"), "only goes with --rerun"),
        (("base", "new", "--yes"), "only goes with --destroy"),
        (("base", "new", "new"), "given twice"),
        (("base", "new", "--policy", "/dev/null"), "device or socket"),
        (("base", "new", "--junit", "/dev/null"), "not a regular file"),
    ],
)
def test_senseless_arguments_are_one_sentence(
    store: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    told: str,
) -> None:
    assert gate(store, *arguments) in (ExitCode.USAGE, ExitCode.STORE)
    shown = capsys.readouterr()
    assert told in shown.err
    assert len(shown.err.splitlines()) == 1


def test_junit_never_becomes_a_part_of_an_archive(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(store, "base", "new", "--junit", store / "new" / "x.xml") == ExitCode.USAGE
    assert "part of the archive" in capsys.readouterr().err


def test_rerun_of_nothing_unclear_or_of_no_target_is_told(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = gate(store, "base", "new", "--rerun", "/no/such/target")
    assert code == ExitCode.REFUSED
    assert "no such target" in capsys.readouterr().err


def test_a_page_says_the_verdict_and_the_command_that_decides_again(
    store: Path, tmp_path: Path
) -> None:
    file = tmp_path / "gate.html"
    assert gate(store, "base", "new", "--html", file) == ExitCode.INCONCLUSIVE
    page = Page(file.read_text())
    assert page.problems == []
    assert "UNCLEAR" in page.text("header")
    assert f"kvbench gate base new --results {store}" in page.text("pre")


def test_an_old_page_is_replaced_when_there_is_no_verdict(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "gate.html"
    file.write_text("PASS")
    assert gate(store, "base", "no-such-run", "--html", file) != ExitCode.OK
    assert "NO VERDICT" in Page(file.read_text()).text("main")
    assert gate(store, "base", "new", "--html", store / "new" / "x.html") == ExitCode.USAGE
